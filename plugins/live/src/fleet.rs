//! The same work in many clusters at once, one failing without the others.

use crate::api::{Api, Error};
use crate::connect::{ConnectFlags, Connections};
use futures_util::stream::{self, StreamExt};
use mesh::World;
use mesh::diagnostic::Severity;
use mesh::manifest::{Kind, Object};
use mesh_kit::input;
use mesh_kit::run::Failure;

/// How many clusters are worked on at a time.
pub(crate) const PARALLEL: usize = 32;

/// The flags that say which clusters a command talks to.
#[derive(Clone, Debug, clap::Args)]
pub struct Targets {
    /// Only these clusters of the inventory [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    cluster: Vec<String>,
    /// Only the cluster whose Cluster document names this kubeconfig context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectFlags,
}

/// A cluster with what is wanted there.
#[derive(Debug)]
pub struct Target {
    /// Its name in the inventory.
    pub name: String,
    /// Its kubeconfig context.
    pub context: String,
    /// The addresses of its gateway.
    pub gateways: Vec<String>,
    /// What is wanted there, in the order in which it is applied.
    pub objects: Vec<Object>,
}

impl Targets {
    /// Renders the chosen clusters; findings are printed.
    ///
    /// # Errors
    ///
    /// If a cluster is not in the inventory, or anything cannot be rendered: then no cluster is talked to.
    pub fn render(&self, world: &World, kinds: &[Kind]) -> Result<Vec<Target>, Failure> {
        let fleet = &world.effective.fleet;
        let mut found = world.found.clone();
        let mut targets = Vec::new();
        for id in self.ids(world)? {
            let cluster = fleet.cluster(id);
            let (mut objects, own) = world.emit(id);
            found.extend(own);
            objects.retain(|object| kinds.contains(&object.kind));
            let addresses = cluster.gateway.iter().flat_map(|gateway| &gateway.addresses);
            targets.push(Target {
                name: cluster.name.to_string(),
                context: cluster.context.clone(),
                gateways: addresses.map(ToString::to_string).collect(),
                objects,
            });
        }
        let failed = found.has_errors();
        let found = found.sorted();
        if failed {
            return Err(input::refuse(world, &found));
        }
        input::warn(world, &found, Severity::Warning);
        Ok(targets)
    }

    /// The chosen clusters.
    ///
    /// # Errors
    ///
    /// If one of them is not in the inventory.
    pub fn ids(&self, world: &World) -> anyhow::Result<Vec<mesh::fleet::ClusterId>> {
        let fleet = &world.effective.fleet;
        let mut ids = if self.cluster.is_empty() {
            fleet.cluster_ids().map(|(id, _)| id).collect()
        } else {
            self.cluster.iter().map(|name| input::cluster(fleet, name)).collect::<Result<Vec<_>, _>>()?
        };
        ids.sort();
        ids.dedup();
        if let Some(context) = &self.context {
            ids.retain(|id| fleet.cluster(*id).context == *context);
            anyhow::ensure!(!ids.is_empty(), "no chosen Cluster document names the context \"{context}\"");
        }
        anyhow::ensure!(!ids.is_empty(), "the inventory has no clusters");
        Ok(ids)
    }
}

/// Runs a command's asynchronous part. Only commands that talk to clusters ever start a runtime.
///
/// # Errors
///
/// Whatever the work returns, or if no runtime can be started.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A credential plugin that hangs must not keep the command from ending.
    runtime.shutdown_background();
    result
}

/// Does the same in every cluster at once, and hands over the results in the order of the clusters, each as soon as it
/// and those before it are there.
///
/// # Errors
///
/// What handing over returns; what goes wrong in a cluster is handed over.
pub async fn each<T>(
    targets: &[Target],
    connections: &Connections,
    work: impl AsyncFn(&Api, &Target) -> Result<T, Error>,
    mut done: impl FnMut(&Target, Result<T, Error>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut results = stream::iter(targets)
        .map(async |target| {
            let result = async { work(&connections.open(&target.context).await?, target).await }.await;
            (target, result)
        })
        .buffered(PARALLEL);
    let mut results = std::pin::pin!(results.by_ref());
    while let Some((target, result)) = results.next().await {
        done(target, result)?;
    }
    Ok(())
}

/// How the clusters fared.
#[derive(Debug, Default)]
pub struct Tally {
    ok: usize,
    failed: usize,
}

impl Tally {
    /// Counts a cluster.
    pub fn count(&mut self, ok: bool) {
        if ok {
            self.ok += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Prints the last line to stderr; returns whether all clusters fared well.
    #[must_use]
    pub fn report(&self) -> bool {
        let clusters = |count: usize| if count == 1 { "1 cluster".to_owned() } else { format!("{count} clusters") };
        if self.failed == 0 {
            eprintln!("{} ok", clusters(self.ok));
        } else {
            eprintln!("{} ok, {} failed", clusters(self.ok), self.failed);
        }
        self.is_ok()
    }

    /// Whether all clusters fared well.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.failed == 0
    }
}
