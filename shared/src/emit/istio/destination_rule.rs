//! DestinationRules: how the endpoints of a lane are reached. Tiers, mutual TLS and outlier detection stand together or
//! not at all.

use super::plan::{Host, Lane, Plan, cross_cluster};
use super::service_entry::{Side, own_side};
use super::{View, names};
use crate::fleet::ServicePort;
use crate::intent::traffic::{CrossCluster, Keepalive};
use crate::manifest::istio::{
    ClientTls, ConnectionPool, DestinationRule, HttpSettings, LoadBalancer, LocalityLb, OutlierDetection, PortNumber,
    PortPolicy, TcpKeepalive, TcpSettings, TrafficPolicy,
};
use crate::manifest::{Body, Object};

pub(super) fn render(view: View<'_>, plan: &Plan<'_>, objects: &mut Vec<Object>) {
    for host in &plan.hosts {
        let Some(lane) = host.lane.map(|lane| &plan.lanes[lane]) else { continue };
        let rule = DestinationRule {
            host: host.name.clone(),
            export_to: plan.namespaces.clone(),
            traffic_policy: policy(view, plan, lane),
        };
        objects.push(object(view, plan, host, rule));
    }
}

fn object(view: View<'_>, plan: &Plan<'_>, host: &Host, rule: DestinationRule) -> Object {
    Object::new(view.home(plan.provider), host.name.clone(), plan.intents.clone(), Body::DestinationRule(rule))
}

/// Settings of a port replace those of the whole rule, field by field absent or not (`GetPortLevelTrafficPolicy`), so
/// with several ports each says everything.
fn policy(view: View<'_>, plan: &Plan<'_>, lane: &Lane) -> TrafficPolicy {
    match plan.service.ports.as_slice() {
        [port] => TrafficPolicy::Whole(Box::new(port_policy(view, plan, lane, port, None))),
        ports => TrafficPolicy::PerPort {
            port_level_settings: ports
                .iter()
                .map(|port| port_policy(view, plan, lane, port, Some(PortNumber { number: port.number })))
                .collect(),
        },
    }
}

fn port_policy(
    view: View<'_>,
    plan: &Plan<'_>,
    lane: &Lane,
    port: &ServicePort,
    number: Option<PortNumber>,
) -> PortPolicy {
    PortPolicy {
        port: number,
        tls: ClientTls {
            mode: "ISTIO_MUTUAL",
            sni: names::sni(plan.service, port.number),
            subject_alt_names: identities(view, plan, lane),
        },
        load_balancer: LoadBalancer {
            simple: "LEAST_REQUEST",
            // Off, a single tier is one tier; on without an order, Istio would make tiers of zones and regions.
            locality_lb_setting: LocalityLb {
                enabled: lane.tiers.len() > 1,
                failover_priority: priorities(view, lane),
            },
        },
        outlier_detection: lane.outlier.map(|outlier| OutlierDetection {
            consecutive_gateway_errors: outlier.errors,
            consecutive_5xx_errors: 0,
            interval: outlier.interval,
            base_ejection_time: outlier.eject_for,
            max_ejection_percent: 100,
        }),
        connection_pool: cross_cluster(view.effective, lane).map(|settings| connection_pool(settings, port)),
    }
}

/// Everyone who may answer. Entries cannot say it: with two of one host, the newer one's list would win.
fn identities(view: View<'_>, plan: &Plan<'_>, lane: &Lane) -> Vec<String> {
    let mut identities: Vec<String> = lane
        .clusters()
        .map(|cluster| {
            names::spiffe(
                view.effective.fleet.cluster(cluster),
                plan.service.namespace.as_str(),
                plan.service.copy(cluster).account.as_str(),
            )
        })
        .collect();
    identities.sort_unstable();
    identities.dedup();
    identities
}

/// Explicit tiers. Istio compares these labels with the caller's own, outermost first, and the first mismatch decides the
/// tier (`applyFailoverPriorityPerLocality`); a label that both lack counts as equal. Callers and own pods carry no marks,
/// so a boundary in front of which the own pods are is marked on what lies beyond it, and any other one up to it.
pub(super) fn priorities(view: View<'_>, lane: &Lane) -> Vec<String> {
    (1..lane.tiers.len())
        .rev()
        .map(|boundary| match own_side(view, lane, boundary) {
            Side::Before => names::mark("beyond", boundary),
            Side::Behind => format!("{}=true", names::mark("upto", boundary)),
        })
        .collect()
}

fn connection_pool(settings: &CrossCluster, port: &ServicePort) -> ConnectionPool {
    let CrossCluster { connect_timeout, keepalive, idle_timeout, max_age, place: _ } = settings;
    let http = port.protocol.is_http();
    let tcp = TcpSettings {
        connect_timeout: *connect_timeout,
        tcp_keepalive: keepalive.as_ref().map(|Keepalive { idle, interval, probes, place: _ }| TcpKeepalive {
            time: idle.map(|idle| idle.0),
            interval: interval.map(|interval| interval.0),
            probes: probes.map(|probes| probes.0),
        }),
        idle_timeout: idle_timeout.filter(|_| !http),
        max_connection_duration: *max_age,
    };
    ConnectionPool {
        tcp: Some(tcp).filter(|tcp| *tcp != TcpSettings::default()),
        http: idle_timeout.filter(|_| http).map(|timeout| HttpSettings { idle_timeout: timeout }),
    }
}
