//! Who goes where in one cluster, for one service: callers, their routes, and the lanes these lead to.

use super::{View, names};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{ClusterId, Clusters, Exposure, Service, ServiceId};
use crate::intent::traffic::{CrossCluster, Outlier, RequestMatch, Unit};
use crate::intent::types::{Address, Count, Duration};
use crate::manifest::{Intents, Text};
use crate::resolve::units::{PolicyId, Units};
use crate::resolve::{Edge, Effective, Route, Share};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One order of tiers, with what makes it work. Tiers are never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane {
    pub(super) tiers: Vec<Vec<ClusterId>>,
    pub(super) outlier: Option<OutlierSetting>,
    /// The policy whose connection settings hold; only where another cluster is reached.
    pub(super) connection: Option<PolicyId>,
}

/// When an endpoint counts as broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OutlierSetting {
    pub(super) errors: u32,
    pub(super) interval: Duration,
    pub(super) eject_for: Duration,
}

/// Built in, where no policy says otherwise.
const OUTLIER: OutlierSetting = OutlierSetting { errors: 5, interval: Duration(5_000), eject_for: Duration(30_000) };

impl Lane {
    /// The clusters, tier by tier.
    pub(super) fn clusters(&self) -> impl Iterator<Item = ClusterId> {
        self.tiers.iter().flatten().copied()
    }
}

/// Where the requests of a caller go that fit one of `matches`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoutePlan {
    /// Empty: all requests that no other route takes.
    pub(super) matches: Vec<RequestMatch>,
    /// Lanes and their weights, which sum to 100, or to a multiple of it where a share does not split evenly; empty: nobody may serve these requests.
    pub(super) split: Vec<(usize, u32)>,
    /// The lane that gets copies, and how many in per cent.
    pub(super) mirror: Option<(usize, u8)>,
    /// Who sets what holds for requests.
    pub(super) units: Units,
}

/// A caller and its routes, the more special ones first.
pub(super) struct CallerPlan {
    pub(super) caller: ServiceId,
    pub(super) routes: Vec<RoutePlan>,
}

/// What is rendered in one cluster for one service that others depend on.
pub(super) struct Plan<'a> {
    pub(super) provider: ServiceId,
    pub(super) service: &'a Service,
    /// The callers that are served.
    pub(super) callers: Vec<CallerPlan>,
    /// The lanes, each once, with their hosts.
    pub(super) lanes: Vec<Lane>,
    /// The hosts: exposed host names, and lanes beside them.
    pub(super) hosts: Vec<Host>,
    /// Host names that routes lead from.
    pub(super) fronts: Vec<Front>,
    /// Whether all callers agree, so that routes need not tell them apart.
    pub(super) uniform: bool,
    /// Namespaces of the callers.
    pub(super) namespaces: Arc<[Text]>,
    /// What the service's ports are called in entries.
    pub(super) port_names: Vec<Text>,
    /// The documents behind all of this.
    pub(super) intents: Arc<Intents>,
}

/// A host with a ServiceEntry of its own.
pub(super) struct Host {
    pub(super) name: Text,
    /// Its virtual IP address; lanes that carry only requests need none.
    pub(super) vip: Option<std::net::Ipv4Addr>,
    /// The lane behind it; none: it is a name without endpoints.
    pub(super) lane: Option<usize>,
}

/// A host name that callers use.
pub(super) struct Front {
    pub(super) name: Text,
    /// A cluster-local name means something without the suite as well: only declared callers are routed.
    pub(super) local: bool,
    /// For each lane: the host that requests to this name are sent to.
    pub(super) lane_hosts: Vec<Text>,
}

