//! `discover`: where the services of the intents really run, as a ServiceLocations document.
//!
//! A service runs where an EndpointSlice of it has a ready endpoint. A cluster that cannot be asked keeps what was
//! known about it: an unreachable API server says nothing about the services behind it.
//!
//! With `--watch`, EndpointSlices say when to look again: whatever changes about a Service or its pods changes them too.

use crate::api::{Api, Error, PARALLEL, escape};
use crate::connect::{ConnectFlags, duration};
use crate::fleet::{self, Target};
use anyhow::{Context, bail};
use futures_util::stream::{self, Stream, StreamExt};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use mesh::World;
use mesh::diagnostic::{Diagnostic, Severity};
use mesh::fleet::{Cluster, ClusterId, Fleet};
use mesh::manifest::to_yaml;
use mesh_kit::folder::is_written_by_us;
use mesh_kit::input::{self, Input};
use mesh_kit::run::{Failure, Outcome, print};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The flags of `discover`.
#[derive(Clone, Debug, clap::Args)]
pub struct DiscoverFlags {
    /// The file to write; only if something changed [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the file current until interrupted
    #[arg(long, requires = "output")]
    watch: bool,
    /// How often to start over: with the documents as they are then, and a look at everything
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, requires = "watch")]
    interval: Duration,
    /// How long a service must have been gone from a cluster before that is written: restarts are no moves
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, requires = "watch")]
    grace: Duration,
    #[command(flatten)]
    connect: ConnectFlags,
}

/// One entry of a ServiceLocations document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    namespace: String,
    name: String,
    clusters: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    service_accounts: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    selector: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<Json>,
}

/// Entries by namespace and name.
type Locations = BTreeMap<(String, String), Location>;

/// Since when a service is missing from a cluster.
type Missing = BTreeMap<(String, String, String), Instant>;

/// A namespace of a cluster.
type Spot = (String, String);

/// What has been seen, and what could not be looked at.
#[derive(Debug, Default)]
struct Sight {
    seen: BTreeMap<Spot, Vec<Location>>,
    unread: BTreeSet<Spot>,
}

impl Sight {
    fn note(&mut self, spot: Spot, result: Result<Vec<Location>, Error>) -> Result<(), Error> {
        match result {
            Ok(locations) => {
                self.unread.remove(&spot);
                self.seen.insert(spot, locations);
                Ok(())
            }
            Err(error) => {
                self.unread.insert(spot);
                Err(error)
            }
        }
    }
}

/// Writes where the services run.
///
/// # Errors
///
/// If the documents cannot be read, no service is found, or a cluster could not be asked.
pub fn discover(input: &Input, flags: &DiscoverFlags) -> Outcome {
    if flags.watch {
        let mut missing = Missing::new();
        loop {
            // What goes wrong now may be right the next time: documents are edited, clusters come back.
            if let Err(failure) = watch(input, flags, &mut missing) {
                if let Failure::Error(error) = failure {
                    eprintln!("error: {error:#}");
                }
                std::thread::sleep(flags.interval.min(RETRY));
            }
        }
    }
    let world = readable(input)?;
    let fleet = &world.effective.fleet;
    let sight = fleet::block_on(async { Ok(look(fleet, flags).await?.0) })?;
    settle(flags, fleet, &sight, &mut Missing::new())?;
    if !sight.unread.is_empty() {
        eprintln!("what was known about {} is kept", clusters_of(&sight.unread));
    }
    Ok(u8::from(!sight.unread.is_empty()))
}

/// How long to wait after documents that cannot be read, or contexts that do not exist.
const RETRY: Duration = Duration::from_secs(5);
/// How long events are collected before anything is looked at: a rollout is many events.
const SETTLE: Duration = Duration::from_millis(500);

