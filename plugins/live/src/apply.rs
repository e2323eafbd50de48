//! `apply`: server-side apply in make-before-break order, in many clusters at once.
//!
//! In each cluster kind follows kind, and a kind is begun only when the one before it stands completely; what is no
//! longer wanted goes last, in reverse order. Every step is idempotent and nothing is remembered outside the clusters,
//! so an interrupted run is finished by running it again.

use crate::api::{Api, Error, Mode, PARALLEL};
use crate::fields::is_by_hand;
use crate::fleet::{self, Tally, Target, Targets};
use crate::survey::{Item, Key, State, Surplus, survey};
use anyhow::bail;
use futures_util::stream::{self, StreamExt};
use kube::core::Status;
use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::run::{Failure, Outcome, print};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};

/// The flags of `apply`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    targets: Targets,
    /// Only say what would be done: `client` compares with what is there, `server` also asks the API servers
    #[arg(long, value_enum, default_value = "none", value_name = "MODE")]
    dry_run: DryRun,
    /// Take over fields and objects that belong to others
    #[arg(long)]
    force_conflicts: bool,
    /// Delete what the suite put there and the intents no longer want
    #[arg(long)]
    prune: bool,
    /// Delete without asking
    #[arg(short = 'y', long, requires = "prune")]
    yes: bool,
    /// Accepted for kubectl's sake: applying is always server-side
    #[arg(long, hide = true)]
    server_side: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    None,
    Client,
    Server,
}

impl DryRun {
    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

/// How one object fared.
#[derive(Debug)]
enum Done {
    Applied,
    Unchanged,
    Deleted,
    /// Not touched: it belongs to others, or the server refuses.
    Refused(String),
}

/// How one cluster fared.
#[derive(Debug, Default)]
struct Report {
    done: Vec<(Key, Done)>,
    /// What was not begun because something before it failed.
    held: usize,
    /// Kinds that could not be read.
    unread: Vec<String>,
}

impl Report {
    fn is_ok(&self) -> bool {
        self.unread.is_empty() && !self.done.iter().any(|(_, done)| matches!(done, Done::Refused(_)))
    }
}

/// What may be deleted: what was listed and confirmed, by cluster.
type Confirmed = BTreeSet<(String, Key)>;

/// Applies objects of these kinds.
///
/// # Errors
///
/// If anything could not be done; what could be done is done.
pub fn apply(input: &Input, args: &Flags, kinds: &[Kind]) -> Outcome {
    let world = input.right_world()?;
    let targets = args.targets.render(&world, kinds)?;
    let connections = args.targets.connect.connections()?;
    let asks = args.prune && !args.yes && args.dry_run == DryRun::None;
    let ok = fleet::block_on(async {
        let confirmed = if asks {
            let mut listed = Confirmed::new();
            let work = async |api: &Api, target: &Target| survey(api, &target.objects, kinds, true).await;
            fleet::each(&targets, &connections, work, |target, result| {
                // What cannot be read now is told when it is applied.
                for surplus in result.map(|survey| survey.surplus).unwrap_or_default() {
                    listed.insert((target.name.clone(), surplus.key));
                }
                Ok(())
            })
            .await?;
            confirm(&listed)?;
            Some(listed)
        } else {
            None
        };
        let progress = Progress::new(targets.iter().map(|target| target.objects.len()).sum());
        let work = async |api: &Api, target: &Target| {
            in_cluster(api, target, kinds, args, confirmed.as_ref(), &progress).await
        };
        let mut tally = Tally::default();
        fleet::each(&targets, &connections, work, |target, result| {
            progress.clear();
            let ok = match result {
                Ok(report) => report_cluster(target, &report, args)?,
                Err(error) => {
                    eprintln!("error: {}: {error}", target.name);
                    false
                }
            };
            tally.count(ok);
            Ok(())
        })
        .await?;
        Ok(tally.report())
    })?;
    if ok { Ok(0) } else { Err(Failure::Printed(1)) }
}

/// Lists what would be deleted and asks for permission.
fn confirm(listed: &Confirmed) -> anyhow::Result<()> {
    if listed.is_empty() {
        return Ok(());
    }
    eprintln!("No longer wanted by the intents:");
    for (cluster, key) in listed {
        eprintln!("  {cluster}: {} in namespace {}", key.qualified(), key.namespace);
    }
    if !std::io::stdin().is_terminal() {
        bail!("nothing was changed: deleting {} objects needs --yes where nobody can be asked", listed.len());
    }
    eprint!("Delete these {} objects? [y/N] ", listed.len());
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was changed");
    }
    Ok(())
}

