//! Random fleets: each seed becomes a fleet, its world is rendered by the programs of the suite, properties that need no
//! mesh are checked here, and Istio's own code judges the rest.

mod judge;
mod properties;
mod reduce;
mod worlds;

use anyhow::{Context, bail};
use clap::Parser;
use judge::Judge;
use std::path::PathBuf;
use std::process::ExitCode;
use worlds::Programs;

/// Judge random fleets
#[derive(Parser)]
struct Cli {
    /// The seeds, `FIRST..LAST` or one number; the last one is judged too
    #[arg(long, default_value = "1..300", value_parser = seeds, value_name = "SEEDS")]
    seeds: (u64, u64),
    /// The judge's program (go build ./cmd/judge in tests/judge)
    #[arg(long, value_name = "PROGRAM")]
    judge: PathBuf,
    /// The folder of the suite's programs [default: this program's own]
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Reduce this failing seed to a small fleet, instead of judging many
    #[arg(long, value_name = "SEED", requires = "into")]
    reduce: Option<u64>,
    /// Where the reduced world is put: DIR/SEED
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Only the properties that need no judge
    #[arg(long)]
    properties_only: bool,
    /// How many worlds are judged at a time
    #[arg(long, default_value_t = 2)]
    parallel: usize,
    /// Keep the worlds of failing seeds below this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    match text.split_once("..") {
        Some((first, last)) => Ok((number(first)?, number(last)?)),
        None => number(text).map(|seed| (seed, seed)),
    }
}

/// Worlds that are written before the judge is started: its start costs as much as several worlds.
const BATCH: usize = 50;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} seeds failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<usize> {
    let programs = match &cli.programs {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().context("a program stands in a folder")?.to_owned(),
    };
    let programs = Programs { folder: programs };
    let judge = Judge { program: cli.judge.clone(), parallel: cli.parallel };
    if let (Some(seed), Some(into)) = (cli.reduce, &cli.into) {
        let (world, documents) = reduce::reduce(seed, &programs, &judge, into)?;
        eprintln!("{}: {documents} documents", world.display());
        return Ok(0);
    }
    let (first, last) = cli.seeds;
    let all: Vec<u64> = (first..=last).collect();
    let (mut judged, mut failed) = (0, Vec::new());
    for batch in all.chunks(BATCH) {
        let folder = tempfile::tempdir()?;
        let mut lost = Vec::new();
        for seed in batch {
            let documents = fleet_generator::fleet::fleet(*seed);
            for problem in properties::problems(&documents, *seed) {
                println!("{seed}: {problem}");
                lost.push(*seed);
            }
            if !cli.properties_only
                && let Err(error) = programs.write(&folder.path().join(seed.to_string()), &documents, *seed)
            {
                println!("{seed}: {error:#}");
                lost.push(*seed);
            }
        }
        if !cli.properties_only {
            for verdict in judge.judge(folder.path())? {
                let seed: u64 = verdict.world.parse().context("worlds are called by their seeds")?;
                for line in verdict.lines() {
                    println!("{line}");
                }
                if verdict.failed() {
                    lost.push(seed);
                    if let Some(keep) = &cli.keep {
                        worlds::copy(&folder.path().join(&verdict.world), &keep.join(&verdict.world))?;
                    }
                }
            }
        }
        lost.dedup();
        judged += batch.len();
        failed.extend(lost);
        failed.sort_unstable();
        failed.dedup();
        eprintln!("{judged} of {} seeds, failed: {failed:?}", all.len());
    }
    if judged == 0 {
        bail!("no seed from {first} to {last}");
    }
    Ok(failed.len())
}
