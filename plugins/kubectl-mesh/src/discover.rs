//! `discover`: where services really run.

use mesh_kit::input::Input;
use mesh_kit::run::Outcome;
use mesh_live::discover::DiscoverFlags;

/// Write where the services of the intents really run, as a ServiceLocations document
#[derive(clap::Args)]
#[command(after_help = "\
A service runs where it has ready endpoints. A cluster that cannot be asked keeps what the file says about it.

Examples:
  kubectl mesh discover -f fleet/
  kubectl mesh discover -f fleet/ --output fleet/inventory/observed.yaml
  kubectl mesh discover -f fleet/ --output fleet/inventory/observed.yaml --watch")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: DiscoverFlags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::discover::discover(input, &args.flags)
}
