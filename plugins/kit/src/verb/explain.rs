//! `explain`: the rows of the effective fleet that a document takes part in.

use crate::author::documents::Id;
use crate::input::{Calls, Input};
use crate::output::{self, Form};
use crate::run::{self, Outcome};
use anyhow::Context;
use mesh::World;
use mesh::diagnostic::did_you_mean;
use mesh::explain::rows;
use mesh::intent::Kind;
use mesh::resolve::Edge;

/// The flags of `explain`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The document: NAMESPACE/NAME, or NAME with -n; all of them if it is left out
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The namespace of a document that is named without one
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    calls: Calls,
    /// The form of the output
    #[arg(short, long, value_parser = output::ROWS, default_value = "table")]
    output: Form,
    /// Leave out the line of headers
    #[arg(long)]
    no_headers: bool,
}

/// Whether a document takes part in an edge.
pub type TakesPart = fn(world: &World, edge: &Edge, document: u32) -> bool;

/// Prints the rows in which a document of this kind, or any of them, takes part.
///
/// # Errors
///
/// If a name leads to nothing.
pub fn run(input: &Input, flags: &Flags, kind: Kind, takes_part: TakesPart) -> Outcome {
    let (world, code) = input.shown_world();
    let fleet = &world.effective.fleet;
    let documents: Vec<u32> = match &flags.name {
        Some(text) => vec![document(&world, &Id::parse(kind, text, flags.namespace.as_deref())?)?],
        None => (0..).zip(&fleet.documents).filter(|(_, id)| id.kind == kind).map(|(index, _)| index).collect(),
    };
    let chosen = flags.calls.choose(fleet, flags.namespace.as_deref())?;
    let rows = rows(&world.effective, &world.files, |edge| {
        chosen.holds(edge) && documents.iter().any(|document| takes_part(&world, edge, *document))
    });
    match flags.output.of(&rows)? {
        Some(text) => run::print(&text)?,
        None if rows.is_empty() => eprintln!("No rows: no dependency in this fleet is concerned."),
        None => run::print(&crate::explain::table(&rows, !flags.no_headers))?,
    }
    Ok(code)
}

/// The index of a document.
///
/// # Errors
///
/// If there is none of that name.
pub fn document(world: &World, id: &Id) -> anyhow::Result<u32> {
    let documents = &world.effective.fleet.documents;
    let wanted = id.to_string();
    let index = documents.iter().position(|document| document.to_string() == wanted).with_context(|| {
        let names: Vec<String> =
            documents.iter().filter(|document| document.kind == id.kind).map(ToString::to_string).collect();
        let help = did_you_mean(&wanted, names.iter().map(String::as_str))
            .unwrap_or_else(|| "`get` lists them; write NAMESPACE/NAME".to_owned());
        format!("there is no {wanted}; {help}")
    })?;
    Ok(u32::try_from(index)?)
}
