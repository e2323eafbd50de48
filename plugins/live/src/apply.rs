//! `apply`: server-side apply in make-before-break order, in many clusters at once.
//!
//! All clusters go through the steps of [`crate::order`] together. Within a step kind follows kind, and a kind is begun
//! only when the one before it stands completely. Every request is idempotent and nothing is remembered outside the
//! clusters, so an interrupted run is finished by running it again.

use crate::api::{Api, Error, Mode, PARALLEL};
use crate::connect::Connections;
use crate::fields::is_by_hand;
use crate::fleet::{self, Tally, Target, Targets};
use crate::order::{self, Access, Step, Waiting};
use crate::survey::{Item, Key, State, Surplus, Survey, survey};
use anyhow::bail;
use futures_util::stream::{self, StreamExt};
use kube::core::Status;
use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::output::{self, Form};
use mesh_kit::run::{Failure, Outcome, print};
use serde::Serialize;
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};

/// The flags of `apply`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
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
    /// Print results instead of lines: names, or a list of `cluster`, `result` and `object` as it is then
    #[arg(short, long, value_parser = output::OBJECTS)]
    output: Option<Form>,
    /// Accepted for kubectl's sake: applying is always server-side
    #[arg(long, hide = true)]
    server_side: bool,
    #[command(flatten)]
    targets: Targets,
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

/// What was done to one object, and the object as it is then.
#[derive(Debug)]
struct Entry {
    key: Key,
    done: Done,
    object: Json,
}

/// How one cluster fares.
#[derive(Debug, Default)]
struct Report {
    entries: Vec<Entry>,
    /// How many entries have been printed.
    told: usize,
    /// What was not begun because something before it failed here.
    held: usize,
    /// What was not begun because of other clusters.
    waits: Vec<String>,
    /// Kinds that could not be read.
    unread: Vec<String>,
}

impl Report {
    /// Whether everything that was begun stands.
    fn is_ok(&self) -> bool {
        self.unread.is_empty() && !self.entries.iter().any(|entry| matches!(entry.done, Done::Refused(_)))
    }

    /// Whether nothing is left to do.
    fn is_complete(&self) -> bool {
        self.is_ok() && self.held == 0 && self.waits.is_empty()
    }

    fn is_refused(&self, key: &Key) -> bool {
        self.entries.iter().any(|entry| entry.key == *key && matches!(entry.done, Done::Refused(_)))
    }

    /// Notes how an object fared; an error that ends the work in this cluster is handed back.
    fn note(&mut self, key: &Key, result: Result<(Done, Json), Error>) -> Result<(), Error> {
        let (done, object) = match result {
            Ok(pair) => pair,
            Err(error) if error.is_final() => return Err(error),
            Err(error) => (Done::Refused(error.to_string()), Json::Null),
        };
        self.entries.push(Entry { key: key.clone(), done, object });
        Ok(())
    }
}

/// A cluster on its way through the steps.
struct Running<'a> {
    target: &'a Target,
    /// What is there, or why the cluster cannot be reached.
    there: Result<(Api, Survey), Error>,
    report: Report,
}

impl Running<'_> {
    fn is_complete(&self) -> bool {
        self.there.is_ok() && self.report.is_complete()
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
        let mut clusters = begin(&targets, &connections, kinds, args.prune).await?;
        let mut confirmed = None;
        if asks {
            let listed = listed(&clusters);
            if !listed.is_empty() {
                confirm(&listed)?;
                // People take their time to answer.
                clusters = begin(&targets, &connections, kinds, args.prune).await?;
            }
            confirmed = Some(listed);
        }
        let progress = Progress::new(targets.iter().map(|target| target.objects.len()).sum());
        let run = Run { args, kinds, confirmed, progress };
        for step in Step::ALL {
            let unready: Vec<&Target> =
                clusters.iter().filter(|running| !running.is_complete()).map(|running| running.target).collect();
            let work = clusters.iter_mut().map(|running| run.in_cluster(running, step, &unready));
            stream::iter(work).buffer_unordered(fleet::PARALLEL).collect::<Vec<()>>().await;
            run.tell(&mut clusters)?;
        }
        run.report(&clusters)
    })?;
    if ok { Ok(0) } else { Err(Failure::Printed(1)) }
}

