//! `kubectl mesh authz`: who may call whom. Verbs that all plugins share come from the kit; what is particular to access
//! is a module.

mod can_i;
mod get;
mod remove;
mod rules;
mod set;
mod who_can;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mesh::World;
use mesh::intent;
use mesh::manifest::Kind;
use mesh::resolve::Edge;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;
use mesh_live::plugin::{self, Plugin};
use std::process::ExitCode;

const PLUGIN: Plugin = Plugin {
    word: "authz",
    kind: intent::Kind::AccessPolicy,
    documents: "access policies",
    example: "bank/user-callers",
    objects: &[Kind::AuthorizationPolicy, Kind::PeerAuthentication],
    columns: get::COLUMNS,
    takes_part: protects,
};

/// Who may call whom: access policies of a fleet of service meshes.
#[derive(Parser)]
#[command(name = "kubectl-mesh-authz", disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    input: Input,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    CanI(can_i::Args),
    WhoCan(who_can::Args),
    Set(set::Args),
    #[command(flatten)]
    Common(plugin::Verb),
    Remove(remove::Args),
}

fn main() -> ExitCode {
    PLUGIN.main(Cli::command(), |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::CanI(args) => can_i::run(input, args),
        Verb::WhoCan(args) => who_can::run(input, args),
        Verb::Set(args) => set::run(input, args),
        Verb::Common(verb) => PLUGIN.run(input, verb),
        Verb::Remove(args) => remove::run(input, args),
    }
}

/// Whether a policy, or the default, decides who may call the service of an edge.
fn protects(world: &World, edge: &Edge, document: u32) -> bool {
    let policies = &world.effective.access.service(edge.provider).policies;
    policies.iter().any(|policy| world.effective.fleet.access[*policy].origin.document == document)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::PLUGIN.command(super::Cli::command()).debug_assert();
    }
}
