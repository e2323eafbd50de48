//! Names, addresses and visibility of what is rendered, where other tools were caught (see docs/traps.md).

use crate::MESH;
use crate::support::{code, run, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

fn fleet(services: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (cluster, address) in [("east", 1), ("west", 2)] {
        let _ = write!(
            text,
            "apiVersion: meshintent.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {cluster}}}\nspec: {{region: {cluster}, network: {cluster}, mesh: {{trustDomain: {cluster}.example}}, gateway: {{address: 192.0.2.{address}}}}}\n---\n"
        );
    }
    std::fs::write(folder.path().join("fleet.yaml"), text + services).unwrap();
    folder
}

fn service(namespace: &str, name: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{clusters: all, ports: [{{name: db, port: 5432, protocol: TCP}}], {rest}}}\n"
    )
}

fn objects(folder: &tempfile::TempDir) -> Vec<Value> {
    let output = run(MESH, folder.path(), &["render", "--cluster", "east", "-o", "json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["items"].as_array().unwrap().clone()
}

/// `ab` in `c` and `a` in `bc`; `a-b` in `c` and `a` in `b-c`: whatever is put together from names stays distinct.
#[test]
fn names_and_addresses_are_distinct() {
    let providers = [("c", "ab"), ("bc", "a"), ("c", "a-b"), ("b-c", "a"), ("c", "a-b-c"), ("b-c", "a-b")];
    let mut text: String = providers
        .iter()
        .map(|(namespace, name)| {
            service(namespace, name, &format!("expose: {{hostnames: [{name}.{namespace}.mesh.example]}}"))
        })
        .collect();
    let needed: Vec<String> =
        providers.iter().map(|(namespace, name)| format!("{{service: {name}, namespace: {namespace}}}")).collect();
    text += &service("web", "web", &format!("dependsOn: [{}]", needed.join(", ")));
    let objects = objects(&fleet(&text));
    let names: BTreeSet<String> = objects
        .iter()
        .map(|object| format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]))
        .collect();
    assert_eq!(names.len(), objects.len());
    let gateways = objects.iter().filter(|object| object["kind"] == "Gateway");
    assert_eq!(
        gateways.map(|gateway| gateway["metadata"]["name"].to_string()).collect::<BTreeSet<_>>().len(),
        providers.len()
    );
    let addresses: BTreeSet<(String, String)> = objects
        .iter()
        .filter(|object| object["kind"] == "ServiceEntry" && !object["spec"]["addresses"].is_null())
        .map(|entry| (entry["spec"]["addresses"][0].to_string(), entry["spec"]["hosts"][0].to_string()))
        .collect();
    let distinct: BTreeSet<&String> = addresses.iter().map(|(address, _)| address).collect();
    assert!(distinct.len() == addresses.len() && addresses.len() >= providers.len(), "{addresses:?}");
}

/// However many namespaces depend on a service, it is visible to these and to no other.
#[test]
fn visibility_is_never_widened() {
    let namespaces: BTreeSet<String> = (0..60).map(|number| format!("team-{number}")).collect();
    let mut text = service("data", "store", "expose: {hostnames: [store.mesh.example]}");
    for namespace in &namespaces {
        text += &service(namespace, "app", "dependsOn: [{service: store, namespace: data}]");
    }
    text += &service("aside", "other", "egress: open");
    let mut seen = 0;
    for object in objects(&fleet(&text)) {
        let spec = &object["spec"];
        if spec["hosts"][0] == "store.mesh.example" || spec["host"] == "store.mesh.example" {
            let visible: BTreeSet<String> =
                spec["exportTo"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            assert_eq!(visible, namespaces, "{}", object["kind"]);
            seen += 1;
        }
    }
    assert!(seen >= 2);
}
