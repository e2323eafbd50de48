//! The fields of Istio's resources that are written, in the order in which they are printed.
//! Names and meanings: istio.io/api, networking/v1 and security/v1.

use super::Text;
use crate::intent::types::{Duration, LabelMap};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// `networking.istio.io/v1` ServiceEntry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceEntry {
    /// The host names.
    pub hosts: [Text; 1],
    /// Virtual IP addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Ipv4Addr>,
    /// The namespaces that see it.
    pub export_to: Arc<[Text]>,
    /// `MESH_INTERNAL`: peers prove their identity.
    pub location: &'static str,
    /// `STATIC`, or `DNS` for endpoints with host names.
    pub resolution: &'static str,
    /// The ports.
    pub ports: Vec<EntryPort>,
    /// The pods of this cluster that serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_selector: Option<WorkloadSelector>,
    /// Other endpoints that serve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
}

/// One port of a ServiceEntry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryPort {
    /// The number that callers use.
    pub number: u16,
    /// The name that endpoints refer to.
    pub name: Text,
    /// What is spoken there.
    pub protocol: &'static str,
    /// The port of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<u16>,
}

/// Chooses pods by labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadSelector {
    /// The labels.
    pub labels: LabelMap,
}

/// An endpoint of a ServiceEntry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoint {
    /// An IP address, or a host name with resolution DNS.
    pub address: EndpointAddress,
    /// Its port for each port of the entry.
    pub ports: Arc<BTreeMap<Text, u16>>,
    /// Labels: mutual TLS, and the marks of its tier.
    pub labels: Arc<Marks>,
    /// Its weight among the endpoints of one tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Labels of an endpoint.
pub type Marks = BTreeMap<Cow<'static, str>, &'static str>;

/// Where an endpoint is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EndpointAddress {
    /// An IP address.
    Ip(IpAddr),
    /// A name that is looked up in DNS.
    Name(String),
}

/// `networking.istio.io/v1` DestinationRule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DestinationRule {
    /// The host.
    pub host: Text,
    /// The namespaces that see it.
    pub export_to: Arc<[Text]>,
    /// How its endpoints are reached.
    pub traffic_policy: TrafficPolicy,
}

/// How endpoints are reached: for all ports alike, or port by port.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TrafficPolicy {
    /// For the only port.
    Whole(Box<PortPolicy>),
    /// For each of several ports; nothing is inherited between them.
    PerPort {
        /// The ports.
        #[serde(rename = "portLevelSettings")]
        port_level_settings: Vec<PortPolicy>,
    },
}

/// How endpoints are reached on a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PortPolicy {
    /// The port, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortNumber>,
    /// Mutual TLS.
    pub tls: ClientTls,
    /// Tiers.
    pub load_balancer: LoadBalancer,
    /// When an endpoint counts as broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlier_detection: Option<OutlierDetection>,
    /// Settings of connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_pool: Option<ConnectionPool>,
}

/// A port by its number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PortNumber {
    /// The number.
    pub number: u16,
}

/// The client side of mutual TLS.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTls {
    /// `ISTIO_MUTUAL`.
    pub mode: &'static str,
    /// What the gateways of other clusters tell services by.
    pub sni: String,
    /// The identities that may answer.
    pub subject_alt_names: Vec<String>,
}

/// How a request chooses its endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Inside a tier.
    pub simple: &'static str,
    /// Tiers.
    pub locality_lb_setting: LocalityLb,
}

/// Tiers of endpoints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalityLb {
    /// Whether there are tiers.
    pub enabled: bool,
    /// The labels that make them, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failover_priority: Vec<String>,
}

/// When an endpoint counts as broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutlierDetection {
    /// Gateway errors, and failures to connect, in a row.
    pub consecutive_gateway_errors: u32,
    /// 0: errors of the application are not counted, or one bad pod would cost a whole cluster.
    #[serde(rename = "consecutive5xxErrors")]
    pub consecutive_5xx_errors: u32,
    /// How often endpoints are judged.
    pub interval: Duration,
    /// How long a broken endpoint is left alone.
    pub base_ejection_time: Duration,
    /// 100: with fewer, small clusters could never be left.
    pub max_ejection_percent: u32,
}

/// Settings of connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionPool {
    /// Of every connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSettings>,
    /// Of connections that carry requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSettings>,
}

/// Settings of every connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TcpSettings {
    /// How long opening may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Duration>,
    /// Probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// After how much silence it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// After which age it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connection_duration: Option<Duration>,
}

/// Keepalive probes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpKeepalive {
    /// Before the first probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Between probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Probes without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<u32>,
}

/// Settings of connections that carry requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpSettings {
    /// After how much silence it is closed.
    pub idle_timeout: Duration,
}

/// `networking.istio.io/v1` VirtualService.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualService {
    /// The host.
    pub hosts: [Text; 1],
    /// The namespaces that see it.
    pub export_to: Arc<[Text]>,
    /// Routes of requests; the first that fits counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRoute>,
    /// Routes of TLS connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<TlsRoute>,
    /// Routes of other connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpRoute>,
}

/// A route of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRoute {
    /// One of these fits; none: every request.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// Where they go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<WeightedDestination>,
    /// An answer in place of a route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct_response: Option<DirectResponse>,
    /// How long a request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Further tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Faults put in on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Who gets copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Destination>,
    /// How many copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_percentage: Option<Percentage>,
    /// Cross-origin resource sharing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<CorsPolicy>,
    /// Changes of headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
}

