//! `plan`: what a change of documents does to the fleet, before anybody merges it. No cluster is asked.

use crate::revision;
use mesh::World;
use mesh::source::Limits;
use mesh_files::Bounds;
use mesh_kit::effect::{ClusterChange, Effect};
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Failure, Outcome};
use std::path::{Path, PathBuf};

/// Show what a change of the documents does to callers, access and each cluster's objects
#[derive(clap::Args)]
#[command(after_help = "\
BASE and TARGET are folders, or Git revisions of what -f names; without TARGET, BASE is compared with the files as they are. \
Nothing is read from any cluster: `kubectl mesh diff` compares with those.

Examples:
  # What this branch does
  kubectl mesh plan main -f fleet/

  # Between two revisions, with every line of every object
  kubectl mesh plan v1.4 v1.5 -f fleet/ -o diff

  # Between two folders
  kubectl mesh plan old/ new/")]
pub(crate) struct Args {
    /// What is there now: a folder, or a Git revision
    base: String,
    /// What is wanted: a folder, or a Git revision; the files of -f if it is left out
    target: Option<String>,
    /// table: callers, access, and how many objects; wide: each object; diff: each line of each object
    #[arg(short, long, value_parser = output::CHANGE, default_value = "table")]
    output: Form,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let before = side(input, &args.base)?;
    let after = match &args.target {
        Some(target) => side(input, target)?,
        None => input.right_world()?,
    };
    let effect = Effect::between(&before, &after);
    let text = match (args.output.of(&effect)?, &args.output) {
        (Some(text), _) => text,
        (None, Form::Own(_)) => diff(&effect.clusters),
        (None, _) if effect.is_empty() => {
            eprintln!("No effect on the fleet.");
            String::new()
        }
        (None, Form::Wide) => effect.to_text() + "\n" + &list(&effect.clusters),
        (None, _) => effect.to_text(),
    };
    run::print(&text)?;
    Ok(0)
}

/// A folder that is there, or a revision.
fn side(input: &Input, text: &str) -> Result<World, Failure> {
    let (bounds, path) = (Bounds::default(), Path::new(text));
    let (files, found) = if path.is_dir() {
        mesh_files::read(&[PathBuf::from(text)], &bounds)
    } else {
        revision::read(text, &input.filename, &bounds)?
    };
    input::right(World::of(files, &Limits::default(), found))
}

fn diff(clusters: &[ClusterChange]) -> String {
    let diffs = clusters
        .iter()
        .flat_map(|ClusterChange { cluster, objects }| objects.iter().map(move |object| object.diff(cluster)));
    diffs.collect()
}

/// Every object with what happens to it, cluster by cluster.
fn list(clusters: &[ClusterChange]) -> String {
    let mut table = mesh_kit::table::Rows::new(&["CLUSTER", "NAMESPACE", "OBJECT", "CHANGE"]);
    for ClusterChange { cluster, objects } in clusters {
        for object in objects {
            table.push([
                cluster.clone(),
                object.namespace.clone(),
                object.qualified_name(),
                object.change.as_str().to_owned(),
            ]);
        }
    }
    table.render(true)
}
