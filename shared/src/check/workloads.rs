//! Pods that two services choose: what one service says would hold for the other as well.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{ClusterId, Service, ServiceId};
use crate::intent::service::Egress;
use crate::intent::types::Namespace;
use crate::resolve::Effective;
use std::collections::BTreeMap;

pub(super) fn check(effective: &Effective, found: &mut Diagnostics) {
    let fleet = &effective.fleet;
    let mut by_namespace: BTreeMap<&Namespace, Vec<(ServiceId, &Service)>> = BTreeMap::new();
    for (id, service) in fleet.service_ids() {
        by_namespace.entry(&service.namespace).or_default().push((id, service));
    }
    let limited = |id: ServiceId, service: &Service| {
        effective.access.service(id).mode.is_some() || service.egress != Egress::Open
    };
    for services in by_namespace.values() {
        // Most selectors have one label of their own, so services are compared only where they share an entry.
        let mut by_entry: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (index, (_, service)) in services.iter().enumerate() {
            let copies = std::iter::once(&service.copy).chain(service.variants.iter().map(|(_, copy)| copy));
            for (key, value) in copies.flat_map(|copy| copy.selector.0.0.iter()) {
                let users = by_entry.entry((&**key, &**value)).or_default();
                if users.last() != Some(&index) {
                    users.push(index);
                }
            }
        }
        let mut reported = std::collections::BTreeSet::new();
        for users in by_entry.values() {
            for (position, first) in users.iter().enumerate() {
                for second in &users[position + 1..] {
                    let ((one, a), (two, b)) = (services[*first], services[*second]);
                    if !(limited(one, a) || limited(two, b)) || reported.contains(&(first, second)) {
                        continue;
                    }
                    if let Some(cluster) = a.runs.and(&b.runs).iter().find(|cluster| overlap(a, b, *cluster)) {
                        reported.insert((first, second));
                        let message = format!(
                            "{}/{} and {} choose the same pods in {}",
                            a.namespace,
                            a.name,
                            b.name,
                            fleet.cluster(cluster).name
                        );
                        found.push(
                            Diagnostic::new(&codes::SHARED_WORKLOAD, b.origin.place, message)
                                .also(a.origin.place, "the other service")
                                .help("use selectors that exclude each other, or make it one service"),
                        );
                    }
                }
            }
        }
    }
}

/// Whether every pod of one service is a pod of the other.
fn overlap(a: &Service, b: &Service, cluster: ClusterId) -> bool {
    let (a, b) = (&a.copy(cluster).selector.0, &b.copy(cluster).selector.0);
    a.contain(b) || b.contain(a)
}
