//! `render`: one cluster's manifests to stdout, or every cluster's into a folder.

use anyhow::Context;
use mesh::World;
use mesh::diagnostic::{Diagnostic, Diagnostics, Severity};
use mesh::manifest::Object;
use mesh_kit::folder::{self, Layout};
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, ObjectFormat};
use mesh_kit::run::{self, Outcome};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Print one cluster's manifests, or write every cluster's into a folder
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  # What stands in cluster-1
  kubectl mesh render -f fleet/ --cluster cluster-1

  # A folder per cluster, for pull requests, Flux and kubectl apply -k
  kubectl mesh render -f fleet/ --all --output-dir rendered/

  # Straight into a cluster
  kubectl mesh render -f fleet/ --cluster cluster-1 | kubectl --context cluster-1 apply --server-side -f -")]
pub(crate) struct Args {
    /// The cluster to render for
    #[arg(long, value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    cluster: Option<String>,
    /// Render for every cluster, into --output-dir
    #[arg(long, requires = "output_dir")]
    all: bool,
    /// The folder to write to: NAME/….yaml for every cluster, with a kustomization.yaml in each
    #[arg(long, value_name = "DIR", requires = "all")]
    output_dir: Option<PathBuf>,
    /// How objects are put into files
    #[arg(long, value_enum, default_value = "files", requires = "output_dir")]
    layout: Layout,
    /// The form of the output
    #[arg(short, long, value_enum, default_value = "yaml", conflicts_with = "all")]
    output: ObjectFormat,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let world = input.right_world()?;
    match (&args.cluster, &args.output_dir) {
        (Some(name), _) => {
            let cluster = input::cluster(&world.effective.fleet, name)?;
            let rendered = world.render(cluster).map_err(|found| input::refuse(&world, &found))?;
            input::warn(&world, &rendered.found, Severity::Warning);
            run::print(&output::objects(&rendered.objects, args.output))?;
        }
        (None, Some(folder)) => {
            let (clusters, found) = all(&world)?;
            input::warn(&world, &found, Severity::Warning);
            let files = folder::files(&clusters, args.layout);
            let written = folder::write(folder, &files)
                .with_context(|| format!("nothing was changed in {}", folder.display()))?;
            eprintln!(
                "{}: {} clusters; {} files created, {} changed, {} removed, {} unchanged",
                folder.display(),
                clusters.len(),
                written.created,
                written.changed,
                written.removed,
                written.unchanged
            );
        }
        (None, None) => {
            return Err(anyhow::anyhow!("name a cluster with --cluster, or use --all with --output-dir").into());
        }
    }
    Ok(0)
}

/// Every cluster's objects by name, and the warnings.
type Fleet = (BTreeMap<String, Vec<Object>>, Vec<Diagnostic>);

/// Every cluster's objects. Clusters share nothing but the effective fleet, so they are rendered side by side; the result
/// is put together in the order of names.
fn all(world: &World) -> Result<Fleet, run::Failure> {
    let fleet = &world.effective.fleet;
    let ids: Vec<_> = fleet.cluster_ids().map(|(id, _)| id).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(ids.len().max(1));
    let parts: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let mine: Vec<_> = ids.iter().copied().skip(worker).step_by(workers).collect();
                scope.spawn(move || mine.into_iter().map(|id| (id, world.render(id))).collect::<Vec<_>>())
            })
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("rendering does not panic")).collect()
    });
    let mut clusters = BTreeMap::new();
    let mut found = Diagnostics::default();
    for (id, result) in parts {
        let findings = match result {
            Ok(rendered) => {
                clusters.insert(fleet.cluster(id).name.to_string(), rendered.objects);
                rendered.found
            }
            Err(findings) => findings,
        };
        findings.into_iter().for_each(|finding| found.push(finding));
    }
    let failed = found.has_errors();
    let found = found.sorted();
    if failed { Err(input::refuse(world, &found)) } else { Ok((clusters, found)) }
}
