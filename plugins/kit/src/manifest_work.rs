//! Open Cluster Management: a cluster's objects as one ManifestWork, which the hub's API server takes and the cluster's
//! own agent applies. What a later ManifestWork no longer holds, the agent deletes.

use anyhow::ensure;
use mesh::manifest::{MANAGED_BY, Object, to_yaml};
use serde::Serialize;

/// What Open Cluster Management's admission takes, counted over all manifests of a work.
const MOST_BYTES: usize = 500 * 1024;

/// The work of one cluster. Its namespace is the cluster's in the hub, which has the cluster's name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWork<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    name: &'static str,
    namespace: &'a str,
    labels: Labels,
}

#[derive(Debug, Serialize)]
struct Labels {
    #[serde(rename = "app.kubernetes.io/managed-by")]
    managed_by: &'static str,
}

#[derive(Debug, Serialize)]
struct Spec<'a> {
    workload: Workload<'a>,
}

#[derive(Debug, Serialize)]
struct Workload<'a> {
    manifests: &'a [Object],
}

impl<'a> ManifestWork<'a> {
    /// The work that carries these objects to a cluster.
    ///
    /// # Errors
    ///
    /// If the objects are more than the hub takes.
    pub fn of(cluster: &'a str, objects: &'a [Object]) -> anyhow::Result<Self> {
        let size: usize = objects.iter().map(|object| serde_json::to_vec(object).map_or(0, |text| text.len())).sum();
        ensure!(
            size <= MOST_BYTES,
            "the objects of {cluster} are {} KiB, and a ManifestWork holds {}; deliver this cluster with --output-dir or Argo CD",
            size.div_ceil(1024),
            MOST_BYTES / 1024
        );
        Ok(Self {
            api_version: "work.open-cluster-management.io/v1",
            kind: "ManifestWork",
            metadata: Metadata { name: MANAGED_BY, namespace: cluster, labels: Labels { managed_by: MANAGED_BY } },
            spec: Spec { workload: Workload { manifests: objects } },
        })
    }

    /// As a YAML document.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        to_yaml(self)
    }

    /// Its name, as `-o name` prints it.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("manifestwork.work.open-cluster-management.io/{MANAGED_BY}\n")
    }
}
