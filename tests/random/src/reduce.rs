//! A failing fleet becomes one that is small enough to read: parts are taken out while it still fails in the same respect.

use crate::judge::Judge;
use crate::worlds::Programs;
use anyhow::{Context, bail};
use fleet_generator::document::{Text, kind, parts, remove};
use fleet_generator::files;
use fleet_generator::world::world_of;
use mesh::diagnostic::Diagnostic;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Candidates that are judged by one start of the judge.
const BATCH: usize = 8;

/// Reduces a seed and writes the world that is left to `into/seed`.
pub(crate) fn reduce(seed: u64, programs: &Programs, judge: &Judge, into: &Path) -> anyhow::Result<(PathBuf, usize)> {
    let mut reducer = Reducer { programs, judge, respect: BTreeSet::new() };
    let mut documents = fleet_generator::fleet::fleet(seed);
    let first = reducer.checks(std::slice::from_ref(&documents))?.pop().context("one answer for one world")?;
    let Some(check) = first.first() else { bail!("seed {seed} does not fail") };
    reducer.respect = BTreeSet::from([check.clone()]);

    let mut size = documents.len().div_ceil(2);
    while size > 0 {
        let candidates = (0..documents.len()).step_by(size).map(|start| {
            let mut rest = documents.clone();
            rest.drain(start..(start + size).min(documents.len()));
            rest
        });
        match reducer.first_failing(candidates.collect())? {
            Some(smaller) => {
                documents = smaller;
                size = size.min(documents.len());
            }
            None => size /= 2,
        }
    }
    // Parts of documents, the outer ones first; a part that is gone moves others, so the list is made anew.
    let mut position = 0;
    loop {
        let all: Vec<(usize, String)> = documents
            .iter()
            .enumerate()
            .flat_map(|(index, document)| parts(document).into_iter().map(move |part| (index, part)))
            .filter(|(_, part)| {
                part.starts_with("/spec/") || part == "/metadata/labels" || part == "/metadata/annotations"
            })
            .collect();
        let Some(next) = all.get(position..(position + BATCH).min(all.len())).filter(|next| !next.is_empty()) else {
            break;
        };
        let candidates = next.iter().map(|(index, part)| {
            let mut smaller = documents.clone();
            remove(&mut smaller[*index], part);
            smaller
        });
        match reducer.first_failing(candidates.collect())? {
            Some(smaller) => documents = smaller,
            None => position += BATCH,
        }
    }
    let world = into.join(seed.to_string());
    if world.exists() {
        fs::remove_dir_all(&world)?;
    }
    fs::create_dir_all(world.join("fleet"))?;
    fs::write(world.join("fleet/fleet.yaml"), files::stream(&documents))?;
    programs.render(&world)?;
    Ok((world, documents.len()))
}

struct Reducer<'a> {
    programs: &'a Programs,
    judge: &'a Judge,
    /// The checks that have to fail.
    respect: BTreeSet<String>,
}

impl Reducer<'_> {
    /// The first candidate without errors that still fails in the same respect.
    fn first_failing(&self, candidates: Vec<Vec<Value>>) -> anyhow::Result<Option<Vec<Value>>> {
        let right: Vec<Vec<Value>> = candidates.into_iter().filter(|documents| is_right(documents)).collect();
        for batch in right.chunks(BATCH) {
            let answers = self.checks(batch)?;
            let failing = answers.iter().position(|checks| !checks.is_disjoint(&self.respect));
            if let Some(index) = failing {
                return Ok(Some(batch[index].clone()));
            }
        }
        Ok(None)
    }

    /// The checks that each candidate fails.
    fn checks(&self, candidates: &[Vec<Value>]) -> anyhow::Result<Vec<BTreeSet<String>>> {
        let folder = tempfile::tempdir()?;
        for (index, documents) in candidates.iter().enumerate() {
            self.programs.write(&folder.path().join(format!("{index:03}")), documents, 0)?;
        }
        let mut verdicts = self.judge.judge(folder.path())?;
        verdicts.sort_by(|a, b| a.world.cmp(&b.world));
        Ok(verdicts.iter().map(crate::judge::Verdict::checks).collect())
    }
}

fn is_right(documents: &[Value]) -> bool {
    documents.iter().any(|document| kind(document) == "Cluster")
        && !world_of(&documents.iter().map(Text::of).collect::<Vec<_>>()).check().iter().any(Diagnostic::is_error)
}
