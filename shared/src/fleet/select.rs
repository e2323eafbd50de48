//! Cluster sets of the documents, evaluated on the fleet's clusters.

use super::clusters::{Cluster, ClusterId, Clusters};
use crate::diagnostic::{Diagnostic, Diagnostics, codes, did_you_mean};
use crate::intent::cluster_set::{ClusterSet, Item, LabelValue, Select};
use crate::intent::{Kind, Lost};
use crate::source::Place;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Finds clusters by name and label.
pub(super) struct Selector<'a> {
    clusters: &'a [Cluster],
    lost: &'a Lost,
    by_name: BTreeMap<&'a str, ClusterId>,
    by_label: BTreeMap<(&'a str, &'a str), Clusters>,
    all: Clusters,
}

/// Clusters, seen from a caller's cluster.
#[derive(Clone, Copy, Debug)]
pub enum Relative {
    /// The same ones for every caller.
    Fixed(Clusters),
    /// The caller's own cluster.
    Local,
    /// Those that also share these fields with the caller's cluster.
    Same {
        /// Before comparing with the caller.
        base: Clusters,
        /// Share the region.
        region: bool,
        /// Share the zone.
        zone: bool,
        /// Share the network.
        network: bool,
    },
}

/// The clusters that share a field, for each cluster.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    region: Vec<Clusters>,
    zone: Vec<Clusters>,
    network: Vec<Clusters>,
}

