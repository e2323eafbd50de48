//! `diff`: what `apply` would change in the clusters.

use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Show what apply would change in the clusters
#[derive(clap::Args)]
#[command(after_help = "\
Exit code: 0 no differences, 1 differences, 2 something could not be compared. KUBECTL_EXTERNAL_DIFF names another program \
for the comparison, as for kubectl diff.

Examples:
  kubectl mesh diff -f fleet/
  kubectl mesh diff -f fleet/ --cluster eks,cluster-1 --prune
  KUBECTL_EXTERNAL_DIFF=\"diff --color=always -u -N\" kubectl mesh diff -f fleet/")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: mesh_live::diff::Flags,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    mesh_live::diff::diff(input, &args.flags, &Kind::ALL)
}
