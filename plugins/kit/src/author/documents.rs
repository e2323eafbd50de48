//! The documents of one file: found by what they are, added behind the others, taken out with their own comments.

use super::edit;
use super::value::{Value, scalar};
use anyhow::{Context, bail};
use mesh::intent::{API_VERSION, Kind};
use mesh::source::Node;
use std::fmt;
use std::ops::Range;

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, where the kind has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Id {
    /// `NAMESPACE/NAME`, or a bare name in the given namespace; kinds without namespaces take bare names only.
    ///
    /// # Errors
    ///
    /// If the text does not say which namespace.
    pub fn parse(kind: Kind, text: &str, namespace: Option<&str>) -> anyhow::Result<Self> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (namespace, text),
        };
        if name.is_empty() || name.contains('/') || namespace.is_some_and(str::is_empty) {
            bail!("\"{text}\" is no name; write NAMESPACE/NAME");
        }
        Ok(Self { kind, namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }

    /// Whether a tree is this document.
    #[must_use]
    pub fn is(&self, node: &Node) -> bool {
        let metadata = |key: &str| node.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Node::as_str);
        node.get("apiVersion").and_then(Node::as_str) == Some(API_VERSION)
            && node.get("kind").and_then(Node::as_str) == Some(self.kind.as_str())
            && metadata("name") == Some(&self.name)
            && metadata("namespace") == self.namespace.as_deref()
    }

    /// `meshservice.meshintent.dev/user`, as kubectl names what it changed.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}.{}/{}", self.kind.as_str().to_lowercase(), mesh::intent::GROUP, self.name)
    }

    /// The name of a file of its own: `meshservice-bank-user.yaml`.
    #[must_use]
    pub fn file_name(&self) -> String {
        let namespace = self.namespace.as_ref().map(|namespace| format!("{namespace}-")).unwrap_or_default();
        format!("{}-{namespace}{}.yaml", self.kind.as_str().to_lowercase(), self.name)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{namespace}/{}", self.kind.as_str(), self.name),
            None => write!(f, "{}/{}", self.kind.as_str(), self.name),
        }
    }
}

/// A field of a document: the keys that lead to it, and what it should say; nothing takes it out.
pub type Field<'a> = (Vec<&'a str>, Option<Value>);

/// A new document.
#[must_use]
pub fn write(id: &Id, fields: &[Field<'_>]) -> String {
    let mut root = Value::Map(Vec::new());
    for (path, value) in fields {
        if let Some(value) = value {
            place(&mut root, path, value);
        }
    }
    let mut metadata =
        Value::map([("name", Some(Value::text(&*id.name))), ("namespace", id.namespace.as_deref().map(Value::text))]);
    let mut text = format!("apiVersion: {}\nkind: {}\n", scalar(API_VERSION, false), id.kind.as_str());
    let Value::Map(fields) = root else { return text };
    let mut spec = None;
    for (key, value) in fields {
        match (&*key, value, &mut metadata) {
            ("metadata", Value::Map(more), Value::Map(metadata)) => metadata.extend(more),
            (_, value, _) => spec = Some(value),
        }
    }
    text += &metadata.field("metadata", 0, "\n");
    text += "\nspec:\n";
    if let Some(Value::Map(spec)) = spec {
        for (key, value) in spec {
            text += &value.field(&key, 2, "\n");
            text.push('\n');
        }
    }
    text
}

fn place(map: &mut Value, path: &[&str], value: &Value) {
    let (Value::Map(entries), Some((key, rest))) = (map, path.split_first()) else { return };
    let index = entries.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
        entries.push(((*key).to_owned(), Value::Map(Vec::new())));
        entries.len() - 1
    });
    if rest.is_empty() {
        entries[index].1 = value.clone();
    } else {
        place(&mut entries[index].1, rest, value);
    }
}

/// The position of a document among those of a file, and its tree.
///
/// # Errors
///
/// If the file is not YAML without fault.
pub fn find(text: &str, id: &Id) -> anyhow::Result<Option<(usize, Node)>> {
    Ok(edit::read(strip_mark(text))?.into_iter().enumerate().find(|(_, node)| id.is(node)))
}

