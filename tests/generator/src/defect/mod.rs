//! Fleets with one defect at a known place: the diagnostic has to name that place.

use crate::document::{Place, Text, document, kind, set};
use crate::random::Random;
use crate::world::world_of;
use mesh::diagnostic::Code;
use mesh::resolve::Effective;
use serde_json::{Value, json};

macro_rules! tree {
    ($name:literal, $code:ident, $inject:expr) => {
        Defect { name: $name, code: &codes::$code, inject: Inject::Tree($inject) }
    };
}
macro_rules! text {
    ($name:literal, $code:ident, $inject:expr) => {
        Defect { name: $name, code: &codes::$code, inject: Inject::Text($inject) }
    };
}

mod effective;
mod written;

/// A kind of defect.
pub struct Defect {
    /// What is wrong, in a few words.
    pub name: &'static str,
    /// The code that has to be found.
    pub code: &'static Code,
    inject: Inject,
}

/// How a defect gets into a fleet; nothing is done where the fleet has no place for it.
enum Inject {
    /// By changing a tree: which document, and which value or key the diagnostic has to name.
    Tree(fn(&mut Fleet<'_>) -> Option<(usize, At)>),
    /// By changing the text of a document: the text, and the place that has to be named.
    Text(fn(&Text) -> Option<(String, Place)>),
}

/// What a diagnostic names.
enum At {
    Key(String),
    Value(String),
}

/// A fleet that is about to be broken.
struct Fleet<'a> {
    documents: Vec<Value>,
    effective: &'a Effective,
    random: Random,
}

/// A broken fleet: a text for each document.
pub struct Broken {
    /// The texts of the documents, each a file.
    pub texts: Vec<Text>,
    /// The file of the defect.
    pub file: usize,
    /// Its place.
    pub place: Place,
}

impl Defect {
    /// A fleet without errors, broken in this way; `None` where it has no place for the defect.
    #[must_use]
    pub fn inject(&self, documents: &[Value], seed: u64) -> Option<Broken> {
        let mut texts: Vec<Text> = documents.iter().map(Text::of).collect();
        let mut random = Random::new(seed);
        match self.inject {
            Inject::Tree(inject) => {
                let world = world_of(&texts);
                let mut fleet = Fleet { documents: documents.to_vec(), effective: &world.effective, random };
                let (file, at) = inject(&mut fleet)?;
                texts = fleet.documents.iter().map(Text::of).collect();
                let place = match at {
                    At::Key(pointer) => texts[file].keys.get(&pointer),
                    At::Value(pointer) => texts[file].values.get(&pointer),
                };
                let place = *place?;
                Some(Broken { texts, file, place })
            }
            Inject::Text(inject) => {
                let file = random.below(texts.len());
                let (yaml, place) = inject(&texts[file])?;
                texts[file].yaml = yaml;
                Some(Broken { texts, file, place })
            }
        }
    }
}

impl Fleet<'_> {
    /// A document of a kind that has all of these parts.
    fn any(&mut self, wanted: &str, parts: &[&str]) -> Option<usize> {
        let fits: Vec<usize> = (0..self.documents.len())
            .filter(|index| kind(&self.documents[*index]) == wanted)
            .filter(|index| parts.iter().all(|part| self.documents[*index].pointer(part).is_some()))
            .collect();
        (!fits.is_empty()).then(|| *self.random.pick(&fits))
    }

    /// Puts a value into a document of a kind that has all of these parts, and expects it to be named.
    fn put(&mut self, wanted: &str, parts: &[&str], path: &str, value: Value) -> Option<(usize, At)> {
        let index = self.any(wanted, parts)?;
        self.put_into(index, path, value)
    }

    fn put_into(&mut self, index: usize, path: &str, value: Value) -> Option<(usize, At)> {
        // What holds the value may be an item of a list; maps that are missing are made.
        let (parent, key) = path.rsplit_once('/')?;
        match self.documents[index].pointer_mut(parent) {
            Some(parent) => parent[key] = value,
            None => set(&mut self.documents[index], &path[1..].split('/').collect::<Vec<_>>(), value),
        }
        Some((index, At::Value(path.to_owned())))
    }

