//! Clusters of the fleet, and sets of them.

use crate::fleet::Origin;
use crate::intent::cluster::{DataPlane, Discovery, MeshType};
use crate::intent::types::{
    Address, ClusterName, Labels, Location, MeshVersion, Namespace, Port, Selector, TrustDomain,
};
use crate::source::Place;

/// The most clusters one fleet can have: sets of clusters are bits of a fixed width.
pub const MAX_CLUSTERS: usize = 512;
const WORDS: usize = MAX_CLUSTERS / 64;

/// A cluster of the fleet: its index in the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u16);

impl ClusterId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of clusters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clusters([u64; WORDS]);

impl Default for Clusters {
    fn default() -> Self {
        Self::NONE
    }
}

impl Clusters {
    /// No cluster.
    pub const NONE: Self = Self([0; WORDS]);

    /// One cluster.
    #[must_use]
    pub fn one(id: ClusterId) -> Self {
        let mut set = Self::NONE;
        set.insert(id);
        set
    }

    /// The clusters with an index below `count`.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..count).map(|index| ClusterId(u16::try_from(index).expect("at most MAX_CLUSTERS"))).collect()
    }

    /// Adds a cluster.
    pub fn insert(&mut self, id: ClusterId) {
        self.0[id.index() / 64] |= 1 << (id.index() % 64);
    }

    /// Takes a cluster out.
    pub fn remove(&mut self, id: ClusterId) {
        self.0[id.index() / 64] &= !(1 << (id.index() % 64));
    }

    /// Whether the cluster is in the set.
    #[must_use]
    pub fn contains(&self, id: ClusterId) -> bool {
        self.0[id.index() / 64] & (1 << (id.index() % 64)) != 0
    }

    /// Whether there is no cluster in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many clusters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The clusters of both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The clusters of either set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// The clusters of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Whether every cluster of this set is in the other.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    /// The clusters in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = ClusterId> + '_ {
        self.0.iter().enumerate().flat_map(|(word_index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(ClusterId(u16::try_from(word_index * 64 + bit).expect("below MAX_CLUSTERS")))
            })
        })
    }
}

impl FromIterator<ClusterId> for Clusters {
    fn from_iter<I: IntoIterator<Item = ClusterId>>(ids: I) -> Self {
        let mut set = Self::NONE;
        for id in ids {
            set.insert(id);
        }
        set
    }
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(|id| id.0)).finish()
    }
}

/// One cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: ClusterName,
    /// Its document.
    pub origin: Origin,
    /// Its labels.
    pub labels: Labels,
    /// Its region.
    pub region: Location,
    /// Its zone, if it has one.
    pub zone: Option<Location>,
    /// Its network.
    pub network: Location,
    /// Its kubeconfig context.
    pub context: String,
    /// Where the document drains it, if it does.
    pub drained: Option<Place>,
    /// Its mesh.
    pub mesh: Mesh,
    /// Its east-west gateway, if it has one.
    pub gateway: Option<Gateway>,
}

/// The mesh of a cluster.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Which mesh it is.
    pub kind: (MeshType, Place),
    /// Its version, if the document says.
    pub version: Option<(MeshVersion, Place)>,
    /// The trust domain of its workloads.
    pub trust_domain: TrustDomain,
    /// Foreign trust domains that it treats as its own.
    pub trust_domain_aliases: Vec<TrustDomain>,
    /// Home of the control plane.
    pub namespace: Namespace,
    /// Home of objects whose service's namespace does not exist here.
    pub import_namespace: Namespace,
    /// Whether sidecars answer DNS for mesh host names.
    pub dns_capture: bool,
    /// How traffic is intercepted.
    pub data_plane: (DataPlane, Place),
    /// What the control plane knows of other clusters.
    pub discovery: (Discovery, Place),
}

/// The east-west gateway of a cluster.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its addresses, sorted.
    pub addresses: Vec<Address>,
    /// Its port for mutual TLS passthrough.
    pub port: Port,
    /// Where its pods run.
    pub namespace: Namespace,
    /// The labels of its pods.
    pub selector: Selector,
}