/// Looks at everything, and then wherever something moves, until it is time to start over.
fn watch(input: &Input, flags: &DiscoverFlags, missing: &mut Missing) -> Result<(), Failure> {
    let world = readable(input)?;
    let fleet = &world.effective.fleet;
    fleet::block_on(async {
        let (mut sight, apis) = look(fleet, flags).await?;
        let all = apis.len() == fleet.clusters.len();
        let end = tokio::time::Instant::now() + if all { flags.interval } else { flags.interval.min(RETRY) };
        let watchers = apis.iter().flat_map(|(name, api)| {
            namespaces(fleet)
                .into_iter()
                .map(move |namespace| changes(api, (name.clone(), namespace.to_owned())).boxed_local())
        });
        let mut changes = stream::select_all(watchers);
        let mut broken = BTreeSet::new();
        loop {
            // What goes wrong in one round is told, and the next round is another chance.
            let due = match settle(flags, fleet, &sight, missing) {
                Ok(due) => due,
                Err(error) => {
                    eprintln!("error: {error:#}");
                    None
                }
            };
            let due = due.map_or(end, |due| end.min(due.into()));
            let mut dirty = BTreeSet::new();
            let mut until = due;
            while let Ok(Some((spot, change))) = tokio::time::timeout_at(until, changes.next()).await {
                match change {
                    Ok(()) => {
                        if broken.remove(&spot.0) {
                            eprintln!("{}: watched again", spot.0);
                        }
                        if dirty.is_empty() {
                            until = due.min(tokio::time::Instant::now() + SETTLE);
                        }
                        dirty.insert(spot);
                    }
                    Err(error) if broken.insert(spot.0.clone()) => {
                        eprintln!("error: {}: {error}; what is known about it is kept", spot.0);
                    }
                    Err(_) => {}
                }
            }
            for spot in dirty {
                let id = fleet.cluster_named(&spot.0).expect("watchers are of clusters of the fleet");
                let found = in_namespace(&apis[&spot.0], fleet, id, &spot.1).await;
                let cluster = spot.0.clone();
                if let Err(error) = sight.note(spot, found) {
                    eprintln!("error: {cluster}: {error}");
                }
            }
            if tokio::time::Instant::now() >= end {
                return Ok(());
            }
        }
    })?;
    Ok(())
}

/// Something about the endpoints of a namespace has changed, or may have while nobody could look. Never ends: a watch
/// that breaks is begun again, after a pause that grows.
fn changes(api: &Api, spot: Spot) -> impl Stream<Item = (Spot, Result<(), Error>)> {
    let slices = kube::Api::<PartialObjectMeta<EndpointSlice>>::namespaced(api.client(), &spot.1);
    let server = api.server().to_owned();
    watcher(slices, watcher::Config::default()).default_backoff().filter_map(move |event| {
        let change = match event {
            Ok(Event::Init | Event::InitApply(_)) => None,
            Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => Some(Ok(())),
            Err(error) => Some(Err(match error {
                watcher::Error::InitialListFailed(error)
                | watcher::Error::WatchStartFailed(error)
                | watcher::Error::WatchFailed(error) => Error::of(error, &server),
                watcher::Error::WatchError(status) => Error::Server(status),
                watcher::Error::NoResourceVersion => Error::Local("the server cannot be watched".to_owned()),
            })),
        };
        std::future::ready(change.map(|change| (spot.clone(), change)))
    })
}

/// Looks at all services in all clusters, and keeps the connections.
async fn look(fleet: &Fleet, flags: &DiscoverFlags) -> anyhow::Result<(Sight, BTreeMap<String, Api>)> {
    let connections = flags.connect.connections()?;
    let target = |cluster: &Cluster| Target {
        name: cluster.name.to_string(),
        context: cluster.context.clone(),
        gateways: Vec::new(),
        objects: Vec::new(),
    };
    let targets: Vec<Target> = fleet.clusters.iter().map(target).collect();
    let (mut sight, mut apis) = (Sight::default(), BTreeMap::new());
    let work = async |api: &Api, target: &Target| {
        let id = fleet.cluster_named(&target.name).expect("targets are the clusters of the fleet");
        let found: Vec<_> = stream::iter(namespaces(fleet))
            .map(async |namespace| (namespace, in_namespace(api, fleet, id, namespace).await))
            .buffered(PARALLEL)
            .collect()
            .await;
        Ok((api.clone(), found))
    };
    fleet::each(&targets, &connections, work, |target, result| {
        let (found, mut failed) = match result {
            Ok((api, found)) => {
                apis.insert(target.name.clone(), api);
                (found, None)
            }
            Err(error) => {
                sight.unread.extend(namespaces(fleet).into_iter().map(|name| (target.name.clone(), name.to_owned())));
                (Vec::new(), Some(error))
            }
        };
        for (namespace, result) in found {
            let noted = sight.note((target.name.clone(), namespace.to_owned()), result);
            failed = failed.or(noted.err());
        }
        if let Some(error) = failed {
            eprintln!("error: {}: {error}", target.name);
        }
        Ok(())
    })
    .await?;
    Ok((sight, apis))
}

/// The namespaces in which services of the fleet run.
fn namespaces(fleet: &Fleet) -> BTreeSet<&str> {
    fleet.services.iter().map(|service| service.namespace.as_str()).collect()
}