/// Looks what is there, in all clusters.
async fn begin<'a>(
    targets: &'a [Target],
    connections: &Connections,
    kinds: &[Kind],
    prune: bool,
) -> anyhow::Result<Vec<Running<'a>>> {
    let mut found = Vec::new();
    let work = async |api: &Api, target: &Target| Ok((api.clone(), survey(api, &target.objects, kinds, prune).await?));
    fleet::each(targets, connections, work, |_, there| {
        found.push(there);
        Ok(())
    })
    .await?;
    let pairs = targets.iter().zip(found);
    Ok(pairs.map(|(target, there)| Running { target, there, report: Report::default() }).collect())
}

/// What is no longer wanted; what cannot be read is told when it is applied.
fn listed(clusters: &[Running<'_>]) -> Confirmed {
    let surplus = |running: &Running<'_>| {
        let surplus = running.there.iter().flat_map(|(_, survey)| &survey.surplus);
        surplus.map(|surplus| (running.target.name.clone(), surplus.key.clone())).collect::<Vec<_>>()
    };
    clusters.iter().flat_map(surplus).collect()
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

/// What is the same for all clusters.
struct Run<'a> {
    args: &'a Flags,
    kinds: &'a [Kind],
    confirmed: Option<Confirmed>,
    progress: Progress,
}

