//! How a plugin begins: the name it was called by, and kubectl's exit codes for a wrong command line.

use crate::complete;
use crate::run::{self, Outcome};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Reads the command line and runs what it says. `part` is the plugin's word: `expose` in `kubectl mesh expose`.
#[must_use]
pub fn main(command: Command, part: &str, body: impl FnOnce(&ArgMatches) -> Outcome) -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let called = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    if let Some(words) = complete::asked(&arguments) {
        return run::main(1, || {
            run::print(&complete::answer(command, &words))?;
            Ok(0)
        });
    }
    let trouble = trouble();
    let stem = Path::new(&called).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match matches(spelled(command, part, &stem)) {
        Ok(matches) => run::main(trouble, || body(&matches)),
        Err(code) => code,
    }
}

/// The exit code of whatever keeps a verb from being carried out: `diff` and `check` answer with 1, so theirs is another.
#[must_use]
pub fn trouble() -> u8 {
    if std::env::args_os().any(|word| word == "diff" || word == "check") { 2 } else { 1 }
}

/// The words of the command line.
///
/// # Errors
///
/// What is wrong with them, help and the version are printed; the program ends with the code.
pub fn matches(command: Command) -> Result<ArgMatches, ExitCode> {
    command.try_get_matches().map_err(|error| {
        // Nobody is left to tell if this fails.
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { trouble() } else { 0 })
    })
}

/// The command as the user types it: Krew links a plugin `mesh-expose` as `kubectl-mesh_expose`, and kubectl runs that as
/// `kubectl mesh-expose` only.
fn spelled(command: Command, part: &str, stem: &str) -> Command {
    let usual = format!("kubectl mesh {part}");
    let typed = if stem.contains(&format!("mesh_{part}")) { format!("kubectl mesh-{part}") } else { usual.clone() };
    respell(command, &usual, &typed).bin_name(typed)
}

fn respell(mut command: Command, usual: &str, typed: &str) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(help.replace(usual, typed));
    }
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |verb| respell(verb, usual, typed)))
}

#[cfg(test)]
mod tests {
    use super::spelled;
    use clap::Command;

    #[test]
    fn help_shows_the_name_that_was_typed() {
        let help = |stem: &str| {
            let get = Command::new("get").after_help("kubectl mesh expose get");
            let mut command = spelled(Command::new("x").subcommand(get), "expose", stem);
            command.build();
            command.find_subcommand_mut("get").expect("it is there").render_help().to_string()
        };
        for (stem, typed) in [
            ("kubectl-mesh-expose", "kubectl mesh expose"),
            ("kubectl-mesh_expose", "kubectl mesh-expose"),
            ("anything", "kubectl mesh expose"),
        ] {
            let help = help(stem);
            assert!(
                help.contains(&format!("Usage: {typed} get\n")) && help.ends_with(&format!("{typed} get\n")),
                "{help}"
            );
        }
    }
}
