//! `discover`: where the services of the intents really run, as a ServiceLocations document.
//!
//! A service runs where an EndpointSlice of it has a ready endpoint. A cluster that cannot be asked keeps what was
//! known about it: an unreachable API server says nothing about the services behind it.

use crate::api::{Api, Error, PARALLEL, escape};
use crate::connect::{ConnectFlags, duration};
use crate::fleet::{self, Target};
use anyhow::{Context, bail};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use mesh::World;
use mesh::diagnostic::{Diagnostic, Severity};
use mesh::fleet::{Cluster, ClusterId, Fleet};
use mesh::manifest::to_yaml;
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
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration, requires = "watch")]
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

/// Writes where the services run.
///
/// # Errors
///
/// If the documents cannot be read, no service is found, or a cluster could not be asked.
pub fn discover(input: &Input, flags: &DiscoverFlags) -> Outcome {
    let mut missing = Missing::new();
    loop {
        let done = once(input, flags, &mut missing);
        if !flags.watch {
            return done;
        }
        // What goes wrong now may be right the next time.
        if let Err(Failure::Error(error)) = &done {
            eprintln!("error: {error:#}");
        }
        std::thread::sleep(flags.interval);
    }
}

fn once(input: &Input, flags: &DiscoverFlags, missing: &mut Missing) -> Outcome {
    let world = readable(input)?;
    let fleet = &world.effective.fleet;
    let connections = flags.connect.connections()?;
    let target = |cluster: &Cluster| Target {
        name: cluster.name.to_string(),
        context: cluster.context.clone(),
        objects: Vec::new(),
    };
    let targets: Vec<Target> = fleet.clusters.iter().map(target).collect();
    let before = flags.output.as_deref().map(previous).transpose()?.unwrap_or_default();
    let mut now = Locations::new();
    let mut unread = BTreeSet::new();
    let work = async |api: &Api, target: &Target| {
        let id = fleet.cluster_named(&target.name).expect("targets are the clusters of the fleet");
        in_cluster(api, fleet, id).await
    };
    fleet::block_on(fleet::each(&targets, &connections, work, |target, result| {
        match result {
            Ok(seen) => seen.into_iter().for_each(|seen| merge(&mut now, seen)),
            Err(error) => {
                eprintln!("error: {}: {error}", target.name);
                unread.insert(target.name.clone());
            }
        }
        Ok(())
    }))?;
    missing.retain(|(namespace, name, cluster), _| {
        now.get(&(namespace.clone(), name.clone())).is_none_or(|location| !location.clusters.contains(cluster))
    });
    for location in before.values() {
        let key = (location.namespace.clone(), location.name.clone());
        let seen = now.get(&key).map(|location| location.clusters.clone()).unwrap_or_default();
        for cluster in location.clusters.difference(&seen) {
            let is_known = fleet.cluster_named(cluster).is_some();
            let since = missing.entry((key.0.clone(), key.1.clone(), cluster.clone())).or_insert_with(Instant::now);
            if is_known && (unread.contains(cluster) || flags.watch && since.elapsed() < flags.grace) {
                merge(&mut now, Location { clusters: [cluster.clone()].into(), ..location.clone() });
            }
        }
    }
    let names = || unread.iter().cloned().collect::<Vec<_>>().join(", ");
    if !unread.is_empty() && before.is_empty() {
        return Err(anyhow::anyhow!("nothing was written: nothing is known about {}", names()).into());
    }
    if now.is_empty() {
        return Err(anyhow::anyhow!(
            "nothing was written: no service of the intents has a ready endpoint in any cluster"
        )
        .into());
    }
    let text = document(now.values());
    match &flags.output {
        None => print(&text)?,
        Some(path) => write(path, &text)?,
    }
    if !unread.is_empty() {
        eprintln!("what was known about {} is kept", names());
    }
    Ok(u8::from(!unread.is_empty()))
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

/// The services of the fleet that run in a cluster.
async fn in_cluster(api: &Api, fleet: &Fleet, id: ClusterId) -> Result<Vec<Location>, Error> {
    let namespaces: BTreeSet<&str> = fleet.services.iter().map(|service| service.namespace.as_str()).collect();
    let found: Vec<Vec<Location>> = stream::iter(namespaces)
        .map(async |namespace| in_namespace(api, fleet, id, namespace).await)
        .buffered(PARALLEL)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

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
    if !text.starts_with(HEADER) {
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
