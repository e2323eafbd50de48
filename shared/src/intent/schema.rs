//! The JSON Schema of the documents, from the types that read them, for editors and for people.

use super::decode::{Decode, described};
use super::{API_VERSION, Kind, Metadata, access, cluster, service, traffic};
use serde_json::{Map as Object, Value as Json, json};

/// The schema of one kind of document, or of all of them.
#[must_use]
pub fn schema(kind: Option<Kind>) -> Json {
    let mut definitions = Object::new();
    let kinds: Vec<Json> = Kind::ALL
        .into_iter()
        .filter(|candidate| kind.is_none_or(|kind| kind == *candidate))
        .map(|kind| document(kind, &mut definitions))
        .collect();
    let mut schema = match <[Json; 1]>::try_from(kinds) {
        Ok([one]) => one,
        Err(kinds) => json!({"type": "object", "oneOf": kinds}),
    };
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["$defs"] = Json::Object(definitions);
    schema
}

fn document(kind: Kind, definitions: &mut Object<String, Json>) -> Json {
    let metadata = Metadata::schema(definitions);
    let (spec, description) = match kind {
        Kind::Cluster => {
            (cluster::ClusterSpec::schema(definitions), "One cluster: where it is, its mesh, its gateway.")
        }
        Kind::MeshService => (
            service::MeshServiceSpec::schema(definitions),
            "One service: where it runs, what it depends on, how it is exposed.",
        ),
        Kind::ServiceLocations => {
            (service::ServiceLocationsSpec::schema(definitions), "Where services were observed to run.")
        }
        Kind::TrafficPolicy => (traffic::TrafficPolicySpec::schema(definitions), "How calls to a service travel."),
        Kind::AccessPolicy => (access::AccessPolicySpec::schema(definitions), "Who may call a service."),
        Kind::Guardrail => {
            (access::GuardrailSpec::schema(definitions), "Rules that the effective result must respect.")
        }
    };
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind.as_str()},
            "metadata": metadata,
            "spec": spec,
        },
    });
    described(schema, description)
}
