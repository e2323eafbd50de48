//! From trees to types: every problem of a document in one pass, each at its place, and the JSON Schema of the same type.
//!
//! A type says once what it accepts ([`Decode`]); [`record!`] does it for a map with named fields. `None` means that a
//! problem was reported, so the caller goes on with the next field and gives up only at the end.

use crate::diagnostic::{Diagnostic, Diagnostics, codes, did_you_mean, nearest};
use crate::source::{Node, Place, Value};
use serde_json::{Map as Object, Value as Json, json};

/// A type that documents are made of.
pub trait Decode: Sized {
    /// Reads the type from a tree; `None` after reporting at least one problem.
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self>;

    /// The JSON Schema of what [`Decode::decode`] accepts; records add themselves to `definitions` and refer to it.
    fn schema(definitions: &mut Object<String, Json>) -> Json;
}

/// Reports a value of the wrong type.
pub(crate) fn wrong_type<T>(node: &Node, expected: &str, found: &mut Diagnostics) -> Option<T> {
    let (message, help) = match &node.value {
        Value::Refused => return None,
        Value::Ambiguous(_, what) => (
            format!("expected {expected}, found a plain word that is {what}"),
            "put it in double quotes, or write it in a way all readers agree on".to_owned(),
        ),
        Value::Bool(_) | Value::Int(_) | Value::Float(_)
            if expected.starts_with("a string") || expected.contains("name") =>
        {
            (format!("expected {expected}, found {}", node.kind()), "put it in double quotes".to_owned())
        }
        Value::Null => {
            (format!("expected {expected}, found nothing"), "write a value, or leave the field out".to_owned())
        }
        _ => (format!("expected {expected}, found {}", node.kind()), format!("write {expected}")),
    };
    found.push(Diagnostic::new(&codes::WRONG_TYPE, node.place, message).help(help));
    None
}

/// Reports a value of the right type that is not one of the allowed ones.
pub(crate) fn bad_value<T>(
    place: Place,
    message: impl Into<String>,
    help: impl Into<String>,
    found: &mut Diagnostics,
) -> Option<T> {
    found.push(Diagnostic::new(&codes::BAD_VALUE, place, message).help(help));
    None
}

/// The text of a string node.
pub(crate) fn text<'n>(node: &'n Node, expected: &str, found: &mut Diagnostics) -> Option<&'n str> {
    match &node.value {
        Value::Str(text) => Some(text),
        _ => wrong_type(node, expected, found),
    }
}

/// A map whose keys are a fixed set of fields.
pub(crate) struct Fields<'n> {
    node: &'n Node,
    known: &'n [&'n str],
}

impl<'n> Fields<'n> {
    /// Checks that `node` is a map and reports every key that is not in `known`.
    pub(crate) fn of(node: &'n Node, known: &'n [&'n str], found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return wrong_type(node, "a map", found);
        };
        for entry in entries {
            if !known.contains(&&*entry.key) {
                let message = format!("unknown field \"{}\"", crate::source::short(&entry.key));
                let help = did_you_mean(&entry.key, known.iter().copied())
                    .unwrap_or_else(|| format!("allowed here: {}", known.join(", ")));
                found.push(Diagnostic::new(&codes::UNKNOWN_FIELD, entry.place, message).help(help));
            }
        }
        Some(Self { node, known })
    }

    /// A field that must be there.
    pub(crate) fn required<T: Decode>(&self, key: &str, found: &mut Diagnostics) -> Option<T> {
        if let Some(node) = self.node.get(key) {
            return T::decode(node, found);
        }
        if self.is_misspelt(key) {
            return None;
        }
        let message = format!("the field \"{key}\" is missing");
        found.push(Diagnostic::new(&codes::MISSING_FIELD, self.node.place, message).help(format!("add `{key}:` here")));
        None
    }

    /// Whether an unknown field was reported that is most likely this one.
    fn is_misspelt(&self, key: &str) -> bool {
        let Value::Map(entries) = &self.node.value else { return false };
        let mut unknown = entries.iter().filter(|entry| !self.known.contains(&&*entry.key));
        unknown.any(|entry| nearest(&entry.key, self.known.iter().copied()) == Some(key))
    }

    /// A field that may be left out.
    pub(crate) fn optional<T: Decode>(&self, key: &str, found: &mut Diagnostics) -> Option<Option<T>> {
        self.node.get(key).map_or(Some(None), |node| T::decode(node, found).map(Some))
    }
}

