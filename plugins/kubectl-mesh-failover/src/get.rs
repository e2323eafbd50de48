//! `get`: what a table shows of traffic policies.

use mesh::World;
use mesh_kit::verb::get::{Columns, Written};

pub(crate) const COLUMNS: Columns =
    Columns { headers: &["TO", "FROM", "ORDER", "EXCLUDE", "WEIGHTS"], wide: &["MATCH", "CALLERS"], cells };

fn cells(world: &World, document: &Written<'_>, wide: bool) -> Vec<String> {
    let to = match document.says(&["spec", "to", "namespace"]) {
        namespace if namespace.is_empty() => document.says(&["spec", "to", "service"]),
        namespace => format!("{namespace}/{}", document.says(&["spec", "to", "service"])),
    };
    let mut cells = vec![
        to,
        document.says(&["spec", "from"]),
        document.says(&["spec", "failover", "order"]),
        document.says(&["spec", "failover", "exclude"]),
        document.says(&["spec", "weights"]),
    ];
    if wide {
        cells.push(document.says(&["spec", "match"]));
        cells.push(callers(world, document).to_string());
    }
    cells
}

/// The calling copies for which the policy decides anything.
fn callers(world: &World, document: &Written<'_>) -> usize {
    let wanted = (document.namespace.as_deref(), document.name.as_str());
    let documents = &world.effective.fleet.documents;
    let index = documents.iter().position(|id| {
        id.kind == mesh::intent::Kind::TrafficPolicy
            && (id.namespace.as_ref().map(|namespace| namespace.as_str()), id.name.as_str()) == wanted
    });
    let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else { return 0 };
    world.effective.edges.iter().filter(|edge| crate::is_decided_by(world, edge, index)).count()
}
