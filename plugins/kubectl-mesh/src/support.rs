//! `support`: a folder for somebody who helps.

use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Write what somebody who helps needs to see into a folder: findings, who serves whom, where the clusters stand, versions
#[derive(clap::Args)]
#[command(after_help = "\
No Secret is asked for, and nothing of the kubeconfig is written but the names of contexts. Read it before you send it:
it names services, clusters and addresses.

Examples:
  kubectl mesh support -f fleet/ --output-dir support/")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: mesh_live::support::Flags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::support::support(input, &args.flags)
}
