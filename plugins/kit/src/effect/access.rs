//! Who may call whom on one side and not on the other.

use super::sides;
use crate::verdict;
use mesh::World;
use mesh::explain::{Caller, Service};
use mesh::fleet::{ClusterId, Clusters, Fleet, ServiceId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The answer of one copy of a service to one caller, on both sides.
#[derive(Debug, Serialize)]
pub struct AccessChange {
    /// Who calls.
    pub caller: Caller,
    /// Whom.
    pub service: Service,
    /// The cluster of the called copy.
    #[serde(rename = "in")]
    pub within: String,
    /// `yes`, `no`, `partly` (only some requests), `open` (no policy holds) or `audit` (refusals are only logged).
    pub before: &'static str,
    /// The same, after.
    pub after: &'static str,
}

/// The answers that differ for callers and copies that both sides know; others are seen in the rows.
///
/// A question about every caller is expensive in a large fleet: it is asked only of copies that grant something else, and
/// for services that carry another identity.
pub fn changes(before: &World, after: &World) -> Vec<AccessChange> {
    let shared = Shared::of(before, after);
    let [old_grants, new_grants] = [before, after].map(|world| of_services(world, |id| shared.grants(world, id)));
    let [old_accounts, new_accounts] =
        [before, after].map(|world| of_services(world, |id| shared.accounts(&world.effective.fleet, id)));
    let called = |name: &Name, copy: usize| {
        let [old, new] = [&old_grants, &new_grants].map(|grants| grants.get(name)?.get(&copy));
        old.zip(new).is_some_and(|(old, new)| old != new)
    };
    let calling = |name: &Name| {
        let [old, new] = [&old_accounts, &new_accounts].map(|accounts| accounts.get(name));
        let known = |(old, new)| sides(old, new).into_iter().filter_map(|(_, old, new)| old.zip(new));
        old.zip(new).into_iter().flat_map(known).any(|(old, new)| old != new)
    };
    let [old, new] = [before, after].map(|world| shared.answers(world, called, calling));
    sides(&old, &new)
        .into_iter()
        .filter_map(|(call, old, new)| Some((call, *old?, *new?)))
        .filter(|(_, old, new)| old != new)
        .map(|((service, within, caller), before, after)| AccessChange {
            caller: Caller { cluster: caller.1.clone(), namespace: caller.0.0.clone(), service: caller.0.1.clone() },
            service: Service { namespace: service.0.clone(), name: service.1.clone() },
            within: within.clone(),
            before,
            after,
        })
        .collect()
}

/// A service: its namespace and name.
type Name = (String, String);
/// The called service, the cluster of its copy, and the caller with its cluster.
type Call = (Name, String, (Name, String));

fn name(fleet: &Fleet, id: ServiceId) -> Name {
    let service = fleet.service(id);
    (service.namespace.to_string(), service.name.to_string())
}

fn of_services<T>(world: &World, of: impl Fn(ServiceId) -> T) -> BTreeMap<Name, T> {
    let fleet = &world.effective.fleet;
    fleet.service_ids().map(|(id, _)| (name(fleet, id), of(id))).collect()
}

/// The clusters that both sides have; numbers of clusters are those of one fleet only.
struct Shared(BTreeMap<String, usize>);

impl Shared {
    fn of(before: &World, after: &World) -> Self {
        let [old, new] = [before, after].map(|world| {
            world.effective.fleet.clusters.iter().map(|cluster| cluster.name.to_string()).collect::<BTreeSet<_>>()
        });
        Self(old.intersection(&new).cloned().enumerate().map(|(number, name)| (name, number)).collect())
    }

    /// These clusters, by numbers that mean the same on both sides.
    fn numbers(&self, fleet: &Fleet, clusters: &Clusters) -> Vec<usize> {
        clusters.iter().filter_map(|id| self.number(fleet, id)).collect()
    }

    fn number(&self, fleet: &Fleet, cluster: ClusterId) -> Option<usize> {
        self.0.get(fleet.cluster(cluster).name.as_str()).copied()
    }

    /// Everything that decides about the callers of each copy of a service, in a form that can be compared. Identities
    /// are enough: a fleet whose rules mean one of two services with the same identity is not right.
    fn grants(&self, world: &World, id: ServiceId) -> BTreeMap<usize, String> {
        let (fleet, access) = (&world.effective.fleet, &world.effective.access);
        let granted = |copy| {
            let grants = access.grants(fleet, id, copy).into_iter().map(|grant| {
                let identities = grant.identities.into_iter();
                let identities: Vec<_> = identities.map(|(who, from)| (who, self.numbers(fleet, &from))).collect();
                (grant.conditions, identities)
            });
            format!("{:?} {:?}", access.service(id).mode, grants.collect::<Vec<_>>())
        };
        let copies = fleet.service(id).runs.iter();
        copies.filter_map(|copy| Some((self.number(fleet, copy)?, granted(copy)))).collect()
    }

    /// The accounts under which a service calls from each cluster.
    fn accounts(&self, fleet: &Fleet, id: ServiceId) -> BTreeMap<usize, String> {
        let service = fleet.service(id);
        let copies = service.runs.iter();
        copies.filter_map(|copy| Some((self.number(fleet, copy)?, service.copy(copy).account.to_string()))).collect()
    }

    /// The answers of the wanted copies to everyone, and of all copies to the wanted callers.
    fn answers(
        &self,
        world: &World,
        called: impl Fn(&Name, usize) -> bool,
        calling: impl Fn(&Name) -> bool,
    ) -> BTreeMap<Call, &'static str> {
        let fleet = &world.effective.fleet;
        let all: Vec<(ServiceId, Name)> = fleet.service_ids().map(|(id, _)| (id, name(fleet, id))).collect();
        let some: Vec<(ServiceId, Name)> = all.iter().filter(|(_, name)| calling(name)).cloned().collect();
        let place = |cluster| fleet.cluster(cluster).name.to_string();
        let mut answers = BTreeMap::new();
        for (id, service) in &all {
            let mode = verdict::answer(world, *id);
            for copy in fleet.service(*id).runs.iter() {
                let Some(number) = self.number(fleet, copy) else { continue };
                for (caller, calling) in if called(service, number) { &all } else { &some } {
                    for from in fleet.service(*caller).runs.iter().filter(|from| self.number(fleet, *from).is_some()) {
                        let word = verdict::verdict(world, *id, copy, *caller, from).word(mode);
                        answers.insert((service.clone(), place(copy), (calling.clone(), place(from))), word);
                    }
                }
            }
        }
        answers
    }
}