impl<'a> Plan<'a> {
    pub(super) fn of(view: View<'a>, edges: &[&'a Edge], found: &mut Diagnostics) -> Self {
        let fleet = &view.effective.fleet;
        let provider = edges[0].provider;
        let service = fleet.service(provider);
        let exposure = service.exposure.as_ref().expect("an edge exists only for an exposed service");
        let mut lanes = Lanes { view, list: Vec::new() };
        let callers: Vec<CallerPlan> = edges
            .iter()
            .filter(|edge| edge.is_served())
            .map(|edge| CallerPlan { caller: edge.caller, routes: lanes.routes(edge) })
            .collect();
        // A caller that nobody serves must not see what others see.
        let uniform = callers.len() == edges.len() && callers.windows(2).all(|pair| pair[0].routes == pair[1].routes);
        let lanes = lanes.list;
        let mut documents = intents(view, provider, edges.iter().copied());
        documents.extend(view.home_documents(provider));
        let mut plan = Self {
            provider,
            service,
            namespaces: callers
                .iter()
                .map(|plan| fleet.service(plan.caller).namespace.text())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            port_names: service.ports.iter().map(names::entry_port).collect(),
            callers,
            lanes,
            hosts: Vec::new(),
            fronts: Vec::new(),
            uniform,
            intents: view.intents(documents),
        };
        if !plan.callers.is_empty() {
            plan.check_callers(view, edges, found);
            plan.add_hosts(view, exposure, found);
        }
        plan
    }

    /// Two callers whose pods cannot be told apart, and whose routes differ, are refused: one would get the other's. A
    /// caller that nobody serves has no routes.
    fn check_callers(&self, view: View<'_>, edges: &[&Edge], found: &mut Diagnostics) {
        if self.uniform {
            return;
        }
        let fleet = &view.effective.fleet;
        let routes =
            |caller: ServiceId| self.callers.iter().find(|plan| plan.caller == caller).map(|plan| &plan.routes);
        for (index, first) in edges.iter().enumerate() {
            for second in &edges[index + 1..] {
                let (a, b) = (fleet.service(first.caller), fleet.service(second.caller));
                let (one, two) = (&a.copy(view.cluster).selector.0, &b.copy(view.cluster).selector.0);
                let alike = a.namespace == b.namespace && (one.contain(two) || two.contain(one));
                if alike && routes(first.caller) != routes(second.caller) {
                    let message = format!(
                        "{}/{} and {} choose the same pods in {}, and their calls to {}/{} must differ",
                        a.namespace,
                        a.name,
                        b.name,
                        view.target().name,
                        self.service.namespace,
                        self.service.name
                    );
                    found.push(
                        Diagnostic::new(&codes::CALLERS_ALIKE, b.origin.place, message)
                            .also(a.origin.place, "the other caller")
                            .help("give the workloads distinct selectors, or let the policies treat both alike"),
                    );
                }
            }
        }
    }

    /// Gives every lane a host, and every host name of the service its way to them.
    fn add_hosts(&mut self, view: View<'_>, exposure: &Exposure, found: &mut Diagnostics) {
        let target = view.target();
        let needs_vip = self.service.ports.iter().any(|port| !port.protocol.is_http());
        // Most services have one lane, which is the exposed host name itself and needs no label.
        let labels = LazyCell::new(|| lane_labels(&self.lanes, view));
        // The lane that the exposed host name can be itself: the rest of what all callers agree on.
        let primary = self
            .uniform
            .then(|| self.callers[0].routes.last().and_then(|route| route.split.first()).map(|(lane, _)| *lane))
            .flatten();
        let local_name = self.service.local_name();
        let mut names: Vec<(Text, bool, crate::source::Place)> =
            exposure.hostnames.iter().map(|(name, place)| (name.text(), name.as_str() == local_name, *place)).collect();
        let runs_here = self.service.runs.contains(view.cluster);
        let resolvable = |local: bool| {
            target.mesh.dns_capture || (local && (runs_here || view.namespaces.contains_key(&self.service.namespace)))
        };
        let any_resolves = names.iter().any(|(_, local, _)| !local || resolvable(true));
        names.retain(|(name, local, place)| {
            if resolvable(*local) {
                return true;
            }
            if *local {
                let code = if any_resolves { &codes::NAME_DOES_NOT_RESOLVE } else { &codes::NAME_NOT_VISIBLE };
                let message = format!(
                    "{name} cannot resolve in {}: no DNS capture, and no namespace {}",
                    target.name, self.service.namespace
                );
                found.push(
                    Diagnostic::new(code, *place, message)
                        .also(target.origin.place, "the cluster")
                        .help("add a host name of your own domain, or switch DNS capture on"),
                );
                return false;
            }
            let message = format!("nobody answers for {name} in {}", target.name);
            let vip = crate::resolve::vip::of_exposed(exposure, name);
            found.push(
                Diagnostic::new(&codes::NAME_DOES_NOT_RESOLVE, *place, message)
                    .also(target.origin.place, "the cluster without DNS capture")
                    .help(format!("let its DNS answer {vip}, or switch DNS capture on")),
            );
            true
        });
        let mut hosts: BTreeMap<Text, Host> = BTreeMap::new();
        let mut fronts = Vec::new();
        for (name, local, _) in names {
            let own = primary.filter(|_| !local);
            let lane_hosts: Vec<Text> = (0..self.lanes.len())
                .map(
                    |lane| {
                        if own == Some(lane) { name.clone() } else { names::lane(self.service, &labels[lane]).into() }
                    },
                )
                .collect();
            for (lane, host) in lane_hosts.iter().enumerate().filter(|(lane, _)| own != Some(*lane)) {
                let vip = needs_vip.then(|| crate::resolve::vip::of(host));
                hosts.entry(host.clone()).or_insert_with(|| Host { name: host.clone(), vip, lane: Some(lane) });
            }
            // A cluster-local name without a Service of its own, and without a place for a stub, is an entry like others.
            if !local || (!runs_here && !view.namespaces.contains_key(&self.service.namespace)) {
                let vip = Some(crate::resolve::vip::of_exposed(exposure, &name));
                hosts.insert(name.clone(), Host { name: name.clone(), vip, lane: own });
            }
            fronts.push(Front { name, local, lane_hosts });
        }
        self.hosts = hosts.into_values().collect();
        self.fronts = fronts;
    }
}

