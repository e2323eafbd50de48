//! A failing fleet becomes one that is small enough to read: parts are taken out while it still fails in the same respect.

use crate::judge::{Judge, Verdict};
use crate::worlds::Programs;
use anyhow::{Context, bail};
use fleet_generator::document::{kind, parts, remove};
use fleet_generator::files;
use fleet_generator::fleet::settle;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Candidates that are judged by one start of the judge.
const BATCH: usize = 8;

/// What is taken out: a document, or a part of it.
type Cut = (usize, Option<String>);

/// Reduces a seed and writes the world that is left to `into/seed`.
pub(crate) fn reduce(seed: u64, programs: &Programs, judge: &Judge, into: &Path) -> anyhow::Result<(PathBuf, usize)> {
    let mut reducer = Reducer { programs, judge, check: String::new() };
    let mut documents = fleet_generator::fleet::fleet(seed);
    let first = reducer.checks(std::slice::from_ref(&documents))?.pop().context("one answer for one world")?;
    let Some(check) = first.into_iter().next() else { bail!("seed {seed} does not fail") };
    reducer.check = check;

    documents = reducer.shrink(documents, |documents| {
        // Clusters first: the fewer there are, the faster the rest is judged.
        let mut cuts: Vec<Cut> = (0..documents.len()).map(|index| (index, None)).collect();
        cuts.sort_by_key(|(index, _)| kind(&documents[*index]) != "Cluster");
        cuts
    })?;
    documents = reducer.shrink(documents, |documents| {
        let all = documents.iter().enumerate();
        all.flat_map(|(index, document)| parts(document).into_iter().map(move |part| (index, Some(part))))
            .filter(|(_, part)| part.as_ref().is_some_and(|part| is_optional(part)))
            .collect()
    })?;
    let world = into.join(seed.to_string());
    if world.exists() {
        fs::remove_dir_all(&world)?;
    }
    fs::create_dir_all(world.join("fleet"))?;
    fs::write(world.join("fleet/fleet.yaml"), files::stream(&documents))?;
    programs.render(&world)?;
    Ok((world, documents.len()))
}

fn is_optional(part: &str) -> bool {
    part.starts_with("/spec/") || part == "/metadata/labels" || part == "/metadata/annotations"
}

struct Reducer<'a> {
    programs: &'a Programs,
    judge: &'a Judge,
    /// The check that has to fail.
    check: String,
}

impl Reducer<'_> {
    /// Takes out whatever can go, cut by cut, until nothing more can.
    fn shrink(&self, mut documents: Vec<Value>, cuts: impl Fn(&[Value]) -> Vec<Cut>) -> anyhow::Result<Vec<Value>> {
        let mut position = 0;
        loop {
            let all = cuts(&documents);
            let next = &all[position.min(all.len())..(position + BATCH).min(all.len())];
            if next.is_empty() {
                return Ok(documents);
            }
            let single: Vec<Vec<Value>> = next.iter().map(|one| cut(&documents, std::slice::from_ref(one))).collect();
            let fails = self.fails(&single)?;
            let good: Vec<Cut> =
                next.iter().zip(&fails).filter(|(_, fails)| **fails).map(|(cut, _)| cut.clone()).collect();
            // Mostly all of them can go together; cuts that were tried and cannot go are not tried again.
            let together = cut(&documents, &good);
            documents = match fails.iter().position(|fails| *fails) {
                None => {
                    position += BATCH;
                    continue;
                }
                Some(_) if good.len() > 1 && self.fails(std::slice::from_ref(&together))?[0] => together,
                Some(first) => single[first].clone(),
            };
            position += fails.iter().take_while(|fails| !**fails).count();
        }
    }

    /// Which candidates still fail in the same respect.
    fn fails(&self, candidates: &[Vec<Value>]) -> anyhow::Result<Vec<bool>> {
        let right: Vec<Vec<Value>> = candidates.iter().filter(|documents| is_fleet(documents)).cloned().collect();
        let mut answers = self.checks(&right)?.into_iter();
        let fails = candidates
            .iter()
            .map(|documents| is_fleet(documents) && answers.next().is_some_and(|checks| checks.contains(&self.check)));
        Ok(fails.collect())
    }

    /// The checks that each candidate fails.
    fn checks(&self, candidates: &[Vec<Value>]) -> anyhow::Result<Vec<BTreeSet<String>>> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let folder = tempfile::tempdir()?;
        for (index, documents) in candidates.iter().enumerate() {
            self.programs.write(&folder.path().join(format!("{index:03}")), documents, 0)?;
        }
        let mut verdicts = self.judge.judge(folder.path())?;
        verdicts.sort_by(|a, b| a.world.cmp(&b.world));
        Ok(verdicts.iter().map(Verdict::checks).collect())
    }
}

/// The documents without some of their parts, and without what makes no sense then.
fn cut(documents: &[Value], cuts: &[Cut]) -> Vec<Value> {
    let mut rest = documents.to_vec();
    for (index, part) in cuts {
        match part {
            Some(part) => _ = remove(&mut rest[*index], part),
            None => rest[*index] = Value::Null,
        }
    }
    rest.retain(|document| !document.is_null());
    settle(rest)
}

fn is_fleet(documents: &[Value]) -> bool {
    documents.iter().any(|document| kind(document) == "Cluster")
}
