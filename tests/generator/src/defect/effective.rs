//! Defects in what follows from documents: an island of two clusters and two services is put into the fleet, and one thing
//! about it is wrong.

use super::{At, Defect, Fleet, Inject};
use crate::document::{document, kind, remove, set};
use mesh::diagnostic::codes;
use serde_json::{Value, json};

/// The namespace of the island.
const NAMESPACE: &str = "zz";
/// Where the caller runs.
const HERE: &str = "zz-here";
/// Where the called service runs as well.
const THERE: &str = "zz-there";

/// The documents of the island, by their position in the fleet.
struct Island<'a, 'b> {
    fleet: &'a mut Fleet<'b>,
    here: usize,
    there: usize,
    called: usize,
    calling: usize,
    traffic: usize,
    access: usize,
}

impl<'a, 'b> Island<'a, 'b> {
    /// A fleet whose guardrails could meddle is left alone.
    fn of(fleet: &'a mut Fleet<'b>) -> Option<Self> {
        if fleet.documents.iter().any(|document| kind(document) == "Guardrail") {
            return None;
        }
        let first = fleet.documents.len();
        for (name, address) in [(HERE, "203.0.113.240"), (THERE, "203.0.113.241")] {
            let mesh = json!({"version": "1.31", "trustDomain": format!("{name}.example")});
            let spec = json!({"region": name, "network": name, "mesh": mesh, "gateway": {"address": address}});
            fleet.documents.push(document("Cluster", None, name, spec));
        }
        let ports = json!([{"name": "http", "port": 8080}]);
        let expose = json!({"hostnames": ["called.zz.example"]});
        let called = json!({"clusters": [HERE, THERE], "ports": ports, "expose": expose});
        let calling = json!({"clusters": [HERE], "ports": ports, "dependsOn": ["called"]});
        let traffic = json!({"to": {"service": "called"}, "failover": {"order": ["local", "all"]}});
        let access = json!({"to": {"service": "called"}, "allow": [{"from": ["dependents"]}]});
        for (kind, name, spec) in [
            ("MeshService", "called", called),
            ("MeshService", "calling", calling),
            ("TrafficPolicy", "traffic", traffic),
            ("AccessPolicy", "access", access),
        ] {
            fleet.documents.push(document(kind, Some(NAMESPACE), name, spec));
        }
        Some(Self {
            here: first,
            there: first + 1,
            called: first + 2,
            calling: first + 3,
            traffic: first + 4,
            access: first + 5,
            fleet,
        })
    }

    /// Sets a part of a document.
    fn set(&mut self, index: usize, path: &str, value: Value) {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        set(&mut self.fleet.documents[index], &parts, value);
    }

    /// Takes a part out of a document.
    fn remove(&mut self, index: usize, path: &str) {
        remove(&mut self.fleet.documents[index], path);
    }

    /// Adds a document and tells its position.
    fn add(&mut self, kind: &str, name: &str, spec: Value) -> usize {
        let namespace = (kind != "Guardrail" && kind != "ServiceLocations").then_some(NAMESPACE);
        self.fleet.documents.push(document(kind, namespace, name, spec));
        self.fleet.documents.len() - 1
    }

    /// A further service here that nobody calls.
    fn other(&mut self, rest: &Value) -> usize {
        let mut spec = json!({"clusters": [HERE], "ports": [{"name": "http", "port": 8080}]});
        for (key, value) in rest.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.add("MeshService", "other", spec)
    }

    /// A rule of a guardrail for the island alone.
    fn guardrail(&mut self, verb: &str, value: Value) -> usize {
        self.set(self.called, "/metadata/labels", json!({"island": "zz"}));
        let mut rule = json!({"name": "zz-rule", "for": {"island": "zz"}});
        rule[verb] = value;
        self.add("Guardrail", "zz", json!({"rules": [rule]}))
    }

    /// Where the called service was observed.
    fn observe(&mut self, rest: &Value) -> usize {
        let mut entry = json!({"namespace": NAMESPACE, "name": "called", "clusters": [HERE]});
        for (key, value) in rest.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        self.add("ServiceLocations", "zz", json!({"services": [entry]}))
    }
}

/// A document's name: where a finding points that no single field causes.
const NAME: &str = "/metadata/name";

fn at(index: usize, path: &str) -> Option<(usize, At)> {
    Some((index, At::Value(path.to_owned())))
}

