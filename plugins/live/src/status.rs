//! `status`: where each cluster stands, who changed what, and what Istio says about the objects.

use crate::api::{Api, Error};
use crate::connect::{Connections, duration};
use crate::fields::{Change, Owner};
use crate::fleet::{self, Target, Targets};
use crate::survey::{Key, State, Survey, survey};
use mesh::manifest::Kind;
use mesh_kit::input::Input;
use mesh_kit::output::{self, Form};
use mesh_kit::run::{Failure, Outcome, print};
use mesh_kit::table::Rows;
use serde::Serialize;
use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// The flags of `status`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Wait until everything is in sync and Istio has no objection
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, requires = "wait")]
    timeout: Duration,
    /// The form of the output
    #[arg(short, long, value_parser = output::LIST, default_value = "table")]
    output: Form,
    /// Leave out the lines of headers
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    targets: Targets,
}

/// Where a cluster stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    cluster: String,
    context: String,
    /// Why the cluster could not be read, or a kind in it.
    errors: Vec<String>,
    objects: Vec<ObjectStatus>,
}

/// Where an object stands.
#[derive(Debug, Serialize)]
struct ObjectStatus {
    #[serde(skip)]
    qualified: String,
    kind: &'static str,
    namespace: String,
    name: String,
    state: State,
    /// Fields that differ, and who set them.
    changes: Vec<Change>,
    /// What Istio says about it.
    istio: Vec<Message>,
}

/// What Istio says about an object.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Message {
    code: String,
    level: String,
    text: String,
}

impl ClusterStatus {
    fn is_good(&self) -> bool {
        self.errors.is_empty()
            && self.objects.iter().all(|object| {
                object.state == State::InSync && object.istio.iter().all(|message| message.level != "ERROR")
            })
    }

    fn count(&self, state: State) -> usize {
        self.objects.iter().filter(|object| object.state == state).count()
    }
}

/// Says where the clusters stand with objects of these kinds.
///
/// # Errors
///
/// If a cluster could not be read, or waiting took too long.
pub fn status(input: &Input, args: &Flags, kinds: &[Kind]) -> Outcome {
    let world = input.right_world()?;
    let targets = args.targets.render(&world, kinds)?;
    let connections = args.targets.connect.connections()?;
    let started = Instant::now();
    let (clusters, timed_out) = fleet::block_on(async {
        loop {
            let clusters = of_clusters(&targets, &connections, kinds).await?;
            let good = clusters.iter().all(ClusterStatus::is_good);
            if good || !args.wait {
                return Ok((clusters, false));
            }
            if started.elapsed() >= args.timeout {
                return Ok((clusters, true));
            }
            tokio::time::sleep(Duration::from_secs(1).min(args.timeout.saturating_sub(started.elapsed()))).await;
        }
    })?;
    let text = match args.output.of(&clusters)? {
        Some(text) => text,
        None if args.output == Form::Name => names(&clusters),
        None => tables(&clusters, args),
    };
    print(&text)?;
    for cluster in &clusters {
        for error in &cluster.errors {
            eprintln!("error: {}: {error}", cluster.cluster);
        }
    }
    if timed_out {
        eprintln!("error: timed out waiting for the condition: everything in sync, and no objection of Istio");
    }
    let unread = clusters.iter().any(|cluster| !cluster.errors.is_empty());
    if timed_out || unread { Err(Failure::Printed(1)) } else { Ok(0) }
}

/// Looks at all clusters.
///
/// # Errors
///
/// None of the clusters' own: those are part of the answer.
pub(crate) async fn of_clusters(
    targets: &[Target],
    connections: &Connections,
    kinds: &[Kind],
) -> anyhow::Result<Vec<ClusterStatus>> {
    let mut clusters = Vec::new();
    let work = async |api: &Api, target: &Target| survey(api, &target.objects, kinds, true).await;
    fleet::each(targets, connections, work, |target, result| {
        clusters.push(of_cluster(target, result));
        Ok(())
    })
    .await?;
    Ok(clusters)
}

fn of_cluster(target: &Target, result: Result<Survey, Error>) -> ClusterStatus {
    let (survey, errors) = match result {
        Ok(survey) => {
            let errors = survey.unread.iter().map(|(kind, error)| format!("{}: {error}", kind.qualified())).collect();
            (survey, errors)
        }
        Err(error) => (Survey::default(), vec![error.to_string()]),
    };
    let object = |key: Key, state: State, changes: Vec<Change>, live: Option<&Json>| ObjectStatus {
        qualified: key.kind.qualified(),
        kind: key.kind.as_str(),
        namespace: key.namespace,
        name: key.name,
        state,
        changes,
        istio: live.map(messages).unwrap_or_default(),
    };
    let wanted =
        survey.items.into_iter().map(|item| object(item.key, item.state, item.comparison.changes, item.live.as_ref()));
    let surplus =
        survey.surplus.into_iter().map(|surplus| object(surplus.key, State::Surplus, Vec::new(), Some(&surplus.live)));
    let objects = wanted.chain(surplus).collect();
    ClusterStatus { cluster: target.name.clone(), context: target.context.clone(), errors, objects }
}

