//! A fleet from a seed: anything that documents can say, in numbers small enough for every combination to be judged.

mod access;
mod clusters;
mod guardrails;
mod services;
mod settle;
mod traffic;

use crate::document::document;
use crate::random::Random;
use serde_json::{Value, json};
pub use settle::settle;

/// What the generator remembers of a cluster.
#[derive(Clone, Debug)]
struct Cluster {
    name: String,
    labels: Vec<(&'static str, String)>,
    region: String,
    zone: Option<String>,
    network: String,
    trust_domain: String,
}

/// What the generator remembers of a service.
#[derive(Clone, Debug)]
struct Service {
    namespace: &'static str,
    name: String,
    account: String,
    /// Indices of clusters.
    runs: Vec<usize>,
    ports: Vec<(String, u16, &'static str)>,
    exposed: bool,
    /// Namespaces and names; `None`: any service.
    exposed_to: Option<Vec<(&'static str, Option<String>)>>,
    /// Services that call this one.
    callers: Vec<usize>,
}

impl Service {
    fn speaks_http(&self) -> bool {
        self.ports.iter().any(|(_, _, protocol)| is_http(protocol))
    }
}

fn is_http(protocol: &str) -> bool {
    matches!(protocol, "HTTP" | "HTTP2" | "GRPC")
}

/// What is generated, one kind after the other.
struct Fleet {
    random: Random,
    clusters: Vec<Cluster>,
    services: Vec<Service>,
    documents: Vec<Value>,
}

/// The documents of a seed: a fleet without errors.
#[must_use]
pub fn fleet(seed: u64) -> Vec<Value> {
    settle(raw(seed))
}

/// The documents of a seed as they were drawn: some of them contradict each other.
#[must_use]
pub fn raw(seed: u64) -> Vec<Value> {
    let mut fleet =
        Fleet { random: Random::new(seed), clusters: Vec::new(), services: Vec::new(), documents: Vec::new() };
    fleet.add_clusters();
    fleet.add_services();
    fleet.add_traffic_policies();
    fleet.add_access_policies();
    fleet.add_guardrails();
    fleet.documents
}

impl Fleet {
    fn add(&mut self, kind: &str, namespace: Option<&str>, name: &str, spec: Value) {
        let mut document = document(kind, namespace, name, spec);
        if self.random.percent(4) {
            document["metadata"]["annotations"] = json!({"example.com/owner": "platform"});
            document["metadata"]["labels"] = json!({"team": "platform"});
        }
        self.documents.push(document);
    }

    /// A cluster set that selects at least one of the wanted clusters and is written in any of the ways there are.
    fn cluster_set(&mut self, wanted: &[usize]) -> Value {
        if self.random.percent(12) {
            return json!("all");
        }
        let count = self.random.between(1, 2);
        let items: Vec<Value> = (0..count).map(|_| self.cluster_item(wanted, false)).collect();
        json!(distinct(items))
    }

    /// One item of a cluster set that selects one of the wanted clusters; for orders and exclusions possibly seen from
    /// the caller.
    fn cluster_item(&mut self, wanted: &[usize], relative: bool) -> Value {
        let cluster = self.clusters[*self.random.pick(wanted)].clone();
        if self.random.percent(45) {
            return json!(cluster.name);
        }
        let fields = self.fields(&cluster);
        let mut item = json!({});
        for (key, value) in self.random.some(&fields, 1, 20) {
            let same = relative && matches!(key, "region" | "zone" | "network") && self.random.percent(60);
            item[key] = if same { json!("same") } else { json!(value) };
        }
        item
    }

    /// What label maps can compare.
    fn fields(&self, cluster: &Cluster) -> Vec<(&'static str, String)> {
        let mut fields = vec![("region", cluster.region.clone()), ("network", cluster.network.clone())];
        fields.extend(cluster.zone.clone().map(|zone| ("zone", zone)));
        fields.extend(cluster.labels.iter().cloned());
        fields
    }

    /// The clusters that a set without `same` selects.
    fn selected(&self, set: &Value) -> Vec<usize> {
        let fits = |cluster: &Cluster, item: &Value| match item {
            Value::String(name) => *name == cluster.name,
            Value::Object(map) => map
                .iter()
                .all(|(key, value)| self.fields(cluster).iter().any(|(name, text)| name == key && value == text)),
            _ => false,
        };
        let items = set.as_array();
        (0..self.clusters.len())
            .filter(|index| items.is_none_or(|items| items.iter().any(|item| fits(&self.clusters[*index], item))))
            .collect()
    }

    /// The names of some clusters, as a list.
    fn names(&self, clusters: &[usize]) -> Value {
        json!(clusters.iter().map(|index| self.clusters[*index].name.as_str()).collect::<Vec<_>>())
    }

    fn duration(&mut self) -> Value {
        json!(*self.random.pick(&["500ms", "1s", "2s", "5s", "30s", "1m", "1m30s", "300s", "1h"]))
    }
}

/// The items without repetitions, in their order.
fn distinct(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}
