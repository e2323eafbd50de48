//! What is written: typed objects, their order, and bytes that Kubernetes reads back unchanged.

pub mod istio;
mod write;
mod yaml;

use crate::intent::types::Namespace;
use crate::intent::{DocumentId, GROUP};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
pub use write::{add_yaml, add_yaml_stream, to_json, to_yaml, to_yaml_stream};

/// The value of `app.kubernetes.io/managed-by` on every object.
pub const MANAGED_BY: &str = "kubectl-mesh";
/// The annotation that names the documents behind an object.
pub const INTENTS: &str = "meshintent.dev/intents";
/// The annotation by which Argo CD orders objects.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// The annotation that keeps Flux from replacing `${…}` and `$$` in an object.
pub const FLUX_SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// The end of the names by which gateways know services, and of the objects that offer them to other clusters.
pub const OFFERED: &str = ".exported.meshintent.dev";

/// The kinds that are written, in the order in which they are applied: what others refer to comes first, and access is
/// granted before routes lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The marker of a cluster for which nothing is to be rendered.
    ConfigMap,
    /// A stand-in for a service that does not run here.
    Service,
    /// Who may call.
    AuthorizationPolicy,
    /// That callers prove their identity.
    PeerAuthentication,
    /// Hosts and their endpoints.
    ServiceEntry,
    /// What is offered to other clusters.
    Gateway,
    /// How endpoints are reached.
    DestinationRule,
    /// Which requests go where.
    VirtualService,
    /// What sidecars see.
    Sidecar,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Self; 9] = [
        Self::ConfigMap,
        Self::Service,
        Self::AuthorizationPolicy,
        Self::PeerAuthentication,
        Self::ServiceEntry,
        Self::Gateway,
        Self::DestinationRule,
        Self::VirtualService,
        Self::Sidecar,
    ];

    /// The name of the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Service => "Service",
            Self::AuthorizationPolicy => "AuthorizationPolicy",
            Self::PeerAuthentication => "PeerAuthentication",
            Self::ServiceEntry => "ServiceEntry",
            Self::Gateway => "Gateway",
            Self::DestinationRule => "DestinationRule",
            Self::VirtualService => "VirtualService",
            Self::Sidecar => "Sidecar",
        }
    }

    /// The API group, empty for the core group.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The version that is written: v1 everywhere (for Istio since 1.22).
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::Service => "v1",
            Self::AuthorizationPolicy | Self::PeerAuthentication => "security.istio.io/v1",
            Self::ServiceEntry | Self::Gateway | Self::DestinationRule | Self::VirtualService | Self::Sidecar => {
                "networking.istio.io/v1"
            }
        }
    }

    /// The plural that API paths use.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Service => "services",
            Self::AuthorizationPolicy => "authorizationpolicies",
            Self::PeerAuthentication => "peerauthentications",
            Self::ServiceEntry => "serviceentries",
            Self::Gateway => "gateways",
            Self::DestinationRule => "destinationrules",
            Self::VirtualService => "virtualservices",
            Self::Sidecar => "sidecars",
        }
    }

    /// `virtualservice.networking.istio.io`, as kubectl prints kinds.
    #[must_use]
    pub fn qualified(self) -> String {
        let name = self.as_str().to_lowercase();
        if self.group().is_empty() { name } else { format!("{name}.{}", self.group()) }
    }

    /// The wave in which Argo CD applies the kind: make before break. Argo orders objects of one wave by name only.
    #[must_use]
    pub fn wave(self) -> i32 {
        match self {
            Self::ConfigMap | Self::Service => -20,
            Self::AuthorizationPolicy | Self::PeerAuthentication => -15,
            Self::ServiceEntry => -10,
            Self::Gateway | Self::DestinationRule => -5,
            Self::VirtualService => 0,
            Self::Sidecar => 5,
        }
    }
}

/// Text that many objects share, such as a host name.
pub type Text = Arc<str>;

/// One object of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Text,
    /// Its name.
    pub name: Text,
    /// Its annotations beside the ones that every object has.
    pub annotations: BTreeMap<&'static str, String>,
    /// The documents that caused it.
    pub intents: Arc<Intents>,
    /// Its content.
    pub body: Body,
}

/// The documents that caused objects, and the text that says so; objects that belong together share it.
#[derive(Clone, Debug, Default)]
pub struct Intents {
    /// The documents by their index in the fleet, each once.
    pub documents: Vec<u32>,
    /// Their names in order, separated by commas.
    pub text: String,
}

