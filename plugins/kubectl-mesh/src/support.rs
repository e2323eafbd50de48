//! `support`: a document for somebody who helps.

use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Print what somebody who helps needs to see: findings, who serves whom, where the clusters stand, versions
#[derive(clap::Args)]
#[command(after_help = "\
No Secret is asked for, and nothing of the kubeconfig is printed but the names of contexts. Read it before you send it:
it names services, clusters and addresses.

Examples:
  kubectl mesh support -f fleet/ > support.json")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: mesh_live::support::Flags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::support::support(input, &args.flags)
}
