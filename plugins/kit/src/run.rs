//! How a command ends: exit codes and the last words, in one place for all programs.

use std::io::Write;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong; `error: …` goes to stderr. Exit code 1.
    Error(anyhow::Error),
    /// What is wrong has been printed already.
    Printed(u8),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// What a command returns: the exit code of a success is 0 unless it says otherwise (`diff`: 1 for differences).
pub type Outcome = Result<u8, Failure>;

/// Runs a command line and turns its outcome into an exit code. A closed pipe is no failure: whoever read had enough.
#[must_use]
pub fn main(trouble: u8, command: impl FnOnce() -> Outcome) -> ExitCode {
    let code = match command() {
        Ok(code) | Err(Failure::Printed(code)) => code,
        Err(Failure::Error(error)) if is_closed_pipe(&error) => 0,
        Err(Failure::Error(error)) => {
            let text = format!("{error:#}");
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let _ = writeln!(std::io::stderr(), "error: {text}");
            trouble
        }
    };
    ExitCode::from(code)
}

/// Whether the reader of our output has gone.
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// Writes data to stdout, completely.
///
/// # Errors
///
/// Whatever keeps the output from being written.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
