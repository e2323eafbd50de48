//! Defects that can be put into any fleet: what is written, and what it refers to.

use super::{At, Defect, Inject, access, append, policies, replace};
use crate::document::{document, kind, set};
use mesh::diagnostic::codes;
use serde_json::json;

pub(super) static ALL: &[Defect] = &[
    text!("a key twice", DUPLICATE_KEY, |text| append(text, "kind: Cluster")),
    text!("a bracket that nothing opens", SYNTAX, |text| append(text, "]")),
    text!("an anchor", ANCHOR, |text| replace(text, "/metadata/name", 3, |name| format!("&a {name}"))),
    text!("a tag", TAG, |text| replace(text, "/metadata/name", 6, |name| format!("!!str {name}"))),
    text!("a key that is a boolean to some readers", KEY_NOT_STRING, |text| append(text, "yes: 1")),
    text!("a name that is a boolean to some readers", WRONG_TYPE, |text| {
        replace(text, "/metadata/name", 0, |_| "on".to_owned())
    }),
    text!("a name that is a number", WRONG_TYPE, |text| replace(text, "/metadata/name", 0, |_| "007".to_owned())),
    text!("a field without a value", WRONG_TYPE, |text| {
        let (yaml, _) = replace(text, "/metadata/name", 0, |_| String::new())?;
        // There is no value to name.
        Some((yaml, *text.keys.get("/metadata/name")?))
    }),
    tree!("an unknown kind", UNKNOWN_KIND, |fleet| fleet.put("MeshService", &[], "/kind", json!("MeshServise"))),
    tree!("an unknown version", UNKNOWN_KIND, |fleet| {
        fleet.put("Cluster", &[], "/apiVersion", json!("meshintent.dev/v1"))
    }),
    tree!("a misspelt field", UNKNOWN_FIELD, |fleet| {
        let index = fleet.any("MeshService", &["/spec/ports"])?;
        fleet.put_into(index, "/spec/prots", json!([{"name": "http", "port": 1}]))?;
        Some((index, At::Key("/spec/prots".to_owned())))
    }),
    tree!("a misspelt field deep inside", UNKNOWN_FIELD, |fleet| {
        let index = fleet.any("MeshService", &["/spec/ports/0/name"])?;
        fleet.put_into(index, "/spec/ports/0/protcol", json!("HTTP"))?;
        Some((index, At::Key("/spec/ports/0/protcol".to_owned())))
    }),
    tree!("a missing field", MISSING_FIELD, |fleet| {
        let index = fleet.any("Cluster", &["/spec/region"])?;
        crate::document::remove(&mut fleet.documents[index], "/spec/region");
        Some((index, At::Value("/spec".to_owned())))
    }),
    tree!("a missing namespace", MISSING_FIELD, |fleet| {
        let index = fleet.any("MeshService", &[])?;
        crate::document::remove(&mut fleet.documents[index], "/metadata/namespace");
        Some((index, At::Value("/metadata".to_owned())))
    }),
    tree!("a namespace where none belongs", NAMESPACE, |fleet| {
        fleet.put("Cluster", &[], "/metadata/namespace", json!("bank"))
    }),
    tree!("a string in place of a list", WRONG_TYPE, |fleet| {
        fleet.put("MeshService", &["/spec/ports"], "/spec/ports", json!("8080"))
    }),
    tree!("a string in place of a number", WRONG_TYPE, |fleet| {
        fleet.put("MeshService", &["/spec/ports/0"], "/spec/ports/0/port", json!("8080"))
    }),
    tree!("a port that does not exist", BAD_VALUE, |fleet| {
        fleet.put("MeshService", &["/spec/ports/0"], "/spec/ports/0/port", json!(70000))
    }),
    tree!("a name with a capital", BAD_VALUE, |fleet| {
        fleet.put("MeshService", &["/spec/ports/0"], "/spec/ports/0/name", json!("Http"))
    }),
    tree!("no address", BAD_VALUE, |fleet| {
        fleet.put("Cluster", &["/spec/gateway"], "/spec/gateway/address", json!("1.2.3.400"))
    }),
    tree!("a number in place of a version", WRONG_TYPE, |fleet| {
        fleet.put("Cluster", &["/spec/mesh/version"], "/spec/mesh/version", json!(1.3))
    }),
    tree!("an old mesh", MESH_VERSION, |fleet| fleet.put("Cluster", &[], "/spec/mesh/version", json!("1.20"))),
    tree!("another data plane", MESH_MODE, |fleet| fleet.put("Cluster", &[], "/spec/mesh/dataPlane", json!("ambient"))),
    tree!("a reserved name", RESERVED, |fleet| {
        let spec = json!({"region": "r", "network": "n"});
        fleet.add(document("Cluster", None, "local", spec), "/metadata/name")
    }),
    tree!("a document twice", DUPLICATE_DOCUMENT, |fleet| {
        let again = fleet.random.below(fleet.documents.len());
        let again = fleet.documents[again].clone();
        fleet.add(again, "/metadata/name")
    }),
    tree!("an empty list of clusters", EMPTY_LIST, |fleet| {
        fleet.put("MeshService", &["/spec/clusters"], "/spec/clusters", json!([]))
    }),
    tree!("an empty list of dependencies", EMPTY_LIST, |fleet| {
        fleet.put("MeshService", &["/spec/dependsOn"], "/spec/dependsOn", json!([]))
    }),
    tree!("an unknown cluster", UNKNOWN_CLUSTER, |fleet| {
        let index = fleet.any("MeshService", &["/spec/clusters/0"])?;
        fleet.push(index, "/spec/clusters", json!("nowhere"))
    }),
    tree!("labels that nobody carries", EMPTY_SELECTION, |fleet| {
        let index = fleet.any("MeshService", &["/spec/clusters/0"])?;
        fleet.push(index, "/spec/clusters", json!({"hosting": "moon"}))
    }),
    tree!("a map of no labels", BAD_VALUE, |fleet| {
        let index = fleet.any("MeshService", &["/spec/clusters/0"])?;
        fleet.push(index, "/spec/clusters", json!({}))
    }),
    tree!("`local` where there is no caller", BAD_VALUE, |fleet| {
        let index = fleet.any("MeshService", &["/spec/clusters/0"])?;
        fleet.push(index, "/spec/clusters", json!("local"))
    }),
    tree!("`same` where there is no caller", BAD_VALUE, |fleet| {
        let index = fleet.any("TrafficPolicy", &["/spec/weights/0/clusters/0"])?;
        let (index, At::Value(item) | At::Key(item)) =
            fleet.push(index, "/spec/weights/0/clusters", json!({"region": "same"}))?;
        Some((index, At::Value(format!("{item}/region"))))
    }),
    tree!("an unknown dependency", UNKNOWN_SERVICE, |fleet| {
        let index = fleet.any("MeshService", &["/spec/dependsOn"])?;
        fleet.push(index, "/spec/dependsOn", json!("nobody"))
    }),
    tree!("a policy about nobody", UNKNOWN_SERVICE, |fleet| {
        fleet.put("TrafficPolicy", &["/spec/to"], "/spec/to/service", json!("nobody"))
    }),
    tree!("a dependency twice", DUPLICATE_DEPENDENCY, |fleet| {
        let index = fleet.any("MeshService", &["/spec/dependsOn/0"])?;
        let again = fleet.documents[index]["spec"]["dependsOn"][0].clone();
        fleet.push(index, "/spec/dependsOn", again)
    }),
    tree!("a host name of another service", HOST_TAKEN, |fleet| {
        let index = fleet.any("MeshService", &["/spec/expose/hostnames/0"])?;
        let host = fleet.documents[index]["spec"]["expose"]["hostnames"][0].clone();
        let mut twin = fleet.documents[index].clone();
        twin["metadata"]["name"] = json!("twin");
        twin["spec"] =
            json!({"clusters": "all", "ports": [{"name": "http", "port": 80}], "expose": {"hostnames": [host]}});
        fleet.add(twin, "/spec/expose/hostnames/0")
    }),
    tree!("a host name of the suite", RESERVED_HOST, |fleet| {
        let index = fleet.any("MeshService", &["/spec/expose/hostnames"])?;
        fleet.push(index, "/spec/expose/hostnames", json!("user.meshintent.dev"))
    }),
    tree!("a cluster-local name of another service", LOCAL_NAME, |fleet| {
        let index = fleet.any("MeshService", &["/spec/expose/hostnames"])?;
        fleet.push(index, "/spec/expose/hostnames", json!("other.bank.svc.cluster.local"))
    }),
    tree!("a wildcard", BAD_VALUE, |fleet| {
        let index = fleet.any("MeshService", &["/spec/expose/hostnames"])?;
        fleet.push(index, "/spec/expose/hostnames", json!("*.bank.example"))
    }),
    tree!("a virtual address that is routed", BAD_VALUE, |fleet| {
        fleet.put("MeshService", &["/spec/expose"], "/spec/expose/vip", json!("10.0.0.1"))
    }),
    tree!("a port twice", DUPLICATE_PORT, |fleet| {
        let index = fleet.any("MeshService", &["/spec/ports/0"])?;
        let again = fleet.documents[index]["spec"]["ports"][0].clone();
        fleet.push(index, "/spec/ports", again)
    }),
    tree!("two variants for one cluster", TWO_VARIANTS, |fleet| {
        let index = fleet.any("MeshService", &["/spec/variants/0"])?;
        let again = fleet.documents[index]["spec"]["variants"][0].clone();
        let (index, At::Value(item) | At::Key(item)) = fleet.push(index, "/spec/variants", again)?;
        Some((index, At::Value(format!("{item}/clusters"))))
    }),
    tree!("a variant with a foreign port", PORTS_DIFFER, |fleet| {
        fleet.put("MeshService", &["/spec/variants/0/ports/0"], "/spec/variants/0/ports/0/name", json!("nobody-knows"))
    }),
    tree!("a share of nothing", BAD_VALUE, |fleet| {
        fleet.put("TrafficPolicy", &["/spec/weights/0"], "/spec/weights/0/percent", json!(0))
    }),
    tree!("shares beyond the whole", BAD_VALUE, |fleet| {
        let index = fleet.any("TrafficPolicy", &["/spec/weights/0"])?;
        let more = json!({"clusters": fleet.documents[index]["spec"]["weights"][0]["clusters"], "percent": 100});
        fleet.push(index, "/spec/weights", more)?;
        Some((index, At::Value("/spec/weights".to_owned())))
    }),
    tree!("a duration without a unit", BAD_VALUE, |fleet| {
        fleet.put("TrafficPolicy", &["/spec/timeout"], "/spec/timeout", json!(5))
    }),
    tree!("an unknown unit of time", BAD_VALUE, |fleet| {
        fleet.put("TrafficPolicy", &["/spec/timeout"], "/spec/timeout", json!("5 minutes"))
    }),
    tree!("a regular expression that Envoy refuses", BAD_VALUE, |fleet| {
        let index = fleet.any("TrafficPolicy", &["/spec/match/0"])?;
        fleet.put_into(index, "/spec/match/0/path", json!({"regex": "a(?=b)"}))?;
        Some((index, At::Value("/spec/match/0/path/regex".to_owned())))
    }),
    tree!("a default that names a service", DEFAULT_DOCUMENT, |fleet| {
        let (.., (_, name)) = fleet.edge()?;
        let spec = json!({"default": true, "to": {"service": name}, "timeout": "1s"});
        fleet.add(document("TrafficPolicy", None, "another-default", spec), "/spec/to")
    }),
    tree!("a policy that sets nothing", BAD_VALUE, |fleet| {
        let (.., (namespace, name)) = fleet.edge()?;
        let spec = json!({"to": {"service": name}});
        fleet.add(document("TrafficPolicy", Some(&namespace), "empty", spec), "/metadata/name")
    }),
    tree!("the same unit twice", UNIT_CONFLICT, |fleet| {
        let settings = json!({"consecutiveErrors": 3});
        let last = policies(fleet, "outlier", [settings.clone(), settings])?;
        Some((last, At::Value("/spec/outlier".to_owned())))
    }),
    tree!("a cluster in two shares", SHARE_TWICE, |fleet| {
        let (.., (namespace, name)) = fleet.edge()?;
        let cluster = fleet.effective.fleet.clusters[0].name.to_string();
        let share = json!({"clusters": [cluster], "percent": 10});
        let spec = json!({"to": {"service": name}, "weights": [share, share]});
        fleet.add(document("TrafficPolicy", Some(&namespace), "twice", spec), "/spec/weights/1")
    }),
    tree!("nobody may be called", NO_CANDIDATE, |fleet| {
        let (index, item, (namespace, name)) = fleet.edge()?;
        let own = &fleet.effective.fleet;
        let provider = own.service_named(&namespace, &name)?;
        if own.access.iter().any(|policy| policy.to == Some(provider)) {
            return None;
        }
        let always = own.guardrails.iter().any(|rule| matches!(rule.verb, mesh::fleet::GuardrailVerb::AlwaysAllow(_)));
        if always || own.service(provider).runs.is_empty() {
            return None;
        }
        let excluded = own.traffic.iter().any(|policy| policy.exclude.is_some());
        if excluded {
            return None;
        }
        let spec = json!({"to": {"service": name}, "allow": []});
        fleet.documents.push(document("AccessPolicy", Some(&namespace), "nobody", spec));
        Some((index, At::Value(format!("/spec/dependsOn/{item}"))))
    }),
    tree!("modes that differ", MODES_DIFFER, |fleet| {
        let service = fleet.without_policy()?;
        let (namespace, name) = (service.namespace.to_string(), service.name.to_string());
        for (policy, mode) in [("zz-0", "enforce"), ("zz-1", "audit")] {
            let spec = json!({"to": {"service": name}, "mode": mode, "allow": [{"from": ["dependents"]}]});
            fleet.documents.push(document("AccessPolicy", Some(&namespace), policy, spec));
        }
        Some((fleet.documents.len() - 1, At::Value("/spec/mode".to_owned())))
    }),
    tree!("a rule for a port that the service has not", NO_SUCH_PORT, |fleet| {
        access(fleet, json!({"allow": [{"from": ["dependents"], "ports": [1]}]}), "/spec/allow/0/ports/0")
    }),
    tree!("a rule for anybody", BAD_VALUE, |fleet| {
        access(fleet, json!({"allow": [{"from": [{}]}]}), "/spec/allow/0/from/0")
    }),
    tree!("a word that means nothing", BAD_VALUE, |fleet| {
        access(fleet, json!({"allow": [{"from": ["everyone"]}]}), "/spec/allow/0/from/0")
    }),
    tree!("a path without its first slash", BAD_VALUE, |fleet| {
        access(fleet, json!({"allow": [{"from": ["dependents"], "paths": ["v1/*"]}]}), "/spec/allow/0/paths/0")
    }),
    tree!("methods on a port without requests", L7_ON_TCP, |fleet| {
        let own = &fleet.effective.fleet;
        let bytes: Vec<_> = own
            .services
            .iter()
            .filter(|service| service.ports.iter().all(|port| !port.protocol.is_http()) && !service.runs.is_empty())
            .map(|service| (service.namespace.to_string(), service.name.to_string()))
            .collect();
        let (namespace, name) = bytes.first()?.clone();
        let spec = json!({"to": {"service": name}, "allow": [{"from": ["dependents"], "methods": ["GET"]}]});
        fleet.add(document("AccessPolicy", Some(&namespace), "requests", spec), "/spec/allow/0/methods")
    }),
    tree!("half of a trust domain", NOT_WHOLE_TRUST_DOMAIN, |fleet| {
        let own = &fleet.effective.fleet;
        let caller = own.services.iter().find(|service| service.runs.len() > 1 && service.variants.is_empty())?;
        let (namespace, name) = (caller.namespace.to_string(), caller.name.to_string());
        let runs: Vec<String> = caller.runs.iter().map(|id| own.cluster(id).name.to_string()).collect();
        let clusters: Vec<usize> =
            (0..fleet.documents.len()).filter(|index| kind(&fleet.documents[*index]) == "Cluster").collect();
        for index in clusters {
            set(&mut fleet.documents[index], &["spec", "mesh", "trustDomain"], json!("one.example"));
        }
        let item = json!({"service": name, "namespace": namespace, "clusters": [runs[0]]});
        access(fleet, json!({"allow": [{"from": [item]}]}), "/spec/allow/0/from/0")
    }),
    tree!("a rule with two verbs", BAD_VALUE, |fleet| {
        let rule = json!({"name": "two", "max": {"percent": 1, "to": "all"}, "require": {"accessPolicy": true}});
        fleet.add(document("Guardrail", None, "broken", json!({"rules": [rule]})), "/spec/rules/0")
    }),
    tree!("a rule name twice", DUPLICATE_RULE, |fleet| {
        let rule = json!({"name": "same-name", "max": {"percent": 100, "to": "all"}});
        fleet.add(document("Guardrail", None, "broken", json!({"rules": [rule, rule]})), "/spec/rules/1/name")
    }),
];
