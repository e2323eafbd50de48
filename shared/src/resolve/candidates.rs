//! One row: candidates tier by tier, removals with their one reason, shares.

use super::subject::Subject;
use super::units::Units;
use super::{Reason, Removed, Route, Share, Tiers};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{ClusterId, Clusters, GuardrailVerb, Origin};
use crate::intent::traffic::Unit;
use crate::source::Place;

/// Resolves one row; `label` says which requests, for messages.
pub(super) fn route(subject: &Subject<'_>, units: Units, place: Place, label: &str, found: &mut Diagnostics) -> Route {
    let fleet = subject.fleet;
    let runs = subject.service().runs;
    let (mut removed, allowed) = remove(subject, &units, &runs);
    let mut tiers = tiers(subject, &units, &allowed);
    let mut in_tiers = tiers.iter().fold(Clusters::NONE, |sum, tier| sum.or(tier));

    // A drained cluster keeps serving its own callers while nobody else could.
    let own = subject.cluster;
    let mut usable = allowed;
    if let Some(drained) = fleet.cluster(own).drained.filter(|_| allowed.contains(own)) {
        let mut others = in_tiers;
        others.remove(own);
        if !others.is_empty() {
            usable.remove(own);
            if in_tiers.contains(own) {
                in_tiers.remove(own);
                tiers.iter_mut().for_each(|tier| tier.remove(own));
                let origin = Origin { place: drained, ..fleet.cluster(own).origin };
                removed.push(Removed { cluster: own, reason: Reason::Drain, origin: Some(origin) });
            }
        }
    }

    let shares = shares(subject, &units, &usable, !in_tiers.is_empty(), place, label, found);
    let in_shares: Clusters = shares.iter().flat_map(|share| &share.clusters).copied().collect();
    let order = units.policy(Unit::Order).map(|policy| {
        let policy = policy.of(fleet);
        Origin { place: policy.unit(Unit::Order).unwrap_or(policy.origin.place), ..policy.origin }
    });
    let unused = allowed.without(&in_tiers).without(&in_shares);
    let in_removed: Clusters = removed.iter().map(|removed| removed.cluster).collect();
    removed.extend(unused.without(&in_removed).iter().map(|cluster| Removed {
        cluster,
        reason: Reason::Order,
        origin: order,
    }));
    removed.sort_by_key(|removed| removed.cluster);

    let mirror = mirror(subject, &units, &usable, place, label, found);
    let tiers = Tiers::from(tiers.as_slice());
    let route = Route { units, shares: shares.into(), tiers, removed: removed.into(), mirror };
    if !route.is_served() && !runs.is_empty() {
        report_unserved(subject, &route, place, label, found);
    }
    report_guardrails(subject, &route, place, label, found);
    route
}

/// Removes what the order has no say in; drained callers' own clusters are looked at later.
fn remove(subject: &Subject<'_>, units: &Units, runs: &Clusters) -> (Vec<Removed>, Clusters) {
    let fleet = subject.fleet;
    let own = subject.cluster;
    let exclude = units.policy(Unit::Exclude).map(|policy| policy.of(fleet));
    let admitted = subject.access.admits(fleet, subject.provider, subject.caller, own);
    let mut removed = Vec::new();
    let mut allowed = *runs;
    for cluster in runs.iter() {
        let elsewhere = cluster != own;
        let excluded_by = exclude.filter(|_| elsewhere).and_then(|policy| {
            let items = policy.exclude.as_ref()?;
            let (_, place) = items.iter().find(|(item, _)| item.seen_from(own, &fleet.neighbours).contains(cluster))?;
            Some(Origin { place: *place, ..policy.origin })
        });
        let target = fleet.cluster(cluster);
        let (reason, origin) = if let Some(origin) = excluded_by {
            (Reason::Exclude, Some(origin))
        } else if !admitted.contains(cluster) {
            (Reason::Access, subject.access.origin(fleet, subject.provider))
        } else if let Some(origin) = subject.denied_by(cluster) {
            (Reason::Guardrail, Some(origin))
        } else if let Some(place) = target.drained.filter(|_| elsewhere) {
            (Reason::Drain, Some(Origin { place, ..target.origin }))
        } else if subject.is_unreachable(cluster) {
            (Reason::Unreachable, Some(target.origin))
        } else {
            continue;
        };
        allowed.remove(cluster);
        removed.push(Removed { cluster, reason, origin });
    }
    (removed, allowed)
}

/// Each cluster in the first tier that selects it. Built in, where no document says otherwise: local, the region, all.
fn tiers(subject: &Subject<'_>, units: &Units, allowed: &Clusters) -> Vec<Clusters> {
    let fleet = subject.fleet;
    let own = subject.cluster;
    let mut tiers: Vec<Clusters> = match units.policy(Unit::Order).and_then(|policy| policy.of(fleet).order.as_ref()) {
        Some(order) => order
            .iter()
            .map(|tier| {
                tier.iter().fold(Clusters::NONE, |sum, (item, _)| sum.or(&item.seen_from(own, &fleet.neighbours)))
            })
            .collect(),
        None => {
            let everywhere = Clusters::first(fleet.clusters.len());
            let region = crate::fleet::Relative::Same { base: everywhere, region: true, zone: false, network: false };
            vec![Clusters::one(own), region.seen_from(own, &fleet.neighbours), everywhere]
        }
    };
    let mut rest = *allowed;
    for tier in &mut tiers {
        *tier = tier.and(&rest);
        rest = rest.without(tier);
    }
    tiers
}