fn clusters_of(spots: &BTreeSet<Spot>) -> String {
    let names: BTreeSet<&str> = spots.iter().map(|(cluster, _)| cluster.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Writes what has been seen, beside what was known about what could not be looked at; returns when the next service
/// that is gone will have been gone for long enough.
fn settle(
    flags: &DiscoverFlags,
    fleet: &Fleet,
    sight: &Sight,
    missing: &mut Missing,
) -> anyhow::Result<Option<Instant>> {
    let before = flags.output.as_deref().map(previous).transpose()?.unwrap_or_default();
    let mut now = Locations::new();
    sight.seen.values().flatten().for_each(|seen| merge(&mut now, seen.clone()));
    missing.retain(|(namespace, name, cluster), _| {
        now.get(&(namespace.clone(), name.clone())).is_none_or(|location| !location.clusters.contains(cluster))
    });
    let mut due = None;
    for location in before.values() {
        let key = (location.namespace.clone(), location.name.clone());
        let seen = now.get(&key).map(|location| location.clusters.clone()).unwrap_or_default();
        for cluster in location.clusters.difference(&seen).filter(|cluster| fleet.cluster_named(cluster).is_some()) {
            let since = missing.entry((key.0.clone(), key.1.clone(), cluster.clone())).or_insert_with(Instant::now);
            let unread = sight.unread.contains(&(cluster.clone(), location.namespace.clone()));
            let wait = flags.watch && since.elapsed() < flags.grace;
            if unread || wait {
                merge(&mut now, Location { clusters: [cluster.clone()].into(), ..location.clone() });
            }
            if wait {
                let end = *since + flags.grace;
                due = Some(due.map_or(end, |due: Instant| due.min(end)));
            }
        }
    }
    if !sight.unread.is_empty() && before.is_empty() {
        bail!("nothing was written: nothing is known about {}", clusters_of(&sight.unread));
    }
    if now.is_empty() {
        bail!("nothing was written: no service of the intents has a ready endpoint in any cluster");
    }
    let text = document(now.values());
    match &flags.output {
        None => print(&text)?,
        Some(path) => write(path, &text)?,
    }
    Ok(due)
}

/// Reads the documents. Where services run is what is being looked for, so nothing that follows from not knowing it
/// stands in the way; but every document has to be readable, or its service would silently get lost.
fn readable(input: &Input) -> Result<World, Failure> {
    let world = input.world();
    let found = world.found.clone().sorted();
    let is_unreadable = |finding: &Diagnostic| {
        finding.code.severity == Severity::Error
            && (finding.code.id.starts_with("MESH0") || finding.code.id.starts_with("MESH1"))
    };
    if found.iter().any(is_unreadable) {
        return Err(input::refuse(&world, &found));
    }
    let fleet = &world.effective.fleet;
    if fleet.clusters.is_empty() || fleet.services.is_empty() {
        let what = if fleet.clusters.is_empty() { "Cluster" } else { "MeshService" };
        return Err(
            anyhow::anyhow!("there is no {what} document; `-f` names the folder with inventory and intents").into()
        );
    }
    Ok(world)
}

/// Adds what was seen in one cluster. Selector and ports are those of the first cluster by name; where another differs,
/// a variant has to say so.
fn merge(locations: &mut Locations, seen: Location) {
    let entry = locations.entry((seen.namespace.clone(), seen.name.clone()));
    let location = entry.or_insert_with(|| Location {
        namespace: seen.namespace,
        name: seen.name,
        selector: seen.selector.clone(),
        ports: seen.ports.clone(),
        ..Location::default()
    });
    location.clusters.extend(seen.clusters);
    location.service_accounts.extend(seen.service_accounts);
}

/// The services of the fleet that run in a namespace of a cluster.
async fn in_namespace(api: &Api, fleet: &Fleet, id: ClusterId, namespace: &str) -> Result<Vec<Location>, Error> {
    let slices = api.list(&format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"), "").await?;
    let cluster = fleet.cluster(id).name.to_string();
    let mut found = Vec::new();
    for service in fleet.services.iter().filter(|service| service.namespace.as_str() == namespace) {
        let kubernetes = service.copy(id).service.as_str();
        let slices: Vec<&Json> = slices
            .iter()
            .filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == kubernetes)
            .collect();
        let pods: BTreeSet<&str> = slices
            .iter()
            .flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten())
            // As everywhere in Kubernetes, an endpoint that says nothing about readiness is ready.
            .filter(|endpoint| endpoint["conditions"]["ready"] != false)
            .map(|endpoint| endpoint["targetRef"]["name"].as_str().unwrap_or_default())
            .collect();
        if pods.is_empty() {
            continue;
        }
        let path = format!("/api/v1/namespaces/{namespace}/services/{kubernetes}");
        let Some(object) = api.get(&path).await? else { continue };
        let selector: BTreeMap<String, String> =
            serde_json::from_value(object["spec"]["selector"].clone()).unwrap_or_default();
        let service_accounts = accounts(api, namespace, &selector, &pods).await?;
        found.push(Location {
            namespace: namespace.to_owned(),
            name: service.name.to_string(),
            clusters: [cluster.clone()].into(),
            service_accounts,
            selector,
            ports: ports(&object, &slices),
        });
    }
    Ok(found)
}

/// The service accounts of the pods behind ready endpoints.
async fn accounts(
    api: &Api,
    namespace: &str,
    selector: &BTreeMap<String, String>,
    ready: &BTreeSet<&str>,
) -> Result<BTreeSet<String>, Error> {
    if selector.is_empty() {
        return Ok(BTreeSet::new());
    }
    let labels: Vec<String> = selector.iter().map(|(key, value)| escape(&format!("{key}={value}"))).collect();
    let query = format!("labelSelector={}", labels.join("%2C"));
    let pods = api.list(&format!("/api/v1/namespaces/{namespace}/pods"), &query).await?;
    Ok(pods
        .iter()
        .filter(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| ready.contains(name)))
        .map(|pod| pod["spec"]["serviceAccountName"].as_str().unwrap_or("default").to_owned())
        .collect())
}

