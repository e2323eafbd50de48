//! How calls travel.

use super::{Fleet, Service, distinct};
use serde_json::{Value, json};

/// The fields of a policy that policies are merged by, and whether they need HTTP.
const UNITS: [(&str, bool); 11] = [
    ("order", false),
    ("exclude", false),
    ("weights", false),
    ("outlier", false),
    ("connection", false),
    ("retries", true),
    ("timeout", true),
    ("fault", true),
    ("mirror", true),
    ("cors", true),
    ("headers", true),
];

impl Fleet {
    pub(super) fn add_traffic_policies(&mut self) {
        if self.random.percent(60) {
            // What needs HTTP does not apply to services without it.
            let units = self.random.some(&UNITS.map(|(unit, _)| unit), 1, 25);
            let everywhere: Vec<usize> = (0..self.clusters.len()).collect();
            let mut spec = self.units(&units, &everywhere);
            spec["default"] = json!(true);
            self.add("TrafficPolicy", None, "fleet", spec);
        }
        for index in 0..self.services.len() {
            let service = self.services[index].clone();
            if service.callers.is_empty() {
                continue;
            }
            match self.random.below(100) {
                0..35 => self.layered(index, &service),
                35..65 => self.by_caller(index, &service),
                _ => {}
            }
            if service.speaks_http() && self.random.percent(35) {
                self.matched(&service);
            }
        }
    }

    /// Policies for all callers, or some, that set different things.
    fn layered(&mut self, index: usize, service: &Service) {
        let mut units = unit_names(service);
        self.random.shuffle(&mut units);
        let count = self.random.between(1, 2);
        for policy in 0..count {
            let take = self.random.between(1, 3).min(units.len());
            let chosen: Vec<&str> = units.drain(..take).collect();
            let mut spec = self.units(&chosen, &service.runs);
            if self.random.percent(35) {
                spec["from"] = json!([self.caller(service.callers[0], service)]);
            }
            self.policy(&format!("{}-{index}-{policy}", service.name), service, spec);
        }
    }

    /// A policy for each caller: the callers of one cluster, even of one namespace, go different ways.
    fn by_caller(&mut self, index: usize, service: &Service) {
        for caller in service.callers.clone() {
            if self.random.percent(25) {
                continue;
            }
            let mut units = unit_names(service);
            self.random.shuffle(&mut units);
            units.truncate(self.random.between(1, 3));
            let mut spec = self.units(&units, &service.runs);
            spec["from"] = json!([self.caller(caller, service)]);
            let name = self.services[caller].name.clone();
            self.policy(&format!("{name}-to-{}-{index}", service.name), service, spec);
        }
    }

    /// Policies for some requests. Different values of one header keep them apart.
    fn matched(&mut self, service: &Service) {
        let count = self.random.between(1, 2);
        for policy in 0..count {
            let mut matches = vec![self.request(policy)];
            if self.random.percent(30) {
                let mut other = self.request(policy);
                other["method"] = json!("PUT");
                matches.push(other);
            }
            let mut units = unit_names(service);
            units.retain(|unit| *unit != "outlier" && *unit != "connection" || self.random.percent(20));
            self.random.shuffle(&mut units);
            units.truncate(self.random.between(1, 2));
            let mut spec = self.units(&units, &service.runs);
            spec["match"] = json!(matches);
            if self.random.percent(35) {
                spec["from"] = json!([self.caller(service.callers[0], service)]);
            }
            self.policy(&format!("{}-match-{policy}", service.name), service, spec);
        }
    }

    fn request(&mut self, policy: usize) -> Value {
        let mut request = json!({});
        if policy > 0 || self.random.percent(50) {
            request["headers"] = json!({"x-try": {"exact": format!("way-{policy}")}});
        }
        if self.random.percent(30) {
            request["headers"]["x-more"] = self.comparison(true);
        }
        if self.random.percent(35) {
            request["path"] = match self.random.below(3) {
                0 => json!({"exact": format!("/v{policy}/one")}),
                1 => json!({"prefix": format!("/v{policy}/")}),
                _ => json!({"regex": format!("/v{policy}/[a-z]+")}),
            };
        }
        if self.random.percent(30) {
            request["query"] = json!({"debug": self.comparison(true)});
        }
        if self.random.percent(25) || request.as_object().is_some_and(serde_json::Map::is_empty) {
            request["method"] = json!(*self.random.pick(&["GET", "POST"]));
        }
        request
    }

