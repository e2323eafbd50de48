//! Policies of the fleet, with ids in place of names.

use super::Origin;
use super::clusters::Clusters;
use super::select::Relative;
use super::services::ServiceId;
use crate::intent::access::{Mode, PathPattern};
use crate::intent::traffic::{Connection, Cors, Fault, Headers, Outlier, RequestMatch, Retries, Unit};
use crate::intent::types::{Duration, HostPattern, Labels, Method, Namespace, ServiceAccount};
use crate::source::Place;

/// How calls to a service travel.
#[derive(Clone, Debug)]
pub struct TrafficPolicy {
    /// Its document.
    pub origin: Origin,
    /// Whether it is the default of the fleet.
    pub default: bool,
    /// Whose calls; absent: every dependent's.
    pub from: Option<Vec<Callers>>,
    /// The called service; absent only for the default.
    pub to: Option<ServiceId>,
    /// Only requests that one of these describes, and where that is written; absent: all.
    pub matches: Option<(Vec<RequestMatch>, Place)>,
    /// What it sets, and where.
    pub units: Vec<(Unit, Place)>,
    /// Tiers; an item with its place.
    pub order: Option<Vec<Vec<(Relative, Place)>>>,
    /// Clusters that never serve from elsewhere, item by item with its place.
    pub exclude: Option<Vec<(Relative, Place)>>,
    /// Shares, with their place.
    pub weights: Option<Vec<(Clusters, u8, Place)>>,
    /// When an endpoint counts as broken.
    pub outlier: Option<Outlier>,
    /// How often a failed request is tried again.
    pub retries: Option<Retries>,
    /// How long a request may take.
    pub timeout: Option<Duration>,
    /// Settings of connections.
    pub connection: Option<Connection>,
    /// Faults put in on purpose.
    pub fault: Option<Fault>,
    /// Clusters that get copies of requests, how many in per cent, and where that is written.
    pub mirror: Option<(Clusters, u8, Place)>,
    /// Cross-origin resource sharing.
    pub cors: Option<Cors>,
    /// Changes of headers.
    pub headers: Option<Headers>,
}

impl TrafficPolicy {
    /// Where the policy sets a unit.
    #[must_use]
    pub fn unit(&self, unit: Unit) -> Option<Place> {
        self.units.iter().find(|(set, _)| *set == unit).map(|(_, place)| *place)
    }
}

/// Callers of a traffic policy.
#[derive(Clone, Debug)]
pub struct Callers {
    /// One service; absent: any.
    pub service: Option<ServiceId>,
    /// Services of one namespace; absent: any.
    pub namespace: Option<Namespace>,
    /// The clusters they call from.
    pub clusters: Clusters,
}

/// Who may call.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// Its document.
    pub origin: Origin,
    /// The called service; absent: every service without a policy of its own.
    pub to: Option<ServiceId>,
    /// Whether calls are refused or only logged, and where that is written.
    pub mode: (Mode, Place),
    /// Where `allow` begins.
    pub allow: Place,
    /// The rules.
    pub rules: Vec<AccessRule>,
}

/// One rule of an access policy.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Where it begins.
    pub place: Place,
    /// Its callers.
    pub sources: Vec<Source>,
    /// The clusters whose copy may be called.
    pub within: Clusters,
    /// Whether `in` was written, and where.
    pub within_place: Option<Place>,
    /// The service's ports; absent: all.
    pub ports: Option<Vec<(u16, Place)>>,
    /// The methods; absent: all.
    pub methods: Option<(Vec<Method>, Place)>,
    /// The paths; absent: all.
    pub paths: Option<(Vec<PathPattern>, Place)>,
}

/// Callers of an access rule.
#[derive(Clone, Debug)]
pub enum Source {
    /// Whoever declares the dependency, cluster by cluster.
    Dependents(Place),
    /// A service of the fleet, as it runs in these clusters.
    Service {
        /// Where it is written.
        place: Place,
        /// The service.
        service: ServiceId,
        /// Only copies that run under this account.
        account: Option<ServiceAccount>,
        /// The clusters it calls from.
        clusters: Clusters,
        /// Whether `clusters` was written.
        explicit: bool,
    },
    /// Whoever carries this identity.
    Identity {
        /// Where it is written.
        place: Place,
        /// The identity.
        identity: Identity,
        /// The clusters it calls from.
        clusters: Clusters,
    },
}

/// What an identity says beside its trust domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// This account.
    Account(Namespace, ServiceAccount),
    /// Any account of this namespace.
    Namespace(Namespace),
    /// Anyone.
    Any,
}

/// One rule of a guardrail.
#[derive(Clone, Debug)]
pub struct Guardrail {
    /// Its document, and where the rule begins.
    pub origin: Origin,
    /// Its name.
    pub name: String,
    /// Labels of the called services it holds for.
    pub services: Labels,
    /// What it does.
    pub verb: GuardrailVerb,
}

/// What a rule of a guardrail does.
#[derive(Clone, Debug)]
pub enum GuardrailVerb {
    /// Calls that are never routed.
    Deny {
        /// The callers' clusters.
        from: Clusters,
        /// The clusters they never reach.
        to: Clusters,
    },
    /// A bound on the shares that go elsewhere.
    Max {
        /// In per cent.
        percent: u8,
        /// To these clusters together.
        to: Clusters,
    },
    /// Patterns that host names fit.
    RequireHostnames(Vec<HostPattern>),
    /// An enforcing access policy.
    RequireAccessPolicy,
    /// An identity that is always admitted; without clusters: from the called copy's own.
    AlwaysAllow(Vec<(Namespace, ServiceAccount, Option<Clusters>, Place)>),
}
