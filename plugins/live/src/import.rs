//! `clusters import`: Cluster documents from what people already have, and from the clusters themselves. Behind every
//! value stands where it came from; what could not be found out is left for a person to fill in, never guessed.

use crate::api::{Api, Error, PARALLEL};
use crate::connect::{ConnectFlags, Connections};
use crate::fleet::block_on;
use futures_util::stream::{self, StreamExt};
use k8s_openapi::ByteString;
use mesh::intent::types::ClusterName;
use mesh::manifest::to_yaml;
use mesh_kit::run::{Failure, Outcome, print};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The flags of `clusters import`.
#[derive(Clone, Debug, clap::Args)]
pub struct ImportFlags {
    /// Only these clusters, by their names at the source [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Where clusters are known
    #[arg(long, value_enum, default_value = "kubeconfig")]
    from: Source,
    /// The context of the cluster that knows the others [default: the current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace of the source's objects [default: argocd for Argo CD, else all]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    /// The contexts of the kubeconfig.
    Kubeconfig,
    /// Argo CD's cluster Secrets: metadata, and the values `name` and `server`; credentials never leave the API server.
    Argocd,
    /// ManagedClusters of Open Cluster Management.
    Ocm,
    /// ClusterProfiles of the multicluster SIG.
    ClusterProfile,
}

/// A cluster that some source knows.
#[derive(Debug)]
struct Known {
    name: String,
    origin: String,
    context: Option<String>,
    labels: BTreeMap<String, String>,
    facts: Facts,
}

/// What is known about a cluster, by field, with where it came from. The first source of a field is kept.
#[derive(Debug, Default)]
struct Facts(BTreeMap<&'static str, Fact>);

#[derive(Debug)]
struct Fact {
    value: Json,
    source: String,
}

impl Facts {
    fn add(&mut self, field: &'static str, value: impl Into<Json>, source: impl Into<String>) {
        let value = value.into();
        let is_empty = value.is_null() || value.as_str() == Some("");
        if !is_empty {
            self.0.entry(field).or_insert_with(|| Fact { value, source: source.into() });
        }
    }

    /// The region, if it is in a list of names and values that a hub keeps about a cluster.
    fn add_region(&mut self, what: &str, list: &Json) {
        const NAME: &str = "region.open-cluster-management.io";
        let mut list = list.as_array().into_iter().flatten();
        if let Some(found) = list.find(|item| item["name"] == NAME) {
            self.add("region", found["value"].clone(), format!("{what} {NAME}"));
        }
    }
}

/// Prints Cluster documents.
///
/// # Errors
///
/// If the source cannot be read, or a cluster could not be asked; its document is printed with what is known.
pub fn import(flags: &ImportFlags) -> Outcome {
    let connections = flags.connect.connections()?;
    let (text, errors) = block_on(async {
        let mut known = match flags.from {
            Source::Kubeconfig => from_kubeconfig(&connections),
            Source::Argocd | Source::Ocm | Source::ClusterProfile => from_hub(flags, &connections).await?,
        };
        if let Some(missing) = flags.names.iter().find(|name| !known.iter().any(|known| known.name == **name)) {
            let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
            anyhow::bail!("there is no cluster \"{missing}\"; there are: {}", names.join(", "));
        }
        known.retain(|known| flags.names.is_empty() || flags.names.contains(&known.name));
        anyhow::ensure!(!known.is_empty(), "the source knows no clusters");
        let asked: Vec<(Known, Result<(), Error>)> = stream::iter(known)
            .map(async |mut known| {
                let result = ask(&connections, &mut known).await;
                (known, result)
            })
            .buffered(8)
            .collect()
            .await;
        let documents: Vec<String> = asked.iter().map(|(known, _)| document(known)).collect();
        let errors: Vec<String> = asked
            .iter()
            .filter_map(|(known, result)| result.as_ref().err().map(|error| format!("{}: {error}", known.name)))
            .collect();
        Ok((documents.join("---\n"), errors))
    })?;
    print(&text)?;
    for error in &errors {
        eprintln!("error: {error}");
    }
    if errors.is_empty() { Ok(0) } else { Err(Failure::Printed(1)) }
}

fn from_kubeconfig(connections: &Connections) -> Vec<Known> {
    connections
        .contexts()
        .map(|context| Known {
            name: context.to_owned(),
            origin: format!("kubeconfig context {context}"),
            context: Some(context.to_owned()),
            labels: BTreeMap::new(),
            facts: Facts::default(),
        })
        .collect()
}

async fn from_hub(flags: &ImportFlags, connections: &Connections) -> anyhow::Result<Vec<Known>> {
    let context = flags.context.as_deref().or(connections.current_context()).unwrap_or_default();
    let hub = connections.open(context).await?;
    let below = |group: &str, plural: &str| match &flags.namespace {
        Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
        None => format!("{group}/{plural}"),
    };
    Ok(match flags.from {
        Source::Kubeconfig => Vec::new(),
        Source::Argocd => {
            let namespace = flags.namespace.as_deref().unwrap_or("argocd");
            return from_argo_cd(&hub, namespace, connections).await;
        }
        Source::Ocm => {
            let list = hub.list("/apis/cluster.open-cluster-management.io/v1/managedclusters", "").await?;
            list.iter()
                .map(|cluster| {
                    let server = cluster["spec"]["managedClusterClientConfigs"][0]["url"].as_str();
                    let mut known = of_object(connections, "ManagedCluster", cluster, server);
                    known.facts.add_region("claim", &cluster["status"]["clusterClaims"]);
                    known
                })
                .collect()
        }
        Source::ClusterProfile => {
            let list = hub.list(&below("/apis/multicluster.x-k8s.io/v1alpha1", "clusterprofiles"), "").await?;
            list.iter()
                .map(|profile| {
                    let server = profile["status"]["accessProviders"][0]["cluster"]["server"].as_str();
                    let mut known = of_object(connections, "ClusterProfile", profile, server);
                    known.facts.add_region("property", &profile["status"]["properties"]);
                    known
                })
                .collect()
        }
    })
}

/// Argo CD's cluster Secrets hold credentials, so the server is asked for nothing but their metadata and two values.
async fn from_argo_cd(hub: &Api, namespace: &str, connections: &Connections) -> anyhow::Result<Vec<Known>> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    let secrets = hub.list_metadata(&path, "labelSelector=argocd.argoproj.io%2Fsecret-type%3Dcluster").await?;
    let known = stream::iter(&secrets).map(async |secret| {
        let secret_name = name_of(secret);
        let values = hub.values_of_secret(&format!("{path}/{secret_name}"), &["name", "server"]).await;
        let (values, unread) = match values {
            Ok(values) => (values, ""),
            // A right to read Secrets would be one to read credentials; without the other right the metadata has to do.
            Err(error) if error.is_forbidden() => (Json::Null, ", whose values may not be asked for"),
            Err(error) => {
                anyhow::bail!("Secret {namespace}/{secret_name}: {error}");
            }
        };
        let text = |key: &str| {
            let encoded = values.get(key).filter(|value| value.is_string())?;
            let bytes: ByteString = serde_json::from_value(encoded.clone()).ok()?;
            String::from_utf8(bytes.0).ok()
        };
        let (name, server) = (text("name").unwrap_or_else(|| secret_name.clone()), text("server"));
        Ok(Known {
            origin: format!("Argo CD cluster Secret {namespace}/{secret_name}{unread}"),
            context: context_for(connections, &name, server.as_deref()),
            name,
            labels: labels_of(secret),
            facts: Facts::default(),
        })
    });
    known.buffered(PARALLEL).collect::<Vec<_>>().await.into_iter().collect()
}