    /// Appends an item to a list of a document and expects it to be named.
    fn push(&mut self, index: usize, path: &str, value: Value) -> Option<(usize, At)> {
        let list = self.documents[index].pointer_mut(path)?.as_array_mut()?;
        list.push(value);
        Some((index, At::Value(format!("{path}/{}", list.len() - 1))))
    }

    /// Adds a document and expects a part of it to be named.
    fn add(&mut self, document: Value, path: &str) -> Option<(usize, At)> {
        self.documents.push(document);
        Some((self.documents.len() - 1, At::Value(path.to_owned())))
    }

    /// A document of a service that depends on another across clusters, the item of `dependsOn`, and the provider.
    fn edge(&mut self) -> Option<(usize, usize, (String, String))> {
        let fleet = &self.effective.fleet;
        if self.effective.edges.is_empty() {
            return None;
        }
        let edge = self.random.pick(&self.effective.edges);
        let provider = fleet.service(edge.provider);
        let caller = fleet.service(edge.caller);
        let index = self.service(caller.namespace.as_str(), caller.name.as_str())?;
        let items = self.documents[index]["spec"]["dependsOn"].as_array()?;
        let item = items.iter().position(|item| {
            let name = item.as_str().or(item["service"].as_str());
            let namespace = item["namespace"].as_str().unwrap_or(caller.namespace.as_str());
            name == Some(provider.name.as_str()) && namespace == provider.namespace.as_str()
        })?;
        Some((index, item, (provider.namespace.to_string(), provider.name.to_string())))
    }

    fn service(&self, namespace: &str, name: &str) -> Option<usize> {
        self.documents.iter().position(|document| {
            kind(document) == "MeshService"
                && document["metadata"]["namespace"] == namespace
                && document["metadata"]["name"] == name
        })
    }

    /// A service without an access policy of its own.
    fn without_policy(&mut self) -> Option<&mesh::fleet::Service> {
        let fleet = &self.effective.fleet;
        let fits: Vec<_> = fleet
            .service_ids()
            .filter(|(id, service)| {
                !service.runs.is_empty() && fleet.access.iter().all(|policy| policy.to != Some(*id))
            })
            .map(|(_, service)| service)
            .collect();
        (!fits.is_empty()).then(|| *self.random.pick(&fits))
    }
}

/// Two policies with the same unit about an edge.
fn policies(fleet: &mut Fleet<'_>, unit: &str, values: [Value; 2]) -> Option<usize> {
    let (.., (namespace, name)) = fleet.edge()?;
    for (index, value) in values.into_iter().enumerate() {
        let spec = json!({"to": {"service": name}, unit: value});
        fleet.documents.push(document("TrafficPolicy", Some(&namespace), &format!("zz-{index}"), spec));
    }
    Some(fleet.documents.len() - 1)
}

fn access(fleet: &mut Fleet<'_>, spec: Value, path: &str) -> Option<(usize, At)> {
    let service = fleet.without_policy()?;
    let (namespace, name) = (service.namespace.to_string(), service.name.to_string());
    let mut spec = spec;
    spec["to"] = json!({"service": name});
    fleet.add(document("AccessPolicy", Some(&namespace), "broken", spec), path)
}

/// The text with another text at a value. The place that has to be named lies so many columns behind its beginning.
fn replace(text: &Text, pointer: &str, behind: u32, with: impl Fn(&str) -> String) -> Option<(String, Place)> {
    let (line, column) = *text.values.get(pointer)?;
    let mut lines: Vec<String> = text.yaml.lines().map(str::to_owned).collect();
    let written = lines.get_mut(usize::try_from(line).ok()? - 1)?;
    let start = usize::try_from(column).ok()? - 1;
    let end = written[start..].find([',', '}']).map_or(written.len(), |length| start + length);
    let new = with(&written[start..end]);
    written.replace_range(start..end, &new);
    Some((lines.join("\n") + "\n", (line, column + behind)))
}

/// The text with a further last line, and the place of its first character.
fn append(text: &Text, line: &str) -> Option<(String, Place)> {
    let count = u32::try_from(text.yaml.lines().count()).ok()?;
    Some((format!("{}{line}\n", text.yaml), (count + 1, 1)))
}

/// All kinds of defects.
pub fn all() -> impl Iterator<Item = &'static Defect> {
    written::ALL.iter().chain(effective::ALL)
}
