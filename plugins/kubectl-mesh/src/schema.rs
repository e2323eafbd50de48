//! `schema`: the JSON Schema of the documents, for editors.

use mesh::diagnostic::did_you_mean;
use mesh::intent::Kind;
use mesh_kit::run::{self, Outcome};

/// Print the JSON Schema of the documents, for editors
#[derive(clap::Args)]
#[command(after_help = "\
Editors that speak the YAML language server protocol complete and check documents that begin with

  # yaml-language-server: $schema=mesh.schema.json

Examples:
  kubectl mesh schema > mesh.schema.json
  kubectl mesh schema TrafficPolicy")]
pub(crate) struct Args {
    /// Only this kind of document
    kind: Option<String>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let kind = match &args.kind {
        None => None,
        Some(name) => {
            Some(Kind::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name)).ok_or_else(|| {
                let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
                let help = did_you_mean(name, names.iter().copied())
                    .unwrap_or_else(|| format!("the kinds are {}", names.join(", ")));
                anyhow::anyhow!("there is no kind \"{name}\"; {help}")
            })?)
        }
    };
    run::print(&format!("{:#}\n", mesh::intent::schema::schema(kind)))?;
    Ok(0)
}
