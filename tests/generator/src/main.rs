//! Writes generated fleets to folders, and reads them for measurements.

use anyhow::Context;
use clap::{Parser, Subcommand};
use fleet_generator::files::spread;
use fleet_generator::large::{Size, large};
use mesh::intent::Reader;
use mesh::source::Limits;
use mesh_files::Bounds;
use std::fs;
use std::path::{Path, PathBuf};

/// Write a generated fleet to a folder
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The small fleet of a seed
    Fleet {
        /// The seed
        #[arg(long)]
        seed: u64,
        /// The folder to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Also print the documents, as one list of JSON
        #[arg(long)]
        json: bool,
    },
    /// A large fleet to measure with
    Large {
        /// How many clusters
        #[arg(long, default_value_t = 100)]
        clusters: usize,
        /// How many services
        #[arg(long, default_value_t = 5000)]
        services: usize,
        /// How many policies
        #[arg(long, default_value_t = 2000)]
        policies: usize,
        /// The folder to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Only read the documents of a folder: what nothing can be faster than
    Read {
        /// The folder
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().what {
        What::Fleet { seed, out, json } => {
            let documents = fleet_generator::fleet::fleet(seed);
            for file in spread(&documents, seed) {
                write(&out.join(&file.relative), &file.bytes)?;
            }
            if json {
                println!("{}", serde_json::Value::from(documents));
            }
        }
        What::Large { clusters, services, policies, out } => {
            for (path, text) in large(Size { clusters, services, policies }) {
                write(&out.join(path), text.as_bytes())?;
            }
        }
        What::Read { folder } => println!("{} services", read(&folder)?),
    }
    Ok(())
}

/// Text to documents, as the translation does it before anything refers to anything.
fn read(folder: &Path) -> anyhow::Result<usize> {
    let (files, mut found) = mesh_files::read(&[folder.to_owned()], &Bounds::default());
    let mut reader = Reader::default();
    for (index, file) in files.iter().enumerate() {
        let (nodes, problems) = mesh::source::read(u32::try_from(index)?, file, &Limits::default());
        found.extend(problems);
        reader.file(file, &nodes, &mut found);
    }
    let documents = reader.end(&found);
    anyhow::ensure!(!found.has_errors(), "the documents have errors");
    Ok(documents.services.len())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file stands in a folder")?)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