impl Neighbours {
    pub(super) fn of(clusters: &[Cluster]) -> Self {
        fn sharing<'a, T: Ord + 'a>(
            clusters: &'a [Cluster],
            field: impl Fn(&'a Cluster) -> Option<&'a T>,
        ) -> Vec<Clusters> {
            let mut groups: BTreeMap<&T, Clusters> = BTreeMap::new();
            for (id, cluster) in ids(clusters) {
                if let Some(value) = field(cluster) {
                    groups.entry(value).or_insert(Clusters::NONE).insert(id);
                }
            }
            clusters.iter().map(|cluster| field(cluster).map_or(Clusters::NONE, |value| groups[value])).collect()
        }
        Self {
            region: sharing(clusters, |cluster| Some(&cluster.region)),
            zone: sharing(clusters, |cluster| cluster.zone.as_ref()),
            network: sharing(clusters, |cluster| Some(&cluster.network)),
        }
    }
}

impl Relative {
    /// The clusters, seen from the caller's cluster.
    #[must_use]
    pub fn seen_from(&self, caller: ClusterId, neighbours: &Neighbours) -> Clusters {
        match self {
            Self::Fixed(clusters) => *clusters,
            Self::Local => Clusters::one(caller),
            Self::Same { base, region, zone, network } => {
                let mut clusters = *base;
                for (wanted, sharing) in
                    [(region, &neighbours.region), (zone, &neighbours.zone), (network, &neighbours.network)]
                {
                    if *wanted {
                        clusters = clusters.and(&sharing[caller.index()]);
                    }
                }
                clusters
            }
        }
    }
}

/// The clusters with their ids.
pub(super) fn ids(clusters: &[Cluster]) -> impl Iterator<Item = (ClusterId, &Cluster)> {
    clusters
        .iter()
        .enumerate()
        .map(|(index, cluster)| (ClusterId(u16::try_from(index).expect("at most MAX_CLUSTERS")), cluster))
}

impl<'a> Selector<'a> {
    pub(super) fn new(clusters: &'a [Cluster], lost: &'a Lost) -> Self {
        let mut by_name = BTreeMap::new();
        let mut by_label: BTreeMap<(&str, &str), Clusters> = BTreeMap::new();
        for (id, cluster) in ids(clusters) {
            by_name.insert(cluster.name.as_str(), id);
            let fields = [
                ("region", Some(cluster.region.as_str())),
                ("zone", cluster.zone.as_ref().map(|zone| zone.as_str())),
                ("network", Some(cluster.network.as_str())),
            ];
            let labels = cluster.labels.0.iter().map(|(key, value)| (&**key, &**value));
            for pair in fields.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))).chain(labels) {
                by_label.entry(pair).or_insert(Clusters::NONE).insert(id);
            }
        }
        Self { clusters, lost, by_name, by_label, all: Clusters::first(clusters.len()) }
    }

    /// Every cluster.
    pub(super) fn all(&self) -> Clusters {
        self.all
    }

    /// The cluster of a name.
    pub(super) fn named(&self, name: &str, place: Place, found: &mut Diagnostics) -> Option<ClusterId> {
        let id = self.by_name.get(name).copied();
        // Without any cluster, that alone is told.
        if id.is_none() && !self.clusters.is_empty() && !self.lost.cluster(name) {
            let help = did_you_mean(name, self.by_name.keys().copied())
                .unwrap_or_else(|| format!("the clusters are {}", self.names()));
            found.push(
                Diagnostic::new(&codes::UNKNOWN_CLUSTER, place, format!("no cluster is called \"{name}\"")).help(help),
            );
        }
        id
    }

    fn names(&self) -> String {
        self.names_of(&self.all)
    }

    /// Clusters by name, for messages; the first 20.
    pub(super) fn names_of(&self, clusters: &Clusters) -> String {
        let mut names: Vec<&str> =
            clusters.iter().take(21).map(|cluster| self.clusters[cluster.index()].name.as_str()).collect();
        if names.len() > 20 {
            names[20] = "…";
        }
        names.join(", ")
    }

    /// The clusters of a set in which no caller takes part.
    pub(super) fn set(&self, set: &ClusterSet, found: &mut Diagnostics) -> Clusters {
        match set {
            ClusterSet::All => self.all,
            ClusterSet::Items(items) => items.iter().fold(Clusters::NONE, |sum, item| match self.item(item, found) {
                Relative::Fixed(clusters) => sum.or(&clusters),
                // Reading refuses `local` and `same` here.
                Relative::Local | Relative::Same { .. } => sum,
            }),
        }
    }

    /// The clusters of a set, seen from callers.
    pub(super) fn relative(&self, set: &ClusterSet, found: &mut Diagnostics) -> Vec<Relative> {
        match set {
            ClusterSet::All => vec![Relative::Fixed(self.all)],
            ClusterSet::Items(items) => items.iter().map(|item| self.item(item, found)).collect(),
        }
    }

    /// The clusters of one item. An item that selects nothing in this fleet is reported.
    pub(super) fn item(&self, item: &Item, found: &mut Diagnostics) -> Relative {
        match &item.select {
            Select::All => Relative::Fixed(self.all),
            Select::Local => Relative::Local,
            Select::Name(name) => {
                Relative::Fixed(self.named(name.as_str(), item.place, found).map_or(Clusters::NONE, Clusters::one))
            }
            Select::Labels(labels) => {
                let base = self.labelled(labels);
                if base.is_empty() && !self.clusters.is_empty() && !self.lost.any(Kind::Cluster) {
                    self.report_empty(labels, item.place, found);
                }
                let same = |key: &str| labels.get(key) == Some(&LabelValue::SameAsCaller);
                match (same("region"), same("zone"), same("network")) {
                    (false, false, false) => Relative::Fixed(base),
                    (region, zone, network) => Relative::Same { base, region, zone, network },
                }
            }
        }
    }

    fn labelled(&self, labels: &BTreeMap<Arc<str>, LabelValue>) -> Clusters {
        labels.iter().fold(self.all, |sum, (key, value)| match value {
            LabelValue::Is(value) => sum.and(self.by_label.get(&(&**key, &**value)).unwrap_or(&Clusters::NONE)),
            LabelValue::SameAsCaller => sum,
        })
    }

    fn report_empty(&self, labels: &BTreeMap<Arc<str>, LabelValue>, place: Place, found: &mut Diagnostics) {
        let mut help = "each cluster must carry all entries of one map; write two items for \"either\"".to_owned();
        for (key, value) in labels {
            let LabelValue::Is(value) = value else { continue };
            if self.by_label.contains_key(&(&**key, &**value)) {
                continue;
            }
            let values: Vec<&str> =
                self.by_label.keys().filter(|(known, _)| *known == &**key).map(|(_, value)| *value).collect();
            let mut keys: Vec<&str> = self.by_label.keys().map(|(key, _)| *key).collect();
            keys.dedup();
            help = if values.is_empty() {
                did_you_mean(key, keys.iter().copied())
                    .unwrap_or_else(|| format!("no cluster has the label \"{key}\"; there are {}", keys.join(", ")))
            } else {
                did_you_mean(value, values.iter().copied())
                    .unwrap_or_else(|| format!("the values of \"{key}\" are {}", values.join(", ")))
            };
            break;
        }
        let written: Vec<String> = labels
            .iter()
            .map(|(key, value)| match value {
                LabelValue::Is(value) => format!("{key}: {value}"),
                LabelValue::SameAsCaller => format!("{key}: same"),
            })
            .collect();
        found.push(
            Diagnostic::new(&codes::EMPTY_SELECTION, place, format!("no cluster fits {{{}}}", written.join(", ")))
                .help(help),
        );
    }
}