impl HttpRoute {
    /// Whether the route holds text that an author chose freely.
    #[must_use]
    pub fn has_free_text(&self) -> bool {
        let conditions = |request: &HttpMatch| {
            request.uri.is_some() || !request.headers.is_empty() || !request.query_params.is_empty()
        };
        self.cors_policy.is_some() || self.headers.is_some() || self.matches.iter().any(conditions)
    }
}

/// Requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpMatch {
    /// On this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// From this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_namespace: Option<Text>,
    /// From pods with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_labels: Option<LabelMap>,
    /// With this method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// With this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// With these headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
    /// With these query parameters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
}

/// How a text is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StringMatch {
    /// It is this text.
    Exact(Cow<'static, str>),
    /// It begins with this text.
    Prefix(Cow<'static, str>),
    /// The whole of it fits this expression.
    Regex(Cow<'static, str>),
}

/// A destination and its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WeightedDestination {
    /// The destination.
    pub destination: Destination,
    /// Its weight, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// A destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Destination {
    /// The host.
    pub host: Text,
    /// The port.
    pub port: PortNumber,
}

/// An answer in place of a route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectResponse {
    /// The status.
    pub status: u16,
}

/// Further tries.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// How many.
    pub attempts: u32,
    /// How long each may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_try_timeout: Option<Duration>,
    /// After which failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<&'static str>,
    /// Also in other tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_remote_localities: Option<bool>,
}

/// Faults put in on purpose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// Requests that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Requests that are answered with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
}

/// Requests that wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delay {
    /// How many.
    pub percentage: Percentage,
    /// How long.
    pub fixed_delay: Duration,
}

/// Requests that are answered with an error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Abort {
    /// How many.
    pub percentage: Percentage,
    /// The status.
    pub http_status: u16,
}

/// A percentage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentage {
    /// Its value.
    pub value: u8,
}

/// Cross-origin resource sharing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// Origins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_origins: Vec<StringMatch>,
    /// Methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_methods: Vec<String>,
    /// Headers that may be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_headers: Vec<String>,
    /// Headers that may be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expose_headers: Vec<String>,
    /// How long a preflight answer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<Duration>,
    /// Whether credentials may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
}

/// Changes of headers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headers {
    /// On the way to the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HeaderOperations>,
    /// On the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<HeaderOperations>,
}

/// Changes of headers in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeaderOperations {
    /// In place of any other value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Beside any other value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// A route of TLS connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TlsRoute {
    /// One of these fits.
    #[serde(rename = "match")]
    pub matches: Vec<TlsMatch>,
    /// Where they go.
    pub route: Vec<WeightedDestination>,
}

/// TLS connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TlsMatch {
    /// To these names.
    pub sni_hosts: [Text; 1],
    /// What else they fit.
    #[serde(flatten)]
    pub connection: ConnectionMatch,
}

/// A route of connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpRoute {
    /// One of these fits.
    #[serde(rename = "match")]
    pub matches: Vec<ConnectionMatch>,
    /// Where they go.
    pub route: Vec<WeightedDestination>,
}

/// Connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionMatch {
    /// On this port.
    pub port: u16,
    /// From this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_namespace: Option<Text>,
    /// From pods with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_labels: Option<LabelMap>,
}

/// `networking.istio.io/v1` Gateway.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gateway {
    /// The pods of the gateway.
    pub selector: LabelMap,
    /// What they offer.
    pub servers: Vec<Server>,
}

/// What a gateway offers on a port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Server {
    /// The port.
    pub port: ServerPort,
    /// Passthrough by SNI.
    pub tls: ServerTls,
    /// The hosts.
    pub hosts: [Text; 1],
}

/// The port of a gateway.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerPort {
    /// The number.
    pub number: u16,
    /// The name.
    pub name: &'static str,
    /// `TLS`.
    pub protocol: &'static str,
}

/// TLS of a gateway's port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerTls {
    /// `AUTO_PASSTHROUGH`.
    pub mode: &'static str,
}

/// `networking.istio.io/v1` Sidecar.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// The pods.
    pub workload_selector: WorkloadSelector,
    /// What they see.
    pub egress: Vec<SidecarEgress>,
    /// Whether they reach anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outbound_traffic_policy: Option<OutboundTrafficPolicy>,
}

/// What sidecars see.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SidecarEgress {
    /// `namespace/host`.
    pub hosts: Vec<String>,
}

/// Whether sidecars reach anything else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutboundTrafficPolicy {
    /// `REGISTRY_ONLY`.
    pub mode: &'static str,
}

/// `security.istio.io/v1` AuthorizationPolicy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuthorizationPolicy {
    /// The pods.
    pub selector: PodSelector,
    /// `ALLOW`.
    pub action: &'static str,
    /// Who may do what; none: nobody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// Chooses pods by labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSelector {
    /// The labels.
    pub match_labels: LabelMap,
}

/// Who may do what.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Who.
    pub from: Vec<From>,
    /// What; none: everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<To>,
}

/// Callers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct From {
    /// By identity.
    pub source: Source,
}

/// Callers by identity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// `<trust domain>/ns/<namespace>/sa/<account>`, or the beginning of it and `*`.
    pub principals: Vec<String>,
}

/// Requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct To {
    /// By their properties.
    pub operation: Operation,
}

/// Requests by their properties.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd, Eq, Ord, Serialize)]
pub struct Operation {
    /// Ports of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    /// Methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// `security.istio.io/v1` PeerAuthentication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerAuthentication {
    /// The pods.
    pub selector: PodSelector,
    /// Mutual TLS.
    pub mtls: MutualTls,
}

/// Mutual TLS of pods.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MutualTls {
    /// `STRICT`.
    pub mode: &'static str,
}