macro_rules! island {
    ($name:literal, $code:ident, |$island:ident| $inject:block) => {
        Defect {
            name: $name,
            code: &codes::$code,
            inject: Inject::Tree(|fleet| {
                #[allow(unused_mut, reason = "not every defect changes what stands there")]
                let mut $island = Island::of(fleet)?;
                $inject
            }),
        }
    };
}

pub(super) static ALL: &[Defect] = &[
    island!("a gateway of another cluster", SAME_GATEWAY, |island| {
        island.set(island.there, "/spec/gateway/address", json!("203.0.113.240"));
        at(island.there, "/spec/gateway/address")
    }),
    island!("a mesh without a backend", NO_BACKEND, |island| {
        island.set(island.here, "/spec/mesh", json!({"type": "linkerd", "trustDomain": "zz-here.example"}));
        at(island.here, "/spec/mesh/type")
    }),
    island!("no place to run", NO_LOCATION, |island| {
        island.remove(island.called, "/spec/clusters");
        at(island.called, NAME)
    }),
    island!("no ports", NO_PORTS, |island| {
        island.remove(island.called, "/spec/ports");
        at(island.called, NAME)
    }),
    island!("observed elsewhere", LOCATION_DIFFERS, |island| {
        island.observe(&json!({}));
        at(island.called, "/spec/clusters")
    }),
    island!("observed without a document", LOCATION_UNUSED, |island| {
        let index = island.observe(&json!({"name": "nobody"}));
        at(index, "/spec/services/0")
    }),
    island!("observed with two accounts", ACCOUNT_CHOICE, |island| {
        island.observe(&json!({"clusters": [HERE, THERE], "serviceAccounts": ["a", "b"]}));
        at(island.called, NAME)
    }),
    island!("a variant where nothing runs", VARIANT_UNUSED, |island| {
        island.set(island.called, "/spec/clusters", json!([HERE]));
        island.set(island.called, "/spec/variants", json!([{"clusters": [THERE], "service": "called-v2"}]));
        at(island.called, "/spec/variants/0/clusters")
    }),
    island!("a dependency where nothing runs", DEPENDENCY_NOWHERE, |island| {
        island.set(island.calling, "/spec/dependsOn", json!([{"service": "called", "clusters": [THERE]}]));
        at(island.calling, "/spec/dependsOn/0/clusters")
    }),
    island!("a dependency that is not exposed", NOT_EXPOSED, |island| {
        island.remove(island.called, "/spec/expose");
        island.set(island.called, "/spec/clusters", json!([THERE]));
        at(island.calling, "/spec/dependsOn/0")
    }),
    island!("a dependency on itself", SELF_DEPENDENCY, |island| {
        island.set(island.calling, "/spec/dependsOn", json!(["called", "calling"]));
        at(island.calling, "/spec/dependsOn/1")
    }),
    island!("one address for two names", VIP_COLLISION, |island| {
        island.set(island.called, "/spec/expose/vip", json!("241.0.0.7"));
        let other = island.other(&json!({"expose": {"hostnames": ["other.zz.example"], "vip": "241.0.0.7"}}));
        at(other, "/spec/expose/hostnames/0")
    }),
    island!("the pods of another service", SHARED_WORKLOAD, |island| {
        let other = island.other(&json!({"workload": {"selector": {"app": "called"}}}));
        at(other, NAME)
    }),
    island!("the Kubernetes Service of another", FOREIGN_SERVICE_NAME, |island| {
        let other = island.other(&json!({"variants": [{"clusters": [HERE], "service": "called"}]}));
        at(other, NAME)
    }),
    island!("a port that sidecars keep", SIDECAR_PORT, |island| {
        island.set(island.called, "/spec/ports", json!([{"name": "http", "port": 15001}]));
        at(island.called, NAME)
    }),
    island!("overlapping matches that set the same", MATCH_CONFLICT, |island| {
        for (name, path) in [("m-0", "/a"), ("m-1", "/a/b")] {
            let matches = json!([{"path": {"prefix": path}}]);
            island.add("TrafficPolicy", name, json!({"to": {"service": "called"}, "match": matches, "timeout": "1s"}));
        }
        at(island.fleet.documents.len() - 1, "/spec/match")
    }),
    island!("matches that cannot be joined", MATCH_COMBINATION, |island| {
        let matches = json!([{"path": {"prefix": "/a"}}]);
        island.add("TrafficPolicy", "m-0", json!({"to": {"service": "called"}, "match": matches, "timeout": "1s"}));
        let matches = json!([{"path": {"regex": "/a.*"}}]);
        let retries = json!({"attempts": 1});
        let spec = json!({"to": {"service": "called"}, "match": matches, "retries": retries});
        let index = island.add("TrafficPolicy", "m-1", spec);
        at(index, "/spec/match")
    }),
    island!("a policy that no call fits", POLICY_UNUSED, |island| {
        let spec = json!({"from": [{"service": "called"}], "to": {"service": "called"}, "timeout": "1s"});
        let index = island.add("TrafficPolicy", "unused", spec);
        at(index, NAME)
    }),
    island!("a share where nothing runs", CLUSTER_UNUSED, |island| {
        island.set(island.called, "/spec/clusters", json!([HERE]));
        island.set(island.traffic, "/spec/weights", json!([{"clusters": [THERE], "percent": 10}]));
        at(island.traffic, "/spec/weights/0")
    }),
    island!("a rule for copies that do not exist", CLUSTER_UNUSED, |island| {
        island.set(island.called, "/spec/clusters", json!([HERE]));
        island.set(island.access, "/spec/allow", json!([{"from": ["dependents"], "in": [HERE, THERE]}]));
        at(island.access, "/spec/allow/0/in")
    }),
    island!("a share that is excluded", SHARE_DROPPED, |island| {
        island.set(island.traffic, "/spec/failover/exclude", json!([THERE]));
        island.set(island.traffic, "/spec/weights", json!([{"clusters": [THERE], "percent": 10}]));
        at(island.traffic, "/spec/weights/0")
    }),
    island!("a mirror that is excluded", MIRROR_DROPPED, |island| {
        island.set(island.traffic, "/spec/failover/exclude", json!([THERE]));
        island.set(island.traffic, "/spec/mirror", json!({"clusters": [THERE]}));
        at(island.traffic, "/spec/mirror")
    }),
    island!("nobody but a drained cluster", NO_CANDIDATE_NOW, |island| {
        island.set(island.called, "/spec/clusters", json!([THERE]));
        island.set(island.there, "/spec/drain", json!(true));
        at(island.calling, "/spec/dependsOn/0")
    }),
    island!("nobody but a cluster without a gateway", NO_CANDIDATE_NOW, |island| {
        island.set(island.called, "/spec/clusters", json!([THERE]));
        island.remove(island.there, "/spec/gateway");
        at(island.calling, "/spec/dependsOn/0")
    }),
    island!("requests without HTTP", HTTP_ONLY, |island| {
        island.set(island.called, "/spec/ports", json!([{"name": "db", "port": 5432, "protocol": "TCP"}]));
        island.set(island.traffic, "/spec/timeout", json!("1s"));
        at(island.traffic, "/spec/timeout")
    }),
    island!("two defaults", TWO_DEFAULTS, |island| {
        for name in ["zz-0", "zz-1"] {
            let spec = json!({"default": true, "timeout": "1s"});
            island.fleet.documents.push(document("TrafficPolicy", None, name, spec));
        }
        at(island.fleet.documents.len() - 1, NAME)
    }),
    island!("an account of two services", SHARED_ACCOUNT, |island| {
        island.other(&json!({"workload": {"serviceAccount": "calling"}}));
        island.set(island.access, "/spec/allow", json!([{"from": [{"service": "calling"}]}]));
        at(island.access, "/spec/allow/0/from/0")
    }),
    island!("a dependency without permission", NO_PERMISSION, |island| {
        island.remove(island.called, "/spec/expose");
        island.set(island.access, "/spec/allow", json!([]));
        at(island.calling, "/spec/dependsOn/0")
    }),
    island!("a permission without dependency", UNUSED_PERMISSION, |island| {
        island.other(&json!({}));
        island.set(island.access, "/spec/allow", json!([{"from": ["dependents", {"service": "other"}]}]));
        at(island.access, "/spec/allow/0/from/1")
    }),
    island!("a caller that does not run there", CALLER_NOWHERE, |island| {
        let nowhere = json!({"service": "calling", "clusters": [THERE]});
        island.set(island.access, "/spec/allow", json!([{"from": ["dependents", nowhere]}]));
        at(island.access, "/spec/allow/0/from/1")
    }),
    island!("an account of no namespace", NAMESPACE_MISSING, |island| {
        let spec = json!({"default": true, "allow": [{"from": ["dependents", {"serviceAccount": "calling"}]}]});
        island.fleet.documents.push(document("AccessPolicy", None, "zz", spec));
        at(island.fleet.documents.len() - 1, "/spec/allow/0/from/1")
    }),
    island!("always allowed from more than is meant", ALWAYS_ALLOW_WIDE, |island| {
        island.set(island.there, "/spec/mesh/trustDomain", json!("zz-here.example"));
        island.set(island.called, "/spec/clusters", json!([HERE]));
        let index =
            island.guardrail("alwaysAllow", json!([{"namespace": "monitoring", "serviceAccount": "prometheus"}]));
        at(index, "/spec/rules/0/alwaysAllow/0")
    }),
    island!("a share beyond a guardrail", GUARDRAIL_MAX, |island| {
        island.set(island.traffic, "/spec/weights", json!([{"clusters": [THERE], "percent": 50}]));
        island.guardrail("max", json!({"percent": 10, "to": [THERE]}));
        at(island.traffic, "/spec/weights")
    }),
    island!("a host name beyond a guardrail", GUARDRAIL_HOSTNAME, |island| {
        island.guardrail("require", json!({"hostnames": ["*.other.example"]}));
        at(island.called, "/spec/expose/hostnames/0")
    }),
    island!("an audited service that a guardrail wants closed", GUARDRAIL_ACCESS, |island| {
        island.guardrail("require", json!({"accessPolicy": true}));
        island.set(island.access, "/spec/mode", json!("audit"));
        at(island.called, NAME)
    }),
    island!("a gateway's name for an old mesh", DNS_GATEWAY_VERSION, |island| {
        island.set(island.there, "/spec/gateway/address", json!("gateway.zz.example"));
        island.set(island.here, "/spec/mesh/version", json!("1.29"));
        at(island.there, NAME)
    }),
    island!("a gateway's name beside own pods", DNS_LOCAL_PODS, |island| {
        island.set(island.there, "/spec/gateway/address", json!("gateway.zz.example"));
        at(island.there, NAME)
    }),
    island!("a name that nobody answers for", NAME_DOES_NOT_RESOLVE, |island| {
        island.set(island.here, "/spec/mesh/dnsCapture", json!(false));
        at(island.called, "/spec/expose/hostnames/0")
    }),
    island!("a cluster-local name without a namespace", NAME_NOT_VISIBLE, |island| {
        island.set(island.here, "/spec/mesh/dnsCapture", json!(false));
        island.set(island.called, "/spec/expose/hostnames", json!(["called.zz.svc.cluster.local"]));
        island.set(island.called, "/spec/clusters", json!([THERE]));
        island.set(island.calling, "/metadata/namespace", json!("zy"));
        island.set(island.calling, "/spec/dependsOn", json!([{"service": "called", "namespace": NAMESPACE}]));
        at(island.called, "/spec/expose/hostnames/0")
    }),
    island!("two callers with the same pods", CALLERS_ALIKE, |island| {
        let workload = json!({"selector": {"app": "calling"}, "serviceAccount": "other"});
        // With a policy, the two would be refused for having the same pods.
        if island.fleet.effective.fleet.access.iter().any(|policy| policy.to.is_none()) {
            return None;
        }
        let other = island.other(&json!({"dependsOn": ["called"], "workload": workload}));
        let weights = json!([{"clusters": [THERE], "percent": 10}]);
        let spec = json!({"from": [{"service": "calling"}], "to": {"service": "called"}, "weights": weights});
        island.add("TrafficPolicy", "one-of-two", spec);
        at(other, NAME)
    }),
    island!("a default trust domain elsewhere", CLUSTER_LOCAL_DOMAIN, |island| {
        let clusters = &island.fleet.effective.fleet.clusters;
        if clusters.iter().any(|cluster| cluster.mesh.trust_domain.as_str() == "cluster.local") {
            return None;
        }
        island.set(island.there, "/spec/mesh/trustDomain", json!("cluster.local"));
        island.set(island.calling, "/spec/clusters", json!([HERE, THERE]));
        at(island.access, "/spec/allow/0")
    }),
];
