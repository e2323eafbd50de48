//! `support`: what somebody who helps needs to see, in one folder. No Secret is asked for, and nothing of the kubeconfig is
//! written but the names of contexts.

use crate::api::{Api, Error};
use crate::fleet::{self, Target, Targets};
use crate::status;
use anyhow::Context;
use mesh::explain::rows;
use mesh::intent::API_VERSION;
use mesh::manifest::Kind;
use mesh_kit::findings;
use mesh_kit::input::Input;
use mesh_kit::output::Form;
use mesh_kit::run::{Failure, Outcome};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The flags of `support`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The folder to write; it must not be there yet
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,
    #[command(flatten)]
    targets: Targets,
}

/// Writes the folder.
///
/// # Errors
///
/// If it cannot be written, or a part of it could not be had; the rest is written.
pub fn support(input: &Input, args: &Flags) -> Outcome {
    let folder = &args.output_dir;
    fs::create_dir(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    write(folder, "version.json", &json!({"version": env!("CARGO_PKG_VERSION"), "apiVersion": API_VERSION}))?;
    let world = input.world();
    let found = findings::render(&world.files, &world.check(), &Form::Json)?;
    fs::write(folder.join("findings.json"), found)?;
    write(folder, "explain.json", &rows(&world.effective, &world.files, |_| true))?;
    if world.found.has_errors() {
        eprintln!("{}: the documents have errors, so no cluster was asked", folder.display());
        return Err(Failure::Printed(1));
    }
    let targets = args.targets.render(&world, &Kind::ALL)?;
    let connections = args.targets.connect.connections()?;
    let (clusters, facts) = fleet::block_on(async {
        let clusters = status::of_clusters(&targets, &connections, &Kind::ALL).await?;
        let mut facts = Vec::new();
        let work = async |api: &Api, _: &Target| facts_of(api).await;
        fleet::each(&targets, &connections, work, |target, result| {
            let mut fact = result.unwrap_or_else(|error| json!({"error": error.to_string()}));
            fact["cluster"] = target.name.as_str().into();
            facts.push(fact);
            Ok(())
        })
        .await?;
        Ok((clusters, facts))
    })?;
    write(folder, "status.json", &clusters)?;
    write(folder, "clusters.json", &facts)?;
    let failed = facts.iter().filter(|fact| fact.get("error").is_some()).count();
    eprintln!("{}: {} clusters, {failed} of them could not be asked", folder.display(), facts.len());
    if failed == 0 { Ok(0) } else { Err(Failure::Printed(1)) }
}

fn write(folder: &Path, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(folder.join(name), text).with_context(|| format!("cannot write {name} below {}", folder.display()))
}

/// Versions: of Kubernetes, of Istio's control plane, and of the kinds that are served.
async fn facts_of(api: &Api) -> Result<Json, Error> {
    let version = api.get("/version").await?.unwrap_or_default();
    let pods = api.list("/api/v1/namespaces/istio-system/pods", "labelSelector=app%3Distiod").await;
    let istiod: Vec<Json> = pods
        .iter()
        .flatten()
        .map(|pod| {
            json!({
                "name": pod["metadata"]["name"],
                "revision": pod["metadata"]["labels"]["istio.io/rev"],
                "image": pod["spec"]["containers"][0]["image"],
                "phase": pod["status"]["phase"],
            })
        })
        .collect();
    let mut served = json!({});
    for group in ["networking.istio.io", "security.istio.io"] {
        let known = api.get(&format!("/apis/{group}")).await?.unwrap_or_default();
        let versions = known["versions"].as_array().into_iter().flatten().map(|version| version["version"].clone());
        served[group] = Json::Array(versions.collect());
    }
    Ok(json!({"kubernetes": version["gitVersion"], "istiod": istiod, "served": served}))
}
