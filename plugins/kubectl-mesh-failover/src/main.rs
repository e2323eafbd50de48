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
use mesh_kit::run::Outcome;
use mesh_kit::verb;
use mesh_live::plugin::{self, Plugin};
use std::process::ExitCode;

const PLUGIN: Plugin = Plugin {
    word: "failover",
    kind: intent::Kind::TrafficPolicy,
    documents: "traffic policies",
    example: "bank/account-to-user",
    objects: &[Kind::DestinationRule, Kind::VirtualService],
    columns: get::COLUMNS,
    takes_part: is_decided_by,
};

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
    Simulate(simulate::Args),
    Drain(drain::Args),
    Set(set::Args),
    #[command(flatten)]
    Common(plugin::Verb),
    /// Take a traffic policy's document out of its file
    #[command(after_help = "\
Examples:
  # What would change
  kubectl mesh failover remove bank/account-to-user --dry-run=client -f fleet/")]
    Remove(verb::remove::Flags),
}

fn main() -> ExitCode {
    PLUGIN.main(Cli::command(), |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::Simulate(args) => simulate::run(input, args),
        Verb::Drain(args) => drain::run(input, args),
        Verb::Set(args) => set::run(input, args),
        Verb::Common(verb) => PLUGIN.run(input, verb),
        Verb::Remove(flags) => verb::remove::run(input, flags, PLUGIN.kind),
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
        super::PLUGIN.command(super::Cli::command()).debug_assert();
    }
}
