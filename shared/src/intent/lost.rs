//! Documents that were refused. Nobody may be blamed for referring to one of them: what is wrong was told already.

use super::Kind;
use crate::diagnostic::{Diagnostics, codes};
use crate::source::Node;

/// The documents of a run that were refused, as far as their identity could be read.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    named: Vec<Name>,
    /// Something was refused before its identity could be read.
    nameless: bool,
}

#[derive(Clone, Debug)]
struct Name {
    /// Absent where the kind is unknown.
    kind: Option<Kind>,
    namespace: Option<String>,
    name: String,
}

impl Lost {
    /// Adds what stood in files that could not be read, or not to their end.
    pub(super) fn add_unread(&mut self, found: &Diagnostics) {
        let ends = [&codes::SYNTAX, &codes::NOT_UTF8, &codes::TOO_LARGE, &codes::TOO_DEEP, &codes::UNREADABLE];
        self.nameless |= found.iter().any(|diagnostic| ends.contains(&diagnostic.code));
    }

    pub(super) fn add(&mut self, kind: Option<Kind>, node: &Node) {
        let text = |key: &str| node.get("metadata")?.get(key)?.as_str().map(str::to_owned);
        match text("name") {
            Some(name) => self.named.push(Name { kind, namespace: text("namespace"), name }),
            None => self.nameless = true,
        }
    }

    /// Whether every document was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.nameless
    }

    /// Whether a document of the kind may be among the lost ones.
    #[must_use]
    pub fn any(&self, kind: Kind) -> bool {
        self.nameless || self.named.iter().any(|lost| lost.kind.is_none_or(|lost| lost == kind))
    }

    /// Whether the Cluster of this name may be among the lost ones.
    #[must_use]
    pub fn cluster(&self, name: &str) -> bool {
        self.nameless
            || self.named.iter().any(|lost| lost.kind.is_none_or(|kind| kind == Kind::Cluster) && lost.name == name)
    }

    /// Whether the MeshService of this name may be among the lost ones.
    #[must_use]
    pub fn service(&self, namespace: &str, name: &str) -> bool {
        self.nameless
            || self.named.iter().any(|lost| {
                lost.kind.is_none_or(|kind| kind == Kind::MeshService)
                    && lost.name == name
                    && lost.namespace.as_deref().is_none_or(|lost| lost == namespace)
            })
    }
}
