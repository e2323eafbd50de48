//! Access and routing are separate, so what one says and the other does not is told.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::Source;
use crate::resolve::Effective;

/// How many services a message names.
const NAMED: usize = 10;

pub(super) fn check(effective: &Effective, found: &mut Diagnostics) {
    let fleet = &effective.fleet;
    let open: Vec<String> = fleet
        .service_ids()
        .filter(|(id, _)| effective.access.service(*id).mode.is_none())
        .map(|(_, service)| format!("{}/{}", service.namespace, service.name))
        .collect();
    if !open.is_empty() {
        let more = if open.len() > NAMED { ", …" } else { "" };
        let message = format!(
            "{} without an access policy, open to the mesh: {}{more}",
            count(open.len(), "service"),
            open[..open.len().min(NAMED)].join(", ")
        );
        found.push(
            Diagnostic::new(&codes::NO_POLICY, None, message)
                .help("write an AccessPolicy for each, or one with `default: true`"),
        );
    }
    for policy in &fleet.access {
        let Some(to) = policy.to else { continue };
        for source in policy.rules.iter().flat_map(|rule| &rule.sources) {
            let Source::Service { place, service, .. } = source else { continue };
            if !effective.access.dependents(to).iter().any(|(dependent, _)| dependent == service) {
                let (caller, called) = (fleet.service(*service), fleet.service(to));
                let message = format!(
                    "{}/{} may call {}/{} and declares no dependency on it",
                    caller.namespace, caller.name, called.namespace, called.name
                );
                found.push(
                    Diagnostic::new(&codes::UNUSED_PERMISSION, *place, message)
                        .help("add the dependency, or remove the item"),
                );
            }
        }
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