    fn comparison(&mut self, presence: bool) -> Value {
        match self.random.below(if presence { 4 } else { 3 }) {
            0 => json!({"exact": "one"}),
            1 => json!({"prefix": "on"}),
            2 => json!({"regex": "[a-z]+"}),
            _ => json!({"present": true}),
        }
    }

    /// A caller by any of its parts.
    fn caller(&mut self, caller: usize, provider: &Service) -> Value {
        let service = self.services[caller].clone();
        let mut item = json!({});
        match self.random.below(10) {
            0..6 => {
                item["service"] = json!(service.name);
                if service.namespace != provider.namespace || self.random.percent(30) {
                    item["namespace"] = json!(service.namespace);
                }
                if self.random.percent(25) {
                    item["clusters"] = self.cluster_set(&service.runs);
                }
            }
            6..8 => item["clusters"] = self.cluster_set(&service.runs),
            _ => item["namespace"] = json!(service.namespace),
        }
        item
    }

    fn policy(&mut self, name: &str, service: &Service, mut spec: Value) {
        let elsewhere = self.random.percent(10);
        spec["to"] = json!({"service": service.name});
        if elsewhere {
            spec["to"]["namespace"] = json!(service.namespace);
            for item in spec["from"].as_array_mut().into_iter().flatten() {
                if item.get("service").is_some() && item.get("namespace").is_none() {
                    item["namespace"] = json!(service.namespace);
                }
            }
        }
        if spec["from"].is_null() {
            spec.as_object_mut().expect("a spec is a map").remove("from");
        }
        let namespace = if elsewhere { "platform" } else { service.namespace };
        self.add("TrafficPolicy", Some(namespace), name, spec);
    }

    fn units(&mut self, units: &[&str], runs: &[usize]) -> Value {
        let mut spec = json!({});
        for unit in units {
            match *unit {
                "order" => spec["failover"]["order"] = self.order(),
                "exclude" => spec["failover"]["exclude"] = self.exclude(),
                "weights" => spec["weights"] = self.weights(runs),
                "outlier" => spec["outlier"] = self.outlier(),
                "connection" => spec["connection"]["crossCluster"] = self.cross_cluster(),
                "retries" => {
                    spec["retries"]["attempts"] = json!(self.random.between(0, 4));
                    if self.random.percent(60) {
                        spec["retries"]["perTryTimeout"] = self.duration();
                    }
                }
                "timeout" => spec["timeout"] = self.duration(),
                "fault" => spec["fault"] = self.fault(),
                "mirror" => {
                    spec["mirror"]["clusters"] = self.cluster_set(runs);
                    if self.random.percent(60) {
                        spec["mirror"]["percent"] = json!(self.random.between(1, 100));
                    }
                }
                "cors" => spec["cors"] = self.cors(),
                _ => spec["headers"] = self.headers(),
            }
        }
        spec
    }

    fn order(&mut self) -> Value {
        let everywhere: Vec<usize> = (0..self.clusters.len()).collect();
        let mut items = Vec::new();
        if self.random.percent(70) {
            items.push(json!("local"));
        }
        for _ in 0..self.random.below(4) {
            if self.random.percent(25) {
                let mut tier = vec![self.cluster_item(&everywhere, true), self.cluster_item(&everywhere, true)];
                if self.random.percent(30) {
                    tier.push(json!("local"));
                }
                items.push(json!(distinct(tier)));
            } else {
                items.push(self.cluster_item(&everywhere, true));
            }
        }
        if items.is_empty() || self.random.percent(65) {
            items.push(json!("all"));
        }
        json!(items)
    }

