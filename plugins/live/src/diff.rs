//! `diff`: what applying would change, in kubectl's form and with kubectl's exit codes.

use crate::api::{Api, Error, Mode, PARALLEL};
use crate::fields::{Change, is_by_hand};
use crate::fleet::{self, Tally, Target, Targets};
use crate::survey::{Item, Key, State, survey};
use anyhow::Context;
use futures_util::stream::{self, StreamExt};
use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::run::{self, Failure, Outcome, print};
use serde_json::Value as Json;
use similar::TextDiff;
use std::process::Command;

/// The flags of `diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Also show what `apply --prune` would delete
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    targets: Targets,
}

/// An object before and after, as YAML; empty where it does not exist.
#[derive(Debug)]
struct Pair {
    key: Key,
    live: String,
    merged: String,
}

/// What a cluster has to say.
#[derive(Debug, Default)]
struct Difference {
    pairs: Vec<Pair>,
    notes: Vec<String>,
    errors: Vec<String>,
}

/// Compares objects of these kinds with the clusters; the outcome is 0 without differences, 1 with some.
///
/// # Errors
///
/// Exit code 2 if any cluster could not be compared completely.
pub fn diff(input: &Input, args: &Flags, kinds: &[Kind]) -> Outcome {
    command(input, args, kinds).map_err(|failure| match failure {
        Failure::Error(error) if !run::is_closed_pipe(&error) => {
            eprintln!("error: {error:#}");
            Failure::Printed(2)
        }
        Failure::Printed(_) => Failure::Printed(2),
        Failure::Error(closed) => Failure::Error(closed),
    })
}

fn command(input: &Input, args: &Flags, kinds: &[Kind]) -> Outcome {
    let world = input.right_world()?;
    let targets = args.targets.render(&world, kinds)?;
    let connections = args.targets.connect.connections()?;
    let external = std::env::var("KUBECTL_EXTERNAL_DIFF").ok().filter(|program| !program.is_empty());
    let mut tally = Tally::default();
    let mut differs = false;
    let work = async |api: &Api, target: &Target| difference(api, target, kinds, args.prune).await;
    fleet::block_on(fleet::each(&targets, &connections, work, |target, result| {
        let difference =
            result.unwrap_or_else(|error| Difference { errors: vec![error.to_string()], ..Difference::default() });
        tally.count(difference.errors.is_empty());
        differs |= !difference.pairs.is_empty();
        for note in &difference.notes {
            eprintln!("{}: {note}", target.name);
        }
        for error in &difference.errors {
            eprintln!("error: {}: {error}", target.name);
        }
        if difference.pairs.is_empty() {
            return Ok(());
        }
        print(&format!("# cluster {}: {}\n", target.name, count(&difference.pairs)))?;
        match &external {
            Some(program) => run_external(program, &difference.pairs),
            None => print(&difference.pairs.iter().map(|pair| unified(&target.name, pair)).collect::<String>()),
        }
    }))?;
    let ok = if targets.len() > 1 { tally.report() } else { tally.is_ok() };
    if !ok {
        return Err(Failure::Printed(2));
    }
    Ok(u8::from(differs))
}

fn count(pairs: &[Pair]) -> String {
    let missing = pairs.iter().filter(|pair| pair.live.is_empty()).count();
    let surplus = pairs.iter().filter(|pair| pair.merged.is_empty()).count();
    format!("{missing} to create, {} to change, {surplus} to delete", pairs.len() - missing - surplus)
}

