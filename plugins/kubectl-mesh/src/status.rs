//! `status`: where the clusters stand.

use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Say where the clusters stand: what is in sync, drifted, missing or surplus, and what Istio says
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kubectl mesh status -f fleet/
  kubectl mesh status -f fleet/ --wait --timeout 2m
  kubectl mesh status -f fleet/ -o json")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: mesh_live::status::Flags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::status::status(input, &args.flags, &Kind::ALL)
}
