//! `simulate`: who is served from where before and after clusters fail, and what is lost.

use crate::outage::{Part, Served};
use mesh::World;
use mesh::explain::{Caller, Match, Service};
use mesh::fleet::{ClusterId, Clusters, Fleet};
use mesh::intent::traffic::RequestMatch;
use mesh::resolve::{Edge, Route};
use mesh_kit::explain;
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};
use mesh_kit::table::Rows;
use serde::Serialize;
use std::cmp::Reverse;

/// Which clusters are down.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// These clusters are down
    #[arg(long, value_name = "CLUSTER", value_delimiter = ',')]
    down: Vec<String>,
    /// Each cluster once
    #[arg(long)]
    each: bool,
    /// Every two clusters at the same time
    #[arg(long)]
    pairs: bool,
}

/// Say who is served from where when clusters are down, and what is lost
#[derive(clap::Args)]
#[command(after_help = "\
Answers come from the documents; no cluster is asked. Callers in a cluster that is down are down themselves and not listed.

Examples:
  kubectl mesh failover simulate --down cluster-1 -f fleet/
  kubectl mesh failover simulate --down cluster-1,eks -o json -f fleet/

  # Every single failure, and every double one, the worst first
  kubectl mesh failover simulate --each -f fleet/
  kubectl mesh failover simulate --pairs -f fleet/")]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
    /// Also callers for whom nothing changes
    #[arg(long, requires = "down")]
    all: bool,
    /// The form of the output
    #[arg(short, long, value_parser = output::ROWS, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

/// One caller, before and after.
#[derive(Serialize)]
struct Moved {
    caller: Caller,
    service: Service,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<Match>>,
    before: Vec<Part>,
    after: Vec<Part>,
    /// What nobody serves any more, in per cent.
    lost: u8,
}

/// One failure, in numbers.
#[derive(Serialize)]
struct Outage {
    down: Vec<String>,
    /// Callers that lose requests.
    lost: usize,
    /// Callers that are served from elsewhere than before.
    moved: usize,
    /// `caller@cluster -> service` of those that lose requests.
    losing: Vec<String>,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let (world, code) = input.shown_world();
    let fleet = &world.effective.fleet;
    let ids: Vec<ClusterId> = fleet.cluster_ids().map(|(id, _)| id).collect();
    if args.what.down.is_empty() {
        let sets: Vec<Clusters> = if args.what.each {
            ids.iter().map(|id| Clusters::one(*id)).collect()
        } else {
            ids.iter()
                .enumerate()
                .flat_map(|(at, a)| ids[at + 1..].iter().map(|b| [*a, *b].into_iter().collect()))
                .collect()
        };
        if sets.is_empty() {
            return Err(anyhow::anyhow!("there are not enough Cluster documents for this").into());
        }
        let mut outages: Vec<Outage> = sets.iter().map(|down| outage(&world, down)).collect();
        outages.sort_by_key(|outage| (Reverse(outage.lost), Reverse(outage.moved), outage.down.clone()));
        let text = args.output.of(&outages)?.unwrap_or_else(|| outage_table(&outages, !args.no_headers));
        run::print(&text)?;
        return Ok(code);
    }
    let down: Clusters =
        args.what.down.iter().map(|name| input::cluster(fleet, name)).collect::<anyhow::Result<_>>()?;
    let rows = moved(&world, &down, args.all);
    match args.output.of(&rows)? {
        Some(text) => run::print(&text)?,
        None => {
            if !rows.is_empty() {
                run::print(&moved_table(&rows, !args.no_headers))?;
            }
            eprintln!("{}", summary(&world, &down));
        }
    }
    Ok(code)
}

/// The callers that are still there.
fn edges<'a>(world: &'a World, down: &Clusters) -> impl Iterator<Item = &'a Edge> {
    let down = *down;
    world.effective.edges.iter().filter(move |edge| !down.contains(edge.cluster))
}

/// The routes of a caller: of all its requests, and of those that a policy of its own matches.
fn routes(edge: &Edge) -> impl Iterator<Item = (&Route, Option<&[RequestMatch]>)> {
    let matched = edge.matched.iter().filter(|matched| matched.policies.len() == 1);
    std::iter::once((&edge.base, None)).chain(matched.map(|matched| (&matched.route, Some(&*matched.matches))))
}

