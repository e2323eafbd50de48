//! Sidecars: what the proxies of a service see, where it wants that limited to what it declares.

use super::{View, names, plan};
use crate::diagnostic::Diagnostics;
use crate::fleet::{Service, ServiceId};
use crate::intent::service::Egress;
use crate::manifest::istio::{OutboundTrafficPolicy, Sidecar, SidecarEgress, WorkloadSelector};
use crate::manifest::{Body, Object};
use std::collections::BTreeSet;

pub(super) fn render(view: View<'_>, id: ServiceId, service: &Service, objects: &mut Vec<Object>) {
    let outbound_traffic_policy = match service.egress {
        Egress::Open => return,
        Egress::Declared => None,
        Egress::Enforced => Some(OutboundTrafficPolicy { mode: "REGISTRY_ONLY" }),
    };
    let fleet = &view.effective.fleet;
    // The control plane's own services, for telemetry; imported hosts may live in the same namespace.
    let control = &view.target().mesh.namespace;
    let mut hosts = BTreeSet::from([format!("{control}/*.{control}.svc.cluster.local")]);
    let mut documents: BTreeSet<u32> = service.documents().collect();
    for dependency in service.dependencies.iter().filter(|dependency| dependency.clusters.contains(view.cluster)) {
        let provider = fleet.service(dependency.provider);
        let mut visible = BTreeSet::new();
        if provider.runs.contains(view.cluster) {
            visible.insert(format!(
                "{}/{}.{}.svc.cluster.local",
                provider.namespace,
                provider.copy(view.cluster).service,
                provider.namespace
            ));
        }
        if let Some(edge) = view.effective.edge(id, view.cluster, dependency.provider) {
            documents.extend(plan::intents(view, dependency.provider, std::iter::once(edge)));
            if edge.is_served() {
                let edges: Vec<_> = view
                    .effective
                    .edges_from(view.cluster)
                    .filter(|edge| edge.provider == dependency.provider)
                    .collect();
                // Findings about the plan are told where its objects are rendered.
                let plan = plan::Plan::of(view, &edges, &mut Diagnostics::default());
                let home = view.home(dependency.provider);
                visible.extend(plan.fronts.iter().map(|front| format!("{home}/{}", front.name)));
                documents.extend(view.home_documents(dependency.provider));
            }
        }
        if !visible.is_empty() {
            documents.extend(provider.documents());
            hosts.append(&mut visible);
        }
    }
    let sidecar = Sidecar {
        workload_selector: WorkloadSelector { labels: service.copy(view.cluster).selector.0.0.clone() },
        egress: vec![SidecarEgress { hosts: hosts.into_iter().collect() }],
        outbound_traffic_policy,
    };
    let intents = view.intents(documents);
    objects.push(Object::new(service.namespace.text(), names::of_service(service), intents, Body::Sidecar(sidecar)));
}
