//! The inventory.

use super::add;
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::clusters::{Cluster, Gateway, Mesh};
use crate::intent::cluster::ClusterSpec;
use crate::intent::cluster_set::{FIELDS, RESERVED};
use crate::intent::types::Address;
use crate::intent::{Document, DocumentId};
use std::collections::BTreeMap;

pub(super) fn cluster(document: &Document<ClusterSpec>, ids: &mut Vec<DocumentId>, found: &mut Diagnostics) -> Cluster {
    let origin = add(ids, &document.id, document.place);
    let name = document.id.name.as_str();
    if RESERVED.contains(&name) {
        found.push(
            Diagnostic::new(&codes::RESERVED, document.place, format!("\"{name}\" is a reserved word"))
                .help("give the cluster another name"),
        );
    }
    for key in FIELDS {
        if document.labels.0.contains_key(key) {
            found.push(
                Diagnostic::new(&codes::RESERVED, document.place, format!("\"{key}\" cannot be a label of a cluster"))
                    .help(format!("set `spec.{key}`: cluster sets read it from there")),
            );
        }
    }
    let spec = &document.spec;
    let mesh = &spec.mesh;
    Cluster {
        name: crate::intent::types::ClusterName::parse(name).unwrap_or_else(|| {
            found.push(
                Diagnostic::new(&codes::BAD_VALUE, document.place, "the name of a cluster has at most 63 characters")
                    .help("shorten the name"),
            );
            crate::intent::types::ClusterName::parse("too-long").expect("a valid name")
        }),
        origin,
        labels: document.labels.clone(),
        region: spec.region.clone(),
        zone: spec.zone.clone(),
        network: spec.network.clone(),
        context: spec.context.as_ref().map_or_else(|| name.to_owned(), ToString::to_string),
        drained: spec.drain.value.then_some(spec.drain.place),
        mesh: Mesh {
            kind: (mesh.kind.value, mesh.kind.place),
            version: mesh.version.as_ref().map(|version| (version.value.clone(), version.place)),
            trust_domain: mesh.trust_domain.clone(),
            trust_domain_aliases: mesh.trust_domain_aliases.0.clone(),
            namespace: mesh.namespace.clone(),
            import_namespace: mesh.import_namespace.clone(),
            dns_capture: mesh.dns_capture,
            data_plane: (mesh.data_plane.value, mesh.data_plane.place),
            discovery: (mesh.discovery.value, mesh.discovery.place),
        },
        gateway: spec.gateway.as_ref().map(|gateway| {
            let mut addresses: Vec<Address> = gateway.address.0.iter().map(|address| address.value.clone()).collect();
            addresses.sort();
            addresses.dedup();
            Gateway {
                addresses,
                port: gateway.port,
                namespace: gateway.namespace.clone(),
                selector: gateway.selector.clone(),
            }
        }),
    }
}

/// Behind one address and port is one gateway: what was meant for one cluster would arrive in another.
pub(super) fn check_gateways(documents: &[Document<ClusterSpec>], found: &mut Diagnostics) {
    let mut taken = BTreeMap::new();
    for document in documents {
        let Some(gateway) = &document.spec.gateway else { continue };
        for address in &gateway.address.0 {
            let name = &document.id.name;
            let Some((first, other)) = taken.insert((&address.value, gateway.port.0), (address.place, name)) else {
                continue;
            };
            if other == name {
                continue;
            }
            let message = format!("{name} has the gateway of {other}: {}, port {}", address.value, gateway.port.0);
            found.push(
                Diagnostic::new(&codes::SAME_GATEWAY, address.place, message)
                    .also(first, "the other cluster's gateway")
                    .help("give each cluster's gateway an address or a port of its own"),
            );
        }
    }
}
