//! What a cluster offers to others: an anchor that only its east-west gateway sees, and the gateway's door to it. A
//! cluster offers a service only if another one can really send to it.

use super::{View, names};
use crate::fleet::{Service, ServiceId};
use crate::manifest::Intents;
use crate::manifest::istio::{EntryPort, Gateway, Server, ServerPort, ServerTls, ServiceEntry, WorkloadSelector};
use crate::manifest::{Body, Object, Text};
use std::sync::Arc;

pub(super) fn render(view: View<'_>, id: ServiceId, service: &Service, objects: &mut Vec<Object>) {
    if !view.effective.served_elsewhere[id.index()].contains(view.cluster) {
        return;
    }
    let Some(gateway) = &view.target().gateway else { return };
    let host: Text = names::anchor(service).into();
    let copy = service.copy(view.cluster);
    let intents = intents(view, id);
    let entry = ServiceEntry {
        hosts: [host.clone()],
        addresses: vec![crate::resolve::vip::of(&host)],
        export_to: Arc::new([gateway.namespace.text()]),
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
        workload_selector: Some(WorkloadSelector { labels: copy.selector.0.0.clone() }),
        endpoints: Vec::new(),
    };
    objects.push(Object::new(service.namespace.text(), host.clone(), intents.clone(), Body::ServiceEntry(entry)));
    let server = Server {
        port: ServerPort { number: gateway.port.0, name: "tls", protocol: "TLS" },
        tls: ServerTls { mode: "AUTO_PASSTHROUGH" },
        hosts: [host.clone()],
    };
    let door = Gateway { selector: gateway.selector.0.0.clone(), servers: vec![server] };
    objects.push(Object::new(gateway.namespace.text(), names::gateway(service), intents, Body::Gateway(door)));
}

/// The service, and whatever decides about who elsewhere can send to it here.
fn intents(view: View<'_>, id: ServiceId) -> Arc<Intents> {
    let elsewhere = view.effective.edges_to(id).iter().filter(|edge| edge.cluster != view.cluster);
    view.intents(super::plan::intents(view, id, elsewhere))
}
