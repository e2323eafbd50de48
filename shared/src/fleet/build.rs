//! Documents become a fleet: inventory first, then services, then what refers to both.

use super::clusters::{Cluster, Clusters, Gateway, MAX_CLUSTERS, Mesh};
use super::policies::{AccessPolicy, AccessRule, Callers, Guardrail, GuardrailVerb, Identity, Source, TrafficPolicy};
use super::select::{Neighbours, Selector};
use super::services::{CopyPort, Dependency, Exposure, Service, ServiceCopy, ServiceId, ServicePort};
use super::{Fleet, Origin};
use crate::diagnostic::{Diagnostic, Diagnostics, codes, did_you_mean};
use crate::intent::access::{AllowFrom, AllowParts, GuardrailSpec, Verb};
use crate::intent::cluster::ClusterSpec;
use crate::intent::cluster_set::{FIELDS, RESERVED};
use crate::intent::decode::At;
use crate::intent::service::{self, MeshServiceSpec, ServiceLocationsSpec};
use crate::intent::traffic::{CallerSelector, Failover, ServiceRef, TrafficPolicySpec};
use crate::intent::types::{Labels, Namespace, ServiceAccount, ServiceName};
use crate::intent::{Document, DocumentId, Documents, Kind, Lost};
use crate::source::Place;
use std::collections::{BTreeMap, BTreeSet};

/// How many unknown services are compared with all known ones.
const MOST_SUGGESTIONS: usize = 50;

pub(super) fn fleet(documents: &Documents, found: &mut Diagnostics) -> Fleet {
    let mut ids = Vec::new();
    let mut clusters: Vec<Cluster> =
        documents.clusters.iter().map(|document| cluster(document, &mut ids, found)).collect();
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
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

fn cluster(document: &Document<ClusterSpec>, ids: &mut Vec<DocumentId>, found: &mut Diagnostics) -> Cluster {
    let origin = add(ids, &document.id, document.place);
    let name = document.id.name.as_str();
    if RESERVED.contains(&name) {
        found.push(
            Diagnostic::new(&codes::RESERVED, document.place, format!("\"{name}\" is a reserved word"))
                .help("give the cluster another name"),
        );
    }
    for key in FIELDS {
        if document.labels.0.contains_key(key) {
            found.push(
                Diagnostic::new(&codes::RESERVED, document.place, format!("\"{key}\" cannot be a label of a cluster"))
                    .help(format!("set `spec.{key}`: cluster sets read it from there")),
            );
        }
    }
    let spec = &document.spec;
    let mesh = &spec.mesh;
    Cluster {
        name: crate::intent::types::ClusterName::parse(name).unwrap_or_else(|| {
            found.push(
                Diagnostic::new(&codes::BAD_VALUE, document.place, "the name of a cluster has at most 63 characters")
                    .help("shorten the name"),
            );
            crate::intent::types::ClusterName::parse("too-long").expect("a valid name")
        }),
        origin,
        labels: document.labels.clone(),
        region: spec.region.clone(),
        zone: spec.zone.clone(),
        network: spec.network.clone(),
        context: spec.context.as_ref().map_or_else(|| name.to_owned(), ToString::to_string),
        drained: spec.drain.value.then_some(spec.drain.place),
        mesh: Mesh {
            kind: mesh.kind,
            version: mesh.version.as_ref().map(|version| (version.value.clone(), version.place)),
            trust_domain: mesh.trust_domain.clone(),
            trust_domain_aliases: mesh.trust_domain_aliases.0.clone(),
            namespace: mesh.namespace.clone(),
            import_namespace: mesh.import_namespace.clone(),
            dns_capture: mesh.dns_capture,
            data_plane: (mesh.data_plane.value, mesh.data_plane.place),
            discovery: (mesh.discovery.value, mesh.discovery.place),
        },
        gateway: spec.gateway.as_ref().map(|gateway| {
            let mut addresses = gateway.address.0.clone();
            addresses.sort();
            addresses.dedup();
            Gateway {
                addresses,
                port: gateway.port,
                namespace: gateway.namespace.clone(),
                selector: gateway.selector.clone(),
            }
        }),
    }
}

/// What of a Kubernetes Service callers would notice under its own name.
fn differs(base: &ServiceCopy, variant: &ServiceCopy) -> Option<&'static str> {
    let numbers = |copy: &ServiceCopy| copy.ports.iter().map(|port| port.number).collect::<Vec<_>>();
    if base.service != variant.service {
        Some("another name")
    } else if numbers(base) != numbers(variant) {
        Some("other port numbers")
    } else {
        None
    }
}

