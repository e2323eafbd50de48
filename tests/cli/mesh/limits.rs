//! What is never rendered, whatever the fleet.

use crate::MESH;
use crate::support::{code, run, tests, text};
use mesh::manifest::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All objects of the golden worlds, by world and cluster.
fn rendered() -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for world in std::fs::read_dir(tests().join("golden")).unwrap() {
        let world = world.unwrap().path();
        let list = run(MESH, &world, &["clusters", "list", "-f", "fleet", "-o", "name"]);
        assert_eq!(code(&list), 0, "{}", text(&list.stderr));
        for cluster in text(&list.stdout).lines().filter_map(|line| line.strip_prefix("cluster/")) {
            all.push((format!("{}@{cluster}", world.file_name().unwrap().display()), objects(&world, cluster)));
        }
    }
    assert!(all.len() >= 15);
    all
}

fn objects(world: &Path, cluster: &str) -> Vec<Value> {
    let output = run(MESH, world, &["render", "-f", "fleet", "--cluster", cluster, "-o", "json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["items"].as_array().unwrap().clone()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// What Istio reads in another way than people expect stands in no object.
#[test]
fn rendered_objects_stay_inside_these_limits() {
    for (place, objects) in rendered() {
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        for object in objects {
            let (kind, spec) = (object["kind"].as_str().unwrap(), &object["spec"]);
            let place = format!("{place}: {kind} {}", object["metadata"]["name"]);
            match kind {
                "ServiceEntry" => {
                    for endpoint in list(&spec["endpoints"]) {
                        let keys: BTreeSet<&str> = endpoint.as_object().unwrap().keys().map(String::as_str).collect();
                        let known = BTreeSet::from(["address", "ports", "labels", "weight"]);
                        assert!(keys.is_subset(&known), "{place}: {keys:?}");
                        for label in endpoint["labels"].as_object().unwrap().keys() {
                            let own = label.starts_with("tier.meshintent.dev/");
                            assert!(own || label == "security.istio.io/tlsMode", "{place}: {label}");
                        }
                    }
                    for port in list(&spec["ports"]) {
                        assert!(port["name"].as_str().unwrap().len() > 15, "{place}: {port}");
                    }
                    assert!(spec["subjectAltNames"].is_null() && spec["location"] == "MESH_INTERNAL", "{place}");
                    // Entries of one host agree, and stand in one namespace.
                    let mut shared = spec.clone();
                    let map = shared.as_object_mut().unwrap();
                    map.remove("endpoints");
                    map.remove("workloadSelector");
                    for port in map["ports"].as_array_mut().unwrap() {
                        port.as_object_mut().unwrap().remove("targetPort");
                    }
                    shared["namespace"] = object["metadata"]["namespace"].clone();
                    let known = entries.entry(spec["hosts"].to_string()).or_insert_with(|| shared.clone());
                    assert_eq!(*known, shared, "{place}");
                }
                "DestinationRule" => {
                    assert!(spec["subsets"].is_null(), "{place}");
                    let whole = &spec["trafficPolicy"];
                    let ports = list(&whole["portLevelSettings"]);
                    for policy in if ports.is_empty() { vec![whole.clone()] } else { ports } {
                        let tls = &policy["tls"];
                        assert!(tls["mode"] == "ISTIO_MUTUAL" && tls["sni"].is_string(), "{place}");
                        assert!(!list(&tls["subjectAltNames"]).is_empty(), "{place}");
                        let locality = &policy["loadBalancer"]["localityLbSetting"];
                        assert!(locality["distribute"].is_null() && locality["failover"].is_null(), "{place}");
                        let outlier = &policy["outlierDetection"];
                        let tiers = !list(&locality["failoverPriority"]).is_empty();
                        assert!(!tiers || outlier.is_object(), "{place}");
                        if outlier.is_object() {
                            assert!(outlier["consecutiveGatewayErrors"].as_u64().unwrap() > 0, "{place}");
                            assert_eq!(outlier["consecutive5xxErrors"], 0, "{place}");
                            assert_eq!(outlier["maxEjectionPercent"], 100, "{place}");
                        }
                    }
                }
                "Gateway" => {
                    for server in list(&spec["servers"]) {
                        let hosts = list(&server["hosts"]);
                        assert!(hosts.len() == 1 && !hosts[0].as_str().unwrap().contains('*'), "{place}");
                    }
                }
                "VirtualService" => {
                    assert!(list(&spec["hosts"]).len() == 1 && spec["gateways"].is_null(), "{place}");
                }
                "AuthorizationPolicy" => {
                    assert_eq!(spec["action"], "ALLOW", "{place}");
                    assert!(!spec["selector"]["matchLabels"].as_object().unwrap().is_empty(), "{place}");
                    for rule in list(&spec["rules"]) {
                        assert!(rule["when"].is_null(), "{place}");
                        for from in list(&rule["from"]) {
                            let source: Vec<&String> = from["source"].as_object().unwrap().keys().collect();
                            assert_eq!(source, ["principals"], "{place}");
                        }
                    }
                }
                "PeerAuthentication" => {
                    assert_eq!(spec["mtls"]["mode"], "STRICT", "{place}");
                    assert!(!spec["selector"]["matchLabels"].as_object().unwrap().is_empty(), "{place}");
                }
                "Sidecar" | "Service" | "ConfigMap" => {}
                other => panic!("{place}: {other} is never rendered"),
            }
            for namespace in list(&spec["exportTo"]) {
                assert_ne!(namespace, "*", "{place}");
            }
        }
    }
}

/// Whatever a rule, route or gateway speaks of is applied in an earlier wave; kubectl's order is that of the waves.
#[test]
fn waves_make_before_they_break() {
    let waves: Vec<i32> = Kind::ALL.iter().map(|kind| kind.wave()).collect();
    assert!(waves.is_sorted(), "{waves:?}");
    let wave = |kind: &str| Kind::ALL.iter().find(|known| known.as_str() == kind).unwrap().wave();
    let mut referred = 0;
    for (place, objects) in rendered() {
        let entries: BTreeSet<String> =
            objects.iter().filter(|one| one["kind"] == "ServiceEntry").flat_map(|one| hosts(&one["spec"])).collect();
        let rules: BTreeSet<String> = objects
            .iter()
            .filter(|one| one["kind"] == "DestinationRule")
            .filter_map(|one| one["spec"]["host"].as_str().map(str::to_owned))
            .collect();
        for object in &objects {
            let (kind, spec) = (object["kind"].as_str().unwrap(), &object["spec"]);
            let targets: BTreeSet<String> = match kind {
                "DestinationRule" => spec["host"].as_str().map(str::to_owned).into_iter().collect(),
                "Gateway" => list(&spec["servers"]).iter().flat_map(hosts).collect(),
                "VirtualService" => destinations(spec),
                _ => continue,
            };
            for host in targets {
                assert!(entries.contains(&host), "{place}: {kind} speaks of {host}");
                assert!(wave("ServiceEntry") < wave(kind));
                assert!(kind != "VirtualService" || rules.contains(&host), "{place}: no rule for {host}");
                referred += 1;
            }
        }
    }
    assert!(wave("DestinationRule") < wave("VirtualService") && wave("AuthorizationPolicy") < wave("ServiceEntry"));
    assert!(referred > 50);
}

fn hosts(value: &Value) -> Vec<String> {
    list(&value["hosts"]).iter().filter_map(|host| host.as_str().map(str::to_owned)).collect()
}

fn destinations(spec: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for protocol in ["http", "tls", "tcp"] {
        for route in list(&spec[protocol]) {
            let routed = list(&route["route"]).into_iter().map(|one| one["destination"].clone());
            let all = routed.chain([route["mirror"].clone()]);
            found.extend(all.filter_map(|one| one["host"].as_str().map(str::to_owned)));
        }
    }
    found
}

/// Largest remainders are rounded up, so parts never sum to 99 or 101, and none is off by a whole one.
#[test]
fn shares_sum_to_the_whole() {
    let mut lists: Vec<Vec<u32>> = vec![vec![1; 3], vec![1; 7], vec![33, 33, 33], vec![1, 99], vec![13, 29, 58]];
    lists.extend((1..=60).flat_map(|a| (1..=40).map(move |b| vec![a, b, 1])));
    for parts in lists {
        let shares = mesh::resolve::proportional(&parts, 100);
        let sum: u32 = parts.iter().sum();
        assert_eq!(shares.iter().sum::<u32>(), 100, "{parts:?}: {shares:?}");
        for (part, share) in parts.iter().zip(&shares) {
            assert!((share * sum).abs_diff(part * 100) < sum, "{parts:?}: {shares:?}");
        }
    }
}
