//! The effective fleet becomes one cluster's resources, by one backend per mesh. A backend reads the effective fleet and
//! nothing else. What it cannot express it refuses with a code; it never widens an intent and never drops one.

mod istio;

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::fleet::ClusterId;
use crate::intent::cluster::MeshType;
use crate::manifest::{self, Object};
use crate::resolve::Effective;

/// All resources of a cluster, in the order in which they are applied; never none. Findings with errors mean that the
/// objects must not be used.
#[must_use]
pub fn render(effective: &Effective, cluster: ClusterId, found: &mut Diagnostics) -> Vec<Object> {
    let target = effective.fleet.cluster(cluster);
    let mut objects = match target.mesh.kind.0 {
        MeshType::Istio => istio::render(effective, cluster, found),
        MeshType::Linkerd => {
            let message = format!("the mesh of {} is Linkerd, for which there is no backend yet", target.name);
            found.push(
                Diagnostic::new(&codes::NO_BACKEND, target.mesh.kind.1, message)
                    .help("render the other clusters one by one with --cluster"),
            );
            return Vec::new();
        }
    };
    if objects.is_empty() {
        objects.push(manifest::marker(target.name.as_str(), target.mesh.import_namespace.as_str()));
    }
    manifest::sort(&mut objects);
    objects
}
