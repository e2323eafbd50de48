//! `get`: the documents of a kind, with kubectl's flags. `-o yaml` prints them as they are written, comments included.

use crate::author::documents;
use crate::author::value::Value;
use crate::input::{self, Input};
use crate::output::{self, Form};
use crate::run::{self, Failure, Outcome};
use crate::table::Rows;
use anyhow::{Context, bail};
use mesh::World;
use mesh::intent::{API_VERSION, GROUP, Kind};
use mesh::source::{File, Limits, Node, Value as Read};
use serde_json::{Value as Json, json};

/// The flags of `get`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Only these documents: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only documents of this namespace; all namespaces otherwise
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Accepted for kubectl's sake: documents of all namespaces are shown anyway
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only documents with these labels: KEY=VALUE, KEY!=VALUE, KEY, !KEY, separated by commas
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// The form of the output
    #[arg(short, long, value_parser = output::LIST, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

/// A document as it is written.
#[derive(Debug)]
pub struct Written<'a> {
    /// Its namespace, where it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its tree.
    pub node: Node,
    /// Its file.
    pub file: &'a File,
    index: usize,
}

impl Written<'_> {
    /// What stands at a place of the document, as one would write it on one line; empty if nothing does.
    #[must_use]
    pub fn says(&self, path: &[&str]) -> String {
        let node = path.iter().try_fold(&self.node, |node, key| node.get(key));
        node.and_then(Value::of).map(|value| value.on_one_line(false)).unwrap_or_default()
    }

    /// `file:line` of the document.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file.path, self.node.place.line)
    }
}

/// What a table shows of documents beside namespace and name.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Headers of the columns.
    pub headers: &'static [&'static str],
    /// Headers of the columns that only `-o wide` shows, after the others.
    pub wide: &'static [&'static str],
    /// The cells of one document: those of the table, and if wanted, the wide ones.
    pub cells: fn(world: &World, document: &Written<'_>, wide: bool) -> Vec<String>,
}

/// Prints the documents of a kind.
///
/// # Errors
///
/// If a document that is named is not there.
pub fn run(input: &Input, flags: &Flags, kind: Kind, columns: &Columns) -> Outcome {
    let (files, found) = input.files();
    let world = World::of(files.clone(), &Limits::default(), found);
    let code = input::errors(&world);
    let conditions = flags.selector.as_deref().map(selector).transpose()?.unwrap_or_default();
    let all = written(&files, kind);
    let missing: Vec<&String> =
        flags.names.iter().filter(|name| !all.iter().any(|document| is_named(document, name, flags))).collect();
    let shown: Vec<&Written<'_>> = all
        .iter()
        .filter(|document| flags.names.is_empty() || flags.names.iter().any(|name| is_named(document, name, flags)))
        .filter(|document| flags.namespace.is_none() || flags.namespace == document.namespace)
        .filter(|document| conditions.iter().all(|condition| condition.holds(&document.node)))
        .collect();
    let text = match &flags.output {
        Form::Name => shown.iter().map(|document| format!("{}.{GROUP}/{}\n", lower(kind), document.name)).collect(),
        Form::Yaml => {
            let texts = shown.iter().map(|document| text(document)).collect::<anyhow::Result<Vec<_>>>()?;
            texts.join("---\n")
        }
        Form::Json => format!("{:#}\n", json_of(&shown, !flags.names.is_empty())),
        Form::JsonPath(template) => template.render(&json_of(&shown, !flags.names.is_empty()))?,
        Form::Table | Form::Wide | Form::Own(_) if shown.is_empty() => String::new(),
        Form::Table | Form::Wide | Form::Own(_) => table(&world, &shown, columns, flags),
    };
    run::print(&text)?;
    if let Some(name) = missing.first() {
        eprintln!("error: {} \"{name}\" not found", lower(kind));
        return Err(Failure::Printed(1));
    }
    if shown.is_empty() && !matches!(flags.output, Form::Json | Form::JsonPath(_)) {
        match &flags.namespace {
            Some(namespace) => eprintln!("No resources found in {namespace} namespace."),
            None => eprintln!("No resources found."),
        }
    }
    Ok(code)
}

fn lower(kind: Kind) -> String {
    kind.as_str().to_lowercase()
}

