//! `explain`: who serves whom, in which order, and why.

use mesh::explain::{rows, why_no_edge};
use mesh_kit::input::{Calls, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};

/// Say who serves whom, in which order, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  kubectl mesh explain -f fleet/
  kubectl mesh explain -f fleet/ --from bank/account@eks --to bank/user
  kubectl mesh explain -f fleet/ --to bank/user -o json")]
pub(crate) struct Args {
    #[command(flatten)]
    calls: Calls,
    /// The form of the output
    #[arg(short, long, value_parser = output::ROWS, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let (world, code) = input.shown_world();
    let fleet = &world.effective.fleet;
    let chosen = args.calls.choose(fleet, None)?;
    let rows = rows(&world.effective, &world.files, |edge| chosen.holds(edge));
    if rows.is_empty()
        && let (Some((caller, cluster)), Some(to)) = (chosen.from, chosen.to)
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
    match args.output.of(&rows)? {
        Some(text) => run::print(&text)?,
        None if rows.is_empty() => eprintln!("No rows: no service of this fleet depends on an exposed one."),
        None => run::print(&mesh_kit::explain::table(&rows, !args.no_headers))?,
    }
    Ok(code)
}
