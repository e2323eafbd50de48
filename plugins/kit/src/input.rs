//! Which documents a command reads.

use crate::run::Failure;
use mesh::World;
use mesh::diagnostic::{Diagnostics, Severity, codes, did_you_mean};
use mesh::fleet::{ClusterId, Fleet, ServiceId};
use mesh::resolve::Edge;
use mesh::source::{File, Limits};
use mesh_files::{Bounds, report};
use std::io::Write;
use std::path::PathBuf;

/// The flags that say which documents are read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Input {
    /// Files and folders with the inventory and the intents, `-` for stdin; folders are read recursively [default: .]
    #[arg(short = 'f', long = "filename", value_name = "PATH", value_delimiter = ',', global = true)]
    pub filename: Vec<PathBuf>,
    /// Accepted for kubectl's sake: folders are always read recursively
    #[arg(short = 'R', long, global = true, hide = true)]
    pub recursive: bool,
}

/// The flags that choose calls.
#[derive(Clone, Debug, clap::Args)]
pub struct Calls {
    /// Only this caller: NAMESPACE/NAME@CLUSTER, or NAMESPACE/NAME for every cluster
    #[arg(long, value_name = "CALLER")]
    from: Option<String>,
    /// Only this called service: NAMESPACE/NAME
    #[arg(long, value_name = "SERVICE")]
    to: Option<String>,
}

/// The chosen calls; what is not chosen does not matter.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The caller, and the cluster it calls from.
    pub from: Option<(ServiceId, Option<ClusterId>)>,
    /// The called service.
    pub to: Option<ServiceId>,
}

impl Calls {
    /// Looks the names up; a bare name is one of the namespace.
    ///
    /// # Errors
    ///
    /// If the fleet does not have them.
    pub fn choose(&self, fleet: &Fleet, namespace: Option<&str>) -> anyhow::Result<Chosen> {
        let from = self.from.as_deref().map(|text| caller(fleet, text, namespace)).transpose()?;
        let to = self.to.as_deref().map(|text| service(fleet, text, namespace)).transpose()?;
        Ok(Chosen { from, to })
    }
}

impl Chosen {
    /// Whether an edge is one of them.
    #[must_use]
    pub fn holds(&self, edge: &Edge) -> bool {
        let Self { from, to } = self;
        from.is_none_or(|(caller, cluster)| {
            edge.caller == caller && cluster.is_none_or(|cluster| edge.cluster == cluster)
        }) && to.is_none_or(|to| edge.provider == to)
    }
}

/// How many findings stand on a terminal before the rest is counted.
const MOST: usize = 50;

impl Input {
    /// Reads the files.
    #[must_use]
    pub fn files(&self) -> (Vec<File>, Diagnostics) {
        mesh_files::read(&self.filename, &Bounds::default())
    }

    /// Reads and resolves the documents.
    #[must_use]
    pub fn world(&self) -> World {
        let (files, found) = self.files();
        World::of(files, &Limits::default(), found)
    }

    /// Reads and resolves the documents, for commands that show what can be resolved nevertheless: errors are printed, and
    /// the exit code that goes with them is returned.
    #[must_use]
    pub fn shown_world(&self) -> (World, u8) {
        let world = self.world();
        let code = errors(&world);
        (world, code)
    }

    /// Reads and resolves the documents; any error in them is printed and ends the command.
    ///
    /// # Errors
    ///
    /// If the documents have errors.
    pub fn right_world(&self) -> Result<World, Failure> {
        right(self.world())
    }
}

/// A world without errors; any error in its documents is printed and ends the command.
///
/// # Errors
///
/// If the documents have errors.
pub fn right(world: World) -> Result<World, Failure> {
    let found = world.found.clone().sorted();
    if world.found.has_errors() {
        return Err(refuse(&world, &found));
    }
    Ok(world)
}

/// Prints the errors among findings and ends the command.
#[must_use]
pub fn refuse(world: &World, found: &[mesh::diagnostic::Diagnostic]) -> Failure {
    eprint(&report::findings(&world.files, found, Severity::Error, MOST));
    Failure::Printed(1)
}

/// Prints the errors of a world that is shown nevertheless, and says the exit code that goes with them.
#[must_use]
pub fn errors(world: &World) -> u8 {
    let broken = world.found.has_errors();
    if broken {
        warn(world, &world.found.clone().sorted(), Severity::Error);
    }
    u8::from(broken)
}

/// Prints warnings (and notes, if asked) to stderr.
pub fn warn(world: &World, found: &[mesh::diagnostic::Diagnostic], least: Severity) {
    eprint(&report::findings(&world.files, found, least, MOST));
}

fn eprint(text: &str) {
    // Nobody is left to tell if this fails.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The cluster of a name.
///
/// # Errors
///
/// If the inventory has no such cluster.
pub fn cluster(fleet: &Fleet, name: &str) -> anyhow::Result<ClusterId> {
    fleet.cluster_named(name).ok_or_else(|| {
        let names: Vec<&str> = fleet.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let help = did_you_mean(name, names.iter().copied())
            .unwrap_or_else(|| format!("the clusters are {}", names.join(", ")));
        anyhow::anyhow!("no Cluster document is called \"{name}\"; {help} [{}]", codes::CLUSTER_NOT_FOUND.id)
    })
}

/// The service of `NAMESPACE/NAME`, or of a bare name in the given namespace.
///
/// # Errors
///
/// If there is no such service.
pub fn service(fleet: &Fleet, text: &str, namespace: Option<&str>) -> anyhow::Result<ServiceId> {
    let (namespace, name) = match text.split_once('/') {
        Some(pair) => pair,
        None => (
            namespace
                .ok_or_else(|| anyhow::anyhow!("\"{text}\" does not say which namespace; write NAMESPACE/NAME"))?,
            text,
        ),
    };
    fleet.service_named(namespace, name).ok_or_else(|| {
        let all: Vec<String> =
            fleet.services.iter().map(|service| format!("{}/{}", service.namespace, service.name)).collect();
        let wanted = format!("{namespace}/{name}");
        let help = did_you_mean(&wanted, all.iter().map(String::as_str))
            .unwrap_or_else(|| "`kubectl mesh expose get` lists the services".to_owned());
        anyhow::anyhow!("no MeshService is called {wanted}; {help}")
    })
}

/// A caller, written `NAMESPACE/NAME@CLUSTER`; the cluster may be left out.
///
/// # Errors
///
/// If there is no such service or cluster.
pub fn caller(fleet: &Fleet, text: &str, namespace: Option<&str>) -> anyhow::Result<(ServiceId, Option<ClusterId>)> {
    match text.rsplit_once('@') {
        Some((name, place)) => Ok((service(fleet, name, namespace)?, Some(cluster(fleet, place)?))),
        None => Ok((service(fleet, text, namespace)?, None)),
    }
}