fn is_named(document: &Written<'_>, text: &str, flags: &Flags) -> bool {
    match text.split_once('/') {
        Some((namespace, name)) => document.namespace.as_deref() == Some(namespace) && document.name == name,
        None => {
            document.name == text
                && flags.namespace.as_ref().is_none_or(|wanted| document.namespace.as_ref() == Some(wanted))
        }
    }
}

/// The documents of a kind in the order of the files, also those that are not right in every part.
fn written(files: &[File], kind: Kind) -> Vec<Written<'_>> {
    let mut documents = Vec::new();
    for (number, file) in (0..).zip(files) {
        let (nodes, _) = mesh::source::read(number, file, &Limits::default());
        for (index, node) in nodes.into_iter().enumerate() {
            let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
            let metadata = |key: &str| text(node.get("metadata").and_then(|metadata| metadata.get(key)));
            let ours = text(node.get("apiVersion")).as_deref() == Some(API_VERSION)
                && text(node.get("kind")).as_deref() == Some(kind.as_str());
            if let (true, Some(name)) = (ours, metadata("name")) {
                documents.push(Written { namespace: metadata("namespace"), name, node, file, index });
            }
        }
    }
    documents.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    documents
}

fn text(document: &Written<'_>) -> anyhow::Result<String> {
    let file = std::str::from_utf8(&document.file.bytes).with_context(|| document.file.path.clone())?;
    let text = documents::text_of(file, document.index).with_context(|| document.place())?;
    Ok(if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })
}

fn table(world: &World, shown: &[&Written<'_>], columns: &Columns, flags: &Flags) -> String {
    let wide = flags.output == Form::Wide;
    let mut headers = vec!["NAMESPACE", "NAME"];
    headers.extend(columns.headers);
    if wide {
        headers.extend(columns.wide);
        headers.push("FILE");
    }
    let mut table = Rows::new(&headers);
    for document in shown {
        let mut cells = vec![document.namespace.clone().unwrap_or_default(), document.name.clone()];
        cells.extend((columns.cells)(world, document, wide));
        if wide {
            cells.push(document.place());
        }
        table.push(cells);
    }
    table.render(!flags.no_headers)
}

/// One object as it is, several as a List, as kubectl does.
fn json_of(shown: &[&Written<'_>], named: bool) -> Json {
    let items: Vec<Json> = shown.iter().map(|document| json_value(&document.node)).collect();
    match items.as_slice() {
        [item] if named => item.clone(),
        _ => json!({"apiVersion": "v1", "kind": "List", "items": items}),
    }
}

fn json_value(node: &Node) -> Json {
    match &node.value {
        Read::Str(text) | Read::Ambiguous(text, _) | Read::Float(text) => json!(text),
        Read::Int(number) => json!(number),
        Read::Bool(value) => json!(value),
        Read::Seq(items) => Json::Array(items.iter().map(json_value).collect()),
        Read::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.to_string(), json_value(&entry.node))).collect())
        }
        _ => Json::Null,
    }
}

/// One condition on labels.
enum Condition {
    Is(String, String),
    IsNot(String, String),
    Has(String),
    HasNot(String),
}

impl Condition {
    fn holds(&self, node: &Node) -> bool {
        let label = |key: &str| node.get("metadata")?.get("labels")?.get(key)?.as_str();
        match self {
            Self::Is(key, value) => label(key) == Some(value),
            Self::IsNot(key, value) => label(key) != Some(value),
            Self::Has(key) => label(key).is_some(),
            Self::HasNot(key) => label(key).is_none(),
        }
    }
}

fn selector(text: &str) -> anyhow::Result<Vec<Condition>> {
    text.split(',')
        .map(|part| {
            let part = part.trim();
            let pair = |separator: &str| {
                let (key, value) = part.split_once(separator)?;
                Some((key.trim().to_owned(), value.trim().to_owned()))
            };
            if let Some((key, value)) = pair("!=") {
                Ok(Condition::IsNot(key, value))
            } else if let Some((key, value)) = pair("==").or_else(|| pair("=")) {
                Ok(Condition::Is(key, value))
            } else if part.is_empty() || part.contains(' ') {
                bail!("\"{part}\" is no selector; write KEY=VALUE, KEY!=VALUE, KEY or !KEY");
            } else if let Some(key) = part.strip_prefix('!') {
                Ok(Condition::HasNot(key.to_owned()))
            } else {
                Ok(Condition::Has(part.to_owned()))
            }
        })
        .collect()
}
