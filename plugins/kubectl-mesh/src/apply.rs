//! `apply`: make the clusters hold what the intents want.

use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Make the clusters hold what the intents want
#[derive(clap::Args)]
#[command(after_help = "\
What is needed first is applied first, in all clusters at once; a cluster that fails does not stop the others. Running it \
again changes nothing, and finishes what was interrupted.

Examples:
  kubectl mesh apply -f fleet/ --dry-run=server
  kubectl mesh apply -f fleet/
  kubectl mesh apply -f fleet/ --cluster eks --prune --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: mesh_live::apply::Flags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::apply::apply(input, &args.flags, &Kind::ALL)
}
