//! What Istio takes at most in one object (`crd-all.gen.yaml`), and the ports that its sidecars keep for themselves. A fleet
//! that needs more is refused: an object that the API server does not take would leave what stands there now.

use super::View;
use super::plan::Plan;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, codes};
use crate::fleet::Service;

/// `AuthorizationPolicy.spec.rules`.
const RULES: usize = 512;
/// `ServiceEntry.spec.endpoints[].ports`.
const PORTS: usize = 128;
/// `ServiceEntry.spec.endpoints`.
const ENDPOINTS: usize = 4096;
/// `ServiceEntry.spec.endpoints[].labels`: one for mutual TLS, and one for each tier but the first.
const TIERS: usize = 256;
/// `ServiceEntry.spec.workloadSelector.labels`.
const LABELS: usize = 256;
/// Where sidecars capture what leaves and reaches a pod; what is sent there is dropped.
const CAPTURE: [u16; 2] = [15001, 15006];

fn too_many(
    view: View<'_>,
    service: &Service,
    place: Place,
    what: &str,
    count: usize,
    most: usize,
    found: &mut Diagnostics,
) {
    if count > most {
        let message = format!(
            "{}/{} would need {count} {what} in one object in {}; Istio takes {most}",
            service.namespace,
            service.name,
            view.target().name
        );
        found.push(
            Diagnostic::new(&codes::OBJECT_TOO_LARGE, place, message)
                .help("write fewer distinct ones, or split the service"),
        );
    }
}

/// What callers need for a service.
pub(super) fn check_plan(view: View<'_>, plan: &Plan<'_>, found: &mut Diagnostics) {
    let service = plan.service;
    let place = service.origin.place;
    too_many(view, service, place, "ports", service.ports.len(), PORTS, found);
    for lane in &plan.lanes {
        too_many(view, service, place, "tiers", lane.tiers.len(), TIERS, found);
        let gateways = lane.clusters().filter_map(|cluster| view.effective.fleet.cluster(cluster).gateway.as_ref());
        let endpoints = gateways.map(|gateway| gateway.addresses.len()).sum();
        too_many(view, service, place, "endpoints", endpoints, ENDPOINTS, found);
    }
    for port in service.ports.iter().filter(|port| CAPTURE.contains(&port.number)) {
        captured(service, port.number, found);
    }
}

/// What a copy needs where it runs.
pub(super) fn check_copy(view: View<'_>, service: &Service, found: &mut Diagnostics) {
    let copy = service.copy(view.cluster);
    too_many(view, service, service.origin.place, "labels", copy.selector.0.0.len(), LABELS, found);
    for port in copy.ports.iter().filter(|port| CAPTURE.contains(&port.target)) {
        captured(service, port.target, found);
    }
}

/// The rules at one copy.
pub(super) fn check_rules(view: View<'_>, service: &Service, place: Place, rules: usize, found: &mut Diagnostics) {
    too_many(view, service, place, "rules", rules, RULES, found);
}

fn captured(service: &Service, port: u16, found: &mut Diagnostics) {
    let message =
        format!("{}/{} uses port {port}, which sidecars keep for themselves", service.namespace, service.name);
    found.push(Diagnostic::new(&codes::SIDECAR_PORT, service.origin.place, message).help("choose another number"));
}
