//! `graph`: the rows of `explain` as a picture: which copy of a service calls which, and which one comes next.

use mesh::explain::{Row, Service, rows};
use mesh::resolve::Edge;
use mesh_kit::input::{self, Calls, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Draw who calls whom, and where calls go next when something fails
#[derive(clap::Args)]
#[command(after_help = "\
A solid line is where requests go, with their share of them; a dashed line is where they go next, with the number of the \
tier; a line with \"some\" holds for the requests of a `match` only.

Examples:
  # Mermaid, which code hosts show in Markdown
  kubectl mesh graph -f fleet/ --to bank/user

  # With Graphviz
  kubectl mesh graph -f fleet/ --cluster eks -o dot | dot -Tsvg > eks.svg")]
pub(crate) struct Args {
    #[command(flatten)]
    calls: Calls,
    /// Only calls that begin in this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The form of the output
    #[arg(short, long, value_parser = output::DRAWING, default_value = "mermaid")]
    output: Form,
}

/// The documented form of `graph -o json`.
#[derive(Serialize)]
struct Graph {
    nodes: BTreeSet<Node>,
    edges: Vec<Line>,
}

/// A copy of a service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Node {
    cluster: String,
    namespace: String,
    service: String,
}

/// Requests of one copy that go, or may go, to another.
#[derive(Serialize)]
struct Line {
    from: Node,
    to: Node,
    /// Which tier of the order; absent for a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<usize>,
    /// How many of the requests, in whole per cent, while everything is healthy: the clusters of a tier or share have it
    /// together. Absent for tiers that only failures lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
    /// Whether it holds for the requests of a `match` only.
    #[serde(rename = "match")]
    matched: bool,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let (world, code) = input.shown_world();
    let fleet = &world.effective.fleet;
    let chosen = args.calls.choose(fleet, None)?;
    let place = args.cluster.as_deref().map(|name| input::cluster(fleet, name)).transpose()?;
    let keep = |edge: &Edge| chosen.holds(edge) && place.is_none_or(|place| edge.cluster == place);
    let graph = Graph::of(&rows(&world.effective, &world.files, keep));
    run::print(&match (args.output.of(&graph)?, &args.output) {
        (Some(text), _) => text,
        (None, Form::Own("dot")) => graph.dot(),
        (None, _) => graph.mermaid(),
    })?;
    Ok(code)
}

impl Graph {
    fn of(rows: &[Row]) -> Self {
        let edges: Vec<Line> = rows.iter().flat_map(lines).collect();
        // A caller that nobody serves is there all the same.
        let callers = rows.iter().map(|row| Node {
            cluster: row.caller.cluster.clone(),
            namespace: row.caller.namespace.clone(),
            service: row.caller.service.clone(),
        });
        let nodes = callers.chain(edges.iter().map(|edge| edge.to.clone())).collect();
        Self { nodes, edges }
    }

    /// The copies of each cluster, numbered over all clusters.
    fn clusters(&self) -> BTreeMap<&str, Vec<(usize, &Node)>> {
        let mut clusters: BTreeMap<&str, Vec<(usize, &Node)>> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            clusters.entry(&node.cluster).or_default().push((index, node));
        }
        clusters
    }

    fn numbers(&self) -> BTreeMap<&Node, usize> {
        self.nodes.iter().enumerate().map(|(index, node)| (node, index)).collect()
    }

    /// <https://mermaid.js.org/syntax/flowchart.html>
    fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (number, (cluster, nodes)) in self.clusters().into_iter().enumerate() {
            let _ = writeln!(text, "  subgraph c{number}[\"{cluster}\"]");
            for (index, node) in nodes {
                let _ = writeln!(text, "    n{index}[\"{}/{}\"]", node.namespace, node.service);
            }
            text += "  end\n";
        }
        let numbers = self.numbers();
        for edge in &self.edges {
            let arrow = if edge.percent.is_some() { "-->" } else { "-.->" };
            let (from, to) = (numbers[&edge.from], numbers[&edge.to]);
            let _ = writeln!(text, "  n{from} {arrow}|\"{}\"| n{to}", edge.label());
        }
        text
    }

    /// <https://graphviz.org/doc/info/lang.html>
    fn dot(&self) -> String {
        let mut text = "digraph mesh {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for (number, (cluster, nodes)) in self.clusters().into_iter().enumerate() {
            let _ = writeln!(text, "  subgraph cluster_{number} {{\n    label=\"{cluster}\";");
            for (index, node) in nodes {
                let _ = writeln!(text, "    n{index} [label=\"{}/{}\"];", node.namespace, node.service);
            }
            text += "  }\n";
        }
        let numbers = self.numbers();
        for edge in &self.edges {
            let style = if edge.percent.is_some() { "solid" } else { "dashed" };
            let (from, to) = (numbers[&edge.from], numbers[&edge.to]);
            let _ = writeln!(text, "  n{from} -> n{to} [label=\"{}\", style={style}];", edge.label());
        }
        text + "}\n"
    }
}

impl Line {
    fn label(&self) -> String {
        let what = match (self.percent, self.tier) {
            (Some(percent), _) => format!("{percent}%"),
            (None, tier) => format!("tier {}", tier.unwrap_or_default()),
        };
        if self.matched { format!("some: {what}") } else { what }
    }
}

/// Where the requests of a row go: its shares, the first tier that has anybody, and the tiers behind it.
fn lines(row: &Row) -> Vec<Line> {
    let Row { caller, service: Service { namespace, name }, matches, shares, tiers, removed: _ } = row;
    let from =
        Node { cluster: caller.cluster.clone(), namespace: caller.namespace.clone(), service: caller.service.clone() };
    let line = |cluster: &String, tier, percent| Line {
        from: from.clone(),
        to: Node { cluster: cluster.clone(), namespace: namespace.clone(), service: name.clone() },
        tier,
        percent,
        matched: matches.is_some(),
    };
    let rest = 100 - shares.iter().map(|share| share.percent).sum::<u8>();
    let first = tiers.iter().position(|tier| !tier.is_empty());
    let shared =
        shares.iter().flat_map(|share| share.clusters.iter().map(|cluster| line(cluster, None, Some(share.percent))));
    let ordered = tiers.iter().enumerate().flat_map(|(index, tier)| {
        let percent = (first == Some(index) && rest > 0).then_some(rest);
        tier.iter().map(move |cluster| (cluster, index, percent))
    });
    shared.chain(ordered.map(|(cluster, index, percent)| line(cluster, Some(index), percent))).collect()
}
