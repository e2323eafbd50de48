//! What people wrote: one type per kind of document, each value checked by itself. What refers to other documents is
//! the business of [`crate::fleet`].

pub mod access;
pub mod cluster;
pub mod cluster_set;
pub mod decode;
mod lost;
mod regex;
pub mod schema;
pub mod service;
pub mod traffic;
pub mod types;

pub use lost::Lost;

use crate::diagnostic::{Diagnostic, Diagnostics, codes, did_you_mean};
use crate::source::{File, Node, Place, Value, short};
use decode::{Decode, record};
use std::collections::BTreeMap;
use std::fmt;
use types::{DocumentName, Labels, Namespace};

/// The API group of the documents.
pub const GROUP: &str = "meshintent.dev";
/// The version of the documents.
pub const API_VERSION: &str = "meshintent.dev/v1alpha1";

decode::words! {
    /// A kind of document.
    pub enum Kind {
        /// One cluster.
        Cluster = "Cluster",
        /// One service.
        MeshService = "MeshService",
        /// Where services were observed.
        ServiceLocations = "ServiceLocations",
        /// How calls travel.
        TrafficPolicy = "TrafficPolicy",
        /// Who may call.
        AccessPolicy = "AccessPolicy",
        /// What the effective result must respect.
        Guardrail = "Guardrail",
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Cluster,
        Self::MeshService,
        Self::ServiceLocations,
        Self::TrafficPolicy,
        Self::AccessPolicy,
        Self::Guardrail,
    ];
}

record! {
    /// What every document says about itself.
    pub struct Metadata {
        /// The name, unique among the documents of its kind and namespace.
        name as "name": required decode::At<DocumentName>,
        /// The namespace; only for documents that belong to one.
        namespace as "namespace": optional decode::At<Namespace>,
        /// Labels.
        labels as "labels": optional Labels,
        /// Annotations; the suite does not read them.
        annotations as "annotations": optional Annotations,
    }
}

/// Free text by key, which the suite does not read.
#[derive(Clone, Debug)]
pub struct Annotations;

impl Decode for Annotations {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return decode::wrong_type(node, "a map of annotations", found);
        };
        let texts: Vec<_> = entries.iter().map(|entry| String::decode(&entry.node, found)).collect();
        texts.into_iter().collect::<Option<Vec<_>>>().map(|_| Self)
    }

    fn schema(_: &mut serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
        serde_json::json!({"type": "object", "additionalProperties": {"type": "string"}})
    }
}

/// Which document: printed as `kind/namespace/name`, or `kind/name` where there is no namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, where the kind has one.
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: DocumentName,
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{namespace}/{}", self.kind.as_str(), self.name),
            None => write!(f, "{}/{}", self.kind.as_str(), self.name),
        }
    }
}

/// A document that is right by itself.
#[derive(Clone, Debug)]
pub struct Document<S> {
    /// Which document it is.
    pub id: DocumentId,
    /// Where its name stands.
    pub place: Place,
    /// Its labels.
    pub labels: Labels,
    /// What it says.
    pub spec: S,
}

/// All documents of a run, by kind, in the order they were read.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// The inventory.
    pub clusters: Vec<Document<cluster::ClusterSpec>>,
    /// The services.
    pub services: Vec<Document<service::MeshServiceSpec>>,
    /// Observed services.
    pub locations: Vec<Document<service::ServiceLocationsSpec>>,
    /// How calls travel.
    pub traffic: Vec<Document<traffic::TrafficPolicySpec>>,
    /// Who may call.
    pub access: Vec<Document<access::AccessPolicySpec>>,
    /// What the effective result must respect.
    pub guardrails: Vec<Document<access::GuardrailSpec>>,
    /// Documents of other API groups that were skipped.
    pub skipped: usize,
    /// Documents that were refused.
    pub lost: Lost,
}

/// Collects the documents of all files, one file after the other.
#[derive(Debug, Default)]
pub struct Reader {
    documents: Documents,
    seen: BTreeMap<DocumentId, Place>,
}

impl Reader {
    /// Sorts the trees of one file into documents and reads each completely. A document with a problem is left out; its
    /// problems are told.
    pub fn file(&mut self, file: &File, nodes: &[Node], found: &mut Diagnostics) {
        for node in nodes {
            if let Some(kind) = kind(file, node, &mut self.documents, found) {
                read_one(kind, node, &mut self.documents, &mut self.seen, found);
            }
        }
    }

    /// All documents. `found` says which files could not be read to their end.
    #[must_use]
    pub fn end(mut self, found: &Diagnostics) -> Documents {
        self.documents.lost.add_unread(found);
        self.documents
    }
}