impl Run<'_> {
    /// One step in one cluster; other clusters may not be ready for what it does.
    async fn in_cluster(&self, running: &mut Running<'_>, step: Step, unready: &[&Target]) {
        let Running { target, there, report } = running;
        let Ok((api, survey)) = there else { return };
        let result = match step {
            Step::Offer | Step::Use => self.make(api, target, survey, report, step, unready).await,
            Step::Narrow => self.narrow(api, survey, report).await,
            Step::DropUse | Step::DropOffer => self.delete(api, target, survey, report, step, unready).await,
        };
        if let Err(error) = result {
            *there = Err(error);
        }
    }

    /// Makes what is wanted, kind by kind.
    async fn make(
        &self,
        api: &Api,
        target: &Target,
        survey: &mut Survey,
        report: &mut Report,
        step: Step,
        unready: &[&Target],
    ) -> Result<(), Error> {
        let Survey { items, surplus: _, unread } = survey;
        let gateways: BTreeSet<&str> = unready.iter().flat_map(|target| &target.gateways).map(String::as_str).collect();
        let waiting = if step == Step::Use { Waiting::of(items, &gateways) } else { Waiting::default() };
        let mut waits = 0;
        for kind in self.kinds.iter().filter(|kind| step.concerns(**kind)) {
            if let Some(error) = unread.remove(kind) {
                report.unread.push(format!("{}: {error}", kind.qualified()));
                report.held += target.objects.iter().filter(|object| object.kind == *kind).count();
            }
            let (held, turn): (Vec<&Item>, Vec<&Item>) = items
                .iter()
                .filter(|item| item.key.kind == *kind && order::is_offer(&item.key) == (step == Step::Offer))
                .partition(|item| waiting.holds(item));
            waits += held.len();
            if !report.is_ok() {
                report.held += turn.len();
                continue;
            }
            let results: Vec<_> = stream::iter(turn)
                .map(async |item| {
                    let result = match order::access(item) {
                        Access::First => Some(self.one(api, item, &item.wanted).await),
                        // What is said about the object is said when it is as wanted, unless it never gets there.
                        Access::Both(both) => match self.one(api, item, &both).await {
                            Ok((Done::Refused(why), object)) => Some(Ok((Done::Refused(why), object))),
                            Ok(_) => None,
                            Err(error) => Some(Err(error)),
                        },
                        Access::Last => None,
                    };
                    self.progress.step();
                    (item, result)
                })
                .buffered(PARALLEL)
                .collect()
                .await;
            for (item, result) in results {
                if let Some(result) = result {
                    report.note(&item.key, result)?;
                }
            }
        }
        if waits > 0 {
            let hosts: Vec<&str> = waiting.hosts().collect();
            report.waits.push(format!(
                "{waits} objects wait for {}, which would newly serve {} and could not be made ready",
                names(unready),
                hosts.join(", ")
            ));
        }
        Ok(())
    }

    /// Takes back what is no longer allowed. Nothing that failed before keeps it: a right that is gone is gone.
    async fn narrow(&self, api: &Api, survey: &Survey, report: &mut Report) -> Result<(), Error> {
        let late = |item: &&Item| order::access(item) != Access::First && !report.is_refused(&item.key);
        let results: Vec<_> = stream::iter(survey.items.iter().filter(late).collect::<Vec<_>>())
            .map(async |item| (item, self.one(api, item, &item.wanted).await))
            .buffered(PARALLEL)
            .collect()
            .await;
        results.into_iter().try_for_each(|(item, result)| report.note(&item.key, result))
    }

    /// Deletes what is no longer wanted, kinds in reverse.
    async fn delete(
        &self,
        api: &Api,
        target: &Target,
        survey: &Survey,
        report: &mut Report,
        step: Step,
        unready: &[&Target],
    ) -> Result<(), Error> {
        let is_confirmed = |surplus: &&Surplus| {
            let confirmed = self.confirmed.as_ref();
            confirmed.is_none_or(|confirmed| confirmed.contains(&(target.name.clone(), surplus.key.clone())))
        };
        let turn = || {
            let surplus = survey.surplus.iter().filter(is_confirmed);
            surplus.filter(|surplus| order::is_offer(&surplus.key) == (step == Step::DropOffer))
        };
        if turn().next().is_none() {
            return Ok(());
        }
        let others: Vec<&Target> = unready.iter().copied().filter(|other| other.name != target.name).collect();
        if step == Step::DropOffer && !others.is_empty() {
            let count = turn().count();
            report.waits.push(format!("{count} deletions wait: callers in {} may still need them", names(&others)));
            return Ok(());
        }
        for kind in self.kinds.iter().rev() {
            let turn: Vec<&Surplus> = turn().filter(|surplus| surplus.key.kind == *kind).collect();
            if !report.is_complete() {
                report.held += turn.len();
                continue;
            }
            let results: Vec<_> = stream::iter(turn)
                .map(async |surplus| (surplus, self.delete_one(api, surplus).await))
                .buffered(PARALLEL)
                .collect()
                .await;
            for (surplus, result) in results {
                report.note(&surplus.key, result.map(|()| (Done::Deleted, self.shown(&surplus.live))))?;
            }
        }
        Ok(())
    }

    async fn delete_one(&self, api: &Api, surplus: &Surplus) -> Result<(), Error> {
        if self.args.dry_run == DryRun::Client {
            return Ok(());
        }
        api.delete(&surplus.key.path(), &surplus.live, self.mode()).await
    }

    fn mode(&self) -> Mode {
        if self.args.dry_run == DryRun::Server { Mode::DryRun } else { Mode::Real }
    }

    /// The object as it will be printed, if it will be.
    fn shown(&self, object: &Json) -> Json {
        if matches!(self.args.output, None | Some(Form::Name)) {
            return Json::Null;
        }
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object
    }

    /// Applies one object.
    async fn one(&self, api: &Api, item: &Item, wanted: &Json) -> Result<(Done, Json), Error> {
        let args = self.args;
        let refused = |why: String| Ok((Done::Refused(why), Json::Null));
        if item.is_settled() {
            return Ok((Done::Unchanged, item.live.as_ref().map(|live| self.shown(live)).unwrap_or_default()));
        }
        if item.state == State::Foreign && !args.force_conflicts {
            return refused(
                "there is an object of this name that was not put there by kubectl-mesh; it is left alone, --force-conflicts takes it over"
                    .to_owned(),
            );
        }
        let intruders: Vec<_> = item.comparison.changes.iter().filter(|change| change.is_intruder()).collect();
        let foreign: Vec<String> = intruders
            .iter()
            .flat_map(|change| change.owners.iter().map(move |owner| (change, owner)))
            .filter(|(_, owner)| !is_by_hand(&owner.manager))
            .map(|(change, owner)| format!("{} was added by \"{}\"", change.field, owner.manager))
            .collect();
        if !foreign.is_empty() && !args.force_conflicts {
            return refused(conflict(&foreign));
        }
        if args.dry_run == DryRun::Client {
            return Ok((Done::Applied, self.shown(wanted)));
        }
        let path = item.key.path();
        if let (Some(live), false) = (&item.live, intruders.is_empty()) {
            let pointers: Vec<String> = intruders.iter().map(|change| change.pointer.clone()).collect();
            api.remove_fields(&path, live, &pointers, self.mode()).await?;
        }
        let result = match api.apply(&path, wanted, self.mode(), args.force_conflicts).await {
            Err(Error::Server(status)) if status.code == 409 => {
                let conflicts = conflicts(&status);
                if conflicts.is_empty() {
                    return Err(Error::Server(status));
                }
                if !conflicts.iter().all(|conflict| conflict.by_hand) {
                    let texts: Vec<String> = conflicts.into_iter().map(|conflict| conflict.text).collect();
                    return refused(conflict(&texts));
                }
                api.apply(&path, wanted, self.mode(), true).await
            }
            result => result,
        };
        result.map(|object| (Done::Applied, self.shown(&object)))
    }

    /// Prints what has been done since it was last called.
    fn tell(&self, clusters: &mut [Running<'_>]) -> anyhow::Result<()> {
        self.progress.clear();
        let mut text = String::new();
        for Running { target, there: _, report } in clusters {
            for Entry { key, done, object: _ } in report.entries.iter().skip(report.told) {
                let word = match done {
                    Done::Refused(why) => {
                        eprintln!("error: {}: {}: {why}", target.name, key.qualified());
                        continue;
                    }
                    done => done.word(),
                };
                match self.args.output {
                    None => {
                        let suffix = self.args.dry_run.suffix();
                        text.push_str(&format!("{}: {} {word}{suffix}\n", target.name, key.qualified()));
                    }
                    Some(Form::Name) => text.push_str(&format!("{}: {}\n", target.name, key.qualified())),
                    Some(_) => {}
                }
            }
            report.told = report.entries.len();
        }
        print(&text)
    }

    /// Prints how the clusters fared; returns whether all is done everywhere.
    fn report(&self, clusters: &[Running<'_>]) -> anyhow::Result<bool> {
        let suffix = self.args.dry_run.suffix();
        let mut tally = Tally::default();
        for running in clusters {
            let Running { target, there, report } = running;
            let name = &target.name;
            let count = |wanted: fn(&Done) -> bool| report.entries.iter().filter(|entry| wanted(&entry.done)).count();
            let (applied, unchanged, deleted) = (
                count(|done| matches!(done, Done::Applied)),
                count(|done| matches!(done, Done::Unchanged)),
                count(|done| matches!(done, Done::Deleted)),
            );
            for error in there.as_ref().err().map(ToString::to_string).iter().chain(&report.unread).chain(&report.waits)
            {
                eprintln!("error: {name}: {error}");
            }
            let held = match report.held {
                0 => String::new(),
                held => format!(", {held} held back until this is solved"),
            };
            if there.is_ok() || !report.entries.is_empty() {
                eprintln!("{name}: {applied} applied, {unchanged} unchanged, {deleted} deleted{held}{suffix}");
            }
            tally.count(running.is_complete());
        }
        if let Some(form) = &self.args.output {
            let results: Vec<Applied<'_>> = clusters
                .iter()
                .flat_map(|running| running.report.entries.iter().map(|entry| (&running.target.name, entry)))
                .map(|(cluster, entry)| Applied { cluster, result: entry.done.word(), object: &entry.object })
                .collect();
            print(&form.of(&results)?.unwrap_or_default())?;
        }
        Ok(tally.report())
    }
}

/// One result, for programs.
#[derive(Serialize)]
struct Applied<'a> {
    cluster: &'a str,
    result: &'static str,
    object: &'a Json,
}

impl Done {
    fn word(&self) -> &'static str {
        match self {
            Self::Applied => "serverside-applied",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Refused(_) => "refused",
        }
    }
}

fn names(targets: &[&Target]) -> String {
    targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ")
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
