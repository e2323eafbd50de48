//! `parameters`: what Argo CD's user interface offers. It never fails: a broken document must not take the form away.

use mesh::World;
use mesh::source::Limits;
use mesh_files::Bounds;
use serde_json::json;

/// How many clusters the tooltip names.
const NAMED: usize = 50;

pub(crate) fn announcement() -> String {
    let (files, found) = mesh_files::read(&[], &Bounds::default());
    let world = World::of(files, &Limits::default(), found);
    let clusters = &world.effective.fleet.clusters;
    let names: Vec<&str> = clusters.iter().take(NAMED).map(|cluster| cluster.name.as_str()).collect();
    let more = if clusters.len() > NAMED { ", …" } else { "" };
    let tooltip = if names.is_empty() {
        "Name of the destination's Cluster document.".to_owned()
    } else {
        format!("Name of the destination's Cluster document: {}{more}", names.join(", "))
    };
    let parameters = json!([
        {"name": "cluster", "title": "Destination cluster", "tooltip": tooltip, "required": true, "collectionType": "string"},
        {"name": "intents", "title": "Folders and files", "tooltip": "Relative to the application's path; empty: all of it.", "collectionType": "array"},
        {"name": "waves", "title": "Sync waves", "tooltip": "\"false\" leaves out the sync-wave annotations.", "collectionType": "string", "string": "true"},
    ]);
    format!("{parameters}\n")
}