/// A label for each lane that depends on nothing but what the lane is.
fn lane_labels(lanes: &[Lane], view: View<'_>) -> Vec<String> {
    let fleet = &view.effective.fleet;
    let mut taken = BTreeSet::new();
    lanes
        .iter()
        .map(|lane| {
            let tiers: Vec<String> = lane
                .tiers
                .iter()
                .map(|tier| {
                    tier.iter().map(|cluster| fleet.cluster(*cluster).name.as_str()).collect::<Vec<_>>().join(",")
                })
                .collect();
            let connection = lane.connection.map(|policy| fleet.document(policy.of(fleet).origin).to_string());
            let text = format!("{}|{:?}|{connection:?}", tiers.join(";"), lane.outlier);
            let first: String =
                tiers[0].chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
            // 64 bits; a second lane of the same text would be the same lane.
            let mut label = format!("{first}-{:016x}", crate::resolve::vip::hash(text.as_bytes()));
            while !taken.insert(label.clone()) {
                label.push('x');
            }
            label
        })
        .collect()
}

/// A part of a share, in proportion to its size.
struct Part {
    clusters: Vec<ClusterId>,
    size: u32,
}

/// The lanes of one service, each once.
struct Lanes<'a> {
    view: View<'a>,
    list: Vec<Lane>,
}

impl Lanes<'_> {
    /// The routes of a caller. A description that an earlier route takes as well is left out, and so is a route without
    /// one: Istio warns about rules that no request can reach.
    fn routes(&mut self, edge: &Edge) -> Vec<RoutePlan> {
        let mut taken: BTreeSet<&RequestMatch> = BTreeSet::new();
        let mut plans = Vec::new();
        for matched in &edge.matched {
            let matches: Vec<RequestMatch> =
                matched.matches.iter().filter(|request| taken.insert(*request)).cloned().collect();
            if !matches.is_empty() {
                plans.push(self.route(&matched.route, matches));
            }
        }
        plans.push(self.route(&edge.base, Vec::new()));
        plans
    }

    fn route(&mut self, route: &Route, matches: Vec<RequestMatch>) -> RoutePlan {
        let order: Vec<&[ClusterId]> = route.tiers.iter().filter(|tier| !tier.is_empty()).collect();
        let parts: Vec<Vec<Part>> = route.shares.iter().map(|share| self.parts(share)).collect();
        // Weights are whole numbers: where a share cannot be split in whole per cent, all weights grow alike.
        let uneven = |(share, parts): (&Share, &Vec<Part>)| {
            let total = parts.iter().map(|part| part.size).sum::<u32>();
            if u32::from(share.percent).is_multiple_of(total) { 1 } else { total }
        };
        let scale: u32 = route.shares.iter().zip(&parts).map(uneven).product();
        let mut split: Vec<(usize, u32)> = Vec::new();
        let rest = u32::from(route.rest());
        if rest > 0 && !order.is_empty() {
            let lane = self.lane(&[], &order, route.units);
            add(&mut split, lane, rest * scale);
        }
        for (share, parts) in route.shares.iter().zip(parts) {
            let total = parts.iter().map(|part| part.size).sum::<u32>();
            for Part { clusters, size } in parts {
                let others: Vec<ClusterId> =
                    share.clusters.iter().filter(|cluster| !clusters.contains(cluster)).copied().collect();
                let lane = self.lane(&[&clusters, &others], &order, route.units);
                add(&mut split, lane, u32::from(share.percent) * scale * size / total);
            }
        }
        let mirror = (!route.mirror.is_empty()).then(|| self.lane(&[&route.mirror], &[], route.units));
        let percent = route
            .units
            .policy(Unit::Mirror)
            .and_then(|policy| policy.of(&self.view.effective.fleet).mirror)
            .map_or(100, |(_, percent, _)| percent);
        RoutePlan { matches, split, mirror: mirror.map(|lane| (lane, percent)), units: route.units }
    }

    /// A share is even over clusters. Another cluster is one endpoint; the caller's own pods are many, so they get their
    /// part of the share by weight.
    fn parts(&self, share: &Share) -> Vec<Part> {
        let own = self.view.cluster;
        let (here, elsewhere): (Vec<ClusterId>, Vec<ClusterId>) =
            share.clusters.iter().partition(|cluster| **cluster == own);
        [here, elsewhere]
            .into_iter()
            .filter(|clusters| !clusters.is_empty())
            .map(|clusters| Part { size: u32::try_from(clusters.len()).expect("at most MAX_CLUSTERS"), clusters })
            .collect()
    }

    /// The lane that tries `first` in turn and then the whole order.
    fn lane(&mut self, first: &[&[ClusterId]], order: &[&[ClusterId]], units: Units) -> usize {
        let mut seen = Clusters::NONE;
        let mut tiers = Vec::new();
        for tier in first.iter().chain(order) {
            let new: Vec<ClusterId> = tier.iter().copied().filter(|cluster| !seen.contains(*cluster)).collect();
            seen = seen.or(&new.iter().copied().collect());
            if !new.is_empty() {
                tiers.push(new);
            }
        }
        let fleet = &self.view.effective.fleet;
        let several = tiers.iter().map(Vec::len).sum::<usize>() > 1;
        let written: Option<&Outlier> =
            units.policy(Unit::Outlier).and_then(|policy| policy.of(fleet).outlier.as_ref());
        let outlier = written.map(|Outlier { consecutive_errors: Count(errors), interval, eject_for, place: _ }| {
            OutlierSetting { errors: *errors, interval: *interval, eject_for: *eject_for }
        });
        // Without outlier detection there are no tiers; with a single cluster there is nothing to go on to.
        let outlier = outlier.or(several.then_some(OUTLIER));
        let remote = tiers.iter().flatten().any(|cluster| *cluster != self.view.cluster);
        let connection = units.policy(Unit::Connection).filter(|_| remote);
        let lane = Lane { tiers, outlier, connection };
        match self.list.iter().position(|known| *known == lane) {
            Some(index) => index,
            None => {
                self.list.push(lane);
                self.list.len() - 1
            }
        }
    }
}

