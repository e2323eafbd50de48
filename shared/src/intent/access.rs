//! `AccessPolicy` and `Guardrail`: who may call, and what the effective result must respect.

use super::cluster_set::ClusterSet;
use super::decode::{At, Decode, MaybeEmpty, bad_value, record, words};
use super::traffic::ServiceRef;
use super::types::{DocumentName, HostPattern, Labels, Method, Namespace, Percent, Port, ServiceAccount, ServiceName};
use crate::diagnostic::Diagnostics;
use crate::source::{Node, Value};
use serde_json::{Map as Object, Value as Json, json};

record! {
    /// Who may call a service, from which clusters, in which clusters.
    pub struct AccessPolicySpec {
        /// `true`: holds for every service that has no policy of its own; names no `to`.
        default as "default": default At<bool> = |place| At { place, value: false },
        /// The called service.
        to as "to": optional ServiceRef,
        /// Whether calls are refused or only logged; default: enforce.
        mode as "mode": default At<Mode> = |place| At { place, value: Mode::Enforce },
        /// Who may call; `[]`: nobody.
        allow as "allow": required At<MaybeEmpty<Allow>>,
    }
}

words! {
    /// What happens to a call that is not allowed.
    pub enum Mode {
        /// It is refused.
        Enforce = "enforce",
        /// It is logged and goes on.
        Audit = "audit",
    }
}

record! {
    /// One rule: calls that fit all of its parts are allowed.
    pub struct Allow {
        /// The callers; one of them.
        from as "from": required Vec<AllowFrom>,
        /// The clusters whose copy may be called; absent: every copy.
        within as "in": optional At<ClusterSet>,
        /// The service's ports that may be called; absent: all of them.
        ports as "ports": optional Vec<At<Port>>,
        /// The methods that may be used; absent: all. HTTP only.
        methods as "methods": optional At<Vec<Method>>,
        /// The paths that may be called, each with at most one `*` at its beginning or end; absent: all. HTTP only.
        paths as "paths": optional At<Vec<PathPattern>>,
    }
}

/// A path, or a pattern with one `*` at its beginning or end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathPattern(pub String);

impl Decode for PathPattern {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = super::decode::text(node, "a string: a path", found)?;
        let inner = text.strip_suffix('*').or_else(|| text.strip_prefix('*')).unwrap_or(text);
        let rooted = text.starts_with('/') || text.starts_with('*');
        // Istio reads `{*}` and `{**}` as templates; only `*` at one end means here what it means there.
        if text.is_empty()
            || inner.contains(['*', '{', '}', '?', '#'])
            || !rooted
            || text.chars().any(|c| c.is_control() || c.is_whitespace())
        {
            return bad_value(
                node.place,
                "not a path, or not a pattern with one `*` at its beginning or end",
                "write a path from its first `/` and without its query, for example /v1/orders or /v1/*",
                found,
            );
        }
        Some(Self(text.to_owned()))
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "pattern": "^(/[^*{}?#\\s]*\\*?|\\*[^*{}?#\\s]*)$"})
    }
}

/// Callers of an allow rule.
#[derive(Clone, Debug)]
pub enum AllowFrom {
    /// The callers, cluster by cluster, that declare the dependency.
    Dependents(crate::source::Place),
    /// Callers by their parts.
    Parts(AllowParts),
}

record! {
    /// Callers by their parts; all parts hold, at least one is named.
    pub struct AllowParts {
        /// A service of the fleet.
        service as "service": optional At<ServiceName>,
        /// A service account.
        service_account as "serviceAccount": optional ServiceAccount,
        /// A namespace; default beside `service` or `serviceAccount`: the document's own; else any.
        namespace as "namespace": optional Namespace,
        /// The clusters they call from; absent: all.
        clusters as "clusters": optional At<ClusterSet>,
    }
}

impl Decode for AllowFrom {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Str(text) if &**text == "dependents" => Some(Self::Dependents(node.place)),
            Value::Str(_) => bad_value(
                node.place,
                "the only word that may stand here is `dependents`",
                "write dependents, or a map such as {service: account}",
                found,
            ),
            _ => {
                let parts = AllowParts::decode(node, found)?;
                if parts.service.is_none()
                    && parts.service_account.is_none()
                    && parts.namespace.is_none()
                    && parts.clusters.is_none()
                {
                    return bad_value(
                        node.place,
                        "an item of `from` that names nothing would allow everyone",
                        "name a service, service account, namespace or clusters",
                        found,
                    );
                }
                Some(Self::Parts(parts))
            }
        }
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        json!({"anyOf": [{"const": "dependents"}, AllowParts::schema(definitions)]})
    }
}