/// The shares that are left. Without a candidate in the order they take over the rest in proportion.
fn shares(
    subject: &Subject<'_>,
    units: &Units,
    usable: &Clusters,
    has_candidates: bool,
    place: Place,
    label: &str,
    found: &mut Diagnostics,
) -> Vec<Share> {
    let fleet = subject.fleet;
    let runs = subject.service().runs;
    let weights = units.policy(Unit::Weights).and_then(|policy| policy.of(fleet).weights.as_ref());
    let mut shares = Vec::new();
    for (clusters, percent, written) in weights.into_iter().flatten() {
        let wanted = clusters.and(&runs);
        let left = wanted.and(usable);
        if left.is_empty() {
            if !wanted.is_empty() {
                let message =
                    format!("the share of {percent} per cent has no cluster left for {}{label}", subject.describe());
                found.push(
                    Diagnostic::new(&codes::SHARE_DROPPED, *written, message).also(place, "the dependency").help(
                        "its percentage follows the order; `kubectl mesh explain` says what removes its clusters",
                    ),
                );
            }
            continue;
        }
        shares.push(Share { clusters: left.iter().collect(), percent: *percent });
    }
    if !has_candidates {
        let percents: Vec<u32> = shares.iter().map(|share| u32::from(share.percent)).collect();
        for (share, percent) in shares.iter_mut().zip(proportional(&percents, 100)) {
            share.percent = u8::try_from(percent).expect("at most 100");
        }
    }
    shares
}

/// Whole numbers in the proportion of `parts` that sum to exactly `total`; the largest remainders are rounded up.
#[must_use]
pub fn proportional(parts: &[u32], total: u32) -> Vec<u32> {
    let sum: u32 = parts.iter().sum();
    if sum == 0 {
        return parts.to_vec();
    }
    let mut result: Vec<u32> = parts.iter().map(|part| part * total / sum).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(parts[*index] * total % sum));
    let missing = total - result.iter().sum::<u32>();
    for index in by_remainder.into_iter().take(missing as usize) {
        result[index] += 1;
    }
    result
}

fn mirror(
    subject: &Subject<'_>,
    units: &Units,
    usable: &Clusters,
    place: Place,
    label: &str,
    found: &mut Diagnostics,
) -> Box<[ClusterId]> {
    let fleet = subject.fleet;
    let Some((clusters, _, written)) = units.policy(Unit::Mirror).and_then(|policy| policy.of(fleet).mirror.as_ref())
    else {
        return Box::default();
    };
    let wanted = clusters.and(&subject.service().runs);
    let left = wanted.and(usable);
    if left.is_empty() && !wanted.is_empty() {
        let message = format!("the mirror has no cluster left for {}{label}", subject.describe());
        found.push(
            Diagnostic::new(&codes::MIRROR_DROPPED, *written, message)
                .also(place, "the dependency")
                .help("nothing is copied; `kubectl mesh explain` says what removes its clusters"),
        );
    }
    left.iter().collect()
}

fn report_unserved(subject: &Subject<'_>, route: &Route, place: Place, label: &str, found: &mut Diagnostics) {
    let passing = route.removed.iter().any(|removed| matches!(removed.reason, Reason::Drain | Reason::Unreachable));
    let code = if passing { &codes::NO_CANDIDATE_NOW } else { &codes::NO_CANDIDATE };
    let removals: Vec<String> = route
        .removed
        .iter()
        .map(|removed| format!("{}: {}", subject.fleet.cluster(removed.cluster).name, removed.reason.as_str()))
        .collect();
    let message = format!("nobody may serve {}{label} ({})", subject.describe(), removals.join(", "));
    let mut diagnostic =
        Diagnostic::new(code, place, message).help("allow one of the clusters, or remove the dependency there");
    let mut places: Vec<(Place, &'static str)> =
        route.removed.iter().filter_map(|removed| Some((removed.origin?.place, removed.reason.as_str()))).collect();
    places.sort();
    places.dedup();
    for (place, reason) in places {
        diagnostic = diagnostic.also(place, reason);
    }
    found.push(diagnostic);
}

/// `max` bounds what shares send elsewhere; clusters of one share get even parts of it.
fn report_guardrails(subject: &Subject<'_>, route: &Route, place: Place, label: &str, found: &mut Diagnostics) {
    if route.shares.is_empty() {
        return;
    }
    for rule in &subject.fleet.guardrails {
        let GuardrailVerb::Max { percent, to } = &rule.verb else { continue };
        if !subject.service().labels.contain(&rule.services) {
            continue;
        }
        // In hundredths of a part of a share, so that even parts stay whole numbers long enough to compare.
        let sent: f64 = route
            .shares
            .iter()
            .map(|share| {
                let guarded = share
                    .clusters
                    .iter()
                    .filter(|cluster| **cluster != subject.cluster && to.contains(**cluster))
                    .count();
                f64::from(share.percent) * guarded as f64 / share.clusters.len() as f64
            })
            .sum();
        if sent > f64::from(*percent) + 1e-9 {
            let message = format!(
                "{}{label} sends {sent:.0} per cent to clusters that \"{}\" bounds to {percent}",
                subject.describe(),
                rule.name
            );
            let origin = route.units.policy(Unit::Weights).map(|policy| policy.of(subject.fleet));
            let written = origin.and_then(|policy| policy.unit(Unit::Weights)).unwrap_or(place);
            found.push(
                Diagnostic::new(&codes::GUARDRAIL_MAX, written, message)
                    .also(rule.origin.place, "the guardrail")
                    .help("lower the share, or change the guardrail"),
            );
        }
    }
}
