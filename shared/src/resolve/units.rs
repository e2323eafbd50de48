//! Which policy sets what for an edge. Policies are merged unit by unit; a unit that none sets comes from the default.
//! There is no precedence by age, name or specificity: the same unit set twice is an error.

use super::matches::{self, Join};
use super::subject::Subject;
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{Fleet, TrafficPolicy};
use crate::intent::traffic::{RequestMatch, Unit};
use crate::source::Place;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// A traffic policy: its position in the fleet, counted from 1, so that an absent one takes no room in the many rows of a
/// large fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(NonZeroU32);

impl PolicyId {
    fn at(index: usize) -> Self {
        let position = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(position.expect("fewer than 2^32 policies fit into memory"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The policy itself.
    #[must_use]
    pub fn of(self, fleet: &Fleet) -> &TrafficPolicy {
        &fleet.traffic[self.index()]
    }
}

/// The policy behind each unit; a unit without one is as built in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units([Option<PolicyId>; Unit::ALL.len()]);

impl Units {
    /// The policy that sets the unit.
    #[must_use]
    pub fn policy(&self, unit: Unit) -> Option<PolicyId> {
        self.0[unit as usize]
    }

    /// The policies that set anything; one that sets several units stands several times.
    pub fn policies(&self) -> impl Iterator<Item = PolicyId> {
        self.0.iter().flatten().copied()
    }

    fn set(&mut self, unit: Unit, policy: PolicyId) -> Option<PolicyId> {
        self.0[unit as usize].replace(policy)
    }
}

/// What holds for an edge.
pub(super) struct Settings {
    /// For requests that no match describes.
    pub(super) base: Units,
    /// For requests that matches describe.
    pub(super) matched: Vec<MatchedUnits>,
}

/// What holds for requests that matches describe.
pub(super) struct MatchedUnits {
    pub(super) policies: Vec<PolicyId>,
    pub(super) matches: Vec<RequestMatch>,
    pub(super) units: Units,
}

/// The policies of a fleet, by the service they are about, and what has been reported about them.
pub(super) struct Policies {
    /// For each service: the policies about it.
    about: Vec<Vec<PolicyId>>,
    default: Units,
    used: Vec<bool>,
    conflicts: BTreeSet<(PolicyId, PolicyId, Option<Unit>)>,
}

/// Policies that can overlap on one edge before their combinations are refused.
const MOST_OVERLAPS: usize = 64;

impl Policies {
    pub(super) fn of(fleet: &Fleet) -> Self {
        let mut about = vec![Vec::new(); fleet.services.len()];
        let mut default = Units::default();
        for (index, policy) in fleet.traffic.iter().enumerate() {
            let id = PolicyId::at(index);
            if policy.default {
                for (unit, _) in &policy.units {
                    default.set(*unit, id);
                }
            } else if let Some(to) = policy.to {
                about[to.index()].push(id);
            }
        }
        Self { about, default, used: vec![false; fleet.traffic.len()], conflicts: BTreeSet::new() }
    }

    /// What holds for one edge.
    pub(super) fn settings(&mut self, subject: &Subject<'_>, found: &mut Diagnostics) -> Settings {
        let fleet = subject.fleet;
        let mut own = Units::default();
        let mut matched = Vec::new();
        for index in 0..self.about[subject.provider.index()].len() {
            let id = self.about[subject.provider.index()][index];
            let policy = id.of(fleet);
            if !is_about(policy, subject) {
                continue;
            }
            self.used[id.index()] = true;
            if policy.matches.is_some() {
                matched.push(id);
                continue;
            }
            for (unit, _) in &policy.units {
                if let Some(other) = own.set(*unit, id) {
                    self.conflict(subject, other, id, Some(*unit), found);
                }
            }
        }
        // What needs HTTP does not apply to services without it; in a policy about such a service it would be an error.
        let http = subject.service().speaks_http();
        let mut base = own;
        for unit in Unit::ALL {
            if base.policy(unit).is_none()
                && (http || !unit.is_http())
                && let Some(policy) = self.default.policy(unit)
            {
                base.set(unit, policy);
            }
        }
        let matched = if matched.is_empty() { Vec::new() } else { self.matched(subject, base, &matched, found) };
        Settings { base, matched }
    }

    /// One entry per matched policy, and one per combination of policies that a single request can fit.
    fn matched(
        &mut self,
        subject: &Subject<'_>,
        base: Units,
        ids: &[PolicyId],
        found: &mut Diagnostics,
    ) -> Vec<MatchedUnits> {
        let fleet = subject.fleet;
        let alternatives =
            |id: PolicyId| id.of(fleet).matches.as_ref().map(|(matches, _)| matches.as_slice()).unwrap_or_default();
        let mut entries: Vec<MatchedUnits> = Vec::new();
        for id in ids {
            let mut combined: Vec<MatchedUnits> = Vec::new();
            let single = MatchedUnits {
                policies: vec![*id],
                matches: alternatives(*id).to_vec(),
                units: overlay(base, *id, fleet),
            };
            for entry in &entries {
                let join = matches::join(&entry.matches, alternatives(*id));
                if matches!(join, Join::Never) {
                    continue;
                }
                let sets = |id: &PolicyId, unit: Unit| id.of(fleet).unit(unit).is_some();
                let rival = entry
                    .policies
                    .iter()
                    .find(|other| Unit::ALL.iter().any(|unit| sets(other, *unit) && sets(id, *unit)));
                match join {
                    Join::Never => {}
                    _ if rival.is_some() => self.match_conflict(subject, *rival.expect("just found"), *id, found),
                    Join::Some(joined) => {
                        let mut policies = entry.policies.clone();
                        policies.push(*id);
                        combined.push(MatchedUnits {
                            policies,
                            matches: joined,
                            units: overlay(entry.units, *id, fleet),
                        });
                    }
                    Join::Inexpressible(what) => {
                        let other = entry.policies[0];
                        if self.conflicts.insert((other, *id, None)) {
                            let message = format!(
                                "a request can fit both {} and {}: {what}",
                                self.names(fleet, &[other]),
                                self.names(fleet, &[*id])
                            );
                            found.push(
                                Diagnostic::new(&codes::MATCH_COMBINATION, match_place(fleet, *id), message)
                                    .also(match_place(fleet, other), "the other policy")
                                    .help("make one of the two exact, or let an exact path, method or header keep them apart"),
                            );
                        }
                    }
                }
            }
            entries.push(single);
            entries.extend(combined);
            if entries.len() > MOST_OVERLAPS {
                let message = format!(
                    "the matches about {} overlap in more than {MOST_OVERLAPS} combinations",
                    fleet.service(subject.provider).name
                );
                found.push(
                    Diagnostic::new(&codes::TOO_MANY_MATCHES, match_place(fleet, *id), message)
                        .help("let an exact path, method or header keep the policies apart"),
                );
                break;
            }
        }
        // The more policies a request fits, the earlier its route has to stand.
        entries.sort_by(|a, b| b.policies.len().cmp(&a.policies.len()).then_with(|| a.policies.cmp(&b.policies)));
        entries
    }

    fn conflict(
        &mut self,
        subject: &Subject<'_>,
        first: PolicyId,
        second: PolicyId,
        unit: Option<Unit>,
        found: &mut Diagnostics,
    ) {
        if !self.conflicts.insert((first, second, unit)) {
            return;
        }
        let fleet = subject.fleet;
        let field = unit.map_or("the same field", Unit::field);
        let place = |id: PolicyId| unit.and_then(|unit| id.of(fleet).unit(unit)).unwrap_or(id.of(fleet).origin.place);
        let message = format!(
            "{} and {} both set `{field}` for {}",
            self.names(fleet, &[first]),
            self.names(fleet, &[second]),
            super::caller_name(fleet, subject.caller, subject.cluster),
        );
        found.push(
            Diagnostic::new(&codes::UNIT_CONFLICT, place(second), message)
                .also(place(first), "set here as well")
                .help("narrow one of the two with `from`, or keep the setting in one policy"),
        );
    }

    fn match_conflict(&mut self, subject: &Subject<'_>, first: PolicyId, second: PolicyId, found: &mut Diagnostics) {
        if !self.conflicts.insert((first, second, None)) {
            return;
        }
        let fleet = subject.fleet;
        let units: Vec<&str> = Unit::ALL
            .iter()
            .filter(|unit| first.of(fleet).unit(**unit).is_some() && second.of(fleet).unit(**unit).is_some())
            .map(|unit| unit.field())
            .collect();
        let message = format!(
            "a request can fit both {} and {}, which both set {}",
            self.names(fleet, &[first]),
            self.names(fleet, &[second]),
            units.join(", ")
        );
        found.push(
            Diagnostic::new(&codes::MATCH_CONFLICT, match_place(fleet, second), message)
                .also(match_place(fleet, first), "the other policy")
                .help("let an exact path, method or header keep them apart, or keep the setting in one policy"),
        );
    }

    /// The documents of policies, for messages.
    pub(super) fn names(&self, fleet: &Fleet, ids: &[PolicyId]) -> String {
        let names: Vec<String> = ids.iter().map(|id| fleet.document(id.of(fleet).origin).to_string()).collect();
        names.join(" and ")
    }

    /// Findings about policies that no edge used.
    pub(super) fn report(&self, fleet: &Fleet, found: &mut Diagnostics) {
        for (policy, used) in fleet.traffic.iter().zip(&self.used) {
            if !used && !policy.default && policy.to.is_some() {
                let message = format!("{} matches no call of this fleet", fleet.document(policy.origin));
                found.push(
                    Diagnostic::new(&codes::POLICY_UNUSED, policy.origin.place, message)
                        .help("declare the dependency with `dependsOn`, expose the service, or correct `from`"),
                );
            }
        }
    }
}

/// Where a policy says which requests it holds for.
fn match_place(fleet: &Fleet, id: PolicyId) -> Place {
    let policy = id.of(fleet);
    policy.matches.as_ref().map_or(policy.origin.place, |(_, place)| *place)
}

/// The units of `base`, replaced by those that the policy sets.
fn overlay(mut base: Units, id: PolicyId, fleet: &Fleet) -> Units {
    for (unit, _) in &id.of(fleet).units {
        base.set(*unit, id);
    }
    base
}

fn is_about(policy: &TrafficPolicy, subject: &Subject<'_>) -> bool {
    let Some(from) = &policy.from else { return true };
    from.iter().any(|callers| {
        callers.clusters.contains(subject.cluster)
            && callers.service.is_none_or(|service| service == subject.caller)
            && callers
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == subject.fleet.service(subject.caller).namespace)
    })
}
