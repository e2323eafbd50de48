//! The inventory.

use super::{Cluster, Fleet};
use crate::document::set;
use serde_json::{Value, json};

const NAMES: [&str; 8] = ["eks", "cluster-1", "cluster-2", "wine", "canary-1", "gke.prod", "0ak", "b"];

impl Fleet {
    pub(super) fn add_clusters(&mut self) {
        let mut names = NAMES.to_vec();
        self.random.shuffle(&mut names);
        let count = self.random.between(2, 6);
        // A gateway's host name needs a recent Istio in every calling cluster.
        let host_names = self.random.percent(30);
        let shared_network = self.random.percent(50);
        let regions = ["us-east-1", "us-west-1", "eu-1"];
        let regions = &regions[..self.random.between(1, regions.len())];
        for (index, name) in names.into_iter().take(count).enumerate() {
            let region = (*self.random.pick(regions)).to_owned();
            let zone = self.random.percent(50).then(|| format!("{region}{}", self.random.pick(&["a", "b"])));
            let network = if shared_network && self.random.percent(60) {
                (*self.random.pick(&["dc", "cloud"])).to_owned()
            } else {
                format!("net-{name}")
            };
            let mut labels = Vec::new();
            for (key, values) in [("hosting", ["on-prem", "public-cloud"]), ("tier", ["foo", "base"])] {
                if self.random.percent(75) {
                    labels.push((key, (*self.random.pick(&values)).to_owned()));
                }
            }
            if self.random.percent(20) {
                labels.push(("canary", "true".to_owned()));
            }
            let trust_domain = match self.random.below(100) {
                0..12 if index > 0 => self.clusters[self.random.below(index)].trust_domain.clone(),
                12..18 => "cluster.local".to_owned(),
                _ => format!("{name}.example"),
            };
            let cluster = Cluster { name: name.to_owned(), labels, region, zone, network, trust_domain };
            let spec = self.cluster_spec(&cluster, index, host_names);
            self.add("Cluster", None, name, spec);
            if !cluster.labels.is_empty() {
                let labels: Value =
                    cluster.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
                let document = self.documents.last_mut().expect("just added");
                document["metadata"]["labels"] = labels;
            }
            self.clusters.push(cluster);
        }
    }

    fn cluster_spec(&mut self, cluster: &Cluster, index: usize, host_names: bool) -> Value {
        let mut spec = json!({"region": cluster.region, "network": cluster.network});
        if let Some(zone) = &cluster.zone {
            spec["zone"] = json!(zone);
        }
        if self.random.percent(20) {
            spec["context"] = json!(format!("admin@{}", cluster.name));
        }
        if self.random.percent(10) {
            spec["drain"] = json!(self.random.percent(80));
        }
        if cluster.trust_domain != "cluster.local" {
            set(&mut spec, &["mesh", "trustDomain"], json!(cluster.trust_domain));
        }
        if self.random.percent(30) {
            set(&mut spec, &["mesh", "type"], json!("istio"));
        }
        if host_names || self.random.percent(80) {
            let minor = if host_names { self.random.between(30, 31) } else { self.random.between(24, 31) };
            let patch = if self.random.percent(20) { ".2" } else { "" };
            set(&mut spec, &["mesh", "version"], json!(format!("1.{minor}{patch}")));
        }
        if index > 0 && self.random.percent(10) {
            let alias = self.clusters[self.random.below(index)].trust_domain.clone();
            set(&mut spec, &["mesh", "trustDomainAliases"], json!([alias]));
        }
        if self.random.percent(10) {
            set(&mut spec, &["mesh", "namespace"], json!("istio-root"));
        }
        if self.random.percent(25) {
            set(&mut spec, &["mesh", "importNamespace"], json!("mesh-imports"));
        }
        if self.random.percent(25) {
            set(&mut spec, &["mesh", "dnsCapture"], json!(self.random.percent(20)));
        }
        if self.random.percent(15) {
            set(&mut spec, &["mesh", "dataPlane"], json!("sidecar"));
            set(&mut spec, &["mesh", "discovery"], json!("isolated"));
        }
        if self.random.percent(88) {
            spec["gateway"] = self.gateway(index, host_names);
        }
        spec
    }

    fn gateway(&mut self, index: usize, host_names: bool) -> Value {
        let ip = |n: usize| json!(format!("203.0.113.{}", index * 10 + n));
        let host = json!(format!("gw-{index}.elb.example"));
        let address = match self.random.below(100) {
            0..25 if host_names => host,
            25..35 if host_names => json!([host, ip(2)]),
            0..40 => ip(1),
            40..50 => json!([ip(1)]),
            50..65 => json!([ip(2), ip(1)]),
            65..70 => json!(format!("2001:db8::{}", index + 1)),
            _ => ip(3),
        };
        let mut gateway = json!({"address": address});
        if self.random.percent(25) {
            gateway["port"] = json!(*self.random.pick(&[15443, 31443, 443]));
        }
        if self.random.percent(60) {
            gateway["namespace"] = json!("istio-gateways");
        }
        if self.random.percent(25) {
            gateway["selector"] = json!({"istio": "east-west", "cluster": "own"});
        }
        gateway
    }
}
