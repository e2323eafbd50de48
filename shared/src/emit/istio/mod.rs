//! Istio with sidecars and isolated control planes, versions 1.24 to 1.31.
//!
//! What a caller's cluster gets for a service it depends on:
//!
//! ```text
//!  host name ──VirtualService──▶ lane ──ServiceEntry+DestinationRule──▶ tier 0: own pods
//!              who, which request          one per distinct              tier 1: gateways ──SNI──▶ anchor ──▶ pods there
//!              how much                    order of tiers                tier 2: …
//! ```
//!
//! * A **lane** ([`plan`]) is one order of tiers with its outlier detection and connection settings. Every distinct lane
//!   is a host of its own, hence an Envoy cluster of its own: endpoints belong to a host, so an exclusion is kept by
//!   never writing the endpoint, and nothing leaks from one caller to another.
//! * Where all callers in a cluster agree, the exposed host name itself is the lane. Where they differ, the host name has
//!   no endpoints and routes tell the callers apart, so whoever declared nothing reaches nothing.
//! * An **anchor** ([`gateway`]) is a host that only the east-west gateway of a serving cluster sees. Callers put it into
//!   the SNI, whatever the Kubernetes Service is called there, so clusters may differ and gateways cannot loop.

mod access;
mod destination_rule;
mod gateway;
mod limits;
mod names;
mod plan;
mod service_entry;
mod sidecar;
mod virtual_service;

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{Cluster, ClusterId, ServiceId};
use crate::intent::cluster::{DataPlane, Discovery};
use crate::intent::types::Namespace;
use crate::manifest::{Intents, Object, Text};
use crate::resolve::{Edge, Effective};
use crate::source::Place;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The oldest and the newest minor version of Istio 1 that objects are written for.
const VERSIONS: std::ops::RangeInclusive<u32> = 24..=31;

/// What every part of the backend looks at: the fleet, seen from one cluster.
#[derive(Clone, Copy)]
struct View<'a> {
    effective: &'a Effective,
    cluster: ClusterId,
    /// The namespaces that are known to exist here, and the first service of the fleet that runs in each.
    namespaces: &'a BTreeMap<&'a Namespace, ServiceId>,
    /// The minor version of Istio 1; the oldest supported one where the document does not say.
    minor: u32,
}

impl<'a> View<'a> {
    fn target(&self) -> &'a Cluster {
        self.effective.fleet.cluster(self.cluster)
    }

    /// The documents that make the home of a service's objects exist, where the service itself does not run here.
    fn home_documents(&self, service: ServiceId) -> Vec<u32> {
        let fleet = &self.effective.fleet;
        let witness = self.namespaces.get(&fleet.service(service).namespace);
        match witness.map(|witness| fleet.service(*witness)) {
            Some(witness) if !fleet.service(service).runs.contains(self.cluster) => witness.documents().collect(),
            _ => Vec::new(),
        }
    }

    /// The documents behind an object, by their index.
    fn intents(&self, documents: impl IntoIterator<Item = u32>) -> Arc<Intents> {
        Arc::new(Intents::of(documents.into_iter().collect(), &self.effective.fleet.documents))
    }

    /// Where the objects of a service live here: beside it, or in the cluster's home of imports.
    fn home(&self, service: ServiceId) -> Text {
        let namespace = &self.effective.fleet.service(service).namespace;
        let home =
            if self.namespaces.contains_key(namespace) { namespace } else { &self.target().mesh.import_namespace };
        home.text()
    }
}

pub(super) fn render(effective: &Effective, cluster: ClusterId, found: &mut Diagnostics) -> Vec<Object> {
    let Some(minor) = supported(effective.fleet.cluster(cluster), found) else { return Vec::new() };
    let running = effective.fleet.service_ids().filter(|(_, service)| service.runs.contains(cluster));
    let mut namespaces = BTreeMap::new();
    for (id, service) in running {
        namespaces.entry(&service.namespace).or_insert(id);
    }
    let view = View { effective, cluster, namespaces: &namespaces, minor };
    let mut addresses = BTreeMap::new();
    let mut objects = Vec::new();
    let edges: Vec<&Edge> = effective.edges_from(cluster).collect();
    for edges in edges.chunk_by(|a, b| a.provider == b.provider) {
        let plan = plan::Plan::of(view, edges, found);
        check_addresses(&plan, &mut addresses, found);
        limits::check_plan(view, &plan, found);
        service_entry::render(view, &plan, &mut objects, found);
        destination_rule::render(view, &plan, &mut objects);
        virtual_service::render(view, &plan, &mut objects);
    }
    for (id, service) in effective.fleet.service_ids().filter(|(_, service)| service.runs.contains(cluster)) {
        limits::check_copy(view, service, found);
        gateway::render(view, id, service, &mut objects);
        access::render(view, id, service, &mut objects, found);
        sidecar::render(view, id, service, &mut objects);
    }
    objects
}

/// Lanes of ports without requests have addresses of their own, which must differ like those of host names.
fn check_addresses(plan: &plan::Plan<'_>, taken: &mut BTreeMap<Ipv4Addr, (Text, Place)>, found: &mut Diagnostics) {
    let place = plan.service.origin.place;
    for host in &plan.hosts {
        let Some(address) = host.vip else { continue };
        if let Some((other, first)) = taken.insert(address, (host.name.clone(), place)) {
            let message = format!("{} and {other} share the virtual IP address {address}", host.name);
            found.push(
                Diagnostic::new(&codes::LANE_VIP_COLLISION, place, message)
                    .also(first, "the other service")
                    .help("rename one of the services, or change one of the orders"),
            );
        }
    }
}

/// The minor version, if the cluster is one that can be rendered.
fn supported(cluster: &Cluster, found: &mut Diagnostics) -> Option<u32> {
    let mesh = &cluster.mesh;
    let mode = match (mesh.data_plane, mesh.discovery) {
        ((DataPlane::Ambient, place), _) => Some(("in ambient mode", "dataPlane: sidecar", place)),
        (_, (Discovery::Shared, place)) => Some(("with shared discovery", "discovery: isolated", place)),
        ((DataPlane::Sidecar, _), (Discovery::Isolated, _)) => None,
    };
    if let Some((what, help, place)) = mode {
        let message =
            format!("{} runs Istio {what}, where exclusions and per-caller orders could not be kept", cluster.name);
        found.push(
            Diagnostic::new(&codes::MESH_MODE, place, message).help(format!("render clusters with `{help}` only")),
        );
        return None;
    }
    let Some((version, place)) = &mesh.version else { return Some(*VERSIONS.start()) };
    let mut parts = version.as_str().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    match (parts.next(), parts.next()) {
        (Some(1), Some(minor)) if VERSIONS.contains(&minor) => Some(minor),
        _ => {
            let message = format!("Istio {version} of {} is not supported", cluster.name);
            let help = format!("objects are rendered for Istio 1.{} to 1.{}", VERSIONS.start(), VERSIONS.end());
            found.push(Diagnostic::new(&codes::MESH_VERSION, *place, message).help(help));
            None
        }
    }
}
