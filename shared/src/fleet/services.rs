//! Services of the fleet and their copies.

use super::Origin;
use super::clusters::{ClusterId, Clusters};
use crate::intent::service::{Egress, Protocol, VirtualIp};
use crate::intent::types::{HostName, Labels, Namespace, PortName, Selector, ServiceAccount, ServiceName};
use crate::source::Place;

/// A service of the fleet: its index in the order of namespaces and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u32);

impl ServiceId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn at(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 services fit into memory"))
    }
}

/// One service, everywhere it runs.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ServiceName,
    /// Its labels.
    pub labels: Labels,
    /// Its document.
    pub origin: Origin,
    /// Documents that say where it runs, beside its own.
    pub located_by: Vec<u32>,
    /// Where it runs.
    pub runs: Clusters,
    /// Its ports as callers use them, by number.
    pub ports: Vec<ServicePort>,
    /// Its copy wherever no variant says otherwise.
    pub copy: ServiceCopy,
    /// Its copies where clusters are not alike.
    pub variants: Vec<(Clusters, ServiceCopy)>,
    /// How other clusters reach it; absent: they do not.
    pub exposure: Option<Exposure>,
    /// What it calls.
    pub dependencies: Vec<Dependency>,
    /// What its sidecars see and may reach.
    pub egress: Egress,
}

impl Service {
    /// The documents behind it: its own, and those that say where it runs.
    pub fn documents(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.origin.document).chain(self.located_by.iter().copied())
    }

    /// Whether any of its ports is one of requests.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        self.ports.iter().any(|port| port.protocol.is_http())
    }

    /// The copy in a cluster.
    #[must_use]
    pub fn copy(&self, cluster: ClusterId) -> &ServiceCopy {
        self.variants.iter().find(|(clusters, _)| clusters.contains(cluster)).map_or(&self.copy, |(_, copy)| copy)
    }

    /// The cluster-local host name: of the Kubernetes Service wherever no variant renames it.
    #[must_use]
    pub fn local_name(&self) -> String {
        [self.name.as_str(), ".", self.namespace.as_str(), ".svc.cluster.local"].concat()
    }

    /// Whether another service may depend on this one across clusters.
    #[must_use]
    pub fn is_exposed_to(&self, caller: &Self) -> bool {
        self.exposure.as_ref().is_some_and(|exposure| {
            exposure.to.as_ref().is_none_or(|to| {
                to.iter().any(|(namespace, service)| {
                    *namespace == caller.namespace && service.as_ref().is_none_or(|service| *service == caller.name)
                })
            })
        })
    }
}

/// One port, as callers use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name.
    pub name: PortName,
    /// Its number.
    pub number: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// What a service looks like in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCopy {
    /// The name of the Kubernetes Service.
    pub service: ServiceName,
    /// Its ports, in the order of [`Service::ports`].
    pub ports: Vec<CopyPort>,
    /// The labels that choose the pods.
    pub selector: Selector,
    /// The service account of the pods.
    pub account: ServiceAccount,
}

/// One port of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPort {
    /// The number of the Kubernetes Service.
    pub number: u16,
    /// The number on which the pods listen.
    pub target: u16,
}

/// How other clusters reach a service.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// Where it is written.
    pub place: Place,
    /// The host names, as written.
    pub hostnames: Vec<(HostName, Place)>,
    /// The virtual IP address of the first host name, if it is set.
    pub vip: Option<(VirtualIp, Place)>,
    /// Who may depend on it; absent: any service.
    pub to: Option<Vec<(Namespace, Option<ServiceName>)>>,
}

/// What a service calls.
#[derive(Clone, Copy, Debug)]
pub struct Dependency {
    /// The called service.
    pub provider: ServiceId,
    /// Where the caller runs and calls it.
    pub clusters: Clusters,
    /// Where it is written.
    pub place: Place,
}
