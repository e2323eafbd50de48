//! What a cluster offers to others: an anchor that only its east-west gateway sees, and the gateway's door to it. A
//! cluster offers a service only if another one can really send to it.

use super::{View, names};
use crate::fleet::{Service, ServiceId};
use crate::manifest::Intents;
use crate::manifest::istio::{EntryPort, Gateway, Server, ServerPort, ServerTls, ServiceEntry, WorkloadSelector};
use crate::manifest::{Body, Object};
use std::sync::Arc;

pub(super) fn render(view: View<'_>, id: ServiceId, service: &Service, objects: &mut Vec<Object>) {
    if !view.effective.served_elsewhere[id.index()].contains(view.cluster) {
        return;
    }
    let Some(gateway) = &view.target().gateway else { return };
    let host = names::anchor(service);
    let copy = service.copy(view.cluster);
    let intents = intents(view, id);
    let entry = ServiceEntry {
        hosts: vec![host.clone()],
        addresses: vec![crate::resolve::vip::of(&host).to_string()],
        export_to: vec![gateway.namespace.to_string()],
        location: "MESH_INTERNAL",
        resolution: "STATIC",
        ports: service
            .ports
            .iter()
            .zip(&copy.ports)
            .map(|(port, own)| EntryPort {
                number: port.number,
                name: names::entry_port(port),
                protocol: names::protocol(port.protocol),
                target_port: Some(own.target),
            })
            .collect(),
        workload_selector: Some(WorkloadSelector { labels: names::labels(&copy.selector) }),
        endpoints: Vec::new(),
    };
    objects.push(Object::new(service.namespace.as_str(), host.clone(), intents.clone(), Body::ServiceEntry(entry)));
    let server = Server {
        port: ServerPort { number: gateway.port.0, name: "tls", protocol: "TLS" },
        tls: ServerTls { mode: "AUTO_PASSTHROUGH" },
        hosts: vec![host.clone()],
    };
    let door = Gateway { selector: names::labels(&gateway.selector), servers: vec![server] };
    objects.push(Object::new(gateway.namespace.as_str(), names::gateway(service), intents, Body::Gateway(door)));
}

/// The service, and whatever decides about who elsewhere can send to it here.
fn intents(view: View<'_>, id: ServiceId) -> Arc<Intents> {
    let elsewhere = view.effective.edges_to(id).iter().filter(|edge| edge.cluster != view.cluster);
    view.intents(super::plan::intents(view, id, elsewhere))
}