/// The kind of a document of ours; `None` for documents that are skipped and for those that are refused.
fn kind(file: &File, node: &Node, documents: &mut Documents, found: &mut Diagnostics) -> Option<Kind> {
    let api_version = node.get("apiVersion").and_then(Node::as_str);
    let kind = node.get("kind").and_then(Node::as_str);
    match (&node.value, api_version) {
        // `---` twice, or only comments.
        (Value::Null, _) => return None,
        (Value::Refused, _) => {
            documents.lost.add(None, node);
            return None;
        }
        (_, Some(API_VERSION)) => {}
        (_, Some(version)) if version == GROUP || version.starts_with("meshintent.dev/") => {
            let place = node.get("apiVersion").map_or(node.place, |node| node.place);
            let message = format!("the version \"{}\" is unknown", short(version));
            found.push(Diagnostic::new(&codes::UNKNOWN_KIND, place, message).help(format!("write {API_VERSION}")));
            documents.lost.add(None, node);
            return None;
        }
        (_, None) if kind.is_some_and(|kind| Kind::ALL.iter().any(|known| known.as_str() == kind)) => {
            let message = "a document without `apiVersion`, whose kind is one of ours";
            found.push(
                Diagnostic::new(&codes::UNKNOWN_KIND, node.place, message)
                    .help(format!("add apiVersion: {API_VERSION}")),
            );
            documents.lost.add(None, node);
            return None;
        }
        _ if file.explicit => {
            let message = format!("a document that is not of {API_VERSION}");
            found
                .push(Diagnostic::new(&codes::FOREIGN_DOCUMENT, node.place, message).help(
                    "remove it, or name the folder instead of the file: in folders, other documents are skipped",
                ));
            documents.lost.add(None, node);
            return None;
        }
        _ => {
            documents.skipped += 1;
            return None;
        }
    }
    let place = node.get("kind").map_or(node.place, |node| node.place);
    let Some(kind) = kind else {
        found.push(Diagnostic::new(&codes::UNKNOWN_KIND, place, "a document without `kind`").help(kinds()));
        documents.lost.add(None, node);
        return None;
    };
    let known = Kind::ALL.into_iter().find(|known| known.as_str() == kind);
    if known.is_none() {
        let help = did_you_mean(kind, Kind::ALL.iter().map(|kind| kind.as_str())).unwrap_or_else(kinds);
        found.push(
            Diagnostic::new(&codes::UNKNOWN_KIND, place, format!("the kind \"{}\" is unknown", short(kind))).help(help),
        );
        documents.lost.add(None, node);
    }
    known
}

fn kinds() -> String {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    format!("the kinds are {}", names.join(", "))
}

/// Reads one document of a known kind and keeps it if it is right and the first of its identity.
fn read_one(
    kind: Kind,
    node: &Node,
    documents: &mut Documents,
    seen: &mut BTreeMap<DocumentId, Place>,
    found: &mut Diagnostics,
) {
    let kept = match kind {
        Kind::Cluster => keep(&mut documents.clusters, document(kind, node, seen, found)),
        Kind::MeshService => keep(&mut documents.services, document(kind, node, seen, found)),
        Kind::ServiceLocations => keep(&mut documents.locations, document(kind, node, seen, found)),
        Kind::TrafficPolicy => keep(&mut documents.traffic, document(kind, node, seen, found)),
        Kind::AccessPolicy => keep(&mut documents.access, document(kind, node, seen, found)),
        Kind::Guardrail => keep(&mut documents.guardrails, document(kind, node, seen, found)),
    };
    if !kept {
        documents.lost.add(Some(kind), node);
    }
}

/// Keeps a document that is right, and says whether it was.
fn keep<S>(documents: &mut Vec<Document<S>>, document: Option<Document<S>>) -> bool {
    let before = documents.len();
    documents.extend(document);
    documents.len() > before
}

/// What the kinds differ in before any other document is known.
trait Spec: Decode {
    /// Whether documents of the kind belong to a namespace.
    const NAMESPACED: bool;

    /// Where the document says that it is a default of the whole fleet.
    fn default_place(&self) -> Option<Place> {
        None
    }

    /// What a document that is right field by field may still get wrong.
    fn check(&self, _place: Place, _found: &mut Diagnostics) {}
}

impl Spec for cluster::ClusterSpec {
    const NAMESPACED: bool = false;
}

impl Spec for service::MeshServiceSpec {
    const NAMESPACED: bool = true;
}

impl Spec for service::ServiceLocationsSpec {
    const NAMESPACED: bool = false;
}

impl Spec for access::GuardrailSpec {
    const NAMESPACED: bool = false;
}

impl Spec for traffic::TrafficPolicySpec {
    const NAMESPACED: bool = true;

    fn default_place(&self) -> Option<Place> {
        self.default.value.then_some(self.default.place)
    }

