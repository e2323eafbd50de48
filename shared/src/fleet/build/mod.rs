//! Documents become a fleet: inventory first, then services, then what refers to both.

mod clusters;
mod policies;
mod services;

use crate::diagnostic::{Diagnostic, Diagnostics, codes, did_you_mean};
use crate::fleet::clusters::{Cluster, Clusters, MAX_CLUSTERS};
use crate::fleet::policies::TrafficPolicy;
use crate::fleet::select::{Neighbours, Selector};
use crate::fleet::services::{Service, ServiceId};
use crate::fleet::{Fleet, Origin};
use crate::intent::traffic::ServiceRef;
use crate::intent::types::Namespace;
use crate::intent::{Document, DocumentId, Documents, Kind, Lost};
use crate::source::Place;
use std::collections::BTreeMap;

/// How many unknown services are compared with all known ones.
const MOST_SUGGESTIONS: usize = 50;

pub(in crate::fleet) fn fleet(documents: &Documents, found: &mut Diagnostics) -> Fleet {
    let mut ids = Vec::new();
    let mut clusters: Vec<Cluster> =
        documents.clusters.iter().map(|document| clusters::cluster(document, &mut ids, found)).collect();
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    clusters::check_gateways(&documents.clusters, found);
    if clusters.is_empty() && !documents.lost.any(Kind::Cluster) {
        found.push(
            Diagnostic::new(&codes::NO_CLUSTERS, None, "no Cluster document was read")
                .help("name the folder of the inventory with -f"),
        );
    }
    if let Some(surplus) = clusters.get(MAX_CLUSTERS) {
        let message = format!("{} clusters; one fleet has at most {MAX_CLUSTERS}", clusters.len());
        found.push(
            Diagnostic::new(&codes::TOO_MANY_CLUSTERS, surplus.origin.place, message)
                .help("split the inventory into fleets"),
        );
        clusters.truncate(MAX_CLUSTERS);
    }
    let mut build = Build {
        selector: Selector::new(&clusters, &documents.lost),
        lost: &documents.lost,
        suggested: 0,
        services: documents.services.iter().map(|document| (key(document), document.place)).collect(),
        index: BTreeMap::new(),
        found,
    };
    for (position, (key, _)) in build.services.iter().enumerate() {
        build.index.insert(key.clone(), ServiceId::at(position));
    }
    let locations = build.locations(&documents.locations, &mut ids);
    let mut services: Vec<Service> =
        documents.services.iter().map(|document| build.service(document, &locations, &mut ids)).collect();
    services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    build.check_services(&services);
    let traffic: Vec<TrafficPolicy> =
        documents.traffic.iter().map(|document| build.traffic(document, &services, &mut ids)).collect();
    build.one_default(&traffic);
    let access = documents.access.iter().map(|document| build.access(document, &services, &mut ids)).collect();
    let guardrails = build.guardrails(&documents.guardrails, &mut ids);
    let neighbours = Neighbours::of(&clusters);
    drop(build);
    let mut fleet = Fleet { documents: ids, clusters, neighbours, services, traffic, access, guardrails };
    // Files may come in any order; what is rendered must not depend on it.
    let order = |fleet: &[DocumentId], origin: Origin| fleet[origin.document as usize].clone();
    fleet.traffic.sort_by_cached_key(|policy| order(&fleet.documents, policy.origin));
    fleet.access.sort_by_cached_key(|policy| order(&fleet.documents, policy.origin));
    fleet.guardrails.sort_by_cached_key(|rule| {
        (order(&fleet.documents, rule.origin), rule.origin.place.line, rule.origin.place.column)
    });
    fleet
}

/// Namespace and name of a service's document. A name that Kubernetes would not take for a Service is reported later.
fn key<S>(document: &Document<S>) -> (String, String) {
    let namespace = document.id.namespace.as_ref().map_or_else(String::new, ToString::to_string);
    (namespace, document.id.name.to_string())
}

fn add(ids: &mut Vec<DocumentId>, id: &DocumentId, place: Place) -> Origin {
    ids.push(id.clone());
    Origin { document: u32::try_from(ids.len() - 1).expect("fewer than 2^32 documents fit into memory"), place }
}

struct Build<'a> {
    selector: Selector<'a>,
    lost: &'a Lost,
    /// How many names were compared with all others.
    suggested: usize,
    /// All services by namespace and name, and where they are declared.
    services: BTreeMap<(String, String), Place>,
    index: BTreeMap<(String, String), ServiceId>,
    found: &'a mut Diagnostics,
}

impl Build<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// The service of a name, or a finding that says which one was meant.
    fn lookup(&mut self, namespace: &str, name: &str, place: Place) -> Option<ServiceId> {
        let id = self.index.get(&(namespace.to_owned(), name.to_owned())).copied();
        if id.is_none() && !self.lost.service(namespace, name) {
            let elsewhere: Vec<&str> = self
                .index
                .keys()
                .filter(|(_, other)| other == name)
                .map(|(namespace, _)| namespace.as_str())
                .take(3)
                .collect();
            let help = if let Some(other) = elsewhere.first() {
                format!(
                    "there is one in namespace {}; write {{service: {name}, namespace: {other}}}",
                    elsewhere.join(", ")
                )
            } else {
                // Every name is compared with every other one: thousands of mistakes need no thousand suggestions.
                self.suggested += 1;
                let most = if self.suggested > MOST_SUGGESTIONS { 0 } else { usize::MAX };
                let near = self.index.keys().filter(|(other, _)| other == namespace).map(|(_, name)| name.as_str());
                did_you_mean(name, near.take(most))
                    .unwrap_or_else(|| "write a MeshService for it, or correct the name".to_owned())
            };
            self.report(
                Diagnostic::new(&codes::UNKNOWN_SERVICE, place, format!("no MeshService is called {namespace}/{name}"))
                    .help(help),
            );
        }
        id
    }

    /// A finding for clusters that are named where the service does not run.
    fn check_runs(&mut self, clusters: &Clusters, to: Option<ServiceId>, services: &[Service], place: Place) {
        let Some(service) = to.map(|to| &services[to.index()]) else { return };
        let elsewhere = clusters.without(&service.runs);
        if !elsewhere.is_empty() {
            let message = format!("{} does not run in {}", service.name, self.selector.names_of(&elsewhere));
            self.report(
                Diagnostic::new(&codes::CLUSTER_UNUSED, place, message)
                    .help("remove the clusters where it does not run"),
            );
        }
    }

    /// The service that a policy is about.
    fn target(&mut self, to: &ServiceRef, own: Option<&Namespace>) -> Option<ServiceId> {
        let namespace = self.namespace_of(to.namespace.as_ref(), own, to.place)?;
        self.lookup(namespace.as_str(), to.service.as_str(), to.service.place)
    }

    /// The namespace beside a service: the one written, else the document's own.
    fn namespace_of(
        &mut self,
        written: Option<&Namespace>,
        own: Option<&Namespace>,
        place: Place,
    ) -> Option<Namespace> {
        let namespace = written.or(own).cloned();
        if namespace.is_none() {
            self.report(
                Diagnostic::new(
                    &codes::NAMESPACE_MISSING,
                    place,
                    "the document belongs to no namespace, so this does not say which one is meant",
                )
                .help("add `namespace:` here"),
            );
        }
        namespace
    }
}
