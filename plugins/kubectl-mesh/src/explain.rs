//! `explain`: who serves whom, in which order, and why.

use mesh::diagnostic::Severity;
use mesh::explain::{rows, why_no_edge};
use mesh::resolve::Edge;
use mesh_kit::input::{self, Input};
use mesh_kit::run::{self, Outcome};

/// Say who serves whom, in which order, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kubectl mesh explain -f fleet/
  kubectl mesh explain -f fleet/ --from bank/account@eks --to bank/user
  kubectl mesh explain -f fleet/ --to bank/user -o json")]
pub(crate) struct Args {
    /// The caller: NAMESPACE/NAME@CLUSTER, or NAMESPACE/NAME for every cluster
    #[arg(long, value_name = "CALLER")]
    from: Option<String>,
    /// The called service: NAMESPACE/NAME
    #[arg(long, value_name = "SERVICE")]
    to: Option<String>,
    /// The form of the output
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let world = input.world();
    let found = world.found.clone().sorted();
    let broken = world.found.has_errors();
    if broken {
        // What can be resolved is shown nevertheless.
        input::warn(&world, &found, Severity::Error);
    }
    let fleet = &world.effective.fleet;
    let from = args.from.as_deref().map(|text| input::caller(fleet, text, None)).transpose()?;
    let to = args.to.as_deref().map(|text| input::service(fleet, text, None)).transpose()?;
    let keep = |edge: &Edge| {
        from.is_none_or(|(caller, cluster)| {
            edge.caller == caller && cluster.is_none_or(|cluster| edge.cluster == cluster)
        }) && to.is_none_or(|to| edge.provider == to)
    };
    let rows = rows(&world.effective, &world.files, keep);
    if rows.is_empty()
        && let (Some((caller, cluster)), Some(to)) = (from, to)
    {
        let service = fleet.service(caller);
        let places: Vec<_> = cluster.map_or_else(|| service.runs.iter().collect(), |cluster| vec![cluster]);
        let reasons: Vec<String> = places.into_iter().map(|cluster| why_no_edge(fleet, caller, cluster, to)).collect();
        return Err(anyhow::anyhow!(
            "nothing is routed: {}",
            reasons.first().map_or("the caller runs nowhere", String::as_str)
        )
        .into());
    }
    match args.output {
        Format::Json => run::print(&format!("{}\n", serde_json::to_string_pretty(&rows)?))?,
        Format::Table if rows.is_empty() => eprintln!("No rows: no service of this fleet depends on an exposed one."),
        Format::Table => run::print(&mesh_kit::explain::table(&rows, !args.no_headers))?,
    }
    Ok(u8::from(broken))
}
