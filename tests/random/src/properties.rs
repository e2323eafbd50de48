//! What must hold of any fleet and needs no mesh to be seen.

use fleet_generator::document::{self, Text, kind};
use fleet_generator::files::{spread, stream};
use fleet_generator::world::{file, world, world_of};
use mesh::World;
use mesh::manifest::{INTENTS, MANAGED_BY, to_json, to_yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is rendered: for each cluster, objects by kind, namespace and name.
type Rendered = BTreeMap<String, BTreeMap<(String, String, String), Object>>;

struct Object {
    yaml: String,
    intents: BTreeSet<String>,
    content: Value,
}

/// Whatever does not hold for these documents.
pub(crate) fn problems(documents: &[Value], seed: u64) -> Vec<String> {
    let texts: Vec<Text> = documents.iter().map(Text::of).collect();
    let mut problems = Vec::new();
    let base = world_of(&texts);
    let Some(rendered) = render(&base, &mut problems) else {
        return vec!["the fleet has errors".to_owned()];
    };
    for (cluster, objects) in &rendered {
        shape(cluster, objects, &mut problems);
        needed(&base, cluster, objects, &mut problems);
        unique(cluster, objects, &mut problems);
    }
    same_bytes(documents, seed, &rendered, &mut problems);
    removal(documents, &texts, &rendered, &mut problems);
    problems
}

fn render(world: &World, problems: &mut Vec<String>) -> Option<Rendered> {
    let fleet = &world.effective.fleet;
    let mut all = Rendered::new();
    for (id, cluster) in fleet.cluster_ids() {
        let rendered = world.render(id).ok()?;
        let mut objects = BTreeMap::new();
        for object in &rendered.objects {
            let content: Value = serde_json::from_str(&to_json(std::slice::from_ref(object))).ok()?;
            let intents = content["metadata"]["annotations"][INTENTS].as_str().unwrap_or_default();
            let intents = intents.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
            let key = (object.kind.as_str().to_owned(), object.namespace.to_string(), object.name.to_string());
            let known = objects.insert(key.clone(), Object { yaml: to_yaml(object), intents, content });
            if known.is_some() {
                problems.push(format!("{}: {key:?} twice", cluster.name));
            }
        }
        all.insert(cluster.name.to_string(), objects);
    }
    Some(all)
}

/// Every object says where it belongs, whose it is, and why it is there.
fn shape(cluster: &str, objects: &BTreeMap<(String, String, String), Object>, problems: &mut Vec<String>) {
    for (key, object) in objects {
        let metadata = &object.content["metadata"];
        let marker = key.0 == "ConfigMap";
        if metadata["namespace"].as_str().unwrap_or_default().is_empty()
            || metadata["labels"]["app.kubernetes.io/managed-by"] != MANAGED_BY
            || object.intents.is_empty() != marker
        {
            problems.push(format!("{cluster}: {key:?} lacks its namespace, label or intents"));
        }
    }
}

/// Something is rendered only where a service that caused it runs; elsewhere there is the marker alone.
fn needed(
    world: &World,
    cluster: &str,
    objects: &BTreeMap<(String, String, String), Object>,
    problems: &mut Vec<String>,
) {
    let fleet = &world.effective.fleet;
    let Some(id) = fleet.cluster_named(cluster) else { return };
    let here: BTreeSet<String> = fleet
        .services
        .iter()
        .filter(|service| service.runs.contains(id))
        .map(|service| fleet.document(service.origin).to_string())
        .collect();
    for (key, object) in objects {
        if key.0 != "ConfigMap" && object.intents.is_disjoint(&here) {
            problems.push(format!("{cluster}: nothing that runs here needs {key:?}"));
        }
        if key.0 == "ConfigMap" && objects.len() > 1 {
            problems.push(format!("{cluster}: a marker beside other objects"));
        }
    }
}

/// No two hosts of a cluster share an address.
fn unique(cluster: &str, objects: &BTreeMap<(String, String, String), Object>, problems: &mut Vec<String>) {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    for object in objects.iter().filter(|(key, _)| key.0 == "ServiceEntry").map(|(_, object)| object) {
        let spec = &object.content["spec"];
        let host = spec["hosts"].to_string();
        for address in spec["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(other) = taken.insert(address.to_owned(), host.clone())
                && other != host
            {
                problems.push(format!("{cluster}: {host} and {other} share {address}"));
            }
        }
    }
}

/// Neither another run nor other files change a byte.
fn same_bytes(documents: &[Value], seed: u64, rendered: &Rendered, problems: &mut Vec<String>) {
    let mut reversed = documents.to_vec();
    reversed.reverse();
    let ways = [
        (
            "a second run",
            documents
                .iter()
                .enumerate()
                .map(|(index, one)| file(&format!("{index:05}.yaml"), &Text::of(one).yaml))
                .collect(),
        ),
        ("shuffled files", spread(documents, seed)),
        ("other files", spread(documents, seed + 1)),
        ("one file", vec![file("all.yaml", &stream(&reversed))]),
    ];
    for (way, files) in ways {
        let Some(other) = render(&world(files), problems) else {
            problems.push(format!("{way}: the fleet has errors"));
            continue;
        };
        for difference in differences(rendered, &other) {
            problems.push(format!("{way} changes {} {:?}", difference.cluster, difference.key));
        }
    }
}

struct Difference<'a> {
    cluster: &'a str,
    key: &'a (String, String, String),
    before: Option<&'a Object>,
}

