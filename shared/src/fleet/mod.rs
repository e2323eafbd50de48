//! Clusters, services and policies that refer to each other: names become ids, cluster sets become sets of clusters,
//! defaults are filled in. What does not exist, or cannot be told apart, is a finding.

mod build;
pub mod clusters;
mod policies;
mod select;
mod services;

pub use clusters::{Cluster, ClusterId, Clusters};
pub use policies::{AccessPolicy, AccessRule, Callers, Guardrail, GuardrailVerb, Identity, Source, TrafficPolicy};
pub use select::{Neighbours, Relative};
pub use services::{CopyPort, Dependency, Exposure, Service, ServiceCopy, ServiceId, ServicePort};

use crate::diagnostic::Diagnostics;
use crate::intent::{DocumentId, Documents};
use crate::source::Place;

/// Which document something comes from, and where it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Index into [`Fleet::documents`].
    pub document: u32,
    /// Where it stands.
    pub place: Place,
}

/// A fleet in which every reference leads somewhere.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// All documents, in the order they were read.
    pub documents: Vec<DocumentId>,
    /// The clusters, by name.
    pub clusters: Vec<Cluster>,
    /// Which clusters share region, zone and network.
    pub neighbours: Neighbours,
    /// The services, by namespace and name.
    pub services: Vec<Service>,
    /// How calls travel, by document.
    pub traffic: Vec<TrafficPolicy>,
    /// Who may call, by document.
    pub access: Vec<AccessPolicy>,
    /// The rules of all guardrails, by document and position.
    pub guardrails: Vec<Guardrail>,
}

impl Fleet {
    /// Builds the fleet from documents. What is wrong is told; what is right is kept, so that explanations still work.
    #[must_use]
    pub fn build(documents: &Documents, found: &mut Diagnostics) -> Self {
        build::fleet(documents, found)
    }

    /// A cluster.
    #[must_use]
    pub fn cluster(&self, id: ClusterId) -> &Cluster {
        &self.clusters[id.index()]
    }

    /// All clusters with their ids, by name.
    pub fn cluster_ids(&self) -> impl Iterator<Item = (ClusterId, &Cluster)> {
        select::ids(&self.clusters)
    }

    /// The cluster of this name.
    #[must_use]
    pub fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        let index = self.clusters.binary_search_by(|cluster| cluster.name.as_str().cmp(name)).ok()?;
        u16::try_from(index).ok().map(ClusterId)
    }

    /// A service.
    #[must_use]
    pub fn service(&self, id: ServiceId) -> &Service {
        &self.services[id.index()]
    }

    /// All services with their ids, by namespace and name.
    pub fn service_ids(&self) -> impl Iterator<Item = (ServiceId, &Service)> {
        self.services.iter().enumerate().map(|(index, service)| (ServiceId::at(index), service))
    }

    /// The service of this namespace and name.
    #[must_use]
    pub fn service_named(&self, namespace: &str, name: &str) -> Option<ServiceId> {
        let key = (namespace, name);
        let index = self
            .services
            .binary_search_by(|service| (service.namespace.as_str(), service.name.as_str()).cmp(&key))
            .ok()?;
        Some(ServiceId::at(index))
    }

    /// The document of an origin.
    #[must_use]
    pub fn document(&self, origin: Origin) -> &DocumentId {
        &self.documents[origin.document as usize]
    }
}