/// An index means nothing in another fleet, where a document more or less moves all others; the text is what is written.
impl PartialEq for Intents {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Intents {
    /// The documents of these indices in the list of all documents.
    #[must_use]
    pub fn of(mut documents: Vec<u32>, all: &[DocumentId]) -> Self {
        let named = |index: u32| &all[index as usize];
        documents.sort_unstable();
        documents.dedup();
        documents.sort_unstable_by(|a, b| named(*a).cmp(named(*b)));
        let mut text = String::with_capacity(documents.len() * 64);
        for DocumentId { kind, namespace, name } in documents.iter().copied().map(named) {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(kind.as_str());
            for part in namespace.iter().map(Namespace::as_str).chain([name.as_str()]) {
                text.push('/');
                text.push_str(part);
            }
        }
        Self { documents, text }
    }
}

/// The content of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    /// `data` of a ConfigMap.
    Data(BTreeMap<&'static str, String>),
    /// `spec` of a Service.
    Service(ServiceSpec),
    /// `spec` of a ServiceEntry.
    ServiceEntry(istio::ServiceEntry),
    /// `spec` of a DestinationRule.
    DestinationRule(istio::DestinationRule),
    /// `spec` of a VirtualService.
    VirtualService(istio::VirtualService),
    /// `spec` of a Gateway.
    Gateway(istio::Gateway),
    /// `spec` of a Sidecar.
    Sidecar(istio::Sidecar),
    /// `spec` of an AuthorizationPolicy.
    AuthorizationPolicy(istio::AuthorizationPolicy),
    /// `spec` of a PeerAuthentication.
    PeerAuthentication(istio::PeerAuthentication),
}

impl Body {
    fn kind(&self) -> Kind {
        match self {
            Self::Data(_) => Kind::ConfigMap,
            Self::Service(_) => Kind::Service,
            Self::ServiceEntry(_) => Kind::ServiceEntry,
            Self::DestinationRule(_) => Kind::DestinationRule,
            Self::VirtualService(_) => Kind::VirtualService,
            Self::Gateway(_) => Kind::Gateway,
            Self::Sidecar(_) => Kind::Sidecar,
            Self::AuthorizationPolicy(_) => Kind::AuthorizationPolicy,
            Self::PeerAuthentication(_) => Kind::PeerAuthentication,
        }
    }
}

/// A Service without pods: it lends a name and an address.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name.
    pub name: String,
    /// Its number.
    pub port: u16,
    /// Written because API servers fill it in.
    pub protocol: &'static str,
    /// Written because API servers fill it in.
    pub target_port: u16,
    /// What is spoken there.
    pub app_protocol: &'static str,
}

impl Object {
    /// An object of the kind of its content.
    #[must_use]
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>, intents: Arc<Intents>, body: Body) -> Self {
        Self {
            kind: body.kind(),
            namespace: namespace.into(),
            name: name.into(),
            annotations: BTreeMap::new(),
            intents,
            body,
        }
    }

    /// Adds the wave in which Argo CD applies the object.
    #[must_use]
    pub fn with_sync_wave(mut self) -> Self {
        self.annotations.insert(SYNC_WAVE, self.kind.wave().to_string());
        self
    }

    /// What the object is, for sorting and comparing.
    #[must_use]
    pub fn key(&self) -> (Kind, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }

    /// `virtualservice.networking.istio.io/name`, as `-o name` prints it.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.kind.qualified(), self.name)
    }

    /// Name of the file that holds the object: `kind-namespace-name.yaml`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.yaml", self.kind.as_str().to_lowercase(), self.namespace, self.name)
    }
}

/// Sorts objects into the order in which they are applied. No two objects have the same key.
pub fn sort(objects: &mut [Object]) {
    objects.sort_by(|a, b| a.key().cmp(&b.key()));
}

/// The marker of a known cluster for which nothing is to be rendered: output is never empty, and Argo CD never mistakes
/// "nothing to do" for "prune everything".
#[must_use]
pub fn marker(cluster: &str, namespace: &str) -> Object {
    let data = [("cluster", cluster.to_owned()), ("rendered-by", GROUP.to_owned())];
    Object::new(namespace, MANAGED_BY, Arc::default(), Body::Data(data.into_iter().collect()))
}
