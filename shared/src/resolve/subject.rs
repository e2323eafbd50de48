//! Whose row is resolved: a caller, its cluster, a service.

use super::access::Access;
use super::caller_name;
use crate::fleet::{ClusterId, Fleet, GuardrailVerb, Origin, Service, ServiceId};

/// Whose row it is.
pub(super) struct Subject<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) access: &'a Access,
    pub(super) caller: ServiceId,
    pub(super) cluster: ClusterId,
    pub(super) provider: ServiceId,
}

impl Subject<'_> {
    /// The called service.
    pub(super) fn service(&self) -> &Service {
        self.fleet.service(self.provider)
    }

    /// `namespace/caller@cluster to namespace/service`.
    pub(super) fn describe(&self) -> String {
        let service = self.service();
        format!("{} to {}/{}", caller_name(self.fleet, self.caller, self.cluster), service.namespace, service.name)
    }

    /// Whether another cluster cannot be reached from here at all.
    pub(super) fn is_unreachable(&self, cluster: ClusterId) -> bool {
        let target = self.fleet.cluster(cluster);
        cluster != self.cluster
            && (target.gateway.is_none() || target.mesh.kind.0 != self.fleet.cluster(self.cluster).mesh.kind.0)
    }

    /// The guardrail that denies the way from here to a cluster.
    pub(super) fn denied_by(&self, cluster: ClusterId) -> Option<Origin> {
        let labels = &self.service().labels;
        self.fleet.guardrails.iter().find_map(|rule| match &rule.verb {
            GuardrailVerb::Deny { from, to }
                if from.contains(self.cluster) && to.contains(cluster) && labels.contain(&rule.services) =>
            {
                Some(rule.origin)
            }
            _ => None,
        })
    }
}
