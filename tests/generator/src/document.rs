//! Documents as trees, and text in which the place of every key and value is known: a diagnostic can then be held
//! against the place of the defect that caused it.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A document of a kind; cluster-wide ones have no namespace.
#[must_use]
pub fn document(kind: &str, namespace: Option<&str>, name: &str, spec: Value) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let mut document = json!({"apiVersion": mesh::intent::API_VERSION, "kind": kind, "metadata": metadata});
    document["spec"] = spec;
    document
}

/// `Kind/namespace/name`, as annotations of rendered objects name documents.
#[must_use]
pub fn id(document: &Value) -> String {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    let parts = [text("/kind"), text("/metadata/namespace"), text("/metadata/name")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/")
}

/// The kind of a document.
#[must_use]
pub fn kind(document: &Value) -> &str {
    document["kind"].as_str().unwrap_or_default()
}

/// Line and column, both from 1.
pub type Place = (u32, u32);

/// YAML with the places of what stands in it, by JSON pointer (RFC 6901, without escapes for `~`).
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The YAML.
    pub yaml: String,
    /// Where values begin.
    pub values: BTreeMap<String, Place>,
    /// Where the keys of map entries begin.
    pub keys: BTreeMap<String, Place>,
    line: u32,
    line_start: usize,
}

/// Short lists and maps stand on one line, as people write them.
const FLOW_WIDTH: usize = 72;

impl Text {
    /// One document.
    #[must_use]
    pub fn of(document: &Value) -> Self {
        let mut text = Self { line: 1, ..Self::default() };
        text.block(document, 0, "");
        text.yaml.push('\n');
        text
    }

    fn here(&self) -> Place {
        let column = self.yaml[self.line_start..].chars().count() + 1;
        (self.line, u32::try_from(column).expect("lines are short"))
    }

    fn new_line(&mut self, indent: usize) {
        self.yaml.push('\n');
        self.line += 1;
        self.line_start = self.yaml.len();
        self.yaml.extend(std::iter::repeat_n(' ', indent));
    }

    fn block(&mut self, value: &Value, indent: usize, pointer: &str) {
        if !pointer.is_empty() && fits_on_a_line(value) {
            return self.flow(value, pointer);
        }
        self.values.insert(pointer.to_owned(), self.here());
        match value {
            Value::Object(map) => {
                for (index, (key, value)) in map.iter().enumerate() {
                    if index > 0 {
                        self.new_line(indent);
                    }
                    let pointer = format!("{pointer}/{key}");
                    self.key(key, &pointer);
                    if fits_on_a_line(value) {
                        self.yaml.push(' ');
                        self.flow(value, &pointer);
                    } else {
                        self.new_line(indent + 2);
                        self.block(value, indent + 2, &pointer);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.new_line(indent);
                    }
                    self.yaml.push_str("- ");
                    self.block(item, indent + 2, &format!("{pointer}/{index}"));
                }
            }
            scalar => self.yaml.push_str(&plain(scalar)),
        }
    }

    fn key(&mut self, key: &str, pointer: &str) {
        self.keys.insert(pointer.to_owned(), self.here());
        let _ = write!(self.yaml, "{}:", plain(&json!(key)));
    }

    fn flow(&mut self, value: &Value, pointer: &str) {
        self.values.insert(pointer.to_owned(), self.here());
        match value {
            Value::Object(map) => {
                self.yaml.push('{');
                for (index, (key, value)) in map.iter().enumerate() {
                    self.yaml.push_str(if index > 0 { ", " } else { "" });
                    let pointer = format!("{pointer}/{key}");
                    self.key(key, &pointer);
                    self.yaml.push(' ');
                    self.flow(value, &pointer);
                }
                self.yaml.push('}');
            }
            Value::Array(items) => {
                self.yaml.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.yaml.push_str(if index > 0 { ", " } else { "" });
                    self.flow(item, &format!("{pointer}/{index}"));
                }
                self.yaml.push(']');
            }
            scalar => self.yaml.push_str(&plain(scalar)),
        }
    }
}

fn fits_on_a_line(value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) => value.to_string().len() < FLOW_WIDTH,
        _ => true,
    }
}

/// A scalar; strings that any reader could take for something else are quoted.
fn plain(value: &Value) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    match value {
        Value::String(text)
            if text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-./_".contains(&b))
                && !WORDS.contains(&text.to_ascii_lowercase().as_str()) =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// Every list item and map entry of a document, the outermost first: what can be taken out of it.
#[must_use]
pub fn parts(document: &Value) -> Vec<String> {
    fn walk(value: &Value, pointer: &str, depth: usize, out: &mut Vec<(usize, String)>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (format!("{pointer}/{key}"), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, item)| (format!("{pointer}/{index}"), item)).collect()
            }
            _ => Vec::new(),
        };
        for (pointer, value) in children {
            walk(value, &pointer, depth + 1, out);
            out.push((depth, pointer));
        }
    }
    let mut out = Vec::new();
    walk(document, "", 0, &mut out);
    // Later items first: taking one out then leaves the pointers of the earlier ones as they are.
    out.reverse();
    out.sort_by_key(|(depth, _)| *depth);
    out.into_iter().map(|(_, pointer)| pointer).collect()
}

/// Takes a list item or map entry out; `false` if there is none. What would be left empty goes as well.
pub fn remove(document: &mut Value, pointer: &str) -> bool {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return false };
    let (removed, empty) = match document.pointer_mut(parent) {
        Some(Value::Object(map)) => (map.remove(key).is_some(), map.is_empty()),
        Some(Value::Array(items)) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                (true, items.is_empty())
            }
            _ => (false, false),
        },
        _ => (false, false),
    };
    if removed && empty && !parent.is_empty() {
        remove(document, parent);
    }
    removed
}

/// Sets an entry of a map, creating the maps on the way.
pub fn set(map: &mut Value, path: &[&str], value: Value) {
    let mut place = map;
    for key in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[*key];
    }
    *place = value;
}
