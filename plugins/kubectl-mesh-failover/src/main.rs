//! `kubectl mesh failover`: who serves whom when something fails. Verbs that all plugins share come from the kit; what is
//! particular to traffic is a module.

mod drain;
mod get;
mod outage;
mod set;
mod simulate;

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

/// The kinds of objects that say in which order clusters serve.
const KINDS: [Kind; 2] = [Kind::DestinationRule, Kind::VirtualService];

/// Who serves whom when something fails: traffic policies of a fleet of service meshes.
#[derive(Parser)]
#[command(name = "kubectl-mesh-failover", disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    input: Input,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Set(set::Args),
    /// List traffic policies
    #[command(after_help = "\
Examples:
  kubectl mesh failover get -f fleet/
  kubectl mesh failover get bank/account-to-user -o yaml -f fleet/")]
    Get(verb::get::Flags),
    /// Say who serves the callers that a policy is about, in which order, and why
    #[command(after_help = "\
Examples:
  kubectl mesh failover explain bank/account-to-user -f fleet/
  kubectl mesh failover explain --to bank/user -f fleet/ -o json")]
    Explain(verb::explain::Flags),
    Simulate(simulate::Args),
    Drain(drain::Args),
    /// Print the objects by which a cluster's callers fail over
    #[command(after_help = "\
Examples:
  kubectl mesh failover render --cluster cluster-1 -f fleet/")]
    Render(verb::render::Flags),
    /// Show what apply would change in the clusters, as far as these kinds of objects go
    #[command(after_help = "\
Exit code: 0 no differences, 1 differences, 2 something could not be compared.

Examples:
  kubectl mesh failover diff -f fleet/
  kubectl mesh failover diff --cluster eks -f fleet/")]
    Diff(mesh_live::diff::Flags),
    /// Make the clusters hold what the intents want, as far as these kinds of objects go
    #[command(after_help = "\
Examples:
  kubectl mesh failover apply --dry-run=server -f fleet/
  kubectl mesh failover apply --cluster eks -f fleet/")]
    Apply(mesh_live::apply::Flags),
    /// Take a traffic policy's document out of its file
    #[command(after_help = "\
Examples:
  # What would change
  kubectl mesh failover remove bank/account-to-user --dry-run=client -f fleet/")]
    Remove(verb::remove::Flags),
}

fn main() -> ExitCode {
    program::main(Cli::command(), "failover", |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::Set(args) => set::run(input, args),
        Verb::Get(flags) => verb::get::run(input, flags, intent::Kind::TrafficPolicy, &get::COLUMNS),
        Verb::Explain(flags) => verb::explain::run(input, flags, intent::Kind::TrafficPolicy, is_decided_by),
        Verb::Simulate(args) => simulate::run(input, args),
        Verb::Drain(args) => drain::run(input, args),
        Verb::Render(flags) => verb::render::run(input, flags, &KINDS),
        Verb::Diff(flags) => mesh_live::diff::diff(input, flags, &KINDS),
        Verb::Apply(flags) => mesh_live::apply::apply(input, flags, &KINDS),
        Verb::Remove(flags) => verb::remove::run(input, flags, intent::Kind::TrafficPolicy),
    }
}

/// Whether a policy sets anything for an edge.
fn is_decided_by(world: &World, edge: &Edge, document: u32) -> bool {
    let fleet = &world.effective.fleet;
    edge.routes().any(|route| route.units.policies().any(|policy| policy.of(fleet).origin.document == document))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
