//! Services: where they run, what they depend on, how others reach them.

use super::{Build, add, key};
use crate::diagnostic::{Diagnostic, codes};
use crate::fleet::clusters::Clusters;
use crate::fleet::services::{CopyPort, Dependency, Exposure, Service, ServiceCopy, ServiceId, ServicePort};
use crate::intent::decode::At;
use crate::intent::service::{self, MeshServiceSpec, ServiceLocationsSpec};
use crate::intent::types::{Namespace, ServiceAccount, ServiceName};
use crate::intent::{Document, DocumentId, Kind};
use crate::source::Place;
use std::collections::{BTreeMap, BTreeSet};

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
pub(super) struct Observed {
    clusters: Clusters,
    place: Option<Place>,
    documents: BTreeSet<u32>,
    accounts: BTreeSet<ServiceAccount>,
    selector: Option<crate::intent::types::Selector>,
    ports: Option<At<Vec<service::ServicePort>>>,
}

impl Build<'_> {
    pub(super) fn locations(
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

    pub(super) fn service(
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
                .unwrap_or_else(|| crate::intent::types::Selector([("app".into(), name.text())].into_iter().collect())),
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
        let written = document.spec.depends_on.as_deref().unwrap_or_default();
        let mut dependencies = Vec::with_capacity(written.len());
        for item in written {
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
    pub(super) fn check_services(&mut self, services: &[Service]) {
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
}
