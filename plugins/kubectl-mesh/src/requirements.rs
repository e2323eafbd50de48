//! What the suite needs from a cluster and does not own: printed as snippets, never applied.

use mesh::fleet::{Cluster, ClusterId};
use mesh::resolve::Effective;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The requirements of one cluster, as YAML with comments that say who applies what.
pub(crate) fn of(effective: &Effective, id: ClusterId) -> String {
    let fleet = &effective.fleet;
    let cluster = fleet.cluster(id);
    let mut text = format!("# {}: what the rendered objects need and the suite does not own.\n", cluster.name);
    mesh_config(&mut text, effective, id, cluster);
    if let Some(gateway) = &cluster.gateway {
        let served = effective.served_elsewhere.iter().filter(|clusters| clusters.contains(id)).count();
        let labels: Vec<String> = gateway.selector.0.0.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let addresses: Vec<String> = gateway.addresses.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "#\n# Values of the gateway chart, in namespace {}; services offered to other clusters: {served}.\n# Its load balancer must pass TCP through on {}:{}.\n# networkGateway keeps the gateway from seeing other networks' endpoints.\nlabels: {{{}}}\nnetworkGateway: {}\nservice:\n  ports:\n  - {{name: tls, port: {}, targetPort: {}}}",
            gateway.namespace,
            addresses.join(", "),
            gateway.port.0,
            labels.join(", "),
            cluster.network,
            gateway.port.0,
            gateway.port.0
        );
    }
    text.push_str(
        "#\n# Whatever else the cluster holds: no other ServiceEntry, DestinationRule or VirtualService for the fleet's host\n# names, also not by a wildcard; and in MeshConfig no serviceSettings with `clusterLocal: true` for them.\n",
    );
    let namespaces = namespaces(effective, id);
    if !namespaces.is_empty() {
        let _ = writeln!(
            text,
            "#\n# Namespaces that must exist: {}",
            namespaces.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    if !cluster.mesh.dns_capture {
        dns(&mut text, effective, id);
    }
    text
}

/// Accepted trust domains: as roots of their own, never as aliases, which would make clusters indistinguishable.
fn mesh_config(text: &mut String, effective: &Effective, id: ClusterId, cluster: &Cluster) {
    let fleet = &effective.fleet;
    let mut peers: BTreeSet<&str> = BTreeSet::new();
    for edge in effective.edges.iter().filter(|edge| edge.is_served()) {
        let reached = edge.routes().fold(mesh::fleet::Clusters::NONE, |sum, route| sum.or(&route.clusters()));
        if edge.cluster == id {
            peers.extend(reached.iter().map(|peer| fleet.cluster(peer).mesh.trust_domain.as_str()));
        } else if reached.contains(id) {
            peers.insert(fleet.cluster(edge.cluster).mesh.trust_domain.as_str());
        }
    }
    peers.remove(cluster.mesh.trust_domain.as_str());
    let _ =
        writeln!(text, "#\n# MeshConfig (istiod's values, meshConfig):\ntrustDomain: {}", cluster.mesh.trust_domain);
    if !cluster.mesh.trust_domain_aliases.is_empty() {
        let aliases: Vec<&str> =
            cluster.mesh.trust_domain_aliases.iter().map(mesh::intent::types::TrustDomain::as_str).collect();
        let _ = writeln!(text, "trustDomainAliases: [{}]", aliases.join(", "));
    }
    if !peers.is_empty() {
        let _ = writeln!(text, "# Set ISTIO_MULTIROOT_MESH=true on istiod where the roots differ.\ncaCertificates:");
        for peer in peers {
            let _ = writeln!(text, "- trustDomains: [{peer}]\n  pem: |\n    # the root certificate that signs {peer}");
        }
    }
    if cluster.mesh.dns_capture {
        let _ = writeln!(text, "defaultConfig:\n  proxyMetadata:\n    ISTIO_META_DNS_CAPTURE: \"true\"");
    }
}

/// Homes of imported objects and of gateways, which no service of the fleet creates.
fn namespaces(effective: &Effective, id: ClusterId) -> BTreeSet<String> {
    let fleet = &effective.fleet;
    let cluster = fleet.cluster(id);
    let mut namespaces = BTreeSet::from([cluster.mesh.import_namespace.to_string()]);
    namespaces.extend(cluster.gateway.as_ref().map(|gateway| gateway.namespace.to_string()));
    namespaces.extend(
        fleet.services.iter().filter(|service| service.runs.contains(id)).map(|service| service.namespace.to_string()),
    );
    namespaces
}

/// Names that the cluster's own DNS must answer.
fn dns(text: &mut String, effective: &Effective, id: ClusterId) {
    let mut names: BTreeSet<(String, String)> = BTreeSet::new();
    for edge in effective.edges_from(id).filter(|edge| edge.is_served()) {
        let service = effective.fleet.service(edge.provider);
        let Some(exposure) = &service.exposure else { continue };
        for (host, _) in exposure.hostnames.iter().filter(|(host, _)| host.as_str() != service.local_name()) {
            names.insert((host.to_string(), mesh::resolve::vip::of_exposed(exposure, host.as_str()).to_string()));
        }
    }
    if !names.is_empty() {
        let _ = writeln!(
            text,
            "#\n# No DNS capture: the cluster's DNS must answer these names (CoreDNS, plugin hosts):\n# hosts {{"
        );
        for (name, address) in names {
            let _ = writeln!(text, "#   {address} {name}");
        }
        let _ = writeln!(text, "#   fallthrough\n# }}");
    }
}