/// The ports of a Service as a MeshService writes them, by number.
fn ports(service: &Json, slices: &[&Json]) -> Vec<Json> {
    let list = || service["spec"]["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<(u64, Json)> = list()
        .filter(|port| port["protocol"] != "UDP" && port["protocol"] != "SCTP")
        .filter_map(|port| {
            let number = port["port"].as_u64()?;
            let name = port["name"].as_str().unwrap_or_default();
            // A target may be the name of a container port; the slices know its number.
            let target = port["targetPort"].as_u64().or_else(|| {
                let mut listed = slices.iter().flat_map(|slice| slice["ports"].as_array().into_iter().flatten());
                listed.find(|listed| listed["name"].as_str().unwrap_or_default() == name)?["port"].as_u64()
            });
            let shown = if name.is_empty() { format!("port-{number}") } else { name.to_owned() };
            let protocol = protocol(name, port["appProtocol"].as_str());
            Some((
                number,
                json!({"name": shown, "port": number, "targetPort": target.unwrap_or(number), "protocol": protocol}),
            ))
        })
        .collect();
    ports.sort_by_key(|(number, _)| *number);
    ports.into_iter().map(|(_, port)| port).collect()
}

/// What is spoken on a port, by Istio's rules: `appProtocol`, else the first word of the name; unknown is TCP.
fn protocol(name: &str, app_protocol: Option<&str>) -> &'static str {
    let word = app_protocol.unwrap_or_else(|| name.split('-').next().unwrap_or_default()).to_lowercase();
    match word.as_str() {
        "http" | "kubernetes.io/ws" => "HTTP",
        "http2" | "kubernetes.io/h2c" => "HTTP2",
        "grpc" | "grpc-web" => "GRPC",
        "https" | "tls" => "TLS",
        _ => "TCP",
    }
}

/// The first line of the file, so that no other file is ever overwritten.
const HEADER: &str = "# Written by kubectl mesh discover; changes are overwritten.\n";

/// The document, with its fields in the order in which people write them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Json,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    services: Vec<&'a Location>,
}

fn document<'a>(locations: impl Iterator<Item = &'a Location>) -> String {
    let document = Document {
        api_version: "meshintent.dev/v1alpha1",
        kind: "ServiceLocations",
        metadata: json!({"name": "observed"}),
        spec: Spec { services: locations.collect() },
    };
    format!("{HEADER}{}", to_yaml(&document))
}

/// What the file says now; a file that was not written here is never touched.
fn previous(path: &Path) -> anyhow::Result<Locations> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Locations::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if !is_written_by_us(text.as_bytes(), HEADER) {
        bail!("{} was not written by `kubectl mesh discover`; move it, or choose another file", path.display());
    }
    let document: Json = serde_saphyr::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let services: Vec<Location> = serde_json::from_value(document["spec"]["services"].clone())
        .with_context(|| format!("{} is no ServiceLocations document", path.display()))?;
    Ok(services.into_iter().map(|location| ((location.namespace.clone(), location.name.clone()), location)).collect())
}

/// Replaces the file in one step, and only if it changes: whoever watches it sees no half of it.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> anyhow::Result<()> {
        // Hidden, so that no reader of the folder takes it for a document.
        let mut file = tempfile::Builder::new().prefix(".discover-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{} written", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_istio_reads_them() {
        let service = json!({"spec": {"ports": [
            {"name": "grpc-api", "port": 9000, "targetPort": "api", "protocol": "TCP"},
            {"port": 80, "targetPort": 8080, "appProtocol": "http"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
        ]}});
        let slice = json!({"ports": [{"name": "grpc-api", "port": 9090}]});
        let wanted = [
            json!({"name": "port-80", "port": 80, "targetPort": 8080, "protocol": "HTTP"}),
            json!({"name": "grpc-api", "port": 9000, "targetPort": 9090, "protocol": "GRPC"}),
        ];
        assert_eq!(ports(&service, &[&slice]), wanted);
    }
}
