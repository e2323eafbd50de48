//! `get`: what a table shows of access policies.

use mesh::World;
use mesh::source::{Node, Value as Read};
use mesh_kit::author::value::Value;
use mesh_kit::verb::get::{Columns, Written};

pub(crate) const COLUMNS: Columns = Columns { headers: &["TO", "MODE", "ALLOW"], wide: &["PROTECTS"], cells };

fn cells(world: &World, document: &Written<'_>, wide: bool) -> Vec<String> {
    let service = document.says(&["spec", "to", "service"]);
    let to = match document.says(&["spec", "to", "namespace"]) {
        _ if document.says(&["spec", "default"]) == "true" => "*".to_owned(),
        namespace if namespace.is_empty() => service,
        namespace => format!("{namespace}/{service}"),
    };
    let mode = document.says(&["spec", "mode"]);
    let mut cells = vec![to, if mode.is_empty() { "enforce".to_owned() } else { mode }, allowed(&document.node)];
    if wide {
        cells.push(protected(world, document).join(","));
    }
    cells
}

/// The callers of each rule; conditions are left to `-o yaml`.
fn allowed(node: &Node) -> String {
    let rules = node.get("spec").and_then(|spec| spec.get("allow"));
    let Some(Read::Seq(rules)) = rules.map(|rules| &rules.value) else { return String::new() };
    if rules.is_empty() {
        return "nobody".to_owned();
    }
    let callers: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule.get("from").and_then(Value::of))
        .map(|from| from.on_one_line(false))
        .collect();
    callers.join(" ")
}

/// The services whose callers the policy decides about.
fn protected(world: &World, document: &Written<'_>) -> Vec<String> {
    let fleet = &world.effective.fleet;
    let is_this = |policy: &usize| {
        let id = fleet.document(fleet.access[*policy].origin);
        id.name.as_str() == document.name
            && id.namespace.as_ref().map(|namespace| namespace.as_str()) == document.namespace.as_deref()
    };
    fleet
        .service_ids()
        .filter(|(id, _)| world.effective.access.service(*id).policies.iter().any(is_this))
        .map(|(_, service)| format!("{}/{}", service.namespace, service.name))
        .collect()
}
