//! `kubectl mesh authz`: who may call whom. Each verb is a module; this file only lists them.

mod verdict;
mod who_can;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mesh_kit::input::Input;
use mesh_kit::run;
use std::process::ExitCode;

/// Who may call whom: access policies of a fleet of service meshes.
#[derive(Parser)]
#[command(
    name = "kubectl-mesh-authz",
    bin_name = "kubectl mesh authz",
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    input: Input,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    WhoCan(who_can::Args),
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    run::main(1, || {
        let cli = Cli::from_arg_matches(&matches)?;
        match &cli.verb {
            Verb::WhoCan(args) => who_can::run(&cli.input, args),
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
