//! Which documents a command reads.

use crate::run::Failure;
use mesh::World;
use mesh::diagnostic::{Severity, codes, did_you_mean};
use mesh::fleet::{ClusterId, Fleet, ServiceId};
use mesh::source::Limits;
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

/// How many findings stand on a terminal before the rest is counted.
const MOST: usize = 50;

impl Input {
    /// Reads and resolves the documents.
    #[must_use]
    pub fn world(&self) -> World {
        let (files, found) = mesh_files::read(&self.filename, &Bounds::default());
        World::of(files, &Limits::default(), found)
    }

    /// Reads and resolves the documents; any error in them is printed and ends the command.
    ///
    /// # Errors
    ///
    /// If the documents have errors.
    pub fn right_world(&self) -> Result<World, Failure> {
        let world = self.world();
        let found = world.found.clone().sorted();
        if world.found.has_errors() {
            return Err(refuse(&world, &found));
        }
        Ok(world)
    }
}

/// Prints the errors among findings and ends the command.
#[must_use]
pub fn refuse(world: &World, found: &[mesh::diagnostic::Diagnostic]) -> Failure {
    eprint(&report::findings(&world.files, found, Severity::Error, MOST));
    Failure::Printed(1)
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