/// What istiod's analysis wrote into the status, if it is about this generation of the object.
fn messages(live: &Json) -> Vec<Message> {
    let status = &live["status"];
    let seen = status["observedGeneration"]
        .as_str()
        .map_or_else(|| status["observedGeneration"].as_i64(), |text| text.parse().ok());
    if seen.is_some_and(|seen| live["metadata"]["generation"].as_i64().is_some_and(|now| seen < now)) {
        return Vec::new();
    }
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let list = status["validationMessages"].as_array().into_iter().flatten();
    list.map(|message| Message {
        code: text(&message["type"]["code"]),
        level: text(&message["level"]),
        text: message["type"]["name"].as_str().or(message["documentationUrl"].as_str()).unwrap_or_default().to_owned(),
    })
    .collect()
}

/// A name for each object, behind its cluster.
fn names(clusters: &[ClusterStatus]) -> String {
    let of = |cluster: &ClusterStatus| {
        let names =
            cluster.objects.iter().map(|object| format!("{}: {}/{}\n", cluster.cluster, object.qualified, object.name));
        names.collect::<String>()
    };
    clusters.iter().map(of).collect()
}

fn tables(clusters: &[ClusterStatus], args: &Flags) -> String {
    let wide = args.output == Form::Wide;
    let mut headers = vec!["CLUSTER", "STATE", "OBJECTS", "DRIFTED", "MISSING", "FOREIGN", "SURPLUS", "ISTIO"];
    if wide {
        headers.push("CONTEXT");
    }
    let mut summary = Rows::new(&headers);
    let mut details = Rows::new(&["CLUSTER", "NAMESPACE", "OBJECT", "STATE", "FIELD", "BY", "SINCE"]);
    for cluster in clusters {
        let state = if cluster.errors.is_empty() {
            let worst = cluster.objects.iter().map(|object| object.state).find(|state| *state != State::InSync);
            worst.map_or("in sync", |_| "out of sync")
        } else {
            "unknown"
        };
        let remarks = cluster.objects.iter().map(|object| object.istio.len()).sum::<usize>();
        let istio = if remarks == 0 { "ok".to_owned() } else { format!("{remarks} remarks") };
        let wanted = cluster.objects.len() - cluster.count(State::Surplus);
        let counts = [State::Drifted, State::Missing, State::Foreign, State::Surplus].map(|state| cluster.count(state));
        let mut row = vec![cluster.cluster.clone(), state.to_owned(), wanted.to_string()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(istio);
        if wide {
            row.push(cluster.context.clone());
        }
        summary.push(row);
        for object in
            cluster.objects.iter().filter(|object| wide || object.state != State::InSync || !object.istio.is_empty())
        {
            for [field, by, since] in lines(object) {
                details.push([
                    cluster.cluster.clone(),
                    object.namespace.clone(),
                    format!("{}/{}", object.kind.to_lowercase(), object.name),
                    object.state.as_str().to_owned(),
                    field,
                    by,
                    since,
                ]);
            }
        }
    }
    let mut text = summary.render(!args.no_headers);
    if !details.is_empty() {
        text.push('\n');
        text.push_str(&details.render(!args.no_headers));
    }
    text
}

/// The lines about an object: one per field that differs and one per remark of Istio, or one at all.
fn lines(object: &ObjectStatus) -> Vec<[String; 3]> {
    let mut lines: Vec<[String; 3]> = object
        .changes
        .iter()
        .map(|change| match change.owners.iter().max_by_key(|owner| owner.time.clone()) {
            Some(Owner { manager, operation: _, time }) => {
                [change.field.clone(), manager.clone(), time.clone().unwrap_or_default()]
            }
            None if change.live.is_none() => [change.field.clone(), "removed".to_owned(), String::new()],
            None => [change.field.clone(), "the intents changed".to_owned(), String::new()],
        })
        .collect();
    lines.extend(
        object
            .istio
            .iter()
            .map(|message| [format!("{} {}", message.code, message.text), "istiod".to_owned(), message.level.clone()]),
    );
    if lines.is_empty() {
        lines.push(Default::default());
    }
    lines
}
