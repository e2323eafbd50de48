//! ServiceEntries: the endpoints of each lane, and stand-ins for names.
//!
//! Own pods and remote gateways are two entries of one host and namespace, which Istio merges; one entry cannot have both
//! (`workloadSelector` excludes `endpoints`). Both agree in everything else, because which of them counts is decided by age.

use super::plan::{Host, Lane, Plan, needs_dns};
use super::{View, names};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::ClusterId;
use crate::intent::types::Address;
use crate::manifest::istio::{Endpoint, EndpointAddress, EntryPort, Marks, ServiceEntry, WorkloadSelector};
use crate::manifest::{Body, Object, ServicePort, ServiceSpec, Text};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes sidecars speak mutual TLS to an endpoint that is no pod of this cluster.
const TLS_MODE: &str = "security.istio.io/tlsMode";

pub(super) fn render(view: View<'_>, plan: &Plan<'_>, objects: &mut Vec<Object>, found: &mut Diagnostics) {
    let home = view.home(plan.provider);
    let object = |suffix: &str, host: &Host, entry: ServiceEntry| {
        let name = [&*host.name, ".", suffix].concat();
        Object::new(home.clone(), name, plan.intents.clone(), Body::ServiceEntry(entry))
    };
    for host in &plan.hosts {
        let lane = host.lane.map(|lane| &plan.lanes[lane]);
        match lane {
            None => objects.push(object("name", host, entry(plan, host, "STATIC"))),
            Some(lane) if needs_dns(view, lane) => {
                check_dns(view, plan, lane, found);
                let endpoints = endpoints(view, plan, lane, true);
                objects.push(object("remote", host, ServiceEntry { endpoints, ..entry(plan, host, "DNS") }));
            }
            Some(lane) => {
                if lane.clusters().any(|cluster| cluster == view.cluster) {
                    objects.push(object("local", host, local(view, plan, host)));
                }
                let endpoints = endpoints(view, plan, lane, false);
                if !endpoints.is_empty() {
                    objects.push(object("remote", host, ServiceEntry { endpoints, ..entry(plan, host, "STATIC") }));
                }
            }
        }
    }
    let runs_here = plan.service.runs.contains(view.cluster);
    if plan.fronts.iter().any(|front| front.local)
        && !runs_here
        && view.namespaces.contains_key(&plan.service.namespace)
    {
        objects.push(stub(plan));
    }
}

fn entry(plan: &Plan<'_>, host: &Host, resolution: &'static str) -> ServiceEntry {
    ServiceEntry {
        hosts: [host.name.clone()],
        addresses: host.vip.into_iter().collect(),
        export_to: plan.namespaces.clone(),
        location: "MESH_INTERNAL",
        resolution,
        ports: plan
            .service
            .ports
            .iter()
            .zip(&plan.port_names)
            .map(|(port, name)| EntryPort {
                number: port.number,
                name: name.clone(),
                protocol: names::protocol(port.protocol),
                target_port: None,
            })
            .collect(),
        workload_selector: None,
        endpoints: Vec::new(),
    }
}

/// The pods of this cluster.
fn local(view: View<'_>, plan: &Plan<'_>, host: &Host) -> ServiceEntry {
    let copy = plan.service.copy(view.cluster);
    let mut entry = entry(plan, host, "STATIC");
    for (port, own) in entry.ports.iter_mut().zip(&copy.ports) {
        port.target_port = Some(own.target);
    }
    entry.workload_selector = Some(WorkloadSelector { labels: copy.selector.0.0.clone() });
    entry
}

/// The gateways of other clusters; with DNS also this cluster's own Service, because pods have no place in such an entry:
/// their localities beside a failover order crash istiod 1.30 and newer (istio/istio#61857).
fn endpoints(view: View<'_>, plan: &Plan<'_>, lane: &Lane, dns: bool) -> Vec<Endpoint> {
    let fleet = &view.effective.fleet;
    let most = lane
        .tiers
        .iter()
        .flatten()
        .filter_map(|cluster| fleet.cluster(*cluster).gateway.as_ref())
        .map(|gateway| gateway.addresses.len())
        .max()
        .unwrap_or(1);
    let several = lane
        .clusters()
        .filter(|cluster| *cluster != view.cluster)
        .any(|cluster| addresses(view, cluster) != addresses(view, lane.tiers[0][0]) || most > 1);
    let mut endpoints = Vec::new();
    // Gateways mostly listen on the same port, so their endpoints say the same.
    let mut ports_of_gateways = BTreeMap::new();
    for (index, tier) in lane.tiers.iter().enumerate() {
        let labels = marks(view, lane, index);
        for cluster in tier {
            if *cluster == view.cluster {
                if dns {
                    let copy = plan.service.copy(*cluster);
                    let name = format!("{}.{}.svc.cluster.local", copy.service, plan.service.namespace);
                    endpoints.push(Endpoint {
                        address: EndpointAddress::Name(name),
                        ports: ports(plan, |position| copy.ports[position].number),
                        labels: labels.clone(),
                        weight: None,
                    });
                }
                continue;
            }
            let Some(gateway) = &fleet.cluster(*cluster).gateway else { continue };
            for address in &gateway.addresses {
                endpoints.push(Endpoint {
                    address: match address {
                        Address::Ip(ip) => EndpointAddress::Ip(*ip),
                        Address::Name(name) => EndpointAddress::Name(name.to_string()),
                    },
                    ports: ports_of_gateways
                        .entry(gateway.port)
                        .or_insert_with(|| ports(plan, |_| gateway.port.0))
                        .clone(),
                    labels: labels.clone(),
                    weight: (several && most > 1).then(|| weight(lane, view, gateway.addresses.len())),
                });
            }
        }
    }
    endpoints
}