/// Declares a map with named fields: the struct, how it is read, and its JSON Schema.
///
/// Each field is `required T`, `optional T` (an `Option`), or `default T = |place| value`. The documentation comments become the
/// descriptions of the schema. Every record also knows its `place`.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident as $key:literal: $mode:ident $type:ty $(= $default:expr)? ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            /// Where it begins.
            pub place: $crate::source::Place,
            $( $(#[doc = $field_doc])* pub $field: $crate::intent::decode::record!(@type $mode $type), )*
        }

        impl $crate::intent::decode::Decode for $name {
            fn decode(node: &$crate::source::Node, found: &mut $crate::diagnostic::Diagnostics) -> Option<Self> {
                #[allow(unused_variables)]
                let fields = $crate::intent::decode::Fields::of(node, &[$($key),*], found)?;
                $( let $field = $crate::intent::decode::record!(@read fields found $key $mode $type $(= node $default)?); )*
                Some(Self { place: node.place, $( $field: $field? ),* })
            }

            fn schema(definitions: &mut serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
                $crate::intent::decode::define(definitions, stringify!($name), concat!($($doc),*), |definitions| {
                    vec![$( $crate::intent::decode::Field {
                        key: $key,
                        description: concat!($($field_doc),*),
                        required: $crate::intent::decode::record!(@required $mode),
                        schema: <$type as $crate::intent::decode::Decode>::schema(definitions),
                    } ),*]
                })
            }
        }
    };
    (@type optional $type:ty) => { Option<$type> };
    (@type $mode:ident $type:ty) => { $type };
    (@read $fields:ident $found:ident $key:literal required $type:ty) => { $fields.required::<$type>($key, $found) };
    (@read $fields:ident $found:ident $key:literal optional $type:ty) => { $fields.optional::<$type>($key, $found) };
    (@read $fields:ident $found:ident $key:literal default $type:ty = $node:ident $default:expr) => {
        $fields.optional::<$type>($key, $found).map(|value| {
            let default: fn($crate::source::Place) -> $type = $default;
            value.unwrap_or_else(|| default($node.place))
        })
    };
    (@required required) => { true };
    (@required $mode:ident) => { false };
}
pub(crate) use record;

/// What the schema says about one field of a record.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) description: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: Json,
}

/// Adds a record to the definitions, once, and refers to it.
pub(crate) fn define(
    definitions: &mut Object<String, Json>,
    name: &str,
    description: &str,
    fields: impl FnOnce(&mut Object<String, Json>) -> Vec<Field>,
) -> Json {
    if !definitions.contains_key(name) {
        definitions.insert(name.to_owned(), Json::Null);
        let fields = fields(definitions);
        let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.key).collect();
        let properties: Object<String, Json> = fields
            .into_iter()
            .map(|field| (field.key.to_owned(), described(field.schema, field.description)))
            .collect();
        let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        definitions.insert(name.to_owned(), described(schema, description));
    }
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A schema with a description.
pub(crate) fn described(mut schema: Json, description: &str) -> Json {
    let description = description.trim();
    if !description.is_empty() {
        schema["description"] = json!(description);
    }
    schema
}

/// Declares words of which exactly one may be written.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal ),* $(,)? }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $word_doc])* $variant ),* }

        impl $name {
            /// The word as it is written.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word ),* }
            }
        }

        impl $crate::intent::decode::Decode for $name {
            fn decode(node: &$crate::source::Node, found: &mut $crate::diagnostic::Diagnostics) -> Option<Self> {
                let text = $crate::intent::decode::text(node, concat!("a string, one of", $(" ", $word),*), found)?;
                match text {
                    $( $word => Some(Self::$variant), )*
                    _ => {
                        let help = $crate::diagnostic::did_you_mean(text, [$($word),*])
                            .unwrap_or_else(|| ["write one of:", $($word),*].join(" "));
                        let message = format!("\"{}\" is not allowed here", $crate::source::short(text));
                        $crate::intent::decode::bad_value(node.place, message, help, found)
                    }
                }
            }

            fn schema(_: &mut serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$($word),*]})
            }
        }
    };
}
pub(crate) use words;

impl Decode for bool {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            Value::Refused => None,
            _ => {
                let message = format!("expected true or false, found {}", node.kind());
                found.push(
                    Diagnostic::new(&codes::WRONG_TYPE, node.place, message)
                        .help("write true or false, without quotes"),
                );
                None
            }
        }
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "boolean"})
    }
}

/// A list that must not be empty: an empty list never means "everything", so it is an error wherever it stands.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Seq(items) = &node.value else {
            return wrong_type(node, "a list", found);
        };
        if items.is_empty() {
            found.push(
                Diagnostic::new(&codes::EMPTY_LIST, node.place, "an empty list")
                    .help("name at least one item, or leave the field out"),
            );
            return None;
        }
        all(items, found)
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        json!({"type": "array", "minItems": 1, "items": T::schema(definitions)})
    }
}

/// Decodes all items, reporting the problems of each.
fn all<T: Decode>(items: &[Node], found: &mut Diagnostics) -> Option<Vec<T>> {
    let decoded: Vec<Option<T>> = items.iter().map(|item| T::decode(item, found)).collect();
    decoded.into_iter().collect()
}

/// A list that may be empty because empty has a meaning of its own (`allow: []`: nobody).
#[derive(Clone, Debug)]
pub struct MaybeEmpty<T>(pub Vec<T>);

impl<T: Decode> Decode for MaybeEmpty<T> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Seq(items) => all(items, found).map(Self),
            _ => wrong_type(node, "a list", found),
        }
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        json!({"type": "array", "items": T::schema(definitions)})
    }
}

/// Text that is free.
impl Decode for String {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        text(node, "a string", found).map(str::to_owned)
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string"})
    }
}

/// A value with its place, for values that messages point at.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// Where it begins.
    pub place: Place,
    /// The value.
    pub value: T,
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Decode> Decode for At<T> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        T::decode(node, found).map(|value| Self { place: node.place, value })
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        T::schema(definitions)
    }
}
