//! What guardrails require of services. Denied ways and bounded shares are judged row by row where rows are resolved.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::GuardrailVerb;
use crate::intent::access::Mode;
use crate::resolve::Effective;

pub(super) fn check(effective: &Effective, found: &mut Diagnostics) {
    let fleet = &effective.fleet;
    for rule in &fleet.guardrails {
        for (id, service) in fleet.service_ids().filter(|(_, service)| service.labels.contain(&rule.services)) {
            match &rule.verb {
                GuardrailVerb::RequireHostnames(patterns) => {
                    for (host, place) in service.exposure.iter().flat_map(|exposure| &exposure.hostnames) {
                        if host.as_str() == service.local_name() || patterns.iter().any(|pattern| pattern.admits(host))
                        {
                            continue;
                        }
                        let allowed: Vec<&str> =
                            patterns.iter().map(crate::intent::types::HostPattern::as_str).collect();
                        let message = format!("{host} is none of what \"{}\" allows", rule.name);
                        found.push(
                            Diagnostic::new(&codes::GUARDRAIL_HOSTNAME, *place, message)
                                .also(rule.origin.place, "the guardrail")
                                .help(format!("use a host name of {}", allowed.join(", "))),
                        );
                    }
                }
                GuardrailVerb::RequireAccessPolicy => {
                    if effective.access.service(id).mode != Some(Mode::Enforce) {
                        let message = format!(
                            "{}/{} has no enforcing access policy, which \"{}\" requires",
                            service.namespace, service.name, rule.name
                        );
                        found.push(
                            Diagnostic::new(&codes::GUARDRAIL_ACCESS, service.origin.place, message)
                                .also(rule.origin.place, "the guardrail")
                                .help("write an AccessPolicy with mode enforce for it"),
                        );
                    }
                }
                GuardrailVerb::Deny { .. } | GuardrailVerb::Max { .. } | GuardrailVerb::AlwaysAllow(_) => {}
            }
        }
    }
}