fn addresses(view: View<'_>, cluster: ClusterId) -> usize {
    view.effective.fleet.cluster(cluster).gateway.as_ref().map_or(0, |gateway| gateway.addresses.len())
}

/// Clusters of a tier count alike, however many addresses their gateways have.
fn weight(lane: &Lane, view: View<'_>, own: usize) -> u32 {
    let counts =
        lane.clusters().filter(|cluster| *cluster != view.cluster).map(|cluster| addresses(view, cluster).max(1));
    let common = counts.fold(1_usize, |common, count| (common * count / gcd(common, count)).min(5040));
    u32::try_from((common / own.max(1)).max(1)).expect("at most 5040")
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn ports(plan: &Plan<'_>, number: impl Fn(usize) -> u16) -> Arc<BTreeMap<Text, u16>> {
    let names = plan.port_names.iter().enumerate();
    Arc::new(names.map(|(position, name)| (name.clone(), number(position))).collect())
}

/// The marks by which `failoverPriority` makes tiers, see [`super::destination_rule::priorities`].
fn marks(view: View<'_>, lane: &Lane, tier: usize) -> Arc<Marks> {
    let mut labels = Marks::from([(TLS_MODE.into(), "istio")]);
    for boundary in 1..lane.tiers.len() {
        let (side, marked) = match own_side(view, lane, boundary) {
            Side::Before => ("beyond", tier >= boundary),
            Side::Behind => ("upto", tier < boundary),
        };
        if marked {
            labels.insert(names::mark(side, boundary).into(), "true");
        }
    }
    Arc::new(labels)
}

/// On which side of a boundary between tiers the own pods are, which carry no marks.
pub(super) enum Side {
    Before,
    Behind,
}

pub(super) fn own_side(view: View<'_>, lane: &Lane, boundary: usize) -> Side {
    let own_is_behind = lane.tiers[boundary..].iter().flatten().any(|cluster| *cluster == view.cluster);
    if own_is_behind { Side::Behind } else { Side::Before }
}

/// Istio before 1.30 ignores the order of entries that are looked up in DNS (istio/istio#58674).
fn check_dns(view: View<'_>, plan: &Plan<'_>, lane: &Lane, found: &mut Diagnostics) {
    let target = view.target();
    let service = plan.service;
    let named = lane.clusters().find(|cluster| {
        let gateway = view.effective.fleet.cluster(*cluster).gateway.as_ref();
        *cluster != view.cluster
            && gateway
                .is_some_and(|gateway| gateway.addresses.iter().any(|address| matches!(address, Address::Name(_))))
    });
    let Some(gateway) = named.map(|cluster| view.effective.fleet.cluster(cluster)) else { return };
    if lane.tiers.len() > 1 && view.minor < 30 {
        let message = format!(
            "{} runs Istio 1.{}, which cannot order {}/{} by tiers while the gateway of {} has a host name",
            target.name, view.minor, service.namespace, service.name, gateway.name
        );
        found.push(
            Diagnostic::new(&codes::DNS_GATEWAY_VERSION, gateway.origin.place, message)
                .also(target.origin.place, "the calling cluster")
                .help("give the gateway fixed addresses, or upgrade the calling cluster to Istio 1.30"),
        );
    }
    if lane.clusters().any(|cluster| cluster == view.cluster) {
        let message = format!(
            "callers in {} reach their own pods of {}/{} through the Kubernetes Service",
            target.name, service.namespace, service.name
        );
        found.push(
            Diagnostic::new(&codes::DNS_LOCAL_PODS, gateway.origin.place, message)
                .help("give the gateway fixed addresses for balancing pod by pod"),
        );
    }
}

/// A Service without pods, so that a cluster-local name resolves where the service does not run.
fn stub(plan: &Plan<'_>) -> Object {
    let ports = plan
        .service
        .ports
        .iter()
        .map(|port| ServicePort {
            name: port.name.to_string(),
            port: port.number,
            protocol: "TCP",
            target_port: port.number,
            app_protocol: names::protocol_word(port.protocol),
        })
        .collect();
    Object::new(
        plan.service.namespace.text(),
        plan.service.name.text(),
        plan.intents.clone(),
        Body::Service(ServiceSpec { ports }),
    )
}
