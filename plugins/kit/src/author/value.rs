//! What a field should say, and how that is written: as the examples of the documentation are, lists and small maps on
//! one line, everything else in lines of its own.

use mesh::source::{File, Limits, Node, Value as Read};

/// Beyond this column a list or map gets lines of its own.
const WIDTH: usize = 120;

/// A value that a document should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Number(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A list on one line, where it fits.
    List(Vec<Value>),
    /// A list with a line for each item.
    Lines(Vec<Value>),
    /// A map.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// A string.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A list of strings.
    #[must_use]
    pub fn texts<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A map of the fields that are there.
    #[must_use]
    pub fn map<const N: usize>(fields: [(&str, Option<Self>); N]) -> Self {
        Self::Map(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
    }

    /// Whether the document says this already; the order of a map's keys has no meaning.
    #[must_use]
    pub fn is_said_by(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Self::Text(wanted), Read::Str(text)) => **text == **wanted,
            (Self::Number(wanted), Read::Int(number)) => wanted == number,
            (Self::Bool(wanted), Read::Bool(value)) => wanted == value,
            (Self::List(wanted) | Self::Lines(wanted), Read::Seq(items)) => {
                wanted.len() == items.len() && wanted.iter().zip(items).all(|(wanted, item)| wanted.is_said_by(item))
            }
            (Self::Map(wanted), Read::Map(entries)) => {
                wanted.len() == entries.len()
                    && wanted.iter().all(|(key, value)| node.get(key).is_some_and(|node| value.is_said_by(node)))
            }
            _ => false,
        }
    }

    /// What a document says; what only some readers understand is taken as the text that it is.
    #[must_use]
    pub fn of(node: &Node) -> Option<Self> {
        match &node.value {
            Read::Str(text) | Read::Ambiguous(text, _) | Read::Float(text) => Some(Self::text(&**text)),
            Read::Int(number) => Some(Self::Number(*number)),
            Read::Bool(value) => Some(Self::Bool(*value)),
            Read::Seq(items) => items.iter().map(Self::of).collect::<Option<_>>().map(Self::List),
            Read::Map(entries) => {
                let entries = entries.iter().map(|entry| Some((entry.key.to_string(), Self::of(&entry.node)?)));
                entries.collect::<Option<_>>().map(Self::Map)
            }
            _ => None,
        }
    }

    /// On one line. In `json`, strings and keys are always quoted.
    #[must_use]
    pub fn on_one_line(&self, json: bool) -> String {
        match self {
            Self::Text(text) => scalar(text, json),
            Self::Number(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::List(items) | Self::Lines(items) => {
                let items: Vec<String> = items.iter().map(|item| item.on_one_line(json)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", scalar(key, json), value.on_one_line(json)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// The lines of a field of a block map whose keys begin in this column (from 0), the last without a line end.
    #[must_use]
    pub fn field(&self, key: &str, column: usize, newline: &str) -> String {
        let name = scalar(key, false);
        let pad = " ".repeat(column);
        let line = format!("{pad}{name}: {}", self.on_one_line(false));
        let fits = line.chars().count() <= WIDTH;
        match self {
            Self::Map(entries) if !entries.is_empty() && (!fits || self.wants_lines()) => {
                let fields: Vec<String> =
                    entries.iter().map(|(key, value)| value.field(key, column + 2, newline)).collect();
                format!("{pad}{name}:{newline}{}", fields.join(newline))
            }
            Self::Lines(items) | Self::List(items) if !items.is_empty() && (!fits || self.wants_lines()) => {
                let items: Vec<String> = items.iter().map(|item| item.item(column, false, newline)).collect();
                format!("{pad}{name}:{newline}{}", items.join(newline))
            }
            _ => line,
        }
    }

    /// The lines of an item of a block list whose dashes stand in this column, the last without a line end. With `lines`
    /// a map gets a line for each field.
    #[must_use]
    pub fn item(&self, column: usize, lines: bool, newline: &str) -> String {
        let pad = " ".repeat(column);
        let line = format!("{pad}- {}", self.on_one_line(false));
        match self {
            Self::Map(entries) if lines || line.chars().count() > WIDTH => {
                let fields: Vec<String> =
                    entries.iter().map(|(key, value)| value.field(key, column + 2, newline)).collect();
                // The dash takes the place of the first field's indentation.
                format!("{pad}- {}", fields.join(newline).trim_start())
            }
            _ => line,
        }
    }

    /// Maps that hold lists read better in lines; so do lists of rules.
    fn wants_lines(&self) -> bool {
        match self {
            Self::Lines(_) => true,
            Self::Map(entries) => entries.iter().any(|(_, value)| match value {
                Self::List(_) | Self::Lines(_) => true,
                Self::Map(_) => value.wants_lines(),
                Self::Text(_) | Self::Number(_) | Self::Bool(_) => false,
            }),
            Self::List(_) | Self::Text(_) | Self::Number(_) | Self::Bool(_) => false,
        }
    }
}

/// A string: plain where every reader takes it for that string, else in double quotes.
#[must_use]
pub(super) fn scalar(text: &str, json: bool) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    if !json && begins && text.chars().all(harmless) && is_read_as_string(text) {
        return text.to_owned();
    }
    serde_json::to_string(text).expect("a string is always JSON")
}

fn is_read_as_string(text: &str) -> bool {
    let file = File { path: String::new(), relative: String::new(), bytes: text.as_bytes().to_vec(), explicit: false };
    let (nodes, _) = mesh::source::read(0, &file, &Limits::default());
    matches!(nodes.as_slice(), [node] if node.as_str() == Some(text))
}

#[cfg(test)]
mod tests {
    use super::{Value, scalar};

    #[test]
    fn strings_that_some_reader_takes_for_something_else_are_quoted() {
        for plain in ["user", "user.mesh.bank.example", "/v1/orders", "10s", "us-east-1a", "a_b"] {
            assert_eq!(scalar(plain, false), plain);
        }
        for quoted in ["yes", "1.30", "0x1f", "12:30", "", "/v1/*", "a: b", "{x}", "- a", "null", "2024-01-02", "é"] {
            assert_eq!(scalar(quoted, false), format!("{quoted:?}"));
        }
        assert_eq!(scalar("user", true), "\"user\"");
    }

    #[test]
    fn maps_of_lists_and_lists_of_rules_get_lines() {
        let rule = Value::map([("from", Some(Value::texts(["dependents"]))), ("in", Some(Value::texts(["eks"])))]);
        let spec = Value::map([
            ("to", Some(Value::map([("service", Some(Value::text("user")))]))),
            ("allow", Some(Value::Lines(vec![rule]))),
        ]);
        let expected = "spec:\n  to: {service: user}\n  allow:\n  - {from: [dependents], in: [eks]}";
        assert_eq!(spec.field("spec", 0, "\n"), expected);
    }
}
