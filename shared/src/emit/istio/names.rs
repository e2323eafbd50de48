//! Names of hosts, ports and objects. Every object is named after the host or service it is about, so names are as
//! distinct as those: labels hold no dots, and host names belong to one service each.

use crate::fleet::{Cluster, Service, ServicePort};
use crate::intent::GROUP;
use crate::intent::service::Protocol;
use crate::manifest::{OFFERED, Text};

/// The host by which gateways know a service, for example `user.bank.exported.meshintent.dev`.
pub(super) fn anchor(service: &Service) -> String {
    [service.name.as_str(), ".", service.namespace.as_str(), OFFERED].concat()
}

/// The host of a lane that is not an exposed host name.
pub(super) fn lane(service: &Service, label: &str) -> String {
    format!("{label}.{}.{}.lane.{GROUP}", service.name, service.namespace)
}

/// The SNI by which gateways of other clusters choose the anchor. The form is Istio's own for AUTO_PASSTHROUGH
/// (`BuildDNSSrvSubsetKey`), without a subset.
pub(super) fn sni(service: &Service, port: u16) -> String {
    ["outbound_.", itoa::Buffer::new().format(port), "_._.", &anchor(service)].concat()
}

/// The name of an object about a whole service.
pub(super) fn of_service(service: &Service) -> String {
    [service.name.as_str(), ".", service.namespace.as_str()].concat()
}

/// The name of a Gateway, which Istio wants to be a DNS label (`ValidateGateway`). Service and namespace may hold hyphens
/// themselves, so the length of the first one says where it ends; what is too long for a label ends in a hash instead.
pub(super) fn gateway(service: &Service) -> String {
    let name = format!("{}-{}-{}", service.name, service.namespace, service.name.as_str().len());
    if name.len() <= 63 {
        return name;
    }
    let hash = crate::resolve::vip::hash(of_service(service).as_bytes());
    format!("{}-{hash:016x}", &name[..46])
}

/// The name of a port in entries. Istio prefers a container port of the same name over `targetPort`
/// (`convertWorkloadInstanceToServiceInstance`); names of container ports have at most 15 characters, this one has more.
pub(super) fn entry_port(port: &ServicePort) -> Text {
    [protocol_word(port.protocol), "-", itoa::Buffer::new().format(port.number), "-of-service"].concat().into()
}

/// The protocol as Istio writes it.
pub(super) fn protocol(protocol: Protocol) -> &'static str {
    protocol.as_str()
}

/// The protocol as Kubernetes writes it.
pub(super) fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http => "http",
        Protocol::Http2 => "http2",
        Protocol::Grpc => "grpc",
        Protocol::Tls => "tls",
        Protocol::Tcp => "tcp",
    }
}

/// The mark of endpoints behind a boundary between tiers.
pub(super) fn mark(side: &str, boundary: usize) -> String {
    ["tier.", GROUP, "/", side, "-", itoa::Buffer::new().format(boundary)].concat()
}

/// The SPIFFE identity of a service in a cluster.
pub(super) fn spiffe(cluster: &Cluster, namespace: &str, account: &str) -> String {
    ["spiffe://", cluster.mesh.trust_domain.as_str(), "/ns/", namespace, "/sa/", account].concat()
}