fn name_of(object: &Json) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn labels_of(object: &Json) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn of_object(connections: &Connections, kind: &str, object: &Json, server: Option<&str>) -> Known {
    let name = name_of(object);
    let context = context_for(connections, &name, server);
    Known { origin: format!("{kind} {name}"), name, context, labels: labels_of(object), facts: Facts::default() }
}

/// The context that leads to a cluster: by the server's address, else by name.
fn context_for(connections: &Connections, name: &str, server: Option<&str>) -> Option<String> {
    let by_server = server.and_then(|server| connections.context_of_server(server));
    by_server.or_else(|| connections.contexts().find(|context| *context == name)).map(ToOwned::to_owned)
}

/// Asks a cluster about itself.
async fn ask(connections: &Connections, known: &mut Known) -> Result<(), Error> {
    let Some(context) = &known.context else {
        return Err(Error::Local("no kubeconfig context leads there, so the cluster itself was not asked".to_owned()));
    };
    let api = connections.open(context).await?;
    let facts = &mut known.facts;
    let errors = [place(&api, facts).await, control_plane(&api, facts).await, gateway(&api, facts).await];
    errors.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

/// Region and zone from the nodes, the network from Istio's namespace.
async fn place(api: &Api, facts: &mut Facts) -> Result<(), Error> {
    let namespace = api.get("/api/v1/namespaces/istio-system").await?.unwrap_or_default();
    let label = "topology.istio.io/network";
    facts.add(
        "network",
        namespace["metadata"]["labels"][label].clone(),
        format!("label {label} of namespace istio-system"),
    );
    let nodes = api.list("/api/v1/nodes", "").await?;
    for (field, label) in [("region", "topology.kubernetes.io/region"), ("zone", "topology.kubernetes.io/zone")] {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in nodes.iter().filter_map(|node| node["metadata"]["labels"][label].as_str()) {
            *counts.entry(value).or_default() += 1;
        }
        // A cluster of several zones is in none of them.
        if let (1, Some((value, count))) = (counts.len(), counts.first_key_value()) {
            facts.add(field, *value, format!("label {label} of {count} of {} nodes", nodes.len()));
        }
    }
    Ok(())
}

/// Version, revision and mesh configuration, from istiod's pods and ConfigMap.
async fn control_plane(api: &Api, facts: &mut Facts) -> Result<(), Error> {
    let pods = api.list("/api/v1/namespaces/istio-system/pods", "labelSelector=app%3Distiod").await?;
    // During an upgrade by revisions there are two kinds; the newest pod is where the cluster is going.
    let istiod = pods.iter().max_by_key(|pod| pod["metadata"]["creationTimestamp"].as_str());
    let revision = istiod.and_then(|pod| pod["metadata"]["labels"]["istio.io/rev"].as_str()).unwrap_or("default");
    if let Some(pod) = istiod {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        let tag = image.split('@').next().and_then(|image| image.rsplit_once(':')).map_or("", |(_, tag)| tag);
        let minor: Vec<&str> = tag.splitn(3, ['.', '-']).take(2).collect();
        if minor.len() == 2 && minor.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit())) {
            let source = format!("image {image} of Pod istio-system/{name}, revision {revision}");
            facts.add("mesh.version", minor.join("."), source);
        }
    }
    let map = if revision == "default" { "istio".to_owned() } else { format!("istio-{revision}") };
    if let Some(config) = api.get(&format!("/api/v1/namespaces/istio-system/configmaps/{map}")).await? {
        let source = format!("ConfigMap istio-system/{map}");
        let text = config["data"]["mesh"].as_str().unwrap_or_default();
        let mesh: Json = serde_saphyr::from_str(text)
            .map_err(|error| Error::Local(format!("{source} holds no mesh configuration: {error}")))?;
        let domain = mesh["trustDomain"].as_str().unwrap_or("cluster.local");
        facts.add("mesh.trustDomain", domain, format!("trustDomain of {source}"));
        if mesh["trustDomainAliases"].as_array().is_some_and(|aliases| !aliases.is_empty()) {
            let aliases = mesh["trustDomainAliases"].clone();
            facts.add("mesh.trustDomainAliases", aliases, format!("trustDomainAliases of {source}"));
        }
        let capture = &mesh["defaultConfig"]["proxyMetadata"]["ISTIO_META_DNS_CAPTURE"];
        let captured = capture == "true" || capture == true;
        let source = format!("ISTIO_META_DNS_CAPTURE of {source}");
        facts.add("mesh.dnsCapture", captured, if captured { source } else { format!("no {source}") });
    }
    if api.get("/apis/apps/v1/namespaces/istio-system/daemonsets/ztunnel").await?.is_some() {
        facts.add("mesh.dataPlane", "ambient", "DaemonSet istio-system/ztunnel");
    }
    Ok(())
}

