//! `support`: what somebody who helps needs to see, in one document. No Secret is asked for, and nothing of the kubeconfig is
//! printed but the names of contexts.

use crate::api::{Api, Error};
use crate::fleet::{self, Target, Targets};
use crate::status;
use mesh::explain::rows;
use mesh::manifest::Kind;
use mesh_kit::findings;
use mesh_kit::input::Input;
use mesh_kit::output::{self, Form};
use mesh_kit::run::{Failure, Outcome, print};
use serde_json::{Value as Json, json};

/// The flags of `support`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The form of the output
    #[arg(short, long, value_parser = output::DATA, default_value = "json")]
    output: Form,
    #[command(flatten)]
    targets: Targets,
}

/// Prints the document.
///
/// # Errors
///
/// If a part of it could not be had; the rest is printed.
pub fn support(input: &Input, args: &Flags) -> Outcome {
    let world = input.world();
    let mut document = json!({
        // A folder of documents may hold this one too: it is nobody's business there.
        "apiVersion": "v1",
        "kind": "Support",
        "version": env!("CARGO_PKG_VERSION"),
        "findings": findings::list(&world.files, &world.check()),
        "explain": rows(&world.effective, &world.files, |_| true),
    });
    let mut failed = world.found.has_errors();
    if failed {
        eprintln!("The documents have errors, so no cluster was asked.");
    } else {
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
        let silent = facts.iter().filter(|fact| fact.get("error").is_some()).count();
        eprintln!("{} clusters, {silent} of them could not be asked", facts.len());
        failed = silent > 0;
        document["status"] = serde_json::to_value(clusters)?;
        document["clusters"] = facts.into();
    }
    print(&args.output.of(&document)?.unwrap_or_default())?;
    if failed { Err(Failure::Printed(1)) } else { Ok(0) }
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
