//! `get`: what a table shows of services.

use mesh::World;
use mesh::fleet::{ClusterId, Clusters, ServiceId};
use mesh_kit::verb::get::{Columns, Written};

pub(crate) const COLUMNS: Columns =
    Columns { headers: &["HOSTNAMES", "CLUSTERS", "DEPENDENTS"], wide: &["PORTS", "OBJECTS"], cells };

fn cells(world: &World, document: &Written<'_>, wide: bool) -> Vec<String> {
    let fleet = &world.effective.fleet;
    let namespace = document.namespace.as_deref().unwrap_or_default();
    let Some(id) = fleet.service_named(namespace, &document.name) else {
        // A document with errors: what it says is all there is.
        let mut cells =
            vec![document.says(&["spec", "expose", "hostnames"]), document.says(&["spec", "clusters"]), String::new()];
        cells.extend(wide.then(|| document.says(&["spec", "ports"])));
        cells.extend(wide.then(String::new));
        return cells;
    };
    let service = fleet.service(id);
    let hostnames: Vec<&str> =
        service.exposure.iter().flat_map(|exposure| &exposure.hostnames).map(|(name, _)| name.as_str()).collect();
    let mut cells = vec![hostnames.join(","), names(world, &service.runs), dependents(world, id).join(",")];
    if wide {
        let ports: Vec<String> = service.ports.iter().map(|port| format!("{}={}", port.name, port.number)).collect();
        cells.push(ports.join(","));
        cells.push(objects(world, service.origin.document));
    }
    cells
}

fn names(world: &World, clusters: &Clusters) -> String {
    let fleet = &world.effective.fleet;
    let names: Vec<&str> = clusters.iter().map(|id| fleet.cluster(id).name.as_str()).collect();
    names.join(",")
}

/// The services that declare a dependency on this one.
fn dependents(world: &World, id: ServiceId) -> Vec<String> {
    let depends = |service: &&mesh::fleet::Service| service.dependencies.iter().any(|wanted| wanted.provider == id);
    let services = world.effective.fleet.services.iter().filter(depends);
    services.map(|service| format!("{}/{}", service.namespace, service.name)).collect()
}

/// How many objects name the document, cluster by cluster.
fn objects(world: &World, document: u32) -> String {
    let fleet = &world.effective.fleet;
    let count = |cluster: ClusterId| {
        let objects = world.render(cluster).map(|rendered| rendered.objects).unwrap_or_default();
        objects.iter().filter(|object| object.intents.documents.contains(&document)).count()
    };
    let counts: Vec<String> = fleet
        .cluster_ids()
        .map(|(id, cluster)| (cluster, count(id)))
        .filter(|(_, count)| *count > 0)
        .map(|(cluster, count)| format!("{}:{count}", cluster.name))
        .collect();
    counts.join(",")
}