fn moved(world: &World, down: &Clusters, all: bool) -> Vec<Moved> {
    let fleet = &world.effective.fleet;
    edges(world, down)
        .flat_map(|edge| routes(edge).map(move |(route, matches)| (edge, route, matches)))
        .filter_map(|(edge, route, matches)| {
            let (before, after) = (Served::of(route, &Clusters::NONE), Served::of(route, down));
            let (caller, service) = (fleet.service(edge.caller), fleet.service(edge.provider));
            (all || before != after).then(|| Moved {
                caller: Caller {
                    cluster: fleet.cluster(edge.cluster).name.to_string(),
                    namespace: caller.namespace.to_string(),
                    service: caller.name.to_string(),
                },
                service: Service { namespace: service.namespace.to_string(), name: service.name.to_string() },
                matches: matches.map(|matches| matches.iter().map(Into::into).collect()),
                before: before.parts(fleet),
                after: after.parts(fleet),
                lost: after.lost,
            })
        })
        .collect()
}

/// What happens to callers, whichever of their requests it happens to.
fn outage(world: &World, down: &Clusters) -> Outage {
    let fleet = &world.effective.fleet;
    let (mut moved, mut losing) = (0, Vec::new());
    for edge in edges(world, down) {
        let touched = routes(edge).filter(|(route, _)| !route.clusters().and(down).is_empty());
        let fates: Vec<(Served, Served)> =
            touched.map(|(route, _)| (Served::of(route, &Clusters::NONE), Served::of(route, down))).collect();
        if fates.iter().any(|(before, after)| after.lost > before.lost) {
            losing.push(arrow(fleet, edge));
        } else if fates.iter().any(|(before, after)| after != before) {
            moved += 1;
        }
    }
    let down = down.iter().map(|id| fleet.cluster(id).name.to_string()).collect();
    Outage { down, lost: losing.len(), moved, losing }
}

fn arrow(fleet: &Fleet, edge: &Edge) -> String {
    let (caller, service) = (fleet.service(edge.caller), fleet.service(edge.provider));
    let cluster = &fleet.cluster(edge.cluster).name;
    format!("{}/{}@{cluster} -> {}/{}", caller.namespace, caller.name, service.namespace, service.name)
}

fn moved_table(rows: &[Moved], headers: bool) -> String {
    let matched = rows.iter().any(|row| row.matches.is_some());
    let mut names = explain::headers_of_calls(matched);
    names.extend(["BEFORE", "AFTER", "LOST"]);
    let mut table = Rows::new(&names);
    for row in rows {
        let mut cells = explain::calls(&row.caller, &row.service, row.matches.as_deref(), matched);
        cells.extend([parts(&row.before), parts(&row.after)]);
        cells.push(if row.lost == 0 { "-".to_owned() } else { format!("{}%", row.lost) });
        table.push(cells);
    }
    table.render(headers)
}

/// `80% cluster-2, 20% wine`; the clusters of one tier are joined by `+`.
fn parts(parts: &[Part]) -> String {
    match parts {
        [] => "nobody".to_owned(),
        [part] if part.percent == 100 => part.clusters.join("+"),
        several => {
            let texts: Vec<String> =
                several.iter().map(|part| format!("{}% {}", part.percent, part.clusters.join("+"))).collect();
            texts.join(", ")
        }
    }
}

fn outage_table(outages: &[Outage], headers: bool) -> String {
    const SHOWN: usize = 3;
    let mut table = Rows::new(&["CLUSTER", "LOST", "MOVED", "WHO LOSES"]);
    for outage in outages {
        let mut losing = outage.losing.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if outage.losing.len() > SHOWN {
            losing += &format!(", and {} more", outage.losing.len() - SHOWN);
        }
        let losing = if losing.is_empty() { "-".to_owned() } else { losing };
        table.push([outage.down.join(","), outage.lost.to_string(), outage.moved.to_string(), losing]);
    }
    table.render(headers)
}

fn summary(world: &World, down: &Clusters) -> String {
    let Outage { lost, moved, .. } = outage(world, down);
    let gone = world.effective.edges.iter().filter(|edge| down.contains(edge.cluster)).count();
    format!("Callers that lose requests: {lost}; served from elsewhere: {moved}; down themselves: {gone}.")
}
