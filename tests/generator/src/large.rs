//! Large fleets to measure with: as many clusters, services and policies as asked for, in the proportions of real ones.
//! Everything follows from the numbers, so a measurement can be repeated.

use crate::document::{Text, document};
use crate::random::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How large a fleet is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Cluster documents.
    pub clusters: usize,
    /// MeshService documents; 20 in each namespace.
    pub services: usize,
    /// TrafficPolicy and AccessPolicy documents, as many of the one as of the other.
    pub policies: usize,
}

const SERVICES_OF_A_NAMESPACE: usize = 20;
/// How many clusters a service runs in.
const COPIES: usize = 4;

/// The files of a large fleet: the inventory in one, and one for each namespace, as teams keep them.
#[must_use]
pub fn large(size: Size) -> BTreeMap<String, String> {
    let mut random = Random::new(1);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |file: String, document: &Value| {
        let text = files.entry(file).or_default();
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&Text::of(document).yaml);
    };
    for index in 0..size.clusters {
        add("inventory/clusters.yaml".to_owned(), &cluster(index));
    }
    add("policies/fleet.yaml".to_owned(), &default_policy());
    for index in 0..size.services {
        add(file_of(index), &service(index, size, &mut random));
    }
    for index in 0..size.policies {
        // Every other policy is about access, so that the two kinds meet at some services and not at others.
        let about = index.wrapping_mul(7919) % size.services;
        let (namespace, name) = names(about);
        let policy = if index % 2 == 0 {
            let spec = json!({
                "to": {"service": name},
                "failover": {"order": ["local", {"region": "same"}, "all"], "exclude": [{"tier": format!("t{}", index % 3)}]},
                "timeout": "5s",
            });
            document("TrafficPolicy", Some(&namespace), &format!("order-{index}"), spec)
        } else {
            let spec = json!({"to": {"service": name}, "allow": [{"from": ["dependents"]}]});
            document("AccessPolicy", Some(&namespace), &format!("callers-{index}"), spec)
        };
        add(file_of(about), &policy);
    }
    files
}

fn cluster(index: usize) -> Value {
    let spec = json!({
        "region": format!("region-{}", index % 8),
        "network": format!("network-{index}"),
        "mesh": {"version": "1.30", "trustDomain": format!("c{index}.example")},
        "gateway": {"address": format!("203.0.{}.{}", 113 + index / 250, 1 + index % 250), "namespace": "istio-gateways"},
    });
    let mut document = document("Cluster", None, &format!("cluster-{index:03}"), spec);
    document["metadata"]["labels"] = json!({"tier": format!("t{}", index % 3)});
    document
}

fn default_policy() -> Value {
    let connection = json!({"crossCluster": {"connectTimeout": "2s", "keepalive": {"idle": "120s"}}});
    let spec =
        json!({"default": true, "failover": {"order": ["local", {"region": "same"}, "all"]}, "connection": connection});
    document("TrafficPolicy", None, "fleet", spec)
}

fn names(service: usize) -> (String, String) {
    (format!("team-{:03}", service / SERVICES_OF_A_NAMESPACE), format!("service-{service:05}"))
}

fn file_of(service: usize) -> String {
    format!("teams/{}.yaml", names(service).0)
}

/// A service that runs in some clusters and calls two others. No call leads to a service that only runs where nobody may
/// send it: services of one number modulo the clusters run side by side.
fn service(index: usize, size: Size, random: &mut Random) -> Value {
    let (namespace, name) = names(index);
    let copies = COPIES.min(size.clusters);
    let first = random.below(size.clusters);
    let clusters: Vec<String> =
        (0..copies).map(|copy| format!("cluster-{:03}", (first + copy * 7) % size.clusters)).collect();
    let mut spec = json!({
        "clusters": clusters,
        "ports": [{"name": "http", "port": 8080, "protocol": "HTTP"}],
        "expose": {"hostnames": [format!("{name}.mesh.example")]},
    });
    let mut dependencies: Vec<Value> = Vec::new();
    for _ in 0..2 {
        let (namespace, name) = names(random.below(size.services));
        let item = json!({"namespace": namespace, "service": name});
        if !dependencies.contains(&item) {
            dependencies.push(item);
        }
    }
    spec["dependsOn"] = json!(dependencies);
    document("MeshService", Some(&namespace), &name, spec)
}
