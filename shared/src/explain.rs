//! The effective fleet for people and for programs: rows, with the document and line behind each decision.

use crate::fleet::{ClusterId, Fleet, Origin, ServiceId};
use crate::intent::traffic::{Conditions, RequestMatch, StringMatch, ValueMatch};
use crate::resolve::{Edge, Effective, MatchedRoute, Route};
use crate::source::File;
use serde::Serialize;
use std::collections::BTreeMap;

/// One row, in the documented form of `explain -o json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Who calls.
    pub caller: Caller,
    /// Whom.
    pub service: Service,
    /// Only requests that one of these describes.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Vec<Match>>,
    /// Shares, without the rest.
    pub shares: Vec<Share>,
    /// One element per item of the order.
    pub tiers: Vec<Vec<String>>,
    /// Clusters that run the service and are not used.
    pub removed: Vec<Removed>,
}

/// A calling copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// The cluster it calls from.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub service: String,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The clusters that get it, evenly.
    pub clusters: Vec<String>,
    /// In whole per cent.
    pub percent: u8,
}

/// A cluster that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The cluster.
    pub cluster: String,
    /// One word.
    pub reason: &'static str,
    /// The document that says so; `null` for the built-in order.
    pub document: Option<String>,
    /// Its file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

/// A description of requests, as it is written in policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Comparison>,
    /// Headers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Comparison>,
    /// Query parameters by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, Comparison>,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// How a text is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Comparison {
    /// It is this text.
    Exact(String),
    /// It begins with this text.
    Prefix(String),
    /// The whole of it fits this expression.
    Regex(String),
    /// It is there.
    Present(bool),
}

impl From<&StringMatch> for Comparison {
    fn from(value: &StringMatch) -> Self {
        match value {
            StringMatch::Exact(text) => Self::Exact(text.clone()),
            StringMatch::Prefix(text) => Self::Prefix(text.clone()),
            StringMatch::Regex(text) => Self::Regex(text.clone()),
        }
    }
}

impl From<&ValueMatch> for Comparison {
    fn from(value: &ValueMatch) -> Self {
        match value {
            ValueMatch::Text(text) => text.into(),
            ValueMatch::Present => Self::Present(true),
        }
    }
}

impl From<&RequestMatch> for Match {
    fn from(value: &RequestMatch) -> Self {
        fn named<K: std::fmt::Display>(conditions: &Conditions<K>) -> BTreeMap<String, Comparison> {
            conditions.0.iter().map(|(name, value)| (name.to_string(), value.into())).collect()
        }
        let RequestMatch { path, headers, query, method } = value;
        Self {
            path: path.as_ref().map(Into::into),
            headers: named(headers),
            query: named(query),
            method: method.as_ref().map(ToString::to_string),
        }
    }
}

/// The rows of the edges that `keep` keeps: one per edge, and one per matched policy.
pub fn rows(effective: &Effective, files: &[File], keep: impl Fn(&Edge) -> bool) -> Vec<Row> {
    effective.edges.iter().filter(|edge| keep(edge)).flat_map(|edge| edge_rows(effective, files, edge)).collect()
}

fn edge_rows(effective: &Effective, files: &[File], edge: &Edge) -> Vec<Row> {
    let mut rows = vec![row(effective, files, edge, &edge.base, None)];
    // Requests that fit several policies get the settings of each; their rows would only repeat these.
    let mut single: Vec<&MatchedRoute> = edge.matched.iter().filter(|matched| matched.policies.len() == 1).collect();
    single.sort_by_key(|matched| matched.policies[0]);
    rows.extend(single.into_iter().map(|matched| row(effective, files, edge, &matched.route, Some(&matched.matches))));
    rows
}

fn row(effective: &Effective, files: &[File], edge: &Edge, route: &Route, matches: Option<&Vec<RequestMatch>>) -> Row {
    let fleet = &effective.fleet;
    let names = |clusters: &[ClusterId]| {
        clusters.iter().map(|cluster| fleet.cluster(*cluster).name.to_string()).collect::<Vec<_>>()
    };
    let (caller, service) = (fleet.service(edge.caller), fleet.service(edge.provider));
    Row {
        caller: Caller {
            cluster: fleet.cluster(edge.cluster).name.to_string(),
            namespace: caller.namespace.to_string(),
            service: caller.name.to_string(),
        },
        service: Service { namespace: service.namespace.to_string(), name: service.name.to_string() },
        matches: matches.map(|matches| matches.iter().map(Into::into).collect()),
        shares: route
            .shares
            .iter()
            .map(|share| Share { clusters: names(&share.clusters), percent: share.percent })
            .collect(),
        tiers: route.tiers.iter().map(names).collect(),
        removed: route
            .removed
            .iter()
            .map(|removed| Removed {
                cluster: fleet.cluster(removed.cluster).name.to_string(),
                reason: removed.reason.as_str(),
                document: removed.origin.map(|origin| fleet.document(origin).to_string()),
                file: removed.origin.map(|origin| file_of(files, origin)),
                line: removed.origin.map(|origin| origin.place.line),
            })
            .collect(),
    }
}

/// The file behind an origin, relative to the path that was named.
#[must_use]
pub fn file_of(files: &[File], origin: Origin) -> String {
    files.get(origin.place.file as usize).map(|file| file.relative.clone()).unwrap_or_default()
}

/// Why there is no edge from a caller to a service: the condition that is missing.
#[must_use]
pub fn why_no_edge(fleet: &Fleet, caller: ServiceId, cluster: ClusterId, provider: ServiceId) -> String {
    let (from, to) = (fleet.service(caller), fleet.service(provider));
    let name = |service: &crate::fleet::Service| format!("{}/{}", service.namespace, service.name);
    let place = &fleet.cluster(cluster).name;
    if !from.runs.contains(cluster) {
        let runs: Vec<&str> = from.runs.iter().map(|id| fleet.cluster(id).name.as_str()).collect();
        return format!("{} does not run in {place}; it runs in {}", name(from), runs.join(", "));
    }
    let Some(dependency) = from.dependencies.iter().find(|dependency| dependency.provider == provider) else {
        return format!("{} does not declare a dependency on {}: add it to `dependsOn`", name(from), name(to));
    };
    if !dependency.clusters.contains(cluster) {
        let declared: Vec<&str> = dependency.clusters.iter().map(|id| fleet.cluster(id).name.as_str()).collect();
        return format!("{} declares the dependency on {} only in {}", name(from), name(to), declared.join(", "));
    }
    match &to.exposure {
        None => format!("{} is not exposed: without `expose` calls stay inside {place}", name(to)),
        Some(_) => format!("{} is not exposed to {}: `expose.to` does not name it", name(to), name(from)),
    }
}
