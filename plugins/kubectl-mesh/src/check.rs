//! `check`: everything that is wrong with the documents, and the page of each code.

use mesh::diagnostic::{Severity, codes, did_you_mean};
use mesh_kit::findings;
use mesh_kit::input::Input;
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Failure, Outcome};

/// Say what is wrong with the documents, and what to write instead
#[derive(clap::Args)]
#[command(after_help = "\
Exit code: 0 nothing at or above --fail-on, 1 findings, 2 the check could not run.

Examples:
  kubectl mesh check -f fleet/
  kubectl mesh check -f fleet/ -o sarif > mesh.sarif
  kubectl mesh check --explain MESH402")]
pub(crate) struct Args {
    /// The form of the output; `sarif` is for code scanning, `github` for annotations of its workflows
    #[arg(short, long, value_parser = output::FINDINGS, default_value = "table")]
    output: Form,
    /// The least severity that makes the check fail
    #[arg(long, value_enum, default_value = "error", value_name = "SEVERITY")]
    fail_on: FailOn,
    /// Print the page of a code instead
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Note,
}

impl From<FailOn> for Severity {
    fn from(value: FailOn) -> Self {
        match value {
            FailOn::Error => Self::Error,
            FailOn::Warning => Self::Warning,
            FailOn::Note => Self::Note,
        }
    }
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    if let Some(wanted) = &args.explain {
        let wanted = wanted.to_uppercase();
        let Some(code) = codes::ALL.iter().find(|code| code.id == wanted) else {
            let help = did_you_mean(&wanted, codes::ALL.iter().map(|code| code.id))
                .unwrap_or_else(|| "codes look like MESH102".to_owned());
            eprintln!("error: there is no code {wanted}; {help}");
            return Err(Failure::Printed(2));
        };
        run::print(&findings::page(code))?;
        return Ok(0);
    }
    let world = input.world();
    let found = world.check();
    run::print(&findings::render(&world.files, &found, &args.output)?)?;
    // A file that cannot be opened keeps the check from running; a document that is wrong is what it looks for.
    if found.iter().any(|finding| finding.code == &codes::UNREADABLE) {
        return Ok(2);
    }
    let least = Severity::from(args.fail_on);
    Ok(u8::from(found.iter().any(|finding| finding.code.severity >= least)))
}
