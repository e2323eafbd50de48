//! What was drawn may contradict itself. Whatever a diagnostic objects to is taken out, the smallest part first, until
//! the fleet is one that can be rendered. The result depends on the documents alone.

use crate::document::{Text, kind, remove, set};
use crate::world::world_of;
use mesh::diagnostic::{Diagnostic, codes};
use serde_json::{Value, json};

/// So many rounds are never needed: each one takes something out.
const ROUNDS: usize = 200;

/// The documents without what keeps them from being rendered.
#[must_use]
pub fn settle(mut documents: Vec<Value>) -> Vec<Value> {
    for _ in 0..ROUNDS {
        let texts: Vec<Text> = documents.iter().map(Text::of).collect();
        let world = world_of(&texts);
        let Some(first) = world.check().into_iter().find(Diagnostic::is_error) else { return documents };
        repair(&mut documents, &texts, &first);
    }
    documents
}

fn repair(documents: &mut Vec<Value>, texts: &[Text], error: &Diagnostic) {
    if error.code == &codes::DNS_GATEWAY_VERSION {
        return each_cluster(documents, &["spec", "mesh", "version"], &json!("1.31"));
    }
    if error.code == &codes::NAME_NOT_VISIBLE {
        return each_cluster(documents, &["spec", "mesh", "dnsCapture"], &json!(true));
    }
    // What removes the candidates of a call has to go, not the call.
    let blamed = error.related.iter().map(|(place, _)| *place).filter(|_| error.code == &codes::NO_CANDIDATE);
    for place in blamed.chain(error.place) {
        let index = place.file as usize;
        let pointer = pointer_at(&texts[index], (place.line, place.column));
        match kind(&documents[index]) {
            "Cluster" | "ServiceLocations" => continue,
            "TrafficPolicy" | "AccessPolicy" => {
                documents.remove(index);
            }
            "Guardrail" => {
                let rule: Vec<&str> = pointer.split('/').take(4).collect();
                if !remove(&mut documents[index], &rule.join("/")) || documents[index].get("spec").is_none() {
                    documents.remove(index);
                }
            }
            _ => repair_service(documents, index, &pointer),
        }
        return;
    }
    // Nothing but an inventory is to blame: the last policy or service goes.
    documents.pop();
}

/// A service loses the item that is wrong, else what makes it special, else it goes.
fn repair_service(documents: &mut Vec<Value>, index: usize, pointer: &str) {
    let parts: Vec<&str> = pointer.split('/').collect();
    if parts.len() >= 4 && parts[2] == "dependsOn" {
        remove(&mut documents[index], &parts[..4].join("/"));
        return;
    }
    let special = ["workload", "variants", "egress"];
    let removed = special.iter().any(|field| remove(&mut documents[index], &format!("/spec/{field}")));
    let optional = parts.len() >= 3 && !["clusters", "ports"].contains(&parts[2]);
    if !(removed || optional && remove(&mut documents[index], &parts[..3].join("/"))) {
        documents.remove(index);
    }
}

fn each_cluster(documents: &mut [Value], path: &[&str], value: &Value) {
    for cluster in documents.iter_mut().filter(|document| kind(document) == "Cluster") {
        set(cluster, path, value.clone());
    }
}

/// The innermost value or key that begins at a place.
fn pointer_at(text: &Text, place: (u32, u32)) -> String {
    let values = text.values.iter().chain(&text.keys);
    values
        .filter(|(_, at)| **at == place)
        .map(|(pointer, _)| pointer)
        .max_by_key(|pointer| pointer.len())
        .cloned()
        .unwrap_or_default()
}
