//! Objects become bytes. One function writes YAML, so that one test can hold it against Go's reader.

use super::{Body, FLUX_SUBSTITUTE, INTENTS, MANAGED_BY, Object};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::collections::BTreeMap;

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Object", 4)?;
        object.serialize_field("apiVersion", self.kind.api_version())?;
        object.serialize_field("kind", self.kind.as_str())?;
        object.serialize_field("metadata", &Metadata::of(self))?;
        match &self.body {
            Body::Data(data) => object.serialize_field("data", data)?,
            spec => object.serialize_field("spec", spec)?,
        }
        object.end()
    }
}

#[derive(serde::Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: Labels,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a str>,
}

/// The labels that every object has.
#[derive(serde::Serialize)]
struct Labels {
    #[serde(rename = "app.kubernetes.io/managed-by")]
    managed_by: &'static str,
}

impl<'a> Metadata<'a> {
    fn of(object: &'a Object) -> Self {
        let mut annotations: BTreeMap<&'static str, &str> =
            object.annotations.iter().map(|(key, value)| (*key, value.as_str())).collect();
        if !object.intents.text.is_empty() {
            annotations.insert(INTENTS, &object.intents.text);
        }
        if may_be_substituted(&object.body) {
            annotations.insert(FLUX_SUBSTITUTE, "disabled");
        }
        Self {
            name: &object.name,
            namespace: &object.namespace,
            labels: Labels { managed_by: MANAGED_BY },
            annotations,
        }
    }
}

/// Whether free text of the object contains what Flux replaces: `${…}`, and `$$`, which it takes for an escaped `$`. Only
/// routes and conditions carry free text.
fn may_be_substituted(body: &Body) -> bool {
    let free_text = match body {
        Body::VirtualService(service) => service.http.iter().any(|route| route.has_free_text()),
        Body::AuthorizationPolicy(policy) => policy.rules.iter().any(|rule| !rule.to.is_empty()),
        Body::Data(_)
        | Body::Service(_)
        | Body::ServiceEntry(_)
        | Body::DestinationRule(_)
        | Body::Gateway(_)
        | Body::Sidecar(_)
        | Body::PeerAuthentication(_) => false,
    };
    free_text && serde_json::to_string(body).is_ok_and(|text| text.contains("${") || text.contains("$$"))
}

/// An object, or any value that JSON can hold, as one YAML document in kubectl's style.
#[must_use]
pub fn to_yaml(value: &impl Serialize) -> String {
    let mut text = String::with_capacity(1024);
    add_yaml(&mut text, value);
    text
}

/// Adds one YAML document to a text.
pub fn add_yaml(text: &mut String, value: &impl Serialize) {
    super::yaml::write(text, value).expect("JSON values hold only strings, numbers, lists and maps");
}

/// The objects as one stream of YAML documents.
#[must_use]
pub fn to_yaml_stream(objects: &[Object]) -> String {
    let mut text = String::new();
    add_yaml_stream(&mut text, objects);
    text
}

/// Adds the objects as one stream of YAML documents to a text.
pub fn add_yaml_stream(text: &mut String, objects: &[Object]) {
    // Most objects are smaller, so the text need not grow again and again.
    text.reserve(objects.len() * 1024);
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        add_yaml(text, object);
    }
}

/// The objects as kubectl prints them in JSON: one object alone, several as a `List`.
#[must_use]
pub fn to_json(objects: &[Object]) -> String {
    let value = match objects {
        [one] => serde_json::to_value(one),
        many => serde_json::to_value(many)
            .map(|items| serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items})),
    };
    let value = value.expect("objects hold only strings, numbers, lists and maps");
    format!("{value:#}\n")
}