async fn in_cluster(
    api: &Api,
    target: &Target,
    kinds: &[Kind],
    args: &Flags,
    confirmed: Option<&Confirmed>,
    progress: &Progress,
) -> Result<Report, Error> {
    let survey = survey(api, &target.objects, kinds, args.prune).await?;
    let mut report = Report::default();
    for kind in kinds {
        let unread = survey.unread.get(kind);
        report.unread.extend(unread.map(|error| format!("{}: {error}", kind.qualified())));
        let items = || survey.items.iter().filter(|item| item.key.kind == *kind);
        if !report.is_ok() {
            report.held += target.objects.iter().filter(|object| object.kind == *kind).count();
            continue;
        }
        let results: Vec<(&Item, Result<Done, Error>)> = stream::iter(items())
            .map(async |item| {
                let done = one(api, item, args).await;
                progress.step();
                (item, done)
            })
            .buffered(PARALLEL)
            .collect()
            .await;
        for (item, done) in results {
            match done {
                Ok(done) => report.done.push((item.key.clone(), done)),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => report.done.push((item.key.clone(), Done::Refused(error.to_string()))),
            }
        }
    }
    let is_confirmed = |surplus: &&Surplus| {
        confirmed.is_none_or(|confirmed| confirmed.contains(&(target.name.clone(), surplus.key.clone())))
    };
    for kind in kinds.iter().rev() {
        let surplus = survey.surplus.iter().filter(|surplus| surplus.key.kind == *kind).filter(is_confirmed);
        if !report.is_ok() {
            report.held += surplus.count();
            continue;
        }
        let results: Vec<(&Surplus, Result<(), Error>)> = stream::iter(surplus)
            .map(async |surplus| (surplus, delete(api, surplus, args).await))
            .buffered(PARALLEL)
            .collect()
            .await;
        for (surplus, result) in results {
            match result {
                Ok(()) => report.done.push((surplus.key.clone(), Done::Deleted)),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => report.done.push((surplus.key.clone(), Done::Refused(error.to_string()))),
            }
        }
    }
    Ok(report)
}

fn mode(args: &Flags) -> Mode {
    if args.dry_run == DryRun::Server { Mode::DryRun } else { Mode::Real }
}

async fn delete(api: &Api, surplus: &Surplus, args: &Flags) -> Result<(), Error> {
    if args.dry_run == DryRun::Client {
        return Ok(());
    }
    api.delete(&surplus.key.path(), &surplus.live, mode(args)).await
}

