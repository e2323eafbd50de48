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
use mesh_kit::run::Outcome;
use mesh_kit::verb;
use mesh_live::plugin::{self, Plugin};
use std::process::ExitCode;

const PLUGIN: Plugin = Plugin {
    word: "expose",
    kind: intent::Kind::MeshService,
    documents: "services",
    example: "bank/user",
    objects: &[
        Kind::Service,
        Kind::ServiceEntry,
        Kind::Gateway,
        Kind::DestinationRule,
        Kind::VirtualService,
        Kind::Sidecar,
    ],
    columns: get::COLUMNS,
    takes_part: is_called,
};

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
    #[command(flatten)]
    Common(plugin::Verb),
    /// Take a service's document out of its file
    #[command(after_help = "\
Examples:
  # What would change
  kubectl mesh expose remove bank/order --dry-run=client -f fleet/")]
    Remove(verb::remove::Flags),
}

fn main() -> ExitCode {
    PLUGIN.main(Cli::command(), |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::Set(args) => set::run(input, args),
        Verb::Common(verb) => PLUGIN.run(input, verb),
        Verb::Remove(flags) => verb::remove::run(input, flags, PLUGIN.kind),
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
        super::PLUGIN.command(super::Cli::command()).debug_assert();
    }
}
