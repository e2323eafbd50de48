//! `kubectl mesh expose`: services, where they run, and how other clusters reach them. Verbs that all plugins share come
//! from the kit; what is particular to services is a module.

mod get;
mod set;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mesh::World;
use mesh::intent;
use mesh::manifest::Kind;
use mesh::resolve::Edge;
use mesh_kit::input::Input;
use mesh_kit::program;
use mesh_kit::run::Outcome;
use mesh_kit::verb;
use std::process::ExitCode;

/// The kinds of objects that exist because services are reached from other clusters.
const KINDS: [Kind; 6] =
    [Kind::Service, Kind::ServiceEntry, Kind::Gateway, Kind::DestinationRule, Kind::VirtualService, Kind::Sidecar];

/// Services of a fleet of meshes: where they run, what they depend on, how other clusters reach them.
#[derive(Parser)]
#[command(name = "kubectl-mesh-expose", disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    input: Input,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Set(set::Args),
    /// List services: host names, where they run, who depends on them
    #[command(after_help = "\
Examples:
  kubectl mesh expose get -f fleet/
  kubectl mesh expose get -n bank -l data=pii -o wide -f fleet/
  kubectl mesh expose get bank/user -o yaml -f fleet/")]
    Get(verb::get::Flags),
    /// Say who serves the callers of a service, in which order, and why
    #[command(after_help = "\
Examples:
  kubectl mesh expose explain bank/user -f fleet/
  kubectl mesh expose explain bank/user --from bank/account@eks -f fleet/ -o json")]
    Explain(verb::explain::Flags),
    /// Print what a cluster needs to reach services elsewhere, and to be reached
    #[command(after_help = "\
Examples:
  kubectl mesh expose render --cluster cluster-1 -f fleet/
  kubectl mesh expose render --cluster cluster-1 -o name -f fleet/")]
    Render(verb::render::Flags),
    /// Show what apply would change in the clusters, as far as these kinds of objects go
    #[command(after_help = "\
Exit code: 0 no differences, 1 differences, 2 something could not be compared.

Examples:
  kubectl mesh expose diff -f fleet/
  kubectl mesh expose diff --cluster eks -f fleet/")]
    Diff(mesh_live::diff::Flags),
    /// Make the clusters hold what the intents want, as far as these kinds of objects go
    #[command(after_help = "\
Examples:
  kubectl mesh expose apply --dry-run=server -f fleet/
  kubectl mesh expose apply --cluster eks -f fleet/")]
    Apply(mesh_live::apply::Flags),
    /// Take a service's document out of its file
    #[command(after_help = "\
Examples:
  # What would change
  kubectl mesh expose remove bank/order --dry-run=client -f fleet/")]
    Remove(verb::remove::Flags),
}

fn main() -> ExitCode {
    program::main(Cli::command(), "expose", |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::Set(args) => set::run(input, args),
        Verb::Get(flags) => verb::get::run(input, flags, intent::Kind::MeshService, &get::COLUMNS),
        Verb::Explain(flags) => verb::explain::run(input, flags, intent::Kind::MeshService, is_called),
        Verb::Render(flags) => verb::render::run(input, flags, &KINDS),
        Verb::Diff(flags) => mesh_live::diff::diff(input, flags, &KINDS),
        Verb::Apply(flags) => mesh_live::apply::apply(input, flags, &KINDS),
        Verb::Remove(flags) => verb::remove::run(input, flags, intent::Kind::MeshService),
    }
}

fn is_called(world: &World, edge: &Edge, document: u32) -> bool {
    world.effective.fleet.service(edge.provider).origin.document == document
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