/// Applies one object.
async fn one(api: &Api, item: &Item, args: &Flags) -> Result<Done, Error> {
    if item.is_settled() {
        return Ok(Done::Unchanged);
    }
    if item.state == State::Foreign && !args.force_conflicts {
        return Ok(Done::Refused(
            "there is an object of this name that was not put there by kubectl-mesh; it is left alone, --force-conflicts takes it over"
                .to_owned(),
        ));
    }
    let intruders: Vec<_> = item.comparison.changes.iter().filter(|change| change.is_intruder()).collect();
    let foreign: Vec<String> = intruders
        .iter()
        .flat_map(|change| change.owners.iter().map(move |owner| (change, owner)))
        .filter(|(_, owner)| !is_by_hand(&owner.manager))
        .map(|(change, owner)| format!("{} was added by \"{}\"", change.field, owner.manager))
        .collect();
    if !foreign.is_empty() && !args.force_conflicts {
        return Ok(Done::Refused(conflict(&foreign)));
    }
    if args.dry_run == DryRun::Client {
        return Ok(Done::Applied);
    }
    let path = item.key.path();
    if let (Some(live), false) = (&item.live, intruders.is_empty()) {
        let pointers: Vec<String> = intruders.iter().map(|change| change.pointer.clone()).collect();
        api.remove_fields(&path, live, &pointers, mode(args)).await?;
    }
    let result = match api.apply(&path, &item.wanted, mode(args), args.force_conflicts).await {
        Err(Error::Server(status)) if status.code == 409 => {
            let conflicts = conflicts(&status);
            if conflicts.is_empty() {
                return Err(Error::Server(status));
            }
            if !conflicts.iter().all(|conflict| conflict.by_hand) {
                let texts: Vec<String> = conflicts.into_iter().map(|conflict| conflict.text).collect();
                return Ok(Done::Refused(conflict(&texts)));
            }
            api.apply(&path, &item.wanted, mode(args), true).await
        }
        result => result,
    };
    result.map(|_| Done::Applied)
}

fn conflict(texts: &[String]) -> String {
    format!(
        "{}; the object is left alone: end the other manager's interest in these fields, or take them over with --force-conflicts",
        texts.join(", ")
    )
}

/// One field that belongs to another manager.
#[derive(Debug, PartialEq, Eq)]
struct Conflict {
    text: String,
    by_hand: bool,
}

/// The conflicts that a server names: `conflict with "manager" using v1 at TIME`, and the field.
fn conflicts(status: &Status) -> Vec<Conflict> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or_default();
            let since =
                cause.message.rsplit_once(" at ").map_or_else(String::new, |(_, time)| format!(" since {time}"));
            Conflict {
                text: format!("{} belongs to \"{manager}\"{since}", cause.field),
                by_hand: is_by_hand(manager) && cause.message.contains("\" using "),
            }
        })
        .collect()
}

fn report_cluster(target: &Target, report: &Report, args: &Flags) -> anyhow::Result<bool> {
    let name = &target.name;
    let suffix = args.dry_run.suffix();
    let mut text = String::new();
    let mut count = [0_usize; 3];
    for (key, done) in &report.done {
        let (index, word) = match done {
            Done::Applied => (0, "serverside-applied"),
            Done::Unchanged => (1, "unchanged"),
            Done::Deleted => (2, "deleted"),
            Done::Refused(_) => continue,
        };
        count[index] += 1;
        text.push_str(&format!("{name}: {} {word}{suffix}\n", key.qualified()));
    }
    print(&text)?;
    let refused = report.done.iter().filter_map(|(key, done)| match done {
        Done::Refused(why) => Some(format!("{}: {why}", key.qualified())),
        Done::Applied | Done::Unchanged | Done::Deleted => None,
    });
    for error in refused.chain(report.unread.iter().cloned()) {
        eprintln!("error: {name}: {error}");
    }
    let [applied, unchanged, deleted] = count;
    let held =
        if report.held == 0 { String::new() } else { format!(", {} held back until this is solved", report.held) };
    eprintln!("{name}: {applied} applied, {unchanged} unchanged, {deleted} deleted{held}{suffix}");
    Ok(report.is_ok())
}

/// A counter on a terminal; nowhere else.
struct Progress {
    done: Cell<usize>,
    total: usize,
    shown: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        Self { done: Cell::new(0), total, shown: std::io::stderr().is_terminal() }
    }

    fn step(&self) {
        self.done.set(self.done.get() + 1);
        if self.shown {
            eprint!("\r{} of {}", self.done.get(), self.total);
        }
    }

    fn clear(&self) {
        if self.shown {
            eprint!("\r\u{1b}[K");
        }
    }
}