/// Adds weight to a lane; a lane stands once in a split.
fn add(split: &mut Vec<(usize, u32)>, lane: usize, percent: u32) {
    match split.iter_mut().find(|(known, _)| *known == lane) {
        Some((_, sum)) => *sum += percent,
        None => split.push((lane, percent)),
    }
}

/// The connection settings of a lane.
pub(super) fn cross_cluster<'a>(effective: &'a Effective, lane: &Lane) -> Option<&'a CrossCluster> {
    lane.connection
        .and_then(|policy| policy.of(&effective.fleet).connection.as_ref())
        .map(|connection| &connection.cross_cluster)
}

/// Whether a gateway of the lane has to be looked up in DNS.
pub(super) fn needs_dns(view: View<'_>, lane: &Lane) -> bool {
    lane.clusters().filter(|cluster| *cluster != view.cluster).any(|cluster| {
        let gateway = view.effective.fleet.cluster(cluster).gateway.as_ref();
        gateway.is_some_and(|gateway| gateway.addresses.iter().any(|address| matches!(address, Address::Name(_))))
    })
}

/// The documents behind everything that is rendered in one cluster for these calls of one service: the service, all
/// callers (one caller's routes are written the way they are because of the others), what holds for them, and what keeps
/// them from other clusters.
pub(super) fn intents<'a>(view: View<'_>, provider: ServiceId, edges: impl Iterator<Item = &'a Edge>) -> Vec<u32> {
    let fleet = &view.effective.fleet;
    let mut documents: Vec<u32> = fleet.service(provider).documents().collect();
    // Who is admitted where follows from all of a service's policies, also from those that remove nobody.
    let access = view.effective.access.service(provider);
    documents.extend(access.policies.iter().map(|policy| fleet.access[*policy].origin.document));
    documents.extend(access.always.iter().map(|always| always.origin.document));
    for edge in edges {
        documents.extend(fleet.service(edge.caller).documents());
        for route in edge.routes() {
            documents.extend(route.units.policies().map(|policy| policy.of(fleet).origin.document));
            documents.extend(route.removed.iter().filter_map(|removed| removed.origin).map(|origin| origin.document));
        }
    }
    documents.retain(|document| fleet.documents[*document as usize].kind != crate::intent::Kind::Cluster);
    documents
}