fn differences<'a>(before: &'a Rendered, after: &'a Rendered) -> Vec<Difference<'a>> {
    let mut differences = Vec::new();
    for (cluster, objects) in before {
        let Some(others) = after.get(cluster) else { continue };
        for (key, object) in objects {
            if others.get(key).is_none_or(|other| other.yaml != object.yaml) {
                differences.push(Difference { cluster, key, before: Some(object) });
            }
        }
        let new = others.keys().filter(|key| !objects.contains_key(*key));
        differences.extend(new.map(|key| Difference { cluster, key, before: None }));
    }
    differences
}

/// Taking a document out changes only what names it. What it kept from being rendered may appear.
fn removal(documents: &[Value], texts: &[Text], rendered: &Rendered, problems: &mut Vec<String>) {
    for (index, document) in documents.iter().enumerate().filter(|(_, document)| kind(document) != "Cluster") {
        let id = document::id(document);
        let mut rest = texts.to_vec();
        rest.remove(index);
        let Some(other) = render(&world_of(&rest), problems) else { continue };
        for Difference { cluster, key, before } in differences(rendered, &other) {
            let named = before.is_some_and(|object| object.intents.contains(&id));
            let marker = key.0 == "ConfigMap";
            // Callers that agree share one object, and imported objects move home when a namespace is gone: what is new
            // is about a host that the document had a part in.
            let about = host(key);
            let moved = before.is_none()
                && rendered[cluster].iter().any(|(key, object)| host(key) == about && object.intents.contains(&id));
            if !(named || marker || moved || before.is_none() && may_prevent(document)) {
                let what = if before.is_some() { "changes" } else { "creates" };
                problems.push(format!("without {id}: {what} {cluster} {key:?}, which does not name it"));
            }
        }
    }
}

/// The host that an object is named after. Only entries have a role behind it, and a host may end like one.
fn host((kind, _, name): &(String, String, String)) -> &str {
    let roles: &[&str] = if kind == "ServiceEntry" { &[".local", ".remote", ".name"] } else { &[] };
    roles.iter().find_map(|role| name.strip_suffix(role)).unwrap_or(name)
}

/// Whether a document can keep something from being rendered: by removing candidates or by taking what others set.
fn may_prevent(document: &Value) -> bool {
    matches!(kind(document), "TrafficPolicy" | "AccessPolicy" | "Guardrail")
}