async fn difference(api: &Api, target: &Target, kinds: &[Kind], prune: bool) -> Result<Difference, Error> {
    let survey = survey(api, &target.objects, kinds, prune).await?;
    let mut difference = Difference {
        errors: survey.unread.iter().map(|(kind, error)| format!("{}: {error}", kind.qualified())).collect(),
        ..Difference::default()
    };
    let open = survey.items.iter().filter(|item| item.state != State::InSync);
    let asked: Vec<(&Item, Result<Json, Error>)> =
        stream::iter(open).map(async |item| (item, merged(api, item).await)).buffered(PARALLEL).collect().await;
    for (item, merged) in asked {
        match merged {
            Ok(merged) => {
                difference.notes.extend(notes(item));
                let live = item.live.as_ref().map(yaml).unwrap_or_default();
                difference.pairs.push(Pair { key: item.key.clone(), live, merged: yaml(&merged) });
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => difference.errors.push(format!("{}: {error}", item.key.qualified())),
        }
    }
    difference.pairs.retain(|pair| pair.live != pair.merged);
    for surplus in &survey.surplus {
        difference.pairs.push(Pair { key: surplus.key.clone(), live: yaml(&surplus.live), merged: String::new() });
    }
    Ok(difference)
}

/// What the server would make of the object; what others added to it is taken out as applying would.
async fn merged(api: &Api, item: &Item) -> Result<Json, Error> {
    let mut merged = api.apply(&item.key.path(), &item.wanted, Mode::DryRun, true).await?;
    for intruder in item.comparison.changes.iter().filter(|change| change.is_intruder()) {
        remove(&mut merged, &intruder.pointer);
    }
    Ok(merged)
}

fn remove(object: &mut Json, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(parent) = object.pointer_mut(parent).and_then(Json::as_object_mut) {
        parent.remove(&key.replace("~1", "/").replace("~0", "~"));
    }
}

/// What applying would leave alone unless it is forced.
fn notes(item: &Item) -> Vec<String> {
    let name = item.key.qualified();
    if item.state == State::Foreign {
        return vec![format!("{name} was not put there by kubectl-mesh; only `apply --force-conflicts` takes it over")];
    }
    let owned = |change: &Change| {
        change.owners.iter().find(|owner| !is_by_hand(&owner.manager)).map(|owner| owner.manager.clone())
    };
    item.comparison
        .changes
        .iter()
        .filter_map(|change| owned(change).map(|manager| (change, manager)))
        .map(|(change, manager)| {
            format!("{name}: {} is owned by \"{manager}\"; only `apply --force-conflicts` changes it", change.field)
        })
        .collect()
}

/// The object as YAML, without what changes on every write.
fn yaml(object: &Json) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    mesh::manifest::to_yaml(&object)
}

/// `networking.istio.io.v1.VirtualService.bank.user`, as kubectl names the files that it compares.
fn file_name(key: &Key) -> String {
    let version = key.kind.api_version().replace('/', ".");
    format!("{version}.{}.{}.{}", key.kind.as_str(), key.namespace, key.name)
}

fn unified(cluster: &str, pair: &Pair) -> String {
    let name = file_name(&pair.key);
    TextDiff::from_lines(&pair.live, &pair.merged)
        .unified_diff()
        .header(&format!("LIVE/{cluster}/{name}"), &format!("MERGED/{cluster}/{name}"))
        .to_string()
}

/// Runs the program of `KUBECTL_EXTERNAL_DIFF` on two folders, as kubectl does: words are split at spaces, and only
/// plain flags are passed on.
fn run_external(command: &str, pairs: &[Pair]) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("kubectl-mesh-diff-").tempdir()?;
    let (live, merged) = (folder.path().join("LIVE"), folder.path().join("MERGED"));
    for (path, text) in [
        (&live, pairs.iter().map(|pair| &pair.live).collect::<Vec<_>>()),
        (&merged, pairs.iter().map(|pair| &pair.merged).collect()),
    ] {
        std::fs::create_dir(path)?;
        for (pair, text) in pairs.iter().zip(text).filter(|(_, text)| !text.is_empty()) {
            std::fs::write(path.join(file_name(&pair.key)), text)?;
        }
    }
    let mut words = command.split_whitespace();
    let program = words.next().context("KUBECTL_EXTERNAL_DIFF names no program")?;
    let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '=');
    let status = Command::new(program)
        .args(words.filter(is_plain))
        .args([&live, &merged])
        .status()
        .with_context(|| format!("cannot run \"{program}\" of KUBECTL_EXTERNAL_DIFF"))?;
    anyhow::ensure!(
        status.code().is_some_and(|code| code <= 1),
        "\"{program}\" of KUBECTL_EXTERNAL_DIFF failed: {status}"
    );
    Ok(())
}
