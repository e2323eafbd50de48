//! Who may call.

use super::{Fleet, Service, is_http};
use serde_json::{Value, json};

impl Fleet {
    pub(super) fn add_access_policies(&mut self) {
        if self.random.percent(25) {
            let mut allow = vec![json!({"from": ["dependents"]})];
            if self.random.percent(30) {
                allow.push(json!({"from": [{"namespace": "bank", "serviceAccount": "shared"}], "methods": ["GET"]}));
            }
            let mut spec = json!({"default": true, "allow": allow});
            if self.random.percent(20) {
                spec["mode"] = json!("audit");
            }
            self.add("AccessPolicy", None, "fleet", spec);
        }
        for index in 0..self.services.len() {
            if !self.random.percent(40) {
                continue;
            }
            let service = self.services[index].clone();
            let mode = *self.random.pick(&["", "", "enforce", "enforce", "audit"]);
            let count = self.random.between(1, 2);
            for policy in 0..count {
                let allow = if self.random.percent(6) { json!([]) } else { self.rules(&service) };
                let mut spec = json!({"to": {"service": service.name}, "allow": allow});
                if !mode.is_empty() {
                    spec["mode"] = json!(mode);
                }
                if self.random.percent(15) {
                    spec["to"]["namespace"] = json!(service.namespace);
                }
                self.add("AccessPolicy", Some(service.namespace), &format!("{}-{policy}", service.name), spec);
            }
        }
    }

    fn rules(&mut self, service: &Service) -> Value {
        let count = self.random.between(1, 2);
        let rules: Vec<Value> = (0..count)
            .map(|_| {
                let mut from = vec![self.source(service)];
                if self.random.percent(30) {
                    from.push(self.source(service));
                }
                let mut rule = json!({"from": super::distinct(from)});
                if self.random.percent(20) {
                    rule["in"] = self.cluster_set(&service.runs);
                }
                let (_, port, protocol) = self.random.pick(&service.ports).clone();
                if self.random.percent(25) {
                    rule["ports"] = json!([port]);
                }
                let http = if rule.get("ports").is_some() { is_http(protocol) } else { service.speaks_http() };
                if http && self.random.percent(25) {
                    rule["methods"] = json!(self.random.some(&["GET", "POST", "PUT"], 1, 30));
                }
                if http && self.random.percent(25) {
                    rule["paths"] = json!(self.random.some(&["/v1/*", "/health", "*.html", "*"], 1, 20));
                }
                rule
            })
            .collect();
        json!(rules)
    }

    fn source(&mut self, service: &Service) -> Value {
        let caller = match service.callers.as_slice() {
            [] => self.random.below(self.services.len()),
            callers => *self.random.pick(callers),
        };
        let caller = self.services[caller].clone();
        let mut item = json!({});
        match self.random.below(100) {
            0..45 => return json!("dependents"),
            45..70 => {
                item["service"] = json!(caller.name);
                if self.random.percent(10) {
                    item["serviceAccount"] = json!(caller.account);
                }
                if caller.namespace != service.namespace {
                    item["namespace"] = json!(caller.namespace);
                }
            }
            70..80 => {
                item["serviceAccount"] = json!(caller.account);
                if caller.namespace != service.namespace || self.random.percent(30) {
                    item["namespace"] = json!(caller.namespace);
                }
            }
            80..90 => item["namespace"] = json!(caller.namespace),
            _ => item["clusters"] = self.cluster_set(&caller.runs),
        }
        if item.get("clusters").is_none() && self.random.percent(40) {
            item["clusters"] = self.cluster_set(&caller.runs);
        }
        item
    }
}