/// The east-west gateway: the Service that says which network it leads to, or has the usual label.
async fn gateway(api: &Api, facts: &mut Facts) -> Result<(), Error> {
    for selector in ["topology.istio.io%2Fnetwork", "istio%3Deastwestgateway"] {
        let services = api.list("/api/v1/services", &format!("labelSelector={selector}")).await?;
        let Some(service) = services.first() else { continue };
        let metadata = &service["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        let source = format!("Service {}/{}", text("namespace"), text("name"));
        let label = "topology.istio.io/network";
        facts.add("network", metadata["labels"][label].clone(), format!("label {label} of {source}"));
        let ingress = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
        let mut addresses: Vec<Json> = ingress
            .filter_map(|ingress| ingress["ip"].as_str().or(ingress["hostname"].as_str()).map(Json::from))
            .collect();
        addresses.extend(service["spec"]["externalIPs"].as_array().into_iter().flatten().cloned());
        let address = match addresses.as_slice() {
            [] => continue,
            [one] => one.clone(),
            _ => Json::Array(addresses),
        };
        facts.add("gateway.address", address, format!("status of {source}"));
        let ports = || service["spec"]["ports"].as_array().into_iter().flatten();
        let port = ports().find(|port| port["port"] == 15443).or_else(|| ports().find(|port| port["name"] == "tls"));
        if let Some(port) = port {
            facts.add("gateway.port", port["port"].clone(), format!("port {} of {source}", port["name"]));
        }
        facts.add("gateway.namespace", text("namespace"), source.clone());
        facts.add("gateway.selector", service["spec"]["selector"].clone(), format!("selector of {source}"));
        return Ok(());
    }
    Ok(())
}

/// The fields of a document, in the order in which people read them, and what to do where nothing is known: such a
/// field is required, or it is just left out.
const FIELDS: [(&str, Option<&str>); 14] = [
    ("region", Some("no single topology.kubernetes.io/region on the nodes; fill in")),
    ("zone", None),
    ("network", Some("no topology.istio.io/network on namespace istio-system or a gateway; fill in")),
    ("context", None),
    ("mesh.type", None),
    ("mesh.version", None),
    ("mesh.trustDomain", None),
    ("mesh.trustDomainAliases", None),
    ("mesh.dnsCapture", None),
    ("mesh.dataPlane", None),
    ("gateway.address", None),
    ("gateway.port", None),
    ("gateway.namespace", None),
    ("gateway.selector", None),
];

fn document(known: &Known) -> String {
    let name = cluster_name(&known.name);
    let mut lines = vec![
        (String::from("apiVersion: meshintent.dev/v1alpha1"), String::new()),
        ("kind: Cluster".to_owned(), String::new()),
        ("metadata:".to_owned(), String::new()),
        (format!("  name: {}", scalar(&name.as_str().into())), known.origin.clone()),
    ];
    let labels: Vec<_> = known.labels.iter().filter(|(key, _)| is_about_the_cluster(key)).collect();
    if !labels.is_empty() {
        lines.push(("  labels:".to_owned(), format!("labels of {}", known.origin)));
        lines.extend(labels.into_iter().map(|(key, value)| {
            (format!("    {}: {}", scalar(&key.as_str().into()), scalar(&value.as_str().into())), String::new())
        }));
    }
    lines.push(("spec:".to_owned(), String::new()));
    let context = known.context.as_ref().filter(|context| **context != name);
    let context = context.map(|context| Fact { value: context.as_str().into(), source: "the kubeconfig".to_owned() });
    let mut section = "";
    for (field, advice) in FIELDS {
        let fact = if field == "context" { context.as_ref() } else { known.facts.0.get(field) };
        let (group, key) = field.split_once('.').unwrap_or(("", field));
        match (fact, advice) {
            (None, None) => continue,
            (None, Some(advice)) => lines.push((format!("  # {key}:"), advice.to_owned())),
            (Some(fact), _) => {
                if !group.is_empty() && group != section {
                    section = group;
                    lines.push((format!("  {group}:"), String::new()));
                }
                let indent = if group.is_empty() { "  " } else { "    " };
                lines.push((format!("{indent}{key}: {}", scalar(&fact.value)), fact.source.clone()));
            }
        }
    }
    let width = lines.iter().filter(|(_, source)| !source.is_empty()).map(|(line, _)| line.chars().count()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for (line, source) in lines {
        if source.is_empty() {
            text.push_str(&line);
        } else {
            // Sources quote what clusters say; a line end in there must not end the comment.
            let source: String = source.chars().filter(|c| !c.is_control()).collect();
            let _ = write!(text, "{line:width$}  # {source}");
        }
        text.push('\n');
    }
    text
}

/// A value on one line: lists and maps in flow style, which is JSON.
fn scalar(value: &Json) -> String {
    if value.is_array() || value.is_object() { value.to_string() } else { to_yaml(value).trim_end().to_owned() }
}

/// Names of contexts may hold anything; names of clusters may not.
fn cluster_name(text: &str) -> String {
    if ClusterName::parse(text).is_some() {
        return text.to_owned();
    }
    let dashed: String = text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    dashed.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Labels of the tools that keep the list say nothing about the cluster, and places have fields of their own.
fn is_about_the_cluster(key: &str) -> bool {
    let of_tools = ["kubernetes.io/", "k8s.io/", "open-cluster-management.io/", "argoproj.io/"];
    !of_tools.iter().any(|part| key.contains(part)) && !matches!(key, "region" | "zone" | "network")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_where_each_value_came_from_and_what_is_missing() {
        let mut facts = Facts::default();
        facts.add("region", "no", "label of 1 of 1 nodes");
        facts.add("mesh.version", "1.30", "image x:1.30.1\nkind: Evil");
        let known = Known {
            name: "arn:aws:eks:us-east-1:1:cluster/Prod".to_owned(),
            origin: "kubeconfig context".to_owned(),
            context: Some("prod".to_owned()),
            labels: [("tier", "foo"), ("region", "x"), ("a.kubernetes.io/b", "c")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            facts,
        };
        let text = document(&known);
        let wanted = "\
apiVersion: meshintent.dev/v1alpha1
kind: Cluster
metadata:
  name: arn-aws-eks-us-east-1-1-cluster-prod  # kubeconfig context
  labels:                                     # labels of kubeconfig context
    tier: foo
spec:
  region: \"no\"                                # label of 1 of 1 nodes
  # network:                                  # no topology.istio.io/network on namespace istio-system or a gateway; fill in
  context: prod                               # the kubeconfig
  mesh:
    version: \"1.30\"                           # image x:1.30.1kind: Evil
";
        assert_eq!(text, wanted);
    }
}