record! {
    /// Rules that the effective result must respect.
    pub struct GuardrailSpec {
        /// The rules.
        rules as "rules": required Vec<Rule>,
    }
}

record! {
    /// One rule: a name, exactly one of deny, max, require and alwaysAllow, and for which services it holds.
    pub struct RuleParts {
        /// The name, unique in the fleet.
        name as "name": required At<DocumentName>,
        /// Labels of the called MeshService; absent: every service.
        services as "for": optional Labels,
        /// Calls that are never routed.
        deny as "deny": optional Deny,
        /// A bound on shares.
        max as "max": optional Max,
        /// What a service must have.
        require as "require": optional Require,
        /// Callers that every service with an enforcing policy admits.
        always_allow as "alwaysAllow": optional Vec<AlwaysAllow>,
    }
}

record! {
    /// Calls that are never routed, the caller's own cluster included if both sides match it.
    pub struct Deny {
        /// The callers' clusters.
        from as "from": required At<ClusterSet>,
        /// The clusters they never reach.
        to as "to": required At<ClusterSet>,
    }
}

record! {
    /// A bound on the shares that go elsewhere.
    pub struct Max {
        /// At most this share.
        percent as "percent": required Percent,
        /// To these clusters together.
        to as "to": required At<ClusterSet>,
    }
}

record! {
    /// What a service must have; exactly one of the two.
    pub struct Require {
        /// Every host name fits one of these patterns; the service's own cluster-local name is exempt.
        hostnames as "hostnames": optional Vec<HostPattern>,
        /// An enforcing access policy, its own or the default.
        access_policy as "accessPolicy": optional At<bool>,
    }
}

record! {
    /// An identity that every service with an enforcing policy admits.
    pub struct AlwaysAllow {
        /// Its namespace.
        namespace as "namespace": required Namespace,
        /// Its service account.
        service_account as "serviceAccount": required ServiceAccount,
        /// From these clusters too; the called copy's own cluster is always among them.
        clusters as "clusters": optional At<ClusterSet>,
    }
}

/// What a rule of a guardrail does.
#[derive(Clone, Debug)]
pub enum Verb {
    /// Calls that are never routed.
    Deny(Deny),
    /// A bound on shares.
    Max(Max),
    /// Patterns that host names fit.
    RequireHostnames(Vec<HostPattern>),
    /// An enforcing access policy.
    RequireAccessPolicy,
    /// Callers that are always admitted.
    AlwaysAllow(Vec<AlwaysAllow>),
}

/// A rule with exactly one verb.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it begins.
    pub place: crate::source::Place,
    /// Its name.
    pub name: At<DocumentName>,
    /// Labels of the called services it holds for.
    pub services: Labels,
    /// What it does.
    pub verb: Verb,
}

impl Decode for Rule {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let parts = RuleParts::decode(node, found)?;
        let mut verbs: Vec<Verb> = Vec::new();
        verbs.extend(parts.deny.map(Verb::Deny));
        verbs.extend(parts.max.map(Verb::Max));
        verbs.extend(parts.always_allow.map(Verb::AlwaysAllow));
        if let Some(require) = parts.require {
            if let Some(flag) = &require.access_policy
                && !flag.value
            {
                return bad_value(
                    flag.place,
                    "`accessPolicy: false` requires nothing",
                    "write true, or leave it out",
                    found,
                );
            }
            match (require.hostnames, require.access_policy) {
                (Some(patterns), None) => verbs.push(Verb::RequireHostnames(patterns)),
                (None, Some(_)) => verbs.push(Verb::RequireAccessPolicy),
                _ => {
                    return bad_value(
                        require.place,
                        "`require` names exactly one of hostnames and accessPolicy",
                        "make it two rules",
                        found,
                    );
                }
            }
        }
        let count = verbs.len();
        match verbs.pop() {
            Some(verb) if count == 1 => {
                Some(Self { place: parts.place, name: parts.name, services: parts.services.unwrap_or_default(), verb })
            }
            _ => bad_value(
                parts.place,
                format!("a rule with {count} verbs"),
                "write exactly one of deny, max, require and alwaysAllow",
                found,
            ),
        }
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        RuleParts::schema(definitions)
    }
}
