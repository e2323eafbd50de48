//! Which features fleets have. What there is to have is read from the documents' own schema, so a new field that no
//! fleet uses is seen.

use mesh::resolve::Effective;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Features, and how many fleets had each.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<String, usize>,
    fleets: usize,
}

impl Coverage {
    /// Counts the features of a fleet.
    pub fn add(&mut self, documents: &[Value], effective: &Effective) {
        self.fleets += 1;
        let mut features = BTreeSet::new();
        for document in documents {
            let kind = crate::document::kind(document);
            used(&document["spec"], kind, &mut features);
            used(&document["metadata"], &format!("{kind}.metadata"), &mut features);
        }
        features.extend(outcomes(effective).into_iter().map(str::to_owned));
        for feature in features {
            *self.counts.entry(feature).or_default() += 1;
        }
    }

    /// The table: features, the rarest first, and how many fleets had each.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows: Vec<(&usize, &String)> = self.counts.iter().map(|(feature, count)| (count, feature)).collect();
        rows.sort();
        let lines = rows.into_iter().map(|(count, feature)| format!("{count:>6} of {} {feature}\n", self.fleets));
        lines.collect()
    }

    /// What no fleet had, of everything that documents can say and that can come of it.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut wanted = BTreeSet::new();
        for kind in mesh::intent::Kind::ALL {
            let schema = mesh::intent::schema::schema(Some(kind));
            let root = kind.as_str();
            offered(&schema["properties"]["spec"], &schema, root, &mut wanted);
            offered(&schema["properties"]["metadata"], &schema, &format!("{root}.metadata"), &mut wanted);
        }
        wanted.extend(OUTCOMES.iter().map(|outcome| (*outcome).to_owned()));
        wanted
            .into_iter()
            .filter(|feature| !self.counts.contains_key(feature))
            .filter(|feature| !REFUSED.iter().any(|refused| feature.ends_with(refused)))
            .collect()
    }
}

/// What no fleet without errors can have: the backend refuses it, or the kind belongs to no namespace.
const REFUSED: [&str; 6] = [
    ".type=linkerd",
    ".dataPlane=ambient",
    ".discovery=shared",
    "Cluster.metadata.namespace",
    "ServiceLocations.metadata.namespace",
    "Guardrail.metadata.namespace",
];

/// Words in place of a map or a name that mean something else.
const WORDS: [&str; 4] = ["all", "local", "same", "dependents"];

/// What can come of documents.
const OUTCOMES: [&str; 14] = [
    "removed: exclude",
    "removed: access",
    "removed: guardrail",
    "removed: drain",
    "removed: unreachable",
    "removed: order",
    "row without candidate",
    "row with shares alone",
    "share of several clusters",
    "several shares",
    "empty tier beside others",
    "callers of one cluster that go different ways",
    "callers of one namespace and cluster that go different ways",
    "requests that fit two matches",
];

/// Every field that a document uses, and every word.
fn used(value: &Value, path: &str, features: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                features.insert(path.clone());
                used(value, &path, features);
            }
        }
        Value::Array(items) => {
            if items.is_empty() {
                features.insert(format!("{path}: []"));
            }
            items.iter().for_each(|item| used(item, path, features));
        }
        Value::String(text) => {
            features.insert(format!("{path}={text}"));
            if WORDS.contains(&text.as_str()) {
                features.insert(format!("the word {text}"));
            }
        }
        Value::Bool(flag) => {
            features.insert(format!("{path}={flag}"));
        }
        Value::Null | Value::Number(_) => {}
    }
}

/// Every field and word that a schema names.
fn offered(schema: &Value, root: &Value, path: &str, features: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
        offered(&root["$defs"][name], root, path, features);
    }
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        features.insert(path.clone());
        offered(value, root, &path, features);
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        schema[list].as_array().into_iter().flatten().for_each(|one| offered(one, root, path, features));
    }
    if schema["items"].is_object() {
        offered(&schema["items"], root, path, features);
    }
    let words = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    features.extend(words.filter_map(Value::as_str).map(|word| format!("{path}={word}")));
}

fn outcomes(effective: &Effective) -> BTreeSet<&'static str> {
    let mut outcomes = BTreeSet::new();
    let mut when = |outcome: &'static str, holds: bool| {
        if holds {
            outcomes.insert(outcome);
        }
    };
    for edge in &effective.edges {
        for route in edge.routes() {
            for removed in &route.removed {
                let reason = OUTCOMES.iter().find(|outcome| outcome.ends_with(removed.reason.as_str()));
                when(reason.copied().unwrap_or("removed"), true);
            }
            when("row without candidate", !route.is_served());
            when("row with shares alone", !route.has_candidates() && route.is_served());
            when("share of several clusters", route.shares.iter().any(|share| share.clusters.len() > 1));
            when("several shares", route.shares.len() > 1);
            when("empty tier beside others", route.has_candidates() && route.tiers.iter().any(<[_]>::is_empty));
        }
        when("requests that fit two matches", edge.matched.iter().any(|matched| matched.policies.len() > 1));
        for other in effective.edges_to(edge.provider) {
            let apart = other.cluster == edge.cluster && other.base.tiers != edge.base.tiers;
            when("callers of one cluster that go different ways", apart);
            let (one, two) = (effective.fleet.service(edge.caller), effective.fleet.service(other.caller));
            let together = apart && one.namespace == two.namespace;
            when("callers of one namespace and cluster that go different ways", together);
        }
    }
    outcomes
}