    fn check(&self, place: Place, found: &mut Diagnostics) {
        if let Some(default) = self.default_place() {
            let parts = [
                self.from.as_ref().map(|part| ("from", part.place)),
                self.to.as_ref().map(|part| ("to", part.place)),
                self.matches.as_ref().map(|part| ("match", part.place)),
            ];
            for (field, place) in parts.into_iter().flatten() {
                let message = format!("the fleet's default names no `{field}`");
                found.push(
                    Diagnostic::new(&codes::DEFAULT_DOCUMENT, place, message)
                        .also(default, "it is a default here")
                        .help("remove one of the two"),
                );
            }
        } else if self.to.is_none() {
            found.push(
                Diagnostic::new(&codes::MISSING_FIELD, self.place, "the field \"to\" is missing")
                    .help("add `to: {service: NAME}`; only the fleet's default has none"),
            );
        }
        if self.units().is_empty() {
            found.push(Diagnostic::new(&codes::BAD_VALUE, place, "the policy sets nothing").help("set at least one of failover, weights, outlier, retries, timeout, connection, fault, mirror, cors, headers"));
        }
        if let Some(weights) = &self.weights {
            let sum: u32 = weights.iter().map(|weight| u32::from(weight.percent.0)).sum();
            if sum > 100 {
                found.push(
                    Diagnostic::new(&codes::BAD_VALUE, weights.place, format!("the shares sum to {sum} per cent"))
                        .help("let them sum to at most 100; the rest follows the order"),
                );
            }
        }
        let empty = [
            self.fault
                .as_ref()
                .filter(|fault| fault.delay.is_none() && fault.abort.is_none())
                .map(|part| ("fault", part.place)),
            self.headers
                .as_ref()
                .filter(|headers| {
                    let says = |changes: &Option<traffic::HeaderChanges>| {
                        changes.as_ref().is_some_and(|c| c.set.is_some() || c.add.is_some() || c.remove.is_some())
                    };
                    !says(&headers.request) && !says(&headers.response)
                })
                .map(|part| ("headers", part.place)),
            self.connection
                .as_ref()
                .map(|connection| &connection.cross_cluster)
                .filter(|c| {
                    c.connect_timeout.is_none()
                        && c.keepalive.is_none()
                        && c.idle_timeout.is_none()
                        && c.max_age.is_none()
                })
                .map(|part| ("connection.crossCluster", part.place)),
        ];
        for (field, place) in empty.into_iter().flatten() {
            found.push(
                Diagnostic::new(&codes::BAD_VALUE, place, format!("`{field}` says nothing"))
                    .help("set one of its fields, or leave it out"),
            );
        }
    }
}

impl Spec for access::AccessPolicySpec {
    const NAMESPACED: bool = true;

    fn default_place(&self) -> Option<Place> {
        self.default.value.then_some(self.default.place)
    }

    fn check(&self, _place: Place, found: &mut Diagnostics) {
        match (&self.to, self.default_place()) {
            (Some(to), Some(default)) => {
                found.push(
                    Diagnostic::new(&codes::DEFAULT_DOCUMENT, to.place, "a default names no `to`")
                        .also(default, "it is a default here")
                        .help("remove one of the two: a default holds for every service without a policy of its own"),
                );
            }
            (None, None) => {
                found.push(
                    Diagnostic::new(&codes::MISSING_FIELD, self.place, "the field \"to\" is missing")
                        .help("add `to: {service: NAME}`, or `default: true`"),
                );
            }
            _ => {}
        }
    }
}

/// Reads envelope and spec; all problems of both are told.
fn document<S: Spec>(
    kind: Kind,
    node: &Node,
    seen: &mut BTreeMap<DocumentId, Place>,
    found: &mut Diagnostics,
) -> Option<Document<S>> {
    let before = found.errors();
    let fields = decode::Fields::of(node, &["apiVersion", "kind", "metadata", "spec"], found)?;
    let metadata: Option<Metadata> = fields.required("metadata", found);
    let spec: Option<S> = fields.required("spec", found);
    let metadata = metadata?;
    let default = spec.as_ref().and_then(Spec::default_place);
    let namespace = metadata.namespace.map(|namespace| (namespace.place, namespace.value));
    match (&namespace, S::NAMESPACED, default) {
        (Some((place, _)), false, _) => {
            let message = format!("a {} belongs to no namespace", kind.as_str());
            found.push(Diagnostic::new(&codes::NAMESPACE, *place, message).help("remove the field"));
        }
        (Some((place, _)), true, Some(default)) => {
            let message = "a default holds for the whole fleet and belongs to no namespace";
            found.push(
                Diagnostic::new(&codes::NAMESPACE, *place, message)
                    .also(default, "it is a default here")
                    .help("remove the namespace, or the default"),
            );
        }
        (None, true, None) if spec.is_some() => {
            found.push(
                Diagnostic::new(&codes::MISSING_FIELD, metadata.place, "the field \"namespace\" is missing")
                    .help("add `namespace:` here"),
            );
        }
        _ => {}
    }
    let id = DocumentId { kind, namespace: namespace.map(|(_, namespace)| namespace), name: metadata.name.value };
    let place = metadata.name.place;
    if let Some(first) = seen.get(&id) {
        let message = format!("the document {id} stands twice");
        found.push(
            Diagnostic::new(&codes::DUPLICATE_DOCUMENT, place, message)
                .also(*first, "first here")
                .help("keep one of them, or rename one"),
        );
        return None;
    }
    seen.insert(id.clone(), place);
    let spec = spec?;
    spec.check(place, found);
    // What follows from a document that is not right would hide what is wrong with it.
    (found.errors() == before).then(|| Document { id, place, labels: metadata.labels.unwrap_or_default(), spec })
}
