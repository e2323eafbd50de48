//! AuthorizationPolicy and PeerAuthentication: one of each per copy of a service that has a policy.

use super::{View, limits, names};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::{Identity, Service, ServiceId};
use crate::intent::access::Mode;
use crate::manifest::istio::{
    AuthorizationPolicy, From, MutualTls, Operation, PeerAuthentication, PodSelector, Rule, Source, To,
};
use crate::manifest::{Body, Object};
use crate::resolve::access::Conditions;
use std::collections::{BTreeMap, BTreeSet};

/// Istio logs what the policy would refuse, and refuses nothing.
const DRY_RUN: &str = "istio.io/dry-run";

pub(super) fn render(
    view: View<'_>,
    id: ServiceId,
    service: &Service,
    objects: &mut Vec<Object>,
    found: &mut Diagnostics,
) {
    let effective = view.effective;
    let access = effective.access.service(id);
    let Some(mode) = access.mode else { return };
    let mut intents: BTreeSet<u32> = service.documents().collect();
    intents.extend(access.policies.iter().map(|policy| effective.fleet.access[*policy].origin.document));
    intents.extend(access.always.iter().map(|always| always.origin.document));
    // Rules with the same conditions are one rule.
    let mut rules: BTreeMap<Operation, BTreeSet<String>> = BTreeMap::new();
    for grant in effective.access.grants(&effective.fleet, id, view.cluster) {
        let Some(operation) = operation(view, service, &grant.conditions) else { continue };
        let principals = rules.entry(operation).or_default();
        for (identity, clusters) in &grant.identities {
            for cluster in clusters.iter() {
                principals.extend(principal(view, identity, cluster, grant.origin.place, found));
            }
            intents.extend(effective.access.carriers_of(identity, clusters, &effective.fleet));
        }
    }
    let rules: Vec<Rule> = rules
        .into_iter()
        .filter(|(_, principals)| !principals.is_empty())
        .map(|(operation, principals)| Rule {
            from: vec![From { source: Source { principals: principals.into_iter().collect() } }],
            to: if operation == Operation::default() { Vec::new() } else { vec![To { operation }] },
        })
        .collect();
    let place = effective.access.origin(&effective.fleet, id).map_or(service.origin.place, |origin| origin.place);
    limits::check_rules(view, service, place, rules.len(), found);
    let selector = PodSelector { match_labels: service.copy(view.cluster).selector.0.0.clone() };
    let intents = view.intents(intents);
    let policy = AuthorizationPolicy { selector: selector.clone(), action: "ALLOW", rules };
    let mut object = Object::new(
        service.namespace.text(),
        names::of_service(service),
        intents.clone(),
        Body::AuthorizationPolicy(policy),
    );
    match mode {
        Mode::Audit => {
            object.annotations.insert(DRY_RUN, "true".to_owned());
        }
        Mode::Enforce => {
            // Rules speak of identities, and only mutual TLS proves them.
            let strict = PeerAuthentication { selector, mtls: MutualTls { mode: "STRICT" } };
            objects.push(Object::new(
                service.namespace.text(),
                names::of_service(service),
                intents,
                Body::PeerAuthentication(strict),
            ));
        }
    }
    objects.push(object);
}

/// The conditions in terms of the pods' ports; `None` if they can hold on no port of the service.
fn operation(view: View<'_>, service: &Service, conditions: &Conditions) -> Option<Operation> {
    let Conditions { ports, methods, paths, whole_workload } = conditions;
    if *whole_workload {
        return Some(Operation::default());
    }
    let requests = !methods.is_empty() || !paths.is_empty();
    let copy = service.copy(view.cluster);
    let targets: BTreeSet<u16> = service
        .ports
        .iter()
        .zip(&copy.ports)
        .filter(|(port, _)| ports.as_ref().is_none_or(|ports| ports.contains(&port.number)))
        // Methods and paths never fit a connection without requests.
        .filter(|(port, _)| !requests || port.protocol.is_http())
        .map(|(_, own)| own.target)
        .collect();
    (!targets.is_empty()).then(|| Operation {
        ports: targets.iter().map(ToString::to_string).collect(),
        methods: methods.iter().map(ToString::to_string).collect(),
        paths: paths.iter().map(|path| path.0.clone()).collect(),
    })
}

/// `cluster.local` in a policy means the local trust domain, whatever it is called (`trustdomain.Bundle`), so it cannot
/// name another cluster's.
fn principal(
    view: View<'_>,
    identity: &Identity,
    cluster: crate::fleet::ClusterId,
    place: crate::source::Place,
    found: &mut Diagnostics,
) -> Option<String> {
    let from = view.effective.fleet.cluster(cluster);
    let own = view.target();
    let domain = &from.mesh.trust_domain;
    if domain.as_str() == "cluster.local"
        && own.mesh.trust_domain != *domain
        && !own.mesh.trust_domain_aliases.contains(domain)
    {
        let message = format!(
            "{} has the trust domain cluster.local, which in {} would mean {}",
            from.name, own.name, own.mesh.trust_domain
        );
        found.push(
            Diagnostic::new(&codes::CLUSTER_LOCAL_DOMAIN, place, message)
                .also(from.origin.place, "the caller's cluster")
                .also(own.origin.place, "the called cluster")
                .help("give the caller's cluster a trust domain of its own"),
        );
        return None;
    }
    Some(match identity {
        Identity::Account(namespace, account) => {
            [domain.as_str(), "/ns/", namespace.as_str(), "/sa/", account.as_str()].concat()
        }
        Identity::Namespace(namespace) => format!("{domain}/ns/{namespace}/*"),
        Identity::Any => format!("{domain}/*"),
    })
}
