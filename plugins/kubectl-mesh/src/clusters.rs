//! `clusters`: the inventory, and what the suite needs from clusters and does not own.

use crate::requirements;
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};
use mesh_kit::table::Rows;
use mesh_live::import::{ImportFlags, import};
use serde_json::json;

/// Show the inventory, and what is needed from its clusters
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the clusters of the inventory
    List(List),
    /// Print Cluster documents for clusters that exist already, and say where each value came from
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportFlags),
    /// Print what the suite needs from clusters and does not own, as ready-to-use snippets
    Requirements(Requirements),
}

#[derive(clap::Args)]
struct List {
    /// The form of the output
    #[arg(short, long, value_parser = output::LIST, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

#[derive(clap::Args)]
struct Requirements {
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    match &args.verb {
        Verb::Import(flags) => import(flags),
        Verb::List(list) => {
            run::print(&self::list(&input.right_world()?, list)?)?;
            Ok(0)
        }
        Verb::Requirements(args) => {
            let world = input.right_world()?;
            let fleet = &world.effective.fleet;
            let only = args.cluster.as_deref().map(|name| input::cluster(fleet, name)).transpose()?;
            let ids = fleet.cluster_ids().map(|(id, _)| id).filter(|id| only.is_none_or(|only| only == *id));
            let text: Vec<String> = ids.map(|id| requirements::of(&world.effective, id)).collect();
            run::print(&text.join("---\n"))?;
            Ok(0)
        }
    }
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  kubectl mesh clusters import > inventory/clusters.yaml
  kubectl mesh clusters import eks-prod cluster-1
  kubectl mesh clusters import --from argocd --context management
  kubectl mesh clusters import --from ocm --context hub";

fn list(world: &mesh::World, args: &List) -> anyhow::Result<String> {
    let fleet = &world.effective.fleet;
    let gateway = |cluster: &mesh::fleet::Cluster| {
        cluster.gateway.as_ref().map_or_else(String::new, |gateway| {
            let addresses: Vec<String> = gateway.addresses.iter().map(ToString::to_string).collect();
            format!("{}:{}", addresses.join(","), gateway.port.0)
        })
    };
    let version = |cluster: &mesh::fleet::Cluster| {
        cluster.mesh.version.as_ref().map_or_else(String::new, |(version, _)| version.to_string())
    };
    Ok(match args.output {
        Form::Name => fleet.clusters.iter().map(|cluster| format!("cluster/{}\n", cluster.name)).collect(),
        Form::Json | Form::Yaml | Form::JsonPath(_) => {
            let list: Vec<_> = fleet
                .cluster_ids()
                .map(|(id, cluster)| {
                    json!({
                        "name": cluster.name.as_str(),
                        "context": cluster.context,
                        "region": cluster.region.as_str(),
                        "zone": cluster.zone.as_ref().map(|zone| zone.as_str()),
                        "network": cluster.network.as_str(),
                        "mesh": cluster.mesh.kind.0.as_str(),
                        "version": cluster.mesh.version.as_ref().map(|(version, _)| version.as_str()),
                        "trustDomain": cluster.mesh.trust_domain.as_str(),
                        "gateway": cluster.gateway.as_ref().map(|_| gateway(cluster)),
                        "drained": cluster.drained.is_some(),
                        "services": fleet.services.iter().filter(|service| service.runs.contains(id)).count(),
                    })
                })
                .collect();
            args.output.of(&list)?.unwrap_or_default()
        }
        Form::Table | Form::Wide | Form::Own(_) => {
            let wide = args.output == Form::Wide;
            let mut headers = vec!["CLUSTER", "REGION", "NETWORK", "MESH", "VERSION", "GATEWAY", "DRAINED", "SERVICES"];
            if wide {
                headers.extend(["CONTEXT", "ZONE", "TRUST DOMAIN"]);
            }
            let mut table = Rows::new(&headers);
            for (id, cluster) in fleet.cluster_ids() {
                let mut row = vec![
                    cluster.name.to_string(),
                    cluster.region.to_string(),
                    cluster.network.to_string(),
                    cluster.mesh.kind.0.as_str().to_owned(),
                    version(cluster),
                    gateway(cluster),
                    if cluster.drained.is_some() { "yes" } else { "no" }.to_owned(),
                    fleet.services.iter().filter(|service| service.runs.contains(id)).count().to_string(),
                ];
                if wide {
                    row.extend([
                        cluster.context.clone(),
                        cluster.zone.as_ref().map(ToString::to_string).unwrap_or_default(),
                        cluster.mesh.trust_domain.to_string(),
                    ]);
                }
                table.push(row);
            }
            table.render(!args.no_headers)
        }
    })
}