    fn exclude(&mut self) -> Value {
        if self.random.percent(5) {
            return json!("all");
        }
        let everywhere: Vec<usize> = (0..self.clusters.len()).collect();
        json!([self.cluster_item(&everywhere, true)])
    }

    fn weights(&mut self, runs: &[usize]) -> Value {
        if self.random.percent(5) {
            return json!([{"clusters": "all", "percent": self.random.between(1, 100)}]);
        }
        let mut runs = runs.to_vec();
        self.random.shuffle(&mut runs);
        let mut weights = Vec::new();
        let mut left = 100;
        for _ in 0..self.random.between(1, 2) {
            let take = self.random.between(1, 2).min(runs.len());
            let clusters: Vec<usize> = runs.drain(..take).collect();
            if clusters.is_empty() || left == 0 {
                break;
            }
            let percent = match self.random.below(10) {
                0 => left,
                1 => 1,
                _ => self.random.between(1, left),
            };
            left -= percent;
            weights.push(json!({"clusters": self.names(&clusters), "percent": percent}));
        }
        json!(weights)
    }

    fn outlier(&mut self) -> Value {
        let mut outlier = json!({});
        if self.random.percent(70) {
            outlier["consecutiveErrors"] = json!(self.random.between(1, 10));
        }
        if self.random.percent(50) {
            outlier["interval"] = self.duration();
        }
        if self.random.percent(50) || outlier.as_object().is_some_and(serde_json::Map::is_empty) {
            outlier["ejectFor"] = self.duration();
        }
        outlier
    }

    fn cross_cluster(&mut self) -> Value {
        let mut settings = json!({"connectTimeout": self.duration()});
        if self.random.percent(60) {
            settings["keepalive"] = json!({"idle": "120s", "interval": "30s", "probes": 3});
        }
        if self.random.percent(50) {
            settings["idleTimeout"] = self.duration();
        }
        if self.random.percent(50) {
            settings["maxAge"] = json!("600s");
        }
        settings
    }

    fn fault(&mut self) -> Value {
        let mut fault = json!({});
        if self.random.percent(60) {
            fault["delay"]["duration"] = self.duration();
            if self.random.percent(60) {
                fault["delay"]["percent"] = json!(self.random.between(1, 100));
            }
        }
        if fault.as_object().is_some_and(serde_json::Map::is_empty) || self.random.percent(40) {
            fault["abort"]["status"] = json!(*self.random.pick(&[418, 500, 503]));
            if self.random.percent(60) {
                fault["abort"]["percent"] = json!(self.random.between(1, 100));
            }
        }
        fault
    }

    fn cors(&mut self) -> Value {
        let mut cors = json!({"allowOrigins": [self.comparison(false)]});
        let more = [
            ("allowMethods", json!(["GET", "POST"])),
            ("allowHeaders", json!(["X-Try"])),
            ("exposeHeaders", json!(["x-served-by"])),
            ("maxAge", json!("1h")),
            ("allowCredentials", json!(true)),
        ];
        for (key, value) in self.random.some(&more, 1, 40) {
            cors[key] = value;
        }
        cors
    }

    fn headers(&mut self) -> Value {
        let mut headers = json!({});
        for direction in self.random.some(&["request", "response"], 1, 40) {
            let changes = [
                ("set", json!({"X-Mesh": "yes, 100% %REQ(x)%"})),
                ("add", json!({"x-hops": "1"})),
                ("remove", json!(["X-Internal"])),
            ];
            for (key, value) in self.random.some(&changes, 1, 40) {
                headers[direction][key] = value;
            }
        }
        headers
    }
}

fn unit_names(service: &Service) -> Vec<&'static str> {
    let http = service.speaks_http();
    // Where calls go matters most, so that it is drawn more often than what happens to requests on the way.
    let often = ["order", "exclude", "weights"];
    let rest = UNITS.iter().filter(|(_, needs_http)| http || !needs_http).map(|(unit, _)| *unit);
    let mut units: Vec<&str> = rest.collect();
    units.sort_by_key(|unit| !often.contains(unit));
    units
}
