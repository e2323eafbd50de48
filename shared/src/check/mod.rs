//! Findings about the effective fleet that hold for any mesh, one file per family of rules.

mod access;
mod guardrails;
mod names;
mod resilience;
mod workloads;

use crate::diagnostic::Diagnostics;
use crate::resolve::Effective;

/// Everything that is wrong with, or worth knowing about, an effective fleet.
pub fn check(effective: &Effective, found: &mut Diagnostics) {
    names::check(effective, found);
    workloads::check(effective, found);
    guardrails::check(effective, found);
    access::check(effective, found);
    resilience::check(effective, found);
}
