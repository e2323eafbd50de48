//! What failover needs beyond an order.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::intent::traffic::Unit;
use crate::resolve::Effective;

pub(super) fn check(effective: &Effective, found: &mut Diagnostics) {
    let fleet = &effective.fleet;
    let unbounded = effective
        .edges
        .iter()
        .filter(|edge| {
            let route = &edge.base;
            let http = fleet.service(edge.provider).speaks_http();
            let per_try = route
                .units
                .policy(Unit::Retries)
                .and_then(|policy| policy.of(fleet).retries.as_ref())
                .is_some_and(|retries| retries.per_try_timeout.is_some());
            http && route.clusters().len() > 1 && route.units.policy(Unit::Timeout).is_none() && !per_try
        })
        .count();
    if unbounded > 0 {
        let default = fleet.traffic.iter().find(|policy| policy.default).map(|policy| policy.origin.place);
        let message = format!(
            "{unbounded} of {} rows have failover and no timeout: a copy that accepts requests and never answers is not left",
            effective.edges.len()
        );
        found.push(
            Diagnostic::new(&codes::NO_TIMEOUT, default, message)
                .help("set `timeout`, or `retries.perTryTimeout`, in the default TrafficPolicy"),
        );
    }
}
