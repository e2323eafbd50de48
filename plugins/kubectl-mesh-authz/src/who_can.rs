//! `who-can`: every caller against every copy of a service.

use mesh::fleet::{Fleet, ServiceId};
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};
use mesh_kit::table::Rows;
use mesh_kit::verdict::{self, Answer, Copy};
use std::collections::{BTreeMap, BTreeSet};

/// Show who may call a service, caller by caller and cluster by cluster
#[derive(clap::Args)]
#[command(after_help = "\
The table has a row per caller that a rule allows somewhere, or that declares the dependency and is refused, and a \
column per called cluster: yes, no, partly (only some ports, methods or paths), or - where the service does not run. \
A row of * stands for everyone: open (no policy holds) or audit (calls that no rule allows are only logged).

Examples:
  kubectl mesh authz who-can bank/user -f fleet/
  kubectl mesh authz who-can user -n bank -f fleet/ -o json")]
pub(crate) struct Args {
    /// The called service: NAMESPACE/NAME, or NAME with -n; every service if it is left out
    #[arg(value_name = "SERVICE")]
    service: Option<String>,
    /// The namespace of a service that is named without one
    #[arg(short, long)]
    namespace: Option<String>,
    /// The form of the output
    #[arg(short, long, value_parser = output::ROWS, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let world = input.right_world()?;
    let fleet = &world.effective.fleet;
    let services: Vec<ServiceId> = match &args.service {
        Some(text) => vec![input::service(fleet, text, args.namespace.as_deref())?],
        None => fleet
            .service_ids()
            .filter(|(_, service)| args.namespace.as_deref().is_none_or(|wanted| service.namespace.as_str() == wanted))
            .map(|(id, _)| id)
            .collect(),
    };
    let copies: Vec<Copy> = services
        .iter()
        .flat_map(|id| fleet.service(*id).runs.iter().map(|cluster| (*id, cluster)).collect::<Vec<_>>())
        .map(|(id, cluster)| verdict::copy(&world, id, cluster))
        .collect();
    match args.output.of(&copies)? {
        Some(text) => run::print(&text)?,
        None if copies.is_empty() => eprintln!("No services found."),
        None => {
            let dependents = dependents(fleet);
            run::print(&table(&copies, &dependents, !args.no_headers))?;
        }
    }
    Ok(0)
}

fn name(fleet: &Fleet, id: ServiceId) -> String {
    let service = fleet.service(id);
    format!("{}/{}", service.namespace, service.name)
}

/// The callers that declare a dependency, by the called service.
fn dependents(fleet: &Fleet) -> BTreeSet<(String, From)> {
    let mut dependents = BTreeSet::new();
    for (caller, service) in fleet.service_ids() {
        for dependency in &service.dependencies {
            for cluster in dependency.clusters.iter() {
                let from = (fleet.cluster(cluster).name.to_string(), name(fleet, caller));
                dependents.insert((name(fleet, dependency.provider), from));
            }
        }
    }
    dependents
}

/// Cluster and name of a caller, in the order in which they stand.
type From = (String, String);

/// One row per caller and service, one column per called cluster.
fn table(copies: &[Copy], dependents: &BTreeSet<(String, From)>, headers: bool) -> String {
    let clusters: BTreeSet<&str> = copies.iter().map(|copy| copy.cluster.as_str()).collect();
    let mut cells: BTreeMap<(String, From), BTreeMap<&str, &'static str>> = BTreeMap::new();
    for copy in copies {
        let called = format!("{}/{}", copy.service.namespace, copy.service.name);
        if copy.mode != Answer::Enforce {
            let everyone = (called.clone(), ("*".to_owned(), "*".to_owned()));
            let word = if copy.mode == Answer::Open { "open" } else { "audit" };
            cells.entry(everyone).or_default().insert(&copy.cluster, word);
        }
        for verdict in &copy.callers {
            let caller = &verdict.caller.caller;
            let from = (caller.cluster.clone(), format!("{}/{}", caller.namespace, caller.service));
            cells.entry((called.clone(), from)).or_default().insert(&copy.cluster, verdict.word(copy.mode));
        }
    }
    cells.retain(|row, words| {
        let has = |wanted: &str| words.values().any(|word| *word == wanted);
        row.1.0 == "*" || has("yes") || has("partly") || (has("no") && dependents.contains(row))
    });
    let columns = ["CLUSTER".to_owned(), "CALLER".to_owned(), "SERVICE".to_owned()];
    let names: Vec<String> =
        columns.into_iter().chain(clusters.iter().map(|cluster| format!("IN {}", cluster.to_uppercase()))).collect();
    let mut table = Rows::new(&names);
    for ((called, (cluster, caller)), words) in cells {
        let answers = clusters.iter().map(|cluster| words.get(cluster).copied().unwrap_or("-").to_owned());
        table.push([cluster, caller, called].into_iter().chain(answers));
    }
    table.render(headers)
}
