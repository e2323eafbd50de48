//! `drain`: takes a cluster out of service for everyone elsewhere, by one word in its document.

use mesh::intent::Kind;
use mesh_kit::author::change::{self, Author, DryRun};
use mesh_kit::author::documents::Id;
use mesh_kit::author::value::Value;
use mesh_kit::input::Input;
use mesh_kit::run::Outcome;

/// Let a cluster serve nobody from elsewhere, and send its own callers elsewhere where they can go
#[derive(clap::Args)]
#[command(after_help = "\
Edits `drain` in the Cluster document, after showing who will be served from where. Nothing happens in any cluster until \
the documents are applied.

Examples:
  kubectl mesh failover drain cluster-1 --dry-run=client -f fleet/
  kubectl mesh failover drain cluster-1 -f fleet/
  kubectl mesh failover drain cluster-1 --undo -f fleet/")]
pub(crate) struct Args {
    /// The cluster
    cluster: String,
    /// Put the cluster back into service
    #[arg(long)]
    undo: bool,
    /// `client`: show the change and its effect, and write nothing
    #[arg(long, value_enum, default_value = "none", require_equals = true)]
    dry_run: DryRun,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let id = Id { kind: Kind::Cluster, namespace: None, name: args.cluster.clone() };
    let author = Author { file: None, dry_run: args.dry_run };
    let drain = (!args.undo).then_some(Value::Bool(true));
    change::edit(input, &author, &id, |_| Ok(vec![(vec!["spec", "drain"], drain)]))
}
