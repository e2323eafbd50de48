//! Policies and guardrails, which refer to clusters and services.

use super::{Build, add};
use crate::diagnostic::{Diagnostic, codes};
use crate::fleet::Origin;
use crate::fleet::policies::{
    AccessPolicy, AccessRule, Callers, Guardrail, GuardrailVerb, Identity, Source, TrafficPolicy,
};
use crate::fleet::services::Service;
use crate::intent::access::{AllowFrom, AllowParts, GuardrailSpec, Verb};
use crate::intent::traffic::{CallerSelector, Failover, TrafficPolicySpec};
use crate::intent::types::Namespace;
use crate::intent::{Document, DocumentId};
use crate::source::Place;
use std::collections::BTreeMap;

impl Build<'_> {
    pub(super) fn traffic(
        &mut self,
        document: &Document<TrafficPolicySpec>,
        services: &[Service],
        ids: &mut Vec<DocumentId>,
    ) -> TrafficPolicy {
        let origin = add(ids, &document.id, document.place);
        let spec = &document.spec;
        let own = document.id.namespace.as_ref();
        let to = spec.to.as_ref().and_then(|to| self.target(to, own));
        let (order, exclude) = match &spec.failover {
            None => (None, None),
            Some(Failover(parts)) => (parts.order.as_ref(), parts.exclude.as_ref()),
        };
        let selector = &self.selector;
        let order = order.map(|order| {
            order
                .tiers
                .iter()
                .map(|tier| tier.iter().map(|item| (selector.item(item, self.found), item.place)).collect())
                .collect()
        });
        let exclude = exclude.map(|exclude| {
            let places: Vec<Place> = match &exclude.clusters {
                crate::intent::cluster_set::ClusterSet::All => vec![exclude.place],
                crate::intent::cluster_set::ClusterSet::Items(items) => items.iter().map(|item| item.place).collect(),
            };
            selector.relative(&exclude.clusters, self.found).into_iter().zip(places).collect()
        });
        let weights = spec.weights.as_ref().map(|weights| {
            weights
                .iter()
                .map(|weight| (selector.set(&weight.clusters, self.found), weight.percent.0, weight.place))
                .collect::<Vec<_>>()
        });
        let mirror = spec
            .mirror
            .as_ref()
            .map(|mirror| (selector.set(&mirror.clusters, self.found), mirror.percent.0, mirror.place));
        for (clusters, _, place) in weights.iter().flatten().chain(&mirror) {
            self.check_runs(clusters, to, services, *place);
        }
        if let Some(weights) = &weights {
            for (index, (clusters, _, place)) in weights.iter().enumerate() {
                if let Some((_, _, first)) = weights[..index].iter().find(|(other, ..)| !other.and(clusters).is_empty())
                {
                    self.report(
                        Diagnostic::new(
                            &codes::SHARE_TWICE,
                            *place,
                            "a cluster of this share has another share already",
                        )
                        .also(*first, "its first share")
                        .help("join the two shares"),
                    );
                }
            }
        }
        if let Some(to) = to
            && !services[to.index()].speaks_http()
        {
            let http = spec.matches.as_ref().map(|matches| ("match", matches.place)).into_iter();
            let units = spec.units();
            for (field, place) in
                http.chain(units.iter().filter(|(unit, _)| unit.is_http()).map(|(unit, place)| (unit.field(), *place)))
            {
                let message =
                    format!("`{field}` needs HTTP, and {} has only TCP or TLS ports", services[to.index()].name);
                self.report(
                    Diagnostic::new(&codes::HTTP_ONLY, place, message)
                        .help("remove it, or correct the protocol of a port"),
                );
            }
        }
        TrafficPolicy {
            origin,
            default: spec.default.value,
            from: spec.from.as_ref().map(|list| list.iter().filter_map(|item| self.callers(item, own)).collect()),
            to,
            matches: spec.matches.as_ref().map(|matches| (matches.value.clone(), matches.place)),
            units: spec.units(),
            order,
            exclude,
            weights,
            outlier: spec.outlier.clone(),
            retries: spec.retries.clone(),
            timeout: spec.timeout.as_ref().map(|timeout| timeout.value),
            connection: spec.connection.clone(),
            fault: spec.fault.clone(),
            mirror,
            cors: spec.cors.clone(),
            headers: spec.headers.clone(),
        }
    }

    fn callers(&mut self, item: &CallerSelector, own: Option<&Namespace>) -> Option<Callers> {
        let parts = &item.0;
        let clusters =
            parts.clusters.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
        let service = match &parts.service {
            None => None,
            Some(name) => {
                let namespace = self.namespace_of(parts.namespace.as_ref(), own, parts.place)?;
                Some(self.lookup(namespace.as_str(), name.as_str(), name.place)?)
            }
        };
        Some(Callers { service, namespace: parts.namespace.clone().filter(|_| service.is_none()), clusters })
    }

    pub(super) fn one_default(&mut self, traffic: &[TrafficPolicy]) {
        let mut defaults: Vec<Place> =
            traffic.iter().filter(|policy| policy.default).map(|policy| policy.origin.place).collect();
        defaults.sort();
        for second in defaults.iter().skip(1) {
            self.report(
                Diagnostic::new(&codes::TWO_DEFAULTS, *second, "a second default TrafficPolicy")
                    .also(defaults[0], "the first one")
                    .help("join the two"),
            );
        }
    }

    pub(super) fn access(
        &mut self,
        document: &Document<crate::intent::access::AccessPolicySpec>,
        services: &[Service],
        ids: &mut Vec<DocumentId>,
    ) -> AccessPolicy {
        let origin = add(ids, &document.id, document.place);
        let spec = &document.spec;
        let own = document.id.namespace.as_ref();
        let to = spec.to.as_ref().and_then(|to| self.target(to, own));
        let rules = spec.allow.0.iter().map(|allow| {
            let within =
                allow.within.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
            if let Some(set) = &allow.within {
                self.check_runs(&within, to, services, set.place);
            }
            AccessRule {
                place: allow.place,
                sources: allow.from.iter().filter_map(|from| self.source(from, own, services)).collect(),
                within,
                within_place: allow.within.as_ref().map(|set| set.place),
                ports: allow.ports.as_ref().map(|ports| ports.iter().map(|port| (port.0, port.place)).collect()),
                methods: allow.methods.as_ref().map(|methods| (methods.value.clone(), methods.place)),
                paths: allow.paths.as_ref().map(|paths| (paths.value.clone(), paths.place)),
            }
        });
        let rules = rules.collect();
        AccessPolicy { origin, to, mode: (spec.mode.value, spec.mode.place), allow: spec.allow.place, rules }
    }

    fn source(&mut self, from: &AllowFrom, own: Option<&Namespace>, services: &[Service]) -> Option<Source> {
        let parts: &AllowParts = match from {
            AllowFrom::Dependents(place) => return Some(Source::Dependents(*place)),
            AllowFrom::Parts(parts) => parts,
        };
        let clusters =
            parts.clusters.as_ref().map_or_else(|| self.selector.all(), |set| self.selector.set(set, self.found));
        let place = parts.place;
        if let Some(name) = &parts.service {
            let namespace = self.namespace_of(parts.namespace.as_ref(), own, place)?;
            let service = self.lookup(namespace.as_str(), name.as_str(), name.place)?;
            if clusters.and(&services[service.index()].runs).is_empty() && !clusters.is_empty() {
                self.report(
                    Diagnostic::new(
                        &codes::CALLER_NOWHERE,
                        place,
                        format!("{} runs in none of these clusters", name.value),
                    )
                    .help("correct the clusters, or remove the item"),
                );
            }
            return Some(Source::Service {
                place,
                service,
                account: parts.service_account.clone(),
                clusters,
                explicit: parts.clusters.is_some(),
            });
        }
        let identity = match (&parts.service_account, &parts.namespace) {
            (Some(account), namespace) => {
                Identity::Account(self.namespace_of(namespace.as_ref(), own, place)?, account.clone())
            }
            (None, Some(namespace)) => Identity::Namespace(namespace.clone()),
            (None, None) => Identity::Any,
        };
        Some(Source::Identity { place, identity, clusters })
    }

    pub(super) fn guardrails(
        &mut self,
        documents: &[Document<GuardrailSpec>],
        ids: &mut Vec<DocumentId>,
    ) -> Vec<Guardrail> {
        let mut names: BTreeMap<String, Place> = BTreeMap::new();
        let mut rules = Vec::new();
        for document in documents {
            let origin = add(ids, &document.id, document.place);
            for rule in &document.spec.rules {
                if let Some(first) = names.insert(rule.name.to_string(), rule.name.place) {
                    let (first, second) = (first.min(rule.name.place), first.max(rule.name.place));
                    self.report(
                        Diagnostic::new(
                            &codes::DUPLICATE_RULE,
                            second,
                            format!("a second rule is called \"{}\"", rule.name.value),
                        )
                        .also(first, "the first one")
                        .help("give it another name"),
                    );
                }
                let verb = match &rule.verb {
                    Verb::Deny(deny) => GuardrailVerb::Deny {
                        from: self.selector.set(&deny.from, self.found),
                        to: self.selector.set(&deny.to, self.found),
                    },
                    Verb::Max(max) => {
                        GuardrailVerb::Max { percent: max.percent.0, to: self.selector.set(&max.to, self.found) }
                    }
                    Verb::RequireHostnames(patterns) => GuardrailVerb::RequireHostnames(patterns.clone()),
                    Verb::RequireAccessPolicy => GuardrailVerb::RequireAccessPolicy,
                    Verb::AlwaysAllow(list) => GuardrailVerb::AlwaysAllow(
                        list.iter()
                            .map(|item| {
                                let clusters = item.clusters.as_ref().map(|set| self.selector.set(set, self.found));
                                (item.namespace.clone(), item.service_account.clone(), clusters, item.place)
                            })
                            .collect(),
                    ),
                };
                rules.push(Guardrail {
                    origin: Origin { place: rule.place, ..origin },
                    name: rule.name.to_string(),
                    services: rule.services.clone(),
                    verb,
                });
            }
        }
        rules
    }
}