/// Whether a MeshService leaves nothing to be observed.
fn says_everything(spec: &MeshServiceSpec) -> bool {
    let workload = |workload: &service::Workload| workload.selector.is_some() && workload.service_account.is_some();
    spec.clusters.is_some() && spec.ports.is_some() && spec.workload.as_ref().is_some_and(workload)
}

/// Where services were observed: the sum of all ServiceLocations documents.
#[derive(Default)]
struct Observed {
    clusters: Clusters,
    place: Option<Place>,
    documents: BTreeSet<u32>,
    accounts: BTreeSet<ServiceAccount>,
    selector: Option<crate::intent::types::Selector>,
    ports: Option<At<Vec<service::ServicePort>>>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self::NONE
    }
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

    fn locations(
        &mut self,
        documents: &[Document<ServiceLocationsSpec>],
        ids: &mut Vec<DocumentId>,
    ) -> BTreeMap<(String, String), Observed> {
        let mut observed: BTreeMap<(String, String), Observed> = BTreeMap::new();
        for document in documents {
            let origin = add(ids, &document.id, document.place);
            for entry in &document.spec.services {
                let key = (entry.namespace.to_string(), entry.name.to_string());
                if !self.index.contains_key(&key) && self.lost.service(&key.0, &key.1) {
                    continue;
                }
                if !self.index.contains_key(&key) {
                    let message = format!("{}/{} was observed and has no MeshService", key.0, key.1);
                    self.report(
                        Diagnostic::new(&codes::LOCATION_UNUSED, entry.place, message).help("the entry is ignored"),
                    );
                    continue;
                }
                let ids: Vec<_> = entry
                    .clusters
                    .iter()
                    .filter_map(|name| self.selector.named(name.as_str(), name.place, self.found))
                    .collect();
                let seen = observed.entry(key).or_default();
                seen.clusters = seen.clusters.or(&ids.into_iter().collect());
                seen.place.get_or_insert(entry.place);
                seen.documents.insert(origin.document);
                seen.accounts.extend(entry.service_accounts.iter().flatten().cloned());
                if let Some(selector) = &entry.selector {
                    seen.selector.get_or_insert_with(|| selector.clone());
                }
                if let Some(ports) = &entry.ports {
                    seen.ports.get_or_insert_with(|| ports.clone());
                }
            }
        }
        observed
    }

    fn service(
        &mut self,
        document: &Document<MeshServiceSpec>,
        locations: &BTreeMap<(String, String), Observed>,
        ids: &mut Vec<DocumentId>,
    ) -> Service {
        let origin = add(ids, &document.id, document.place);
        let spec = &document.spec;
        let namespace = document.id.namespace.clone().expect("read only with a namespace");
        let name = ServiceName::parse(document.id.name.as_str()).unwrap_or_else(|| {
            self.report(
                Diagnostic::new(
                    &codes::BAD_VALUE,
                    document.place,
                    format!("\"{}\" is not the name of a service", document.id.name),
                )
                .help("use at most 63 lower-case letters, digits and `-`, beginning with a letter"),
            );
            ServiceName::parse("invalid").expect("a valid name")
        });
        let seen = locations.get(&key(document));
        let runs = self.runs(document, seen);
        let ports = self.ports(document, seen);
        let account = spec.workload.as_ref().and_then(|workload| workload.service_account.clone()).or_else(|| {
            let accounts = seen.map(|seen| &seen.accounts).filter(|accounts| !accounts.is_empty())?;
            if accounts.len() > 1 {
                let names: Vec<&str> = accounts.iter().map(ServiceAccount::as_str).collect();
                self.report(
                    Diagnostic::new(
                        &codes::ACCOUNT_CHOICE,
                        document.place,
                        format!("the pods were seen with the service accounts {}", names.join(", ")),
                    )
                    .help(format!("write `workload: {{serviceAccount: {}}}` or another of them", names[0])),
                );
            }
            accounts.first().cloned()
        });
        let copy = ServiceCopy {
            service: name.clone(),
            ports: ports
                .iter()
                .map(|port| CopyPort { number: port.port.0, target: port.target_port.unwrap_or(port.port).0 })
                .collect(),
            selector: spec
                .workload
                .as_ref()
                .and_then(|workload| workload.selector.clone())
                .or_else(|| seen.and_then(|seen| seen.selector.clone()))
                .unwrap_or_else(|| {
                    crate::intent::types::Selector(Labels([("app".into(), name.as_str().into())].into_iter().collect()))
                }),
            account: account.unwrap_or_else(|| {
                ServiceAccount::parse(name.as_str()).expect("a service name is a service account name")
            }),
        };
        let variants = self.variants(document, &ports, &copy, &runs);
        let exposure = spec.expose.as_ref().map(|expose| self.exposure(&namespace, &name, (&copy, &variants), expose));
        Service {
            dependencies: self.dependencies(document, &namespace, &runs),
            located_by: seen
                .filter(|_| !says_everything(spec))
                .map(|seen| seen.documents.iter().copied().collect())
                .unwrap_or_default(),
            namespace,
            name,
            labels: document.labels.clone(),
            origin,
            runs,
            ports: ports
                .iter()
                .map(|port| ServicePort { name: port.name.clone(), number: port.port.0, protocol: port.protocol })
                .collect(),
            copy,
            variants,
            exposure,
            egress: spec.egress,
        }
    }

    /// Where a service runs: as declared, else as observed.
    fn runs(&mut self, document: &Document<MeshServiceSpec>, seen: Option<&Observed>) -> Clusters {
        let Some(declared) = &document.spec.clusters else {
            if seen.is_none() && !self.lost.any(Kind::ServiceLocations) {
                self.report(
                    Diagnostic::new(
                        &codes::NO_LOCATION,
                        document.place,
                        format!("nothing says where {} runs", document.id.name),
                    )
                    .help("add `clusters:`, or let `kubectl mesh discover` write a ServiceLocations document"),
                );
            }
            return seen.map_or(Clusters::NONE, |seen| seen.clusters);
        };
        let runs = self.selector.set(declared, self.found);
        if let Some(seen) = seen
            && seen.clusters != runs
        {
            let message = format!("{} was observed in {}", document.id.name, self.selector.names_of(&seen.clusters));
            let mut diagnostic = Diagnostic::new(&codes::LOCATION_DIFFERS, declared.place, message)
                .help("correct `clusters`, or remove it so that the observation counts");
            if let Some(place) = seen.place {
                diagnostic = diagnostic.also(place, "observed here");
            }
            self.report(diagnostic);
        }
        runs
    }

    /// The ports of a service, by number: as declared, else as observed.
    fn ports(&mut self, document: &Document<MeshServiceSpec>, seen: Option<&Observed>) -> Vec<service::ServicePort> {
        let Some(ports) = document.spec.ports.as_ref().or_else(|| seen.and_then(|seen| seen.ports.as_ref())) else {
            self.report(
                Diagnostic::new(
                    &codes::NO_PORTS,
                    document.place,
                    format!("nothing says which ports {} has", document.id.name),
                )
                .help("add `ports: [{name: http, port: 8080}]`"),
            );
            return Vec::new();
        };
        let mut ports = ports.value.clone();
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        let mut targets = BTreeSet::new();
        for port in &ports {
            let target = port.target_port.unwrap_or(port.port);
            let message = if !names.insert(port.name.clone()) {
                format!("a second port with the name \"{}\"", port.name)
            } else if !numbers.insert(port.port) {
                format!("a second port with the number {}", port.port.0)
            } else if !targets.insert(target) {
                format!("a second port on which the pods listen at {}", target.0)
            } else {
                continue;
            };
            self.report(
                Diagnostic::new(&codes::DUPLICATE_PORT, port.place, message)
                    .help("give every port a name, a number and a target port of its own"),
            );
        }
        ports.sort_by_key(|port| port.port);
        ports.dedup_by(|a, b| a.port == b.port || a.name == b.name);
        ports
    }

    fn variants(
        &mut self,
        document: &Document<MeshServiceSpec>,
        ports: &[service::ServicePort],
        base: &ServiceCopy,
        runs: &Clusters,
    ) -> Vec<(Clusters, ServiceCopy)> {
        let mut variants: Vec<(Clusters, ServiceCopy)> = Vec::new();
        let mut places: Vec<(Clusters, Place)> = Vec::new();
        for variant in document.spec.variants.iter().flatten() {
            let clusters = self.selector.set(&variant.clusters, self.found);
            let rival = places.iter().find(|(taken, _)| !taken.and(&clusters).is_empty()).copied();
            if let Some((taken, first)) = rival {
                let message = format!("{} has another variant already", self.selector.names_of(&taken.and(&clusters)));
                self.report(
                    Diagnostic::new(&codes::TWO_VARIANTS, variant.clusters.place, message)
                        .also(first, "the other variant")
                        .help("put both into one variant, or make their clusters distinct"),
                );
            }
            places.push((clusters, variant.clusters.place));
            let elsewhere = clusters.without(runs);
            if !elsewhere.is_empty() {
                let message = format!("{} does not run in {}", document.id.name, self.selector.names_of(&elsewhere));
                self.report(
                    Diagnostic::new(&codes::VARIANT_UNUSED, variant.clusters.place, message)
                        .help("remove the clusters where it does not run"),
                );
            }
            let workload = variant.workload.as_ref();
            let copy = ServiceCopy {
                service: variant.service.clone().unwrap_or_else(|| base.service.clone()),
                ports: variant
                    .ports
                    .as_ref()
                    .map_or_else(|| base.ports.clone(), |list| self.variant_ports(list, ports, base)),
                selector: workload
                    .and_then(|workload| workload.selector.clone())
                    .unwrap_or_else(|| base.selector.clone()),
                account: workload
                    .and_then(|workload| workload.service_account.clone())
                    .unwrap_or_else(|| base.account.clone()),
            };
            variants.push((clusters, copy));
        }
        variants.sort_by_key(|(clusters, _)| clusters.iter().next());
        variants
    }

    /// The ports of a variant, in the order of the service's ports. A port that the variant does not name stays.
    fn variant_ports(
        &mut self,
        list: &At<Vec<service::VariantPort>>,
        ports: &[service::ServicePort],
        base: &ServiceCopy,
    ) -> Vec<CopyPort> {
        let mut result = base.ports.clone();
        let (mut named, mut numbers, mut targets) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut unknown = false;
        for port in &list.value {
            let Some(position) = ports.iter().position(|candidate| candidate.name == port.name.value) else {
                let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
                let message = format!("the service has no port \"{}\"", port.name.value);
                self.report(
                    Diagnostic::new(&codes::PORTS_DIFFER, port.name.place, message)
                        .help(format!("its ports are {}", names.join(", "))),
                );
                unknown = true;
                continue;
            };
            let target = port.target_port.unwrap_or(port.port);
            let twice = if !named.insert(position) {
                Some(format!("the port \"{}\" twice", port.name.value))
            } else if !numbers.insert(port.port) {
                Some(format!("a second port with the number {}", port.port.0))
            } else if !targets.insert(target) {
                Some(format!("a second port on which the pods listen at {}", target.0))
            } else {
                None
            };
            if let Some(message) = twice {
                self.report(
                    Diagnostic::new(&codes::DUPLICATE_PORT, port.place, message)
                        .help("give every port a name, a number and a target port of its own"),
                );
            }
            if let Some(protocol) = &port.protocol
                && protocol.value != ports[position].protocol
            {
                self.report(
                    Diagnostic::new(
                        &codes::PORTS_DIFFER,
                        protocol.place,
                        format!("the service speaks {} on this port", ports[position].protocol.as_str()),
                    )
                    .help("callers speak one protocol on a port: remove the field"),
                );
            }
            result[position] = CopyPort { number: port.port.0, target: port.target_port.unwrap_or(port.port).0 };
        }
        let missing: Vec<&str> = ports
            .iter()
            .enumerate()
            .filter(|(position, _)| !named.contains(position))
            .map(|(_, port)| port.name.as_str())
            .collect();
        // A misspelt name is also a missing one; once is enough.
        if !missing.is_empty() && !unknown {
            let message = format!("the variant does not name the ports {}", missing.join(", "));
            self.report(
                Diagnostic::new(&codes::PORTS_DIFFER, list.place, message).help("name every port of the service"),
            );
        }
        result
    }

    fn exposure(
        &mut self,
        namespace: &Namespace,
        name: &ServiceName,
        (base, variants): (&ServiceCopy, &[(Clusters, ServiceCopy)]),
        expose: &service::Expose,
    ) -> Exposure {
        let mut hostnames: Vec<(crate::intent::types::HostName, Place)> = Vec::new();
        for host in &expose.hostnames {
            if hostnames.iter().any(|(taken, _)| *taken == host.value) {
                self.report(
                    Diagnostic::new(&codes::HOST_TAKEN, host.place, format!("the host name {} twice", host.value))
                        .help("keep one of them; capitals and small letters are the same"),
                );
                continue;
            }
            let text = host.value.as_str();
            let inside = text == crate::intent::GROUP
                || text.strip_suffix(crate::intent::GROUP).is_some_and(|rest| rest.ends_with('.'));
            if inside {
                self.report(
                    Diagnostic::new(
                        &codes::RESERVED_HOST,
                        host.place,
                        format!("{text} is below {}", crate::intent::GROUP),
                    )
                    .help("use a domain of your own"),
                );
            }
            if let Some(local) = text.strip_suffix(".svc.cluster.local") {
                if local != format!("{name}.{namespace}") {
                    self.report(
                        Diagnostic::new(
                            &codes::LOCAL_NAME,
                            host.place,
                            format!("{text} is not this service's own name"),
                        )
                        .help(format!("the own name is {name}.{namespace}.svc.cluster.local")),
                    );
                } else if let Some(what) = variants.iter().find_map(|(_, copy)| differs(base, copy)) {
                    let message = format!(
                        "a variant gives the Kubernetes Service {what}, so this name means something else there"
                    );
                    self.report(
                        Diagnostic::new(&codes::LOCAL_NAME, host.place, message)
                            .help("use a host name of your own domain"),
                    );
                }
            } else if text.ends_with(".cluster.local") || text.ends_with(".svc") {
                self.report(
                    Diagnostic::new(&codes::LOCAL_NAME, host.place, format!("{text} belongs to the cluster itself"))
                        .help(format!("write {name}.{namespace}.svc.cluster.local, or a host name of your own domain")),
                );
            }
            hostnames.push((host.value.clone(), host.place));
        }
        let to = expose.to.as_ref().map(|list| {
            list.iter()
                .map(|item| {
                    if let Some(service) = &item.service {
                        self.lookup(item.namespace.as_str(), service.as_str(), item.place);
                    }
                    (item.namespace.clone(), item.service.clone())
                })
                .collect()
        });
        Exposure { place: expose.place, hostnames, vip: expose.vip.as_ref().map(|vip| (vip.value, vip.place)), to }
    }

    fn dependencies(
        &mut self,
        document: &Document<MeshServiceSpec>,
        namespace: &Namespace,
        runs: &Clusters,
    ) -> Vec<Dependency> {
        let mut seen: BTreeMap<ServiceId, Place> = BTreeMap::new();
        let mut dependencies = Vec::new();
        for item in document.spec.depends_on.iter().flatten() {
            let Some(provider) =
                self.lookup(item.namespace.as_ref().unwrap_or(namespace).as_str(), item.service.as_str(), item.place)
            else {
                continue;
            };
            if let Some(first) = seen.insert(provider, item.place) {
                self.report(
                    Diagnostic::new(
                        &codes::DUPLICATE_DEPENDENCY,
                        item.place,
                        format!("{} is named twice", item.service),
                    )
                    .also(first, "first here")
                    .help("write one entry with all its clusters"),
                );
                continue;
            }
            let clusters = match &item.clusters {
                None => *runs,
                Some(set) => {
                    let wanted = self.selector.set(set, self.found);
                    if !wanted.is_empty() && wanted.and(runs).is_empty() {
                        self.report(
                            Diagnostic::new(
                                &codes::DEPENDENCY_NOWHERE,
                                set.place,
                                format!("{} runs in none of these clusters", document.id.name),
                            )
                            .help("correct the clusters, or remove the entry"),
                        );
                    }
                    wanted.and(runs)
                }
            };
            dependencies.push(Dependency { provider, clusters, place: item.place });
        }
        dependencies.sort_by_key(|dependency| dependency.provider);
        dependencies
    }

    /// What no service can get wrong by itself.
    fn check_services(&mut self, services: &[Service]) {
        let mut hosts: BTreeMap<&str, Place> = BTreeMap::new();
        for (host, place) in
            services.iter().flat_map(|service| service.exposure.iter()).flat_map(|exposure| &exposure.hostnames)
        {
            if let Some(first) = hosts.insert(host.as_str(), *place) {
                let (first, second) = (first.min(*place), first.max(*place));
                self.report(
                    Diagnostic::new(
                        &codes::HOST_TAKEN,
                        second,
                        format!("the host name {host} belongs to another service"),
                    )
                    .also(first, "it is taken here")
                    .help("give each service host names of its own"),
                );
            }
        }
        let mut names: BTreeMap<(&Namespace, &ServiceName), Vec<(usize, Clusters)>> = BTreeMap::new();
        for (position, service) in services.iter().enumerate() {
            let mut base = service.runs;
            for (clusters, copy) in &service.variants {
                base = base.without(clusters);
                names
                    .entry((&service.namespace, &copy.service))
                    .or_default()
                    .push((position, clusters.and(&service.runs)));
            }
            names.entry((&service.namespace, &service.copy.service)).or_default().push((position, base));
        }
        for ((_, name), users) in &names {
            for (index, (first, clusters)) in users.iter().enumerate() {
                for (second, others) in &users[index + 1..] {
                    if first != second && !clusters.and(others).is_empty() {
                        let (first, second) = (&services[*first], &services[*second]);
                        let message = format!(
                            "{} and {} are both the Kubernetes Service {name} in one cluster",
                            first.name, second.name
                        );
                        self.report(
                            Diagnostic::new(&codes::FOREIGN_SERVICE_NAME, second.origin.place, message)
                                .also(first.origin.place, "the other service")
                                .help("correct the `service` of a variant"),
                        );
                    }
                }
            }
        }
        for (position, service) in services.iter().enumerate() {
            if let Some(item) = service.dependencies.iter().find(|item| item.provider.index() == position) {
                self.report(
                    Diagnostic::new(&codes::SELF_DEPENDENCY, item.place, format!("{} depends on itself", service.name))
                        .help("remove the item, unless the pods are meant to call their own host name"),
                );
            }
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

    fn traffic(
        &mut self,
        document: &Document<TrafficPolicySpec>,
        services: &[Service],
        ids: &mut Vec<DocumentId>,
    ) -> TrafficPolicy {
        let origin = add(ids, &document.id, document.place);
        let spec = &document.spec;
        let own = document.id.namespace.as_ref();
        let to = spec.to.as_ref().and_then(|to| self.target(to, own));
        let (order, exclude) = match &spec.failover {
            None => (None, None),
            Some(Failover(parts)) => (parts.order.as_ref(), parts.exclude.as_ref()),
        };
        let selector = &self.selector;
        let order = order.map(|order| {
            order
                .tiers
                .iter()
                .map(|tier| tier.iter().map(|item| (selector.item(item, self.found), item.place)).collect())
                .collect()
        });
        let exclude = exclude.map(|exclude| {
            let places: Vec<Place> = match &exclude.clusters {
                crate::intent::cluster_set::ClusterSet::All => vec![exclude.place],
                crate::intent::cluster_set::ClusterSet::Items(items) => items.iter().map(|item| item.place).collect(),
            };
            selector.relative(&exclude.clusters, self.found).into_iter().zip(places).collect()
        });
        let weights = spec.weights.as_ref().map(|weights| {
            weights
                .iter()
                .map(|weight| (selector.set(&weight.clusters, self.found), weight.percent.0, weight.place))
                .collect::<Vec<_>>()
        });
        let mirror = spec
            .mirror
            .as_ref()
            .map(|mirror| (selector.set(&mirror.clusters, self.found), mirror.percent.0, mirror.place));
        for (clusters, _, place) in weights.iter().flatten().chain(&mirror) {
            self.check_runs(clusters, to, services, *place);
        }
        if let Some(weights) = &weights {
            for (index, (clusters, _, place)) in weights.iter().enumerate() {
                if let Some((_, _, first)) = weights[..index].iter().find(|(other, ..)| !other.and(clusters).is_empty())
                {
                    self.report(
                        Diagnostic::new(
                            &codes::SHARE_TWICE,
                            *place,
                            "a cluster of this share has another share already",
                        )
                        .also(*first, "its first share")
                        .help("join the two shares"),
                    );
                }
            }
        }
        if let Some(to) = to
            && !services[to.index()].ports.iter().any(|port| port.protocol.is_http())
        {
            let http = spec.matches.as_ref().map(|matches| ("match", matches.place)).into_iter();
            let units = spec.units();
            for (field, place) in
                http.chain(units.iter().filter(|(unit, _)| unit.is_http()).map(|(unit, place)| (unit.field(), *place)))
            {
                let message =
                    format!("`{field}` needs HTTP, and {} has only TCP or TLS ports", services[to.index()].name);
                self.report(
                    Diagnostic::new(&codes::HTTP_ONLY, place, message)
                        .help("remove it, or correct the protocol of a port"),
                );
            }
        }
        TrafficPolicy {
            origin,
            default: spec.default.value,
            from: spec.from.as_ref().map(|list| list.iter().filter_map(|item| self.callers(item, own)).collect()),
            to,
            matches: spec.matches.as_ref().map(|matches| matches.value.clone()),
            units: spec.units(),
            order,
            exclude,
            weights,
            outlier: spec.outlier.clone(),
            retries: spec.retries.clone(),
            timeout: spec.timeout.as_ref().map(|timeout| timeout.value),
            connection: spec.connection.clone(),
            fault: spec.fault.clone(),
            mirror,
            cors: spec.cors.clone(),
            headers: spec.headers.clone(),
        }
    }

    fn callers(&mut self, item: &CallerSelector, own: Option<&Namespace>) -> Option<Callers> {
        let parts = &item.0;
        let clusters =
            parts.clusters.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
        let service = match &parts.service {
            None => None,
            Some(name) => {
                let namespace = self.namespace_of(parts.namespace.as_ref(), own, parts.place)?;
                Some(self.lookup(namespace.as_str(), name.as_str(), name.place)?)
            }
        };
        Some(Callers { service, namespace: parts.namespace.clone().filter(|_| service.is_none()), clusters })
    }

    fn one_default(&mut self, traffic: &[TrafficPolicy]) {
        let mut defaults: Vec<Place> =
            traffic.iter().filter(|policy| policy.default).map(|policy| policy.origin.place).collect();
        defaults.sort();
        for second in defaults.iter().skip(1) {
            self.report(
                Diagnostic::new(&codes::TWO_DEFAULTS, *second, "a second default TrafficPolicy")
                    .also(defaults[0], "the first one")
                    .help("join the two"),
            );
        }
    }

    fn access(
        &mut self,
        document: &Document<crate::intent::access::AccessPolicySpec>,
        services: &[Service],
        ids: &mut Vec<DocumentId>,
    ) -> AccessPolicy {
        let origin = add(ids, &document.id, document.place);
        let spec = &document.spec;
        let own = document.id.namespace.as_ref();
        let to = spec.to.as_ref().and_then(|to| self.target(to, own));
        let rules = spec.allow.0.iter().map(|allow| {
            let within =
                allow.within.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
            if let Some(set) = &allow.within {
                self.check_runs(&within, to, services, set.place);
            }
            AccessRule {
                place: allow.place,
                sources: allow.from.iter().filter_map(|from| self.source(from, own, services)).collect(),
                within,
                within_place: allow.within.as_ref().map(|set| set.place),
                ports: allow.ports.as_ref().map(|ports| ports.iter().map(|port| (port.0, port.place)).collect()),
                methods: allow.methods.as_ref().map(|methods| (methods.value.clone(), methods.place)),
                paths: allow.paths.as_ref().map(|paths| (paths.value.clone(), paths.place)),
            }
        });
        let rules = rules.collect();
        AccessPolicy { origin, to, mode: (spec.mode.value, spec.mode.place), allow: spec.allow.place, rules }
    }

    fn source(&mut self, from: &AllowFrom, own: Option<&Namespace>, services: &[Service]) -> Option<Source> {
        let parts: &AllowParts = match from {
            AllowFrom::Dependents(place) => return Some(Source::Dependents(*place)),
            AllowFrom::Parts(parts) => parts,
        };
        let clusters =
            parts.clusters.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
        let place = parts.place;
        if let Some(name) = &parts.service {
            let namespace = self.namespace_of(parts.namespace.as_ref(), own, place)?;
            let service = self.lookup(namespace.as_str(), name.as_str(), name.place)?;
            if clusters.and(&services[service.index()].runs).is_empty() && !clusters.is_empty() {
                self.report(
                    Diagnostic::new(
                        &codes::CALLER_NOWHERE,
                        place,
                        format!("{} runs in none of these clusters", name.value),
                    )
                    .help("correct the clusters, or remove the item"),
                );
            }
            return Some(Source::Service {
                place,
                service,
                account: parts.service_account.clone(),
                clusters,
                explicit: parts.clusters.is_some(),
            });
        }
        let identity = match (&parts.service_account, &parts.namespace) {
            (Some(account), namespace) => {
                Identity::Account(self.namespace_of(namespace.as_ref(), own, place)?, account.clone())
            }
            (None, Some(namespace)) => Identity::Namespace(namespace.clone()),
            (None, None) => Identity::Any,
        };
        Some(Source::Identity { place, identity, clusters })
    }

    fn guardrails(&mut self, documents: &[Document<GuardrailSpec>], ids: &mut Vec<DocumentId>) -> Vec<Guardrail> {
        let mut names: BTreeMap<String, Place> = BTreeMap::new();
        let mut rules = Vec::new();
        for document in documents {
            let origin = add(ids, &document.id, document.place);
            for rule in &document.spec.rules {
                if let Some(first) = names.insert(rule.name.to_string(), rule.name.place) {
                    let (first, second) = (first.min(rule.name.place), first.max(rule.name.place));
                    self.report(
                        Diagnostic::new(
                            &codes::DUPLICATE_RULE,
                            second,
                            format!("a second rule is called \"{}\"", rule.name.value),
                        )
                        .also(first, "the first one")
                        .help("give it another name"),
                    );
                }
                let verb = match &rule.verb {
                    Verb::Deny(deny) => GuardrailVerb::Deny {
                        from: self.selector.set(&deny.from, self.found),
                        to: self.selector.set(&deny.to, self.found),
                    },
                    Verb::Max(max) => {
                        GuardrailVerb::Max { percent: max.percent.0, to: self.selector.set(&max.to, self.found) }
                    }
                    Verb::RequireHostnames(patterns) => GuardrailVerb::RequireHostnames(patterns.clone()),
                    Verb::RequireAccessPolicy => GuardrailVerb::RequireAccessPolicy,
                    Verb::AlwaysAllow(list) => GuardrailVerb::AlwaysAllow(
                        list.iter()
                            .map(|item| {
                                let clusters = item.clusters.as_ref().map(|set| self.selector.set(set, self.found));
                                (item.namespace.clone(), item.service_account.clone(), clusters, item.place)
                            })
                            .collect(),
                    ),
                };
                rules.push(Guardrail {
                    origin: Origin { place: rule.place, ..origin },
                    name: rule.name.to_string(),
                    services: rule.services.clone(),
                    verb,
                });
            }
        }
        rules
    }
}
