//! `kubectl mesh`: the verbs that concern a whole fleet. Each verb is a module; this file only lists them.

mod apply;
mod check;
mod clusters;
mod diff;
mod discover;
mod explain;
mod render;
mod requirements;
mod schema;
mod status;
mod version;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mesh_kit::input::Input;
use mesh_kit::run::{self, Outcome};
use std::process::ExitCode;

/// Steer a fleet of service meshes by a few documents in Git: each cluster's own mesh resources, rendered from intents.
#[derive(Parser)]
#[command(
    name = "kubectl-mesh",
    bin_name = "kubectl mesh",
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
    Render(render::Args),
    Check(check::Args),
    Explain(explain::Args),
    Diff(diff::Args),
    Apply(apply::Args),
    Status(status::Args),
    Clusters(clusters::Args),
    Discover(discover::Args),
    Schema(schema::Args),
    Version(version::Args),
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    // These two answer with 1, so trouble is something else.
    let trouble = if matches!(matches.subcommand_name(), Some("check" | "diff")) { 2 } else { 1 };
    run::main(trouble, || {
        let cli = Cli::from_arg_matches(&matches)?;
        dispatch(&cli)
    })
}

fn dispatch(cli: &Cli) -> Outcome {
    match &cli.verb {
        Verb::Render(args) => render::run(&cli.input, args),
        Verb::Check(args) => check::run(&cli.input, args),
        Verb::Explain(args) => explain::run(&cli.input, args),
        Verb::Diff(args) => diff::run(&cli.input, args),
        Verb::Apply(args) => apply::run(&cli.input, args),
        Verb::Status(args) => status::run(&cli.input, args),
        Verb::Clusters(args) => clusters::run(&cli.input, args),
        Verb::Discover(args) => discover::run(&cli.input, args),
        Verb::Schema(args) => schema::run(args),
        Verb::Version(args) => version::run(args),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