/// The text with the fields changed, one after the other.
///
/// # Errors
///
/// If a field cannot be changed without touching something else.
pub fn change(text: &str, index: usize, fields: &[Field<'_>]) -> anyhow::Result<String> {
    let body = strip_mark(text);
    let mut changed = body.to_owned();
    for (path, value) in fields {
        changed = edit::set(&changed, index, path, value.as_ref())?;
    }
    Ok(format!("{}{changed}", &text[..text.len() - body.len()]))
}

/// The text with one more document behind the others.
#[must_use]
pub fn append(text: &str, document: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let document = document.replace('\n', newline);
    if text.trim().is_empty() {
        return document;
    }
    let end = if text.ends_with('\n') { "" } else { newline };
    let last = text.lines().map(str::trim_end).rfind(|line| !line.is_empty()).unwrap_or_default();
    let marker = if last == "---" { String::new() } else { format!("---{newline}") };
    format!("{text}{end}{marker}{document}")
}

/// The text without one document and the comments that belong to it; `None` if nothing is left.
///
/// # Errors
///
/// If the document shares its lines with another.
pub fn remove(text: &str, index: usize) -> anyhow::Result<Option<String>> {
    let body = strip_mark(text);
    let before = edit::read(body)?;
    let own = extent(body, &before, index)?;
    // One of the markers around the document goes with it: the one above, or for the first document the one below.
    let above = body[..own.start].trim_end_matches(['\n', '\r', ' ']);
    let cut = if let Some(rest) = above.strip_suffix("---").filter(|rest| rest.is_empty() || rest.ends_with('\n')) {
        rest.len()..own.end
    } else {
        let below = &body[own.end..];
        let blank = below.len() - below.trim_start().len();
        let marker = below
            .trim_start()
            .strip_prefix("---")
            .map_or(0, |rest| blank + 3 + rest.find('\n').map_or(rest.len(), |index| index + 1));
        own.start..own.end + marker
    };
    let left = format!("{}{}", &body[..cut.start], &body[cut.end..]);
    if left.lines().all(|line| line.trim().is_empty() || line.trim_end() == "---") {
        return Ok(None);
    }
    let after = edit::read(&left).context("the file would break without the document; edit it by hand")?;
    let real = |nodes: &[Node]| nodes.iter().filter(|node| node.get("kind").is_some()).count();
    if real(&after) + 1 != real(&before) {
        bail!("the document cannot be taken out safely; edit the file by hand");
    }
    Ok(Some(format!("{}{left}", &text[..text.len() - body.len()])))
}

/// The text of one document with the comments directly above it.
///
/// # Errors
///
/// If the document shares its lines with another.
pub fn text_of(text: &str, index: usize) -> anyhow::Result<&str> {
    let body = strip_mark(text);
    Ok(&body[extent(body, &edit::read(body)?, index)?])
}

/// The lines of a document: from the comments directly above its first line to the marker below, blank lines and
/// comments at the end left out.
fn extent(text: &str, nodes: &[Node], index: usize) -> anyhow::Result<Range<usize>> {
    let node = nodes.get(index).context("the document is not there any more")?;
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line = |number: usize| {
        let start = starts[number];
        &text[start..starts.get(number + 1).copied().unwrap_or(text.len())]
    };
    let is_marker = |number: usize| {
        let line = line(number);
        ["---", "..."].iter().any(|marker| {
            line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        })
    };
    let mut first = node.place.line as usize - 1;
    if is_marker(first) {
        bail!("the document begins on the line of its `---`; give it lines of its own");
    }
    let mut end = first + 1;
    while end < starts.len() && !is_marker(end) {
        end += 1;
    }
    while end > first + 1 && (line(end - 1).trim().is_empty() || line(end - 1).starts_with('#')) {
        end -= 1;
    }
    while first > 0 && line(first - 1).starts_with('#') {
        first -= 1;
    }
    Ok(starts[first]..starts.get(end).copied().unwrap_or(text.len()))
}

/// Without a byte order mark, which is no part of the first document.
fn strip_mark(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::{Id, append, change, find, remove, text_of, write};
    use crate::author::value::Value;
    use mesh::intent::Kind;

    fn id(name: &str) -> Id {
        Id::parse(Kind::MeshService, &format!("bank/{name}"), None).expect("a name")
    }

    fn file(names: &[&str]) -> String {
        names
            .iter()
            .map(|name| {
                format!(
                    "# About {name}.\napiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {{name: {name}, namespace: bank}}\nspec:\n  clusters: all\n"
                )
            })
            .collect::<Vec<_>>()
            .join("---\n")
    }

    #[test]
    fn any_document_can_be_taken_out() {
        let names = ["a", "b", "c"];
        for (index, name) in names.iter().enumerate() {
            let text = file(&names);
            assert_eq!(find(&text, &id(name)).expect("right").map(|(index, _)| index), Some(index));
            let rest: Vec<&str> = names.iter().copied().filter(|other| other != name).collect();
            assert_eq!(remove(&text, index).expect("possible"), Some(file(&rest)), "without {name}");
            let led = format!("---\n{text}");
            assert_eq!(remove(&led, index).expect("possible"), Some(format!("---\n{}", file(&rest))), "without {name}");
        }
        assert_eq!(remove(&file(&["a"]), 0).expect("possible"), None);
        let kept = "# The bank.\n\n".to_owned() + &file(&["a", "b"]);
        assert_eq!(remove(&kept, 0).expect("possible"), Some("# The bank.\n\n".to_owned() + &file(&["b"])));
    }

    #[test]
    fn a_document_is_added_behind_the_others() {
        let text = file(&["a"]);
        for before in [text.clone(), text.trim_end().to_owned(), format!("{text}---\n")] {
            assert_eq!(append(&before, &file(&["b"])), file(&["a", "b"]));
        }
        assert_eq!(append("", &text), text);
        assert_eq!(text_of(&file(&["a", "b"]), 1).expect("there"), file(&["b"]));
    }

    #[test]
    fn a_byte_order_mark_stays() {
        let text = format!("\u{FEFF}{}", file(&["a", "b"]));
        let changed = change(&text, 1, &[(vec!["spec", "clusters"], Some(Value::texts(["eks"])))]).expect("possible");
        assert_eq!(changed, format!("\u{FEFF}{}", file(&["a"])) + "---\n" + &file(&["b"]).replace("all", "[eks]"));
    }

    #[test]
    fn new_documents_look_like_those_of_the_documentation() {
        let fields: [super::Field<'_>; 3] = [
            (vec!["metadata", "labels", "data"], Some(Value::text("pii"))),
            (vec!["spec", "clusters"], Some(Value::texts(["eks", "wine"]))),
            (vec!["spec", "expose", "hostnames"], Some(Value::texts(["user.mesh.bank.example"]))),
        ];
        assert_eq!(
            write(&id("user"), &fields),
            "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: user, namespace: bank, labels: {data: pii}}\nspec:\n  clusters: [eks, wine]\n  expose:\n    hostnames: [user.mesh.bank.example]\n"
        );
    }
}
