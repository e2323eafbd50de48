//! How documents name clusters: `all`, a list of names and label maps, and the tiers of a failover order.

use super::decode::{Decode, bad_value, wrong_type};
use super::types::{ClusterName, label};
use crate::diagnostic::Diagnostics;
use crate::source::{Node, Place, Value, short};
use serde_json::{Map as Object, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of a label map that read a field of the cluster itself.
pub const FIELDS: [&str; 3] = ["region", "zone", "network"];

/// Words that name no cluster.
pub const RESERVED: [&str; 3] = ["all", "local", "same"];

/// `all`, or a list whose items are a cluster name or a map of labels.
#[derive(Clone, Debug)]
pub enum ClusterSet {
    /// Every cluster of the fleet.
    All,
    /// Every cluster that one of the items selects.
    Items(Vec<Item>),
}

/// One item of a cluster set.
#[derive(Clone, Debug)]
pub struct Item {
    /// Where it begins.
    pub place: Place,
    /// What it selects.
    pub select: Select,
}

/// What one item selects.
#[derive(Clone, Debug)]
pub enum Select {
    /// Every cluster; an item of `order` only.
    All,
    /// The caller's own cluster; an item of `order` only.
    Local,
    /// The cluster of this name.
    Name(ClusterName),
    /// The clusters that carry all of these labels; `region`, `zone` and `network` read the cluster's own fields.
    Labels(BTreeMap<Arc<str>, LabelValue>),
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelValue {
    /// This value.
    Is(Arc<str>),
    /// The value of the caller's cluster; only for `region`, `zone` and `network`, only in `order` and `exclude`.
    SameAsCaller,
}

/// What may be written where clusters are named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Anywhere.
    Plain,
    /// In `exclude`: `same` is understood.
    Exclude,
    /// In `order`: `same`, `local` and `all` are understood.
    Order,
}

fn item(node: &Node, context: Context, found: &mut Diagnostics) -> Option<Item> {
    let select = match &node.value {
        Value::Str(text) => match (&**text, context) {
            ("all", Context::Order) => Select::All,
            ("local", Context::Order) => Select::Local,
            ("all", _) => {
                return bad_value(
                    node.place,
                    "`all` is not an item of a list",
                    "write `all` in place of the list, for example `clusters: all`",
                    found,
                );
            }
            ("local" | "same", _) => {
                return bad_value(
                    node.place,
                    format!("`{text}` is a reserved word and names no cluster here"),
                    "write the name of a cluster or a map of labels",
                    found,
                );
            }
            _ => Select::Name(ClusterName::decode(node, found)?),
        },
        Value::Map(entries) => {
            if entries.is_empty() {
                return bad_value(
                    node.place,
                    "an empty map would select every cluster",
                    "name at least one label, or write `all`",
                    found,
                );
            }
            let labels: Vec<_> = entries
                .iter()
                .map(|entry| {
                    let (key, value) = label(entry, found)?;
                    if &*value != "same" {
                        return Some((key, LabelValue::Is(value)));
                    }
                    if context == Context::Plain {
                        return bad_value(
                            entry.node.place,
                            "`same` has a meaning only in `order` and `exclude`, where there is a caller",
                            "write the value itself",
                            found,
                        );
                    }
                    if !FIELDS.contains(&&*key) {
                        return bad_value(
                            entry.node.place,
                            format!(
                                "`same` is understood for region, zone and network, not for the label \"{}\"",
                                short(&key)
                            ),
                            "write the value itself",
                            found,
                        );
                    }
                    Some((key, LabelValue::SameAsCaller))
                })
                .collect();
            Select::Labels(labels.into_iter().collect::<Option<_>>()?)
        }
        _ => return wrong_type(node, "a cluster name or a map of labels", found),
    };
    Some(Item { place: node.place, select })
}

fn items(node: &Node, context: Context, found: &mut Diagnostics) -> Option<Vec<Item>> {
    let Value::Seq(nodes) = &node.value else {
        return wrong_type(node, "a list of clusters", found);
    };
    if nodes.is_empty() {
        found.push(
            crate::diagnostic::Diagnostic::new(
                &crate::diagnostic::codes::EMPTY_LIST,
                node.place,
                "an empty list of clusters",
            )
            .help("name at least one cluster; an empty list never means every cluster"),
        );
        return None;
    }
    let decoded: Vec<Option<Item>> = nodes.iter().map(|node| item(node, context, found)).collect();
    decoded.into_iter().collect()
}

fn set(node: &Node, context: Context, found: &mut Diagnostics) -> Option<ClusterSet> {
    match &node.value {
        Value::Str(text) if &**text == "all" => Some(ClusterSet::All),
        Value::Str(text) => bad_value(
            node.place,
            format!("expected `all` or a list of clusters, found \"{}\"", short(text)),
            format!("write [{}]", short(text)),
            found,
        ),
        Value::Map(_) => bad_value(
            node.place,
            "expected `all` or a list of clusters, found a map",
            "put the map into a list: [{…}]",
            found,
        ),
        _ => items(node, context, found).map(ClusterSet::Items),
    }
}

fn label_schema() -> Json {
    json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "maxLength": 63}})
}

fn set_schema(definitions: &mut Object<String, Json>) -> Json {
    let name = ClusterName::schema(definitions);
    json!({"anyOf": [{"const": "all"}, {"type": "array", "minItems": 1, "items": {"anyOf": [name, label_schema()]}}]})
}

impl Decode for ClusterSet {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        set(node, Context::Plain, found)
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        set_schema(definitions)
    }
}

/// The clusters that never serve a caller from elsewhere.
#[derive(Clone, Debug)]
pub struct Exclude {
    /// Where it begins.
    pub place: Place,
    /// The clusters, seen from the caller's cluster.
    pub clusters: ClusterSet,
}

impl Decode for Exclude {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        set(node, Context::Exclude, found).map(|clusters| Self { place: node.place, clusters })
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        set_schema(definitions)
    }
}

/// A failover order: tiers, of which the first healthy one serves.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where it begins.
    pub place: Place,
    /// The tiers; a cluster belongs to the first one that selects it.
    pub tiers: Vec<Vec<Item>>,
}

impl Decode for Order {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Seq(nodes) = &node.value else {
            return wrong_type(node, "a list of tiers", found);
        };
        if nodes.is_empty() {
            found.push(
                crate::diagnostic::Diagnostic::new(
                    &crate::diagnostic::codes::EMPTY_LIST,
                    node.place,
                    "an order without tiers",
                )
                .help("name at least one tier, for example [local, all]"),
            );
            return None;
        }
        let tiers: Vec<Option<Vec<Item>>> = nodes
            .iter()
            .map(|node| match &node.value {
                Value::Seq(_) => items(node, Context::Order, found),
                _ => item(node, Context::Order, found).map(|item| vec![item]),
            })
            .collect();
        tiers.into_iter().collect::<Option<_>>().map(|tiers| Self { place: node.place, tiers })
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        let name = ClusterName::schema(definitions);
        let item = json!({"anyOf": [{"enum": ["all", "local"]}, name, label_schema()]});
        json!({"type": "array", "minItems": 1, "items": {"anyOf": [item, {"type": "array", "minItems": 1, "items": item}]}})
    }
}
