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
use mesh_kit::program;
use mesh_kit::run::Outcome;
use mesh_kit::verb;
use std::process::ExitCode;

/// The kinds of objects that decide who may call.
const KINDS: [Kind; 2] = [Kind::AuthorizationPolicy, Kind::PeerAuthentication];

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
    /// List access policies
    #[command(after_help = "\
Examples:
  kubectl mesh authz get -f fleet/
  kubectl mesh authz get bank/user-callers -o yaml -f fleet/")]
    Get(verb::get::Flags),
    /// Say who serves the callers of the services that a policy protects, and who is removed by it
    #[command(after_help = "\
Examples:
  kubectl mesh authz explain bank/user-callers -f fleet/")]
    Explain(verb::explain::Flags),
    /// Print the objects by which a cluster decides who may call
    #[command(after_help = "\
Examples:
  kubectl mesh authz render --cluster cluster-1 -f fleet/")]
    Render(verb::render::Flags),
    /// Show what apply would change in the clusters, as far as these kinds of objects go
    #[command(after_help = "\
Exit code: 0 no differences, 1 differences, 2 something could not be compared.

Examples:
  kubectl mesh authz diff -f fleet/
  kubectl mesh authz diff --cluster eks -f fleet/")]
    Diff(mesh_live::diff::Flags),
    /// Make the clusters hold what the intents want, as far as these kinds of objects go
    #[command(after_help = "\
Examples:
  kubectl mesh authz apply --dry-run=server -f fleet/
  kubectl mesh authz apply --cluster eks -f fleet/")]
    Apply(mesh_live::apply::Flags),
    Remove(remove::Args),
}

fn main() -> ExitCode {
    program::main(Cli::command(), "authz", |matches| dispatch(&Cli::from_arg_matches(matches)?))
}

fn dispatch(cli: &Cli) -> Outcome {
    let input = &cli.input;
    match &cli.verb {
        Verb::CanI(args) => can_i::run(input, args),
        Verb::WhoCan(args) => who_can::run(input, args),
        Verb::Set(args) => set::run(input, args),
        Verb::Get(flags) => verb::get::run(input, flags, intent::Kind::AccessPolicy, &get::COLUMNS),
        Verb::Explain(flags) => verb::explain::run(input, flags, intent::Kind::AccessPolicy, protects),
        Verb::Render(flags) => verb::render::run(input, flags, &KINDS),
        Verb::Diff(flags) => mesh_live::diff::diff(input, flags, &KINDS),
        Verb::Apply(flags) => mesh_live::apply::apply(input, flags, &KINDS),
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
        super::Cli::command().debug_assert();
    }
}
