//! Services, where they run, and who calls whom.

use super::{Fleet, Service};
use serde_json::{Value, json};

const NAMESPACES: [&str; 4] = ["bank", "shop", "web", "data-1"];
const NAMES: [&str; 12] =
    ["user", "account", "order", "checkout", "bar", "rates", "ledger", "search", "mail", "cart", "x", "user-api"];

impl Fleet {
    pub(super) fn add_services(&mut self) {
        let namespaces = self.random.between(1, NAMESPACES.len());
        let count = self.random.between(3, 10);
        let mut names = NAMES.to_vec();
        self.random.shuffle(&mut names);
        let mut specs = Vec::new();
        for name in names.into_iter().take(count) {
            let namespace = *self.random.pick(&NAMESPACES[..namespaces]);
            specs.push(self.service(namespace, name));
        }
        let mut locations = Vec::new();
        for (index, mut spec) in specs.into_iter().enumerate() {
            let dependencies = self.dependencies(index);
            if !dependencies.is_empty() {
                spec["dependsOn"] = json!(dependencies);
            }
            if self.random.percent(20) {
                locations.push(self.locate(index, &mut spec));
            }
            let service = self.services[index].clone();
            self.add("MeshService", Some(service.namespace), &service.name, spec);
            if self.random.percent(35) {
                let document = self.documents.last_mut().expect("just added");
                document["metadata"]["labels"] = json!({"data": *self.random.pick(&["pii", "public"])});
            }
        }
        if self.random.percent(10) {
            locations.push(json!({"namespace": "nobody", "name": "declares-it", "clusters": [self.clusters[0].name]}));
        }
        if locations.len() > 1 && self.random.percent(40) {
            let rest = locations.split_off(1);
            self.add("ServiceLocations", None, "observed-more", json!({"services": rest}));
        }
        if !locations.is_empty() {
            self.add("ServiceLocations", None, "observed", json!({"services": locations}));
        }
    }

    /// A service without what it calls.
    fn service(&mut self, namespace: &'static str, name: &str) -> Value {
        let all: Vec<usize> = (0..self.clusters.len()).collect();
        let mut spec = json!({});
        let runs = if self.random.percent(30) {
            let set = self.cluster_set(&all);
            let runs = self.selected(&set);
            spec["clusters"] = set;
            runs
        } else {
            let runs = self.random.some(&all, 1, 55);
            spec["clusters"] = self.names(&runs);
            runs
        };
        let (ports, written) = self.ports();
        spec["ports"] = written;
        let mut account = name.to_owned();
        if self.random.percent(25) {
            let mut workload = json!({});
            if self.random.percent(60) {
                workload["selector"] = json!({"app": name, "version": "v1"});
            }
            if workload.as_object().is_some_and(serde_json::Map::is_empty) || self.random.percent(60) {
                account = (*self.random.pick(&["shared", "runner"])).to_owned();
                workload["serviceAccount"] = json!(account);
            }
            spec["workload"] = workload;
        }
        let egress = *self.random.pick(&["", "", "", "", "", "open", "declared", "enforced"]);
        if !egress.is_empty() {
            spec["egress"] = json!(egress);
        }
        let exposed = self.random.percent(70);
        let mut local = false;
        let mut exposed_to = None;
        if exposed {
            let mut hosts = vec![format!("{name}.mesh.example")];
            if self.random.percent(20) {
                hosts.push(format!("{}.Alt.{namespace}.example", name.to_uppercase()));
            }
            if self.random.percent(25) {
                local = true;
                hosts.push(format!("{name}.{namespace}.svc.cluster.local"));
                if self.random.percent(30) {
                    hosts.remove(0);
                }
            }
            spec["expose"] = json!({"hostnames": hosts});
            if self.random.percent(12) {
                spec["expose"]["vip"] = json!(format!("241.7.0.{}", self.services.len() + 1));
            }
            if self.random.percent(30) {
                let (to, written) = self.exposed_to(namespace);
                spec["expose"]["to"] = written;
                exposed_to = Some(to);
            }
        }
        if self.random.percent(25) {
            spec["variants"] = self.variants(name, &runs, &ports, !local);
        }
        let name = name.to_owned();
        self.services.push(Service { namespace, name, account, runs, ports, exposed, exposed_to, callers: Vec::new() });
        spec
    }

