//! Text becomes trees: every key and value knows its place, and whatever two YAML readers could read differently is a
//! finding. Nothing here knows what the documents mean.

mod yaml;

pub(crate) use yaml::short;

use crate::diagnostic::Diagnostics;
pub use crate::diagnostic::Place;

/// A file as it was handed in.
#[derive(Clone, Debug)]
pub struct File {
    /// The path as the user can open it, or `<stdin>`: what people see in messages.
    pub path: String,
    /// The path relative to what the user named: what programs see.
    pub relative: String,
    /// The bytes, whatever they are.
    pub bytes: Vec<u8>,
    /// Named by the user (then every document in it must be an intent) or found in a folder.
    pub explicit: bool,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// What a value is, read as both YAML 1.1 and 1.2 readers would.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing was written, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or exponent; the text as written.
    Float(Box<str>),
    /// A quoted or unmistakable string.
    Str(Box<str>),
    /// A plain scalar that YAML 1.1 readers take for something else than 1.2 readers do: its text, and what else it may be.
    Ambiguous(Box<str>, &'static str),
    /// A list.
    Seq(Vec<Node>),
    /// A map in the order it was written; keys are unique.
    Map(Vec<Entry>),
    /// Something that was refused where it stands; nobody has to say so again.
    Refused,
}

/// One entry of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Box<str>,
    /// Where the key begins.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// The value of a key, if this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| &*entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// `a string`, `a list`, … for messages; never the content.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null | Value::Refused => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Str(_) => "a string",
            Value::Ambiguous(..) => "a plain word that readers take for different things",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// What one run accepts; beyond that it refuses instead of growing.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Maps and lists inside each other.
    pub depth: usize,
    /// Documents of one file.
    pub documents: usize,
    /// Values of one file.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 16 << 20, depth: 64, documents: 50_000, values: 1_000_000 }
    }
}

/// The documents of one file, with everything that is wrong with their text. Documents in front of a syntax error are
/// kept, so that their problems are told in the same run.
#[must_use]
pub fn read(index: u32, file: &File, limits: &Limits) -> (Vec<Node>, Diagnostics) {
    let mut documents = Vec::new();
    let mut found = Diagnostics::default();
    yaml::read(index, &file.bytes, limits, &mut documents, &mut found);
    (documents, found)
}
