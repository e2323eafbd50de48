//! `kubectl mesh`: the verbs that concern a whole fleet. Each verb is a module; this file only lists them.

mod apply;
mod check;
mod clusters;
mod completion;
mod diff;
mod discover;
mod explain;
mod graph;
mod neighbour;
mod plan;
mod render;
mod requirements;
mod revision;
mod schema;
mod status;
mod support;
mod version;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mesh_kit::complete;
use mesh_kit::input::Input;
use mesh_kit::program;
use mesh_kit::run::{self, Outcome};
use std::ffi::OsString;
use std::process::ExitCode;

/// Steer a fleet of service meshes by a few documents in Git: each cluster's own mesh resources, rendered from intents.
#[derive(Parser)]
#[command(
    name = "kubectl-mesh",
    bin_name = "kubectl mesh",
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = neighbour::HELP
)]
struct Cli {
    #[command(flatten)]
    input: Input,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(hide = true)]
    Expose(neighbour::Args),
    #[command(hide = true)]
    Failover(neighbour::Args),
    #[command(hide = true)]
    Authz(neighbour::Args),
    Render(render::Args),
    Check(check::Args),
    Explain(explain::Args),
    Graph(graph::Args),
    Plan(plan::Args),
    Diff(diff::Args),
    Apply(apply::Args),
    Status(status::Args),
    Clusters(clusters::Args),
    Discover(discover::Args),
    Support(support::Args),
    Schema(schema::Args),
    Completion(completion::Args),
    Version(version::Args),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((word, rest)) = neighbour::called(&arguments) {
        return run::main(1, || neighbour::run(word, rest));
    }
    if let Some(words) = complete::asked(&arguments) {
        return match neighbour::asked(&words) {
            Some((word, question)) => run::main(1, || neighbour::run(word, &question)),
            None => run::main(1, || completion::answer(Cli::command(), &words)),
        };
    }
    match program::matches(Cli::command()) {
        Ok(matches) => run::main(program::trouble(), || dispatch(&Cli::from_arg_matches(&matches)?)),
        Err(code) => code,
    }
}

fn dispatch(cli: &Cli) -> Outcome {
    match &cli.verb {
        Verb::Expose(args) => neighbour::run_after_flags("expose", &cli.input.filename, args),
        Verb::Failover(args) => neighbour::run_after_flags("failover", &cli.input.filename, args),
        Verb::Authz(args) => neighbour::run_after_flags("authz", &cli.input.filename, args),
        Verb::Render(args) => render::run(&cli.input, args),
        Verb::Check(args) => check::run(&cli.input, args),
        Verb::Explain(args) => explain::run(&cli.input, args),
        Verb::Graph(args) => graph::run(&cli.input, args),
        Verb::Plan(args) => plan::run(&cli.input, args),
        Verb::Diff(args) => diff::run(&cli.input, args),
        Verb::Apply(args) => apply::run(&cli.input, args),
        Verb::Status(args) => status::run(&cli.input, args),
        Verb::Clusters(args) => clusters::run(&cli.input, args),
        Verb::Discover(args) => discover::run(&cli.input, args),
        Verb::Support(args) => support::run(&cli.input, args),
        Verb::Schema(args) => schema::run(args),
        Verb::Completion(args) => completion::run(Cli::command(), args),
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