    fn ports(&mut self) -> (Vec<(String, u16, &'static str)>, Value) {
        let count = *self.random.pick(&[1, 1, 1, 2, 2, 3]);
        let mut ports = Vec::new();
        let mut written = Vec::new();
        for index in 0..count {
            let protocol = *self.random.pick(&["HTTP", "HTTP", "HTTP", "HTTP", "HTTP2", "GRPC", "TLS", "TCP", "TCP"]);
            let number = 8080 + 10 * index;
            let name = match (index, self.random.percent(50)) {
                (_, true) => format!("{}-{index}", protocol.to_lowercase()),
                (0, false) => "main".to_owned(),
                _ => format!("p{index}"),
            };
            let mut port = json!({"name": name, "port": number});
            if protocol != "HTTP" || self.random.percent(50) {
                port["protocol"] = json!(protocol);
            }
            if self.random.percent(30) {
                port["targetPort"] = json!(number + 1000);
            }
            ports.push((name, number, protocol));
            written.push(port);
        }
        (ports, json!(written))
    }

    fn exposed_to(&mut self, namespace: &'static str) -> (Vec<(&'static str, Option<String>)>, Value) {
        let mut to = vec![(namespace, None)];
        if let Some(other) = self.services.last().filter(|_| self.random.percent(60)).cloned() {
            to.push((other.namespace, Some(other.name)));
            if self.random.percent(40) {
                to.remove(0);
            }
        }
        let written = to.iter().map(|(namespace, service)| match service {
            Some(service) => json!({"namespace": namespace, "service": service}),
            None => json!({"namespace": namespace}),
        });
        let written = written.collect();
        (to, written)
    }

    fn variants(
        &mut self,
        name: &str,
        runs: &[usize],
        ports: &[(String, u16, &'static str)],
        renamable: bool,
    ) -> Value {
        let mut rest = self.random.some(runs, 1, 40);
        let mut variants = Vec::new();
        let everywhere = self.random.percent(8);
        while let Some(cluster) = rest.pop() {
            let mut variant = json!({"clusters": [self.clusters[cluster].name]});
            if everywhere {
                variant["clusters"] = json!("all");
            }
            if renamable && self.random.percent(60) {
                variant["service"] = json!(format!("{name}-v2"));
            }
            if self.random.percent(60) {
                let ports: Vec<Value> = ports
                    .iter()
                    .map(|(port, number, protocol)| {
                        let mut written = json!({"name": port, "port": number + 3});
                        if self.random.percent(40) {
                            written["targetPort"] = json!(number + 2000);
                        }
                        if self.random.percent(40) {
                            written["protocol"] = json!(protocol);
                        }
                        written
                    })
                    .collect();
                variant["ports"] = json!(ports);
            }
            if self.random.percent(50) {
                variant["workload"] = match self.random.below(3) {
                    0 => json!({"selector": {"app": format!("{name}-v2")}}),
                    1 => json!({"serviceAccount": format!("{name}-v2")}),
                    _ => json!({"selector": {"app": format!("{name}-v2")}, "serviceAccount": format!("{name}-v2")}),
                };
            }
            variants.push(variant);
            if everywhere || variants.len() == 2 {
                break;
            }
        }
        json!(variants)
    }

    /// What a service calls: mostly what is exposed to it, sometimes what only runs beside it.
    fn dependencies(&mut self, caller: usize) -> Vec<Value> {
        let own = self.services[caller].clone();
        let mut dependencies = Vec::new();
        for provider in 0..self.services.len() {
            let service = self.services[provider].clone();
            let reachable = service.exposed
                && service.exposed_to.as_ref().is_none_or(|to| {
                    to.iter().any(|(namespace, name)| {
                        *namespace == own.namespace && name.as_ref().is_none_or(|name| *name == own.name)
                    })
                });
            let wanted = if provider == caller { 4 } else { 45 };
            if !self.random.percent(wanted) {
                continue;
            }
            let both: Vec<usize> = own.runs.iter().copied().filter(|cluster| service.runs.contains(cluster)).collect();
            let mut item = json!({"service": service.name});
            if service.namespace != own.namespace || self.random.percent(20) {
                item["namespace"] = json!(service.namespace);
            }
            if !reachable {
                if both.is_empty() || self.random.percent(60) {
                    continue;
                }
                item["clusters"] = self.names(&both);
            } else if self.random.percent(25) {
                item["clusters"] = self.cluster_set(&own.runs);
            }
            let bare = item.as_object().is_some_and(|map| map.len() == 1);
            dependencies.push(if bare { json!(service.name) } else { item });
            if reachable {
                self.services[provider].callers.push(caller);
            }
        }
        dependencies
    }

    /// Moves what can be observed from the service's document into a location.
    fn locate(&mut self, index: usize, spec: &mut Value) -> Value {
        let service = self.services[index].clone();
        let mut location = json!({
            "namespace": service.namespace,
            "name": service.name,
            "clusters": self.names(&service.runs),
        });
        let map = spec.as_object_mut().expect("a spec is a map");
        if self.random.percent(85) {
            map.remove("clusters");
        }
        if self.random.percent(50) {
            location["ports"] = map.remove("ports").expect("every service has ports");
        }
        if let Some(workload) = map.get_mut("workload").and_then(Value::as_object_mut) {
            if workload.contains_key("serviceAccount") && self.random.percent(50) {
                location["serviceAccounts"] = json!([service.account]);
                workload.remove("serviceAccount");
            }
            if workload.is_empty() {
                map.remove("workload");
            }
        } else {
            if self.random.percent(60) {
                location["serviceAccounts"] = json!([service.account]);
            }
            if self.random.percent(60) {
                location["selector"] = json!({"app": service.name, "seen": "yes-it-was"});
            }
        }
        location
    }
}
