//! `MeshService` and `ServiceLocations`: where services run, what they depend on, how they are exposed.

use super::cluster_set::ClusterSet;
use super::decode::{At, Decode, record, words, wrong_type};
use super::types::{ClusterName, HostName, Namespace, Port, PortName, Selector, ServiceAccount, ServiceName};
use crate::diagnostic::Diagnostics;
use crate::source::{Node, Place, Value};
use serde_json::{Map as Object, Value as Json, json};

record! {
    /// A service: where it runs, what it depends on, how it is exposed to other clusters.
    pub struct MeshServiceSpec {
        /// The clusters where it runs; may be left out where ServiceLocations knows them.
        clusters as "clusters": optional At<ClusterSet>,
        /// Its ports, as callers use them.
        ports as "ports": optional At<Vec<ServicePort>>,
        /// Its pods and their identity; default: `{app: <name>}` and service account `<name>`.
        workload as "workload": optional Workload,
        /// How it is reachable from other clusters; absent: it is not.
        expose as "expose": optional Expose,
        /// What it calls.
        depends_on as "dependsOn": optional Vec<Dependency>,
        /// What its sidecars see and may reach; default: open.
        egress as "egress": default Egress = |_| Egress::Open,
        /// Where clusters are not alike.
        variants as "variants": optional Vec<Variant>,
    }
}

record! {
    /// One port of a service.
    pub struct ServicePort {
        /// The name, by which variants refer to the port.
        name as "name": required PortName,
        /// The number that callers use.
        port as "port": required Port,
        /// The number on which the pods listen; default: `port`.
        target_port as "targetPort": optional Port,
        /// What is spoken there; default: HTTP.
        protocol as "protocol": default Protocol = |_| Protocol::Http,
    }
}

words! {
    /// What is spoken on a port.
    pub enum Protocol {
        /// HTTP/1.1.
        Http = "HTTP",
        /// HTTP/2 without TLS.
        Http2 = "HTTP2",
        /// gRPC.
        Grpc = "GRPC",
        /// TLS that the workload terminates itself.
        Tls = "TLS",
        /// Any TCP protocol in which the server does not have to be known by name.
        Tcp = "TCP",
    }
}

impl Protocol {
    /// Whether requests can be told apart: matches, retries, timeouts and conditions on methods and paths need that.
    #[must_use]
    pub fn is_http(self) -> bool {
        match self {
            Self::Http | Self::Http2 | Self::Grpc => true,
            Self::Tls | Self::Tcp => false,
        }
    }
}

record! {
    /// The pods of a service and their identity.
    pub struct Workload {
        /// The labels that choose the pods; default: `{app: <name>}`.
        selector as "selector": optional Selector,
        /// The service account of the pods; default: the service's name.
        service_account as "serviceAccount": optional ServiceAccount,
    }
}

record! {
    /// How a service is reachable from other clusters.
    pub struct Expose {
        /// The host names that callers use.
        hostnames as "hostnames": required Vec<At<HostName>>,
        /// Who may depend on it; absent: any service of the fleet.
        to as "to": optional Vec<ExposeTo>,
        /// The virtual IP address of the first host name, where the computed one collides.
        vip as "vip": optional At<VirtualIp>,
    }
}

record! {
    /// Services that may depend on an exposed service.
    pub struct ExposeTo {
        /// Their namespace.
        namespace as "namespace": required Namespace,
        /// One service of that namespace; absent: all of them.
        service as "service": optional ServiceName,
    }
}

/// An IPv4 address that is not routed anywhere, for example 241.7.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualIp(pub std::net::Ipv4Addr);

impl Decode for VirtualIp {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = super::decode::text(node, "a string: an IPv4 address", found)?;
        match text.parse::<std::net::Ipv4Addr>() {
            Ok(ip) if (241..=254).contains(&ip.octets()[0]) => Some(Self(ip)),
            Ok(_) => super::decode::bad_value(
                node.place,
                "the address is outside 241.0.0.0 to 254.255.255.255",
                "choose an address of that range: nobody routes it, and no mesh hands it out by itself",
                found,
            ),
            Err(_) => {
                super::decode::bad_value(node.place, "not an IPv4 address", "write an address such as 241.7.0.1", found)
            }
        }
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "format": "ipv4"})
    }
}

/// One thing that a service calls: a bare name of its own namespace, or a map.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// Where it begins.
    pub place: Place,
    /// The called service.
    pub service: ServiceName,
    /// Its namespace; absent: the caller's own.
    pub namespace: Option<Namespace>,
    /// Where the caller calls it; absent: everywhere the caller runs.
    pub clusters: Option<At<ClusterSet>>,
}

record! {
    /// A called service, where the bare name does not say enough.
    pub struct DependencyMap {
        /// The called service.
        service as "service": required ServiceName,
        /// Its namespace; default: the caller's own.
        namespace as "namespace": optional Namespace,
        /// Where the caller calls it; absent: everywhere the caller runs.
        clusters as "clusters": optional At<ClusterSet>,
    }
}

impl Decode for Dependency {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Map(_) => {
                let map = DependencyMap::decode(node, found)?;
                Some(Self { place: map.place, service: map.service, namespace: map.namespace, clusters: map.clusters })
            }
            Value::Str(_) => {
                let service = ServiceName::decode(node, found)?;
                Some(Self { place: node.place, service, namespace: None, clusters: None })
            }
            _ => wrong_type(node, "the name of a service or a map", found),
        }
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        json!({"anyOf": [ServiceName::schema(definitions), DependencyMap::schema(definitions)]})
    }
}

words! {
    /// What the sidecars of a service see and may reach.
    pub enum Egress {
        /// Everything that its namespace sees.
        Open = "open",
        /// Only what it declares.
        Declared = "declared",
        /// Only what it declares, and nothing else may be reached.
        Enforced = "enforced",
    }
}

record! {
    /// Clusters in which a service differs.
    pub struct Variant {
        /// The clusters.
        clusters as "clusters": required At<ClusterSet>,
        /// The name of the Kubernetes Service there.
        service as "service": optional ServiceName,
        /// The ports there, by the names of the service's ports.
        ports as "ports": optional At<Vec<VariantPort>>,
        /// The pods and their identity there.
        workload as "workload": optional Workload,
    }
}

record! {
    /// One port of a variant.
    pub struct VariantPort {
        /// The name of one of the service's ports.
        name as "name": required At<PortName>,
        /// The number of the Kubernetes Service there.
        port as "port": required Port,
        /// The number on which the pods listen there; default: `port`.
        target_port as "targetPort": optional Port,
        /// What is spoken there: as the service says.
        protocol as "protocol": optional At<Protocol>,
    }
}

record! {
    /// Where services were observed to run.
    pub struct ServiceLocationsSpec {
        /// The observed services.
        services as "services": required Vec<Location>,
    }
}

record! {
    /// Where one service was observed.
    pub struct Location {
        /// Its namespace.
        namespace as "namespace": required Namespace,
        /// Its name.
        name as "name": required ServiceName,
        /// The clusters where it was seen.
        clusters as "clusters": required Vec<At<ClusterName>>,
        /// The service accounts of its pods.
        service_accounts as "serviceAccounts": optional Vec<ServiceAccount>,
        /// The selector of its Kubernetes Service.
        selector as "selector": optional Selector,
        /// The ports of its Kubernetes Service.
        ports as "ports": optional At<Vec<ServicePort>>,
    }
}
