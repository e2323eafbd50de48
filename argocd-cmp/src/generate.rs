//! `generate`: the manifests of one cluster.

use crate::{MOST_FINDINGS, request};
use mesh::World;
use mesh::diagnostic::{Diagnostic, Severity, codes, did_you_mean};
use mesh::manifest::{Object, to_yaml_stream};
use mesh::source::Limits;
use mesh_files::{Bounds, report};
use std::path::{Component, Path, PathBuf};

pub(crate) fn generate() -> Result<String, String> {
    let request = request::read()?;
    let cluster = request::cluster(&request)?;
    refuse_overrides()?;
    let (files, found) = mesh_files::read(&paths(&request.intents)?, &Bounds::default());
    if files.is_empty() && found.is_empty() {
        return Err("error: no YAML or JSON file below the application's path; spec.source.path must hold the inventory and the intents\n".to_owned());
    }
    let world = World::of(files, &Limits::default(), found);
    let Some(id) = world.effective.fleet.cluster_named(cluster) else {
        return Err(not_found(&world, cluster));
    };
    let rendered = world.render(id).map_err(|found| findings(&world, &found, Severity::Error))?;
    let objects: Vec<Object> = if request.waves == Some(false) {
        rendered.objects
    } else {
        rendered.objects.into_iter().map(Object::with_sync_wave).collect()
    };
    // Argo CD logs what stands on stderr of a success.
    eprint!("{}", findings(&world, &rendered.found, Severity::Warning));
    Ok(to_yaml_stream(&objects))
}

fn findings(world: &World, found: &[Diagnostic], least: Severity) -> String {
    report::findings(&world.files, found, least, MOST_FINDINGS)
}

/// Why the fleet does not have the cluster. A wrong document comes first: it may be the cluster's own. In any other case
/// the first line, which is all that Argo CD's user interface shows, names the cluster.
fn not_found(world: &World, cluster: &str) -> String {
    let found = world.found.clone().sorted();
    let is_about_none = |one: &Diagnostic| one.code.id == codes::NO_CLUSTERS.id;
    if found.iter().find(|one| one.is_error()).is_some_and(|first| !is_about_none(first)) {
        return findings(world, &found, Severity::Error);
    }
    let shown: String = cluster.chars().take(64).flat_map(char::escape_debug).collect();
    let names: Vec<&str> = world.effective.fleet.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let (help, code) = if names.is_empty() {
        ("no Cluster document was read; spec.source.path must hold the inventory".to_owned(), &codes::NO_CLUSTERS)
    } else {
        let help = did_you_mean(cluster, names.iter().copied());
        (help.unwrap_or_else(|| format!("the clusters are {}", names.join(", "))), &codes::CLUSTER_NOT_FOUND)
    };
    let others: Vec<Diagnostic> = found.into_iter().filter(|one| !is_about_none(one)).collect();
    format!(
        "error: parameter \"cluster\": no Cluster document is called \"{shown}\"; {help} [{}]\n{}",
        code.id,
        findings(world, &others, Severity::Error)
    )
}

/// A file in the repository can override the Application's parameters before the plugin runs (`.argocd-source.yaml`), and
/// so send one cluster's resources to another. Whoever may write intents must not decide that.
fn refuse_overrides() -> Result<(), String> {
    let application = request::variable("ARGOCD_APP_NAME")?.unwrap_or_default();
    let mut names = vec![".argocd-source.yaml".to_owned()];
    // Argo CD names the file after the application; a name with a path in it is none of Argo's.
    if !application.is_empty() && !application.contains(['/', '\\', '\0']) {
        names.push(format!(".argocd-source-{application}.yaml"));
    }
    for name in names {
        if Path::new(&name).symlink_metadata().is_ok() {
            return Err(format!(
                "error: {name}: a file in the repository may not override the Application's source; remove it\n"
            ));
        }
    }
    Ok(())
}

/// The folders and files to read: inside the application's path, without a way out.
fn paths(intents: &[String]) -> Result<Vec<PathBuf>, String> {
    intents
        .iter()
        .map(|text| {
            let path = Path::new(text);
            let inside = !text.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            let mut current = PathBuf::new();
            let linked = inside
                && path.components().any(|part| {
                    current.push(part);
                    current.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_symlink())
                });
            if inside && !linked {
                // `-` is a file like others, not standard input.
                Ok(Path::new(".").join(path))
            } else {
                Err("error: parameter \"intents\" must name folders and files below the application's path, without `..`, `/` at the beginning or symbolic links\n".to_owned())
            }
        })
        .collect()
}
