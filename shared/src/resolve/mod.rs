//! The effective fleet: for every caller, in every cluster, for every service it depends on, who serves it, in which
//! order, with which shares, who is removed and why. No word here belongs to a particular mesh; `explain`, the checks
//! and every backend read this model and nothing else.

pub mod access;
mod candidates;
pub use candidates::proportional;
pub mod matches;
mod subject;
pub mod units;
pub mod vip;

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{ClusterId, Clusters, Fleet, Origin, ServiceId};
use crate::intent::traffic::RequestMatch;
use crate::source::Place;
use access::Access;
use std::collections::BTreeSet;
use subject::Subject;
use units::{Policies, PolicyId, Units};

/// A fleet with everything that follows from it.
#[derive(Debug)]
pub struct Effective {
    /// What was written.
    pub fleet: Fleet,
    /// Who may call whom.
    pub access: Access,
    /// One entry per caller, cluster and service, sorted by service, then caller, then cluster.
    pub edges: Vec<Edge>,
    /// For each service: the clusters from which others really send to it, by the cluster that serves.
    pub served_elsewhere: Vec<Clusters>,
    by_cluster: Vec<Vec<u32>>,
}

/// The calls of one service, in one cluster, to another service.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The called service.
    pub provider: ServiceId,
    /// The calling service.
    pub caller: ServiceId,
    /// The cluster it calls from.
    pub cluster: ClusterId,
    /// Where the dependency is written.
    pub place: Place,
    /// Requests that no match describes.
    pub base: Route,
    /// Requests that matches describe: those of one policy each, and where policies overlap, those of several.
    pub matched: Box<[MatchedRoute]>,
}

impl Edge {
    /// Whether anybody serves any of the requests; otherwise nothing is rendered for the caller.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.routes().any(Route::is_served)
    }

    /// All routes of the edge.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        std::iter::once(&self.base).chain(self.matched.iter().map(|matched| &matched.route))
    }
}

/// Where requests go. A large fleet has very many routes, so each takes little room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which policy sets what.
    pub units: Units,
    /// Shares in whole per cent, in the order they are written; the rest follows the tiers.
    pub shares: Box<[Share]>,
    /// One per item of the order, empty ones too; the first one with a healthy cluster serves.
    pub tiers: Tiers,
    /// Clusters that run the service and are not used, by name.
    pub removed: Box<[Removed]>,
    /// Clusters that get copies of requests.
    pub mirror: Box<[ClusterId]>,
}

impl Route {
    /// Whether there is anybody to serve.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.shares.iter().any(|share| share.percent > 0) || self.has_candidates()
    }

    /// Whether the order holds anybody.
    #[must_use]
    pub fn has_candidates(&self) -> bool {
        !self.tiers.clusters.is_empty()
    }

    /// What the shares leave for the order, in per cent.
    #[must_use]
    pub fn rest(&self) -> u8 {
        100 - self.shares.iter().map(|share| share.percent).sum::<u8>()
    }

    /// Every cluster that gets requests or copies of them.
    #[must_use]
    pub fn clusters(&self) -> Clusters {
        let shares = self.shares.iter().flat_map(|share| &share.clusters);
        self.tiers.clusters.iter().chain(shares).chain(&self.mirror).copied().collect()
    }
}

/// Tiers of clusters; in each the clusters by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The clusters, tier by tier.
    clusters: Box<[ClusterId]>,
    /// For each tier: how many clusters it and the tiers before it have.
    ends: Box<[u16]>,
}

impl Tiers {
    /// The tiers.
    pub fn iter(&self) -> impl Iterator<Item = &[ClusterId]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.clusters[usize::from(*start)..usize::from(*end)])
    }
}

impl From<&[Clusters]> for Tiers {
    fn from(tiers: &[Clusters]) -> Self {
        let mut clusters = Vec::with_capacity(tiers.iter().map(Clusters::len).sum());
        let mut ends = Vec::with_capacity(tiers.len());
        for tier in tiers {
            clusters.extend(tier.iter());
            ends.push(u16::try_from(clusters.len()).expect("at most MAX_CLUSTERS"));
        }
        Self { clusters: clusters.into(), ends: ends.into() }
    }
}

/// Requests that matches describe.
#[derive(Clone, Debug)]
pub struct MatchedRoute {
    /// The policies whose matches all fit.
    pub policies: Vec<PolicyId>,
    /// The requests: one of these descriptions fits.
    pub matches: Vec<RequestMatch>,
    /// Where they go.
    pub route: Route,
}

/// A share of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Clusters that get it, evenly, by name.
    pub clusters: Vec<ClusterId>,
    /// In whole per cent.
    pub percent: u8,
}

/// A cluster that runs the service and is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The cluster.
    pub cluster: ClusterId,
    /// Why.
    pub reason: Reason,
    /// What says so; absent for the built-in order.
    pub origin: Option<Origin>,
}

/// Why a cluster is not used: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A policy excludes it.
    Exclude,
    /// An access policy admits no request of this caller there.
    Access,
    /// A guardrail denies it.
    Guardrail,
    /// It is drained.
    Drain,
    /// It has no gateway, or another type of mesh.
    Unreachable,
    /// No tier of the order holds it.
    Order,
}

impl Reason {
    /// The word that explanations print.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exclude => "exclude",
            Self::Access => "access",
            Self::Guardrail => "guardrail",
            Self::Drain => "drain",
            Self::Unreachable => "unreachable",
            Self::Order => "order",
        }
    }
}

