//! `render`: one cluster's manifests to stdout, or every cluster's into a folder.

use anyhow::Context;
use mesh::World;
use mesh::diagnostic::{Diagnostic, Severity};
use mesh::fleet::ClusterId;
use mesh_kit::folder::{Layout, Staged, Staging, Written};
use mesh_kit::input::{self, Input};
use mesh_kit::manifest_work::ManifestWork;
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Failure, Outcome};
use std::path::{Path, PathBuf};

/// Print one cluster's manifests, or write every cluster's into a folder
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  # What stands in cluster-1
  kubectl mesh render -f fleet/ --cluster cluster-1

  # A folder per cluster, for pull requests, Flux and kubectl apply -k
  kubectl mesh render -f fleet/ --all --output-dir rendered/

  # A ManifestWork for each cluster, into the hub of Open Cluster Management
  kubectl mesh render -f fleet/ --cluster cluster-1 --emit manifestwork \\
    | kubectl --context hub apply -f -

  # Straight into a cluster
  kubectl mesh render -f fleet/ --cluster cluster-1 \\
    | kubectl --context cluster-1 apply --server-side -f -")]
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
    /// What is written: the objects, or one ManifestWork with all of them for the hub of Open Cluster Management
    #[arg(long, value_enum, default_value = "objects")]
    emit: Emit,
    /// The form of the output
    #[arg(short, long, value_parser = output::OBJECTS, default_value = "yaml", conflicts_with = "all")]
    output: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    Objects,
    #[value(name = "manifestwork")]
    ManifestWork,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let world = input.right_world()?;
    match (&args.cluster, &args.output_dir) {
        (Some(name), _) => {
            let cluster = input::cluster(&world.effective.fleet, name)?;
            let rendered = world.render(cluster).map_err(|found| input::refuse(&world, &found))?;
            let text = match args.emit {
                Emit::Objects => output::objects(&rendered.objects, &args.output)?,
                Emit::ManifestWork => {
                    let work = ManifestWork::of(name, &rendered.objects)?;
                    args.output.of(&work)?.unwrap_or_else(|| work.qualified_name())
                }
            };
            input::warn(&world, &rendered.found, Severity::Warning);
            run::print(&text)?;
        }
        (None, Some(folder)) => {
            let layout = if args.emit == Emit::ManifestWork { Layout::ManifestWork } else { args.layout };
            all(&world, folder, layout)?;
        }
        (None, None) => {
            return Err(anyhow::anyhow!("name a cluster with --cluster, or use --all with --output-dir").into());
        }
    }
    Ok(0)
}

/// Every cluster into its folder. Clusters share nothing but the effective fleet, so they are rendered side by side.
fn all(world: &World, folder: &Path, layout: Layout) -> Result<(), Failure> {
    let unchanged = || format!("nothing was changed in {}", folder.display());
    let staging = Staging::begin(folder).with_context(unchanged)?;
    match stage(world, &staging, layout) {
        Err(failure) => {
            staging.abandon();
            Err(failure)
        }
        Ok((staged, found)) => {
            let clusters = staged.len();
            let Written { created, changed, removed, unchanged: same } =
                staging.commit(staged).with_context(unchanged)?;
            input::warn(world, &found, Severity::Warning);
            eprintln!(
                "{}: {clusters} clusters; {created} files created, {changed} changed, {removed} removed, {same} unchanged",
                folder.display()
            );
            Ok(())
        }
    }
}

/// Each holds one cluster's objects and their text. With many more the disk would be the limit, and memory what it costs.
const MOST_WORKERS: usize = 8;

/// Renders and stages every cluster; errors of all clusters are told together.
fn stage(world: &World, staging: &Staging, layout: Layout) -> Result<(Vec<Staged>, Vec<Diagnostic>), Failure> {
    let fleet = &world.effective.fleet;
    let ids: Vec<ClusterId> = fleet.cluster_ids().map(|(id, _)| id).collect();
    let one = |id: ClusterId, buffer: &mut String| {
        let (objects, own) = world.emit(id);
        let name = fleet.cluster(id).name.as_str();
        let staged = (!own.has_errors()).then(|| staging.stage(name, &objects, layout, buffer));
        (staged, own)
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(ids.len().max(1)).min(MOST_WORKERS);
    let parts: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let mine = ids.iter().copied().skip(worker).step_by(workers);
                scope.spawn(move || {
                    let mut buffer = String::new();
                    mine.map(|id| one(id, &mut buffer)).collect::<Vec<_>>()
                })
            })
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("rendering does not panic")).collect()
    });
    let mut clusters = Vec::new();
    let mut found = world.found.clone();
    for (staged, own) in parts {
        clusters.extend(staged);
        found.extend(own);
    }
    let failed = found.has_errors();
    let found = found.sorted();
    if failed {
        return Err(input::refuse(world, &found));
    }
    let staged = clusters.into_iter().collect::<anyhow::Result<Vec<Staged>>>();
    Ok((staged.with_context(|| "nothing was written")?, found))
}
