//! `Cluster`: where a cluster is, its mesh, its gateway.

use super::decode::{At, Decode, record, words};
use super::types::{Address, ContextName, Location, MeshVersion, Namespace, OneOrMore, Port, Selector, TrustDomain};
use crate::diagnostic::Diagnostics;
use crate::source::{Node, Place};
use serde_json::{Map as Object, Value as Json, json};

record! {
    /// One cluster of the fleet: where it is, its mesh, its gateway.
    pub struct ClusterSpec {
        /// The region, for example `us-east-1`; failover orders compare it.
        region as "region": required Location,
        /// The zone inside the region; a cluster without one is in no one's zone.
        zone as "zone": optional Location,
        /// The network; clusters of one network route to each other's pods.
        network as "network": required Location,
        /// The kubeconfig context; default: the cluster's name.
        context as "context": optional ContextName,
        /// `true`: serves nobody from elsewhere, and its own callers go elsewhere where they can.
        drain as "drain": default At<bool> = |place| At { place, value: false },
        /// The service mesh of this cluster.
        mesh as "mesh": default Mesh = Mesh::absent,
        /// The east-west gateway; without one the cluster calls others and serves nobody from elsewhere.
        gateway as "gateway": optional Gateway,
    }
}

record! {
    /// The service mesh of a cluster.
    pub struct Mesh {
        /// Which mesh it is; default: istio.
        kind as "type": default At<MeshType> = |place| At { place, value: MeshType::Istio },
        /// Its version, in quotes; without it the oldest supported one is assumed.
        version as "version": optional At<MeshVersion>,
        /// The trust domain of its workloads; default: `cluster.local`.
        trust_domain as "trustDomain": default TrustDomain = |_| default_trust_domain(),
        /// Foreign trust domains that this mesh treats as its own.
        trust_domain_aliases as "trustDomainAliases": default Aliases = |_| Aliases(Vec::new()),
        /// Home of the control plane (Istio's root namespace); default: `istio-system`.
        namespace as "namespace": default Namespace = |_| istio_system(),
        /// Home of objects whose service's namespace does not exist in this cluster; default: `istio-system`.
        import_namespace as "importNamespace": default Namespace = |_| istio_system(),
        /// Whether sidecars answer DNS for mesh host names; default: true.
        dns_capture as "dnsCapture": default bool = |_| true,
        /// How traffic is intercepted; only `sidecar` can be rendered.
        data_plane as "dataPlane": default At<DataPlane> = |place| At { place, value: DataPlane::Sidecar },
        /// Whether the control plane reads other clusters' services; only `isolated` can be rendered.
        discovery as "discovery": default At<Discovery> = |place| At { place, value: Discovery::Isolated },
    }
}

record! {
    /// The east-west gateway through which a cluster serves others.
    pub struct Gateway {
        /// One address or several: IP addresses, or host names where the rendered shape supports them.
        address as "address": required OneOrMore<At<Address>>,
        /// The port for mutual TLS passthrough; default: 15443.
        port as "port": default Port = |_| Port(15443),
        /// Where the gateway's pods run; default: `istio-system`.
        namespace as "namespace": default Namespace = |_| istio_system(),
        /// The labels of the gateway's pods; default: `{istio: eastwestgateway}`.
        selector as "selector": default Selector = |_| default_gateway_selector(),
    }
}

words! {
    /// A kind of service mesh.
    pub enum MeshType {
        /// Istio.
        Istio = "istio",
        /// Linkerd.
        Linkerd = "linkerd",
    }
}

words! {
    /// How a mesh intercepts traffic.
    pub enum DataPlane {
        /// A proxy beside every pod.
        Sidecar = "sidecar",
        /// A proxy on every node.
        Ambient = "ambient",
    }
}

words! {
    /// What a control plane knows of other clusters.
    pub enum Discovery {
        /// Nothing: each control plane reads its own cluster.
        Isolated = "isolated",
        /// It reads other clusters' services through remote secrets.
        Shared = "shared",
    }
}

impl Mesh {
    /// What holds where the document says nothing about the mesh.
    fn absent(place: Place) -> Self {
        let empty = Node { place, value: crate::source::Value::Map(Vec::new()) };
        Self::decode(&empty, &mut Diagnostics::default()).expect("every field of a mesh has a default")
    }
}

/// Foreign trust domains; here an empty list is what most clusters have and says just that.
#[derive(Clone, Debug)]
pub struct Aliases(pub Vec<TrustDomain>);

impl Decode for Aliases {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        super::decode::MaybeEmpty::decode(node, found).map(|list| Self(list.0))
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        json!({"type": "array", "items": TrustDomain::schema(definitions)})
    }
}

fn istio_system() -> Namespace {
    Namespace::parse("istio-system").expect("a valid namespace")
}

fn default_trust_domain() -> TrustDomain {
    TrustDomain::parse("cluster.local").expect("a valid trust domain")
}

fn default_gateway_selector() -> Selector {
    let labels = [("istio".into(), "eastwestgateway".into())];
    Selector(labels.into_iter().collect())
}