impl Effective {
    /// Resolves a fleet. What is wrong is told; what can be resolved is there nevertheless.
    #[must_use]
    pub fn resolve(fleet: Fleet, found: &mut Diagnostics) -> Self {
        let access = Access::of(&fleet, found);
        let mut policies = Policies::of(&fleet);
        let mut edges = Vec::new();
        for (provider, service) in fleet.service_ids() {
            for (caller, dependency) in access.dependents(provider) {
                if !service.is_exposed_to(fleet.service(*caller)) {
                    report_unexposed(&fleet, &access, *caller, dependency, found);
                    continue;
                }
                for cluster in dependency.clusters.iter() {
                    let subject = Subject { fleet: &fleet, access: &access, caller: *caller, cluster, provider };
                    edges.push(edge(&subject, dependency.place, &mut policies, found));
                }
            }
        }
        policies.report(&fleet, found);
        let mut served_elsewhere = vec![Clusters::NONE; fleet.services.len()];
        let mut by_cluster = vec![Vec::new(); fleet.clusters.len()];
        for (index, edge) in edges.iter().enumerate() {
            by_cluster[edge.cluster.index()].push(u32::try_from(index).expect("fewer than 2^32 edges fit into memory"));
            if edge.is_served() {
                let mut clusters = edge.routes().fold(Clusters::NONE, |sum, route| sum.or(&route.clusters()));
                clusters.remove(edge.cluster);
                let served = &mut served_elsewhere[edge.provider.index()];
                *served = served.or(&clusters);
            }
        }
        Self { fleet, access, edges, served_elsewhere, by_cluster }
    }

    /// The edges that begin in a cluster, in the order of all edges.
    pub fn edges_from(&self, cluster: ClusterId) -> impl Iterator<Item = &Edge> {
        self.by_cluster[cluster.index()].iter().map(|index| &self.edges[*index as usize])
    }

    /// The edges that lead to a service, by caller.
    pub fn edges_to(&self, provider: ServiceId) -> &[Edge] {
        let first = self.edges.partition_point(|edge| edge.provider < provider);
        let end = self.edges.partition_point(|edge| edge.provider <= provider);
        &self.edges[first..end]
    }

    /// The edge of a caller, if there is one.
    #[must_use]
    pub fn edge(&self, caller: ServiceId, cluster: ClusterId, provider: ServiceId) -> Option<&Edge> {
        let key = (provider, caller, cluster);
        let index = self.edges.binary_search_by_key(&key, |edge| (edge.provider, edge.caller, edge.cluster)).ok()?;
        Some(&self.edges[index])
    }
}

/// `namespace/name@cluster`, as people name a caller.
pub(crate) fn caller_name(fleet: &Fleet, caller: ServiceId, cluster: ClusterId) -> String {
    let service = fleet.service(caller);
    format!("{}/{}@{}", service.namespace, service.name, fleet.cluster(cluster).name)
}

fn edge(subject: &Subject<'_>, place: Place, policies: &mut Policies, found: &mut Diagnostics) -> Edge {
    let settings = policies.settings(subject, found);
    let base = candidates::route(subject, settings.base, place, "", found);
    let matched = settings
        .matched
        .into_iter()
        .map(|matched| {
            let label = format!(" (requests of {})", policies.names(subject.fleet, &matched.policies));
            let route = candidates::route(subject, matched.units, place, &label, found);
            MatchedRoute { policies: matched.policies, matches: matched.matches, route }
        })
        .collect();
    Edge { provider: subject.provider, caller: subject.caller, cluster: subject.cluster, place, base, matched }
}

/// Without exposure the call stays inside clusters where both run.
fn report_unexposed(
    fleet: &Fleet,
    access: &Access,
    caller: ServiceId,
    dependency: &crate::fleet::Dependency,
    found: &mut Diagnostics,
) {
    let provider = fleet.service(dependency.provider);
    let missing = dependency.clusters.without(&provider.runs);
    let names: Vec<&str> = missing.iter().map(|id| fleet.cluster(id).name.as_str()).collect();
    if !names.is_empty() {
        let message = match &provider.exposure {
            None => format!(
                "{}/{} is not exposed and does not run in {}",
                provider.namespace,
                provider.name,
                names.join(", ")
            ),
            Some(_) => format!(
                "{}/{} is not exposed to this service and does not run in {}",
                provider.namespace,
                provider.name,
                names.join(", ")
            ),
        };
        let mut diagnostic = Diagnostic::new(&codes::NOT_EXPOSED, dependency.place, message)
            .help("expose it to this service, or limit the dependency with `clusters` to where both run");
        if let Some(exposure) = &provider.exposure {
            diagnostic = diagnostic.also(exposure.place, "exposed to others here");
        }
        found.push(diagnostic);
    }
    let refused: BTreeSet<&str> = dependency
        .clusters
        .and(&provider.runs)
        .iter()
        .filter(|cluster| !access.admits(fleet, dependency.provider, caller, *cluster).contains(*cluster))
        .map(|cluster| fleet.cluster(cluster).name.as_str())
        .collect();
    if !refused.is_empty() {
        let names: Vec<&str> = refused.into_iter().collect();
        let message =
            format!("{}/{} does not admit this service in {}", provider.namespace, provider.name, names.join(", "));
        found.push(
            Diagnostic::new(&codes::NO_PERMISSION, dependency.place, message)
                .help("add the caller to the access policy, or remove the dependency"),
        );
    }
}
