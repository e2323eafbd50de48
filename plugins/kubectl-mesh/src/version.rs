//! `version`: of the suite and of what it reads and writes.

use mesh_kit::run::{self, Outcome};
use serde_json::json;

/// Print the version
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The form of the output
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Json,
    Yaml,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let text = match args.output {
        None => format!("kubectl-mesh {version}\n"),
        Some(Format::Json) => format!("{:#}\n", json!({"version": version, "apiVersion": mesh::intent::API_VERSION})),
        Some(Format::Yaml) => format!("apiVersion: {}\nversion: {version}\n", mesh::intent::API_VERSION),
    };
    run::print(&text)?;
    Ok(0)
}
