//! `TrafficPolicy`: order of failover, exclusions, shares, resilience, connection settings.

use super::cluster_set::{ClusterSet, Exclude, Order};
use super::decode::{At, Decode, bad_value, record, wrong_type};
use super::types::{
    Attempts, Count, Duration, HeaderName, HttpStatus, Method, Namespace, Percent, QueryName, Seconds, ServiceName,
};
use crate::diagnostic::Diagnostics;
use crate::source::{Node, Place, Value, short};
use serde_json::{Map as Object, Value as Json, json};

record! {
    /// How calls to one service travel: order of failover, exclusions, shares, resilience, connection settings.
    pub struct TrafficPolicySpec {
        /// `true`: the one default of the fleet; it names no `from`, `to` or `match`.
        default as "default": default At<bool> = |place| At { place, value: false },
        /// Whose calls; absent: every dependent's.
        from as "from": optional At<Vec<CallerSelector>>,
        /// The called service.
        to as "to": optional ServiceRef,
        /// Only requests that one of the items describes; HTTP only.
        matches as "match": optional At<Vec<RequestMatch>>,
        /// Who serves, in which order, and who never does.
        failover as "failover": optional Failover,
        /// Shares of the traffic for certain clusters; the rest follows the order.
        weights as "weights": optional At<Vec<Weight>>,
        /// When an endpoint counts as broken.
        outlier as "outlier": optional Outlier,
        /// How often a failed request is tried again.
        retries as "retries": optional Retries,
        /// How long a request may take, tries included.
        timeout as "timeout": optional At<Duration>,
        /// Settings of the connections.
        connection as "connection": optional Connection,
        /// Faults put in on purpose.
        fault as "fault": optional Fault,
        /// Copies of requests, whose answers are thrown away.
        mirror as "mirror": optional Mirror,
        /// Cross-origin resource sharing.
        cors as "cors": optional Cors,
        /// Changes of headers.
        headers as "headers": optional Headers,
    }
}

record! {
    /// Callers; at least one part.
    pub struct CallerParts {
        /// A calling service.
        service as "service": optional At<ServiceName>,
        /// Its namespace; default beside `service`: the document's own.
        namespace as "namespace": optional Namespace,
        /// The clusters it calls from; absent: all.
        clusters as "clusters": optional At<ClusterSet>,
    }
}

/// Callers; a selector without any part is refused, because it would silently mean everyone.
#[derive(Clone, Debug)]
pub struct CallerSelector(pub CallerParts);

impl Decode for CallerSelector {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let parts = CallerParts::decode(node, found)?;
        if parts.service.is_none() && parts.namespace.is_none() && parts.clusters.is_none() {
            return bad_value(
                node.place,
                "an item of `from` that names nothing",
                "name a service, a namespace or clusters; leave `from` out for every dependent",
                found,
            );
        }
        Some(Self(parts))
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        CallerParts::schema(definitions)
    }
}

record! {
    /// A service of the fleet.
    pub struct ServiceRef {
        /// Its name.
        service as "service": required At<ServiceName>,
        /// Its namespace; default: the document's own.
        namespace as "namespace": optional Namespace,
    }
}

record! {
    /// Who serves, in which order, and who never does.
    pub struct FailoverParts {
        /// Tiers, of which the first healthy one serves; an item that is a list is one tier.
        order as "order": optional Order,
        /// Clusters that never serve from elsewhere, whatever is down.
        exclude as "exclude": optional Exclude,
    }
}

/// Failover settings; at least one of them.
#[derive(Clone, Debug)]
pub struct Failover(pub FailoverParts);

impl Decode for Failover {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let parts = FailoverParts::decode(node, found)?;
        if parts.order.is_none() && parts.exclude.is_none() {
            return bad_value(
                node.place,
                "`failover` says nothing",
                "set `order` or `exclude`, or leave it out",
                found,
            );
        }
        Some(Self(parts))
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        FailoverParts::schema(definitions)
    }
}

record! {
    /// A share of the traffic.
    pub struct Weight {
        /// The clusters that get the share, evenly.
        clusters as "clusters": required At<ClusterSet>,
        /// The share in per cent.
        percent as "percent": required Percent,
    }
}

record! {
    /// When an endpoint counts as broken and is left alone for a while. At least one field.
    pub struct Outlier {
        /// Errors in a row; default: 5.
        consecutive_errors as "consecutiveErrors": default Count = |_| Count(5),
        /// How often endpoints are judged; default: 5s.
        interval as "interval": default Duration = |_| Duration(5_000),
        /// How long a broken endpoint is left alone, times the number of its ejections; default: 30s.
        eject_for as "ejectFor": default Duration = |_| Duration(30_000),
    }
}

record! {
    /// How often a failed request is tried again.
    pub struct Retries {
        /// Further tries after the first one; 0 switches retries off.
        attempts as "attempts": required Attempts,
        /// How long each try may take.
        per_try_timeout as "perTryTimeout": optional At<Duration>,
    }
}

record! {
    /// Settings of connections.
    pub struct Connection {
        /// Only where a service is reached in another cluster.
        cross_cluster as "crossCluster": required CrossCluster,
    }
}

record! {
    /// Settings of connections to another cluster.
    pub struct CrossCluster {
        /// How long opening a connection may take.
        connect_timeout as "connectTimeout": optional Duration,
        /// Probes that keep a connection open through load balancers and firewalls.
        keepalive as "keepalive": optional Keepalive,
        /// After how much silence a connection is closed.
        idle_timeout as "idleTimeout": optional Duration,
        /// After which age a connection is closed, so that the remote pods share the load anew.
        max_age as "maxAge": optional Duration,
    }
}

record! {
    /// TCP keepalive probes.
    pub struct Keepalive {
        /// After how much silence the first probe is sent.
        idle as "idle": optional Seconds,
        /// Time between probes.
        interval as "interval": optional Seconds,
        /// Probes without an answer before the connection is given up.
        probes as "probes": optional Count,
    }
}

record! {
    /// Faults put in on purpose. At least one of them.
    pub struct Fault {
        /// Requests that wait.
        delay as "delay": optional Delay,
        /// Requests that are answered with an error.
        abort as "abort": optional Abort,
    }
}

record! {
    /// Requests that wait.
    pub struct Delay {
        /// How many; default: 100.
        percent as "percent": default Percent = |_| Percent(100),
        /// How long.
        duration as "duration": required Duration,
    }
}

record! {
    /// Requests that are answered with an error.
    pub struct Abort {
        /// How many; default: 100.
        percent as "percent": default Percent = |_| Percent(100),
        /// The status of the answer.
        status as "status": required HttpStatus,
    }
}

record! {
    /// Copies of requests, whose answers are thrown away.
    pub struct Mirror {
        /// The clusters that get the copies; one of them gets each copy.
        clusters as "clusters": required At<ClusterSet>,
        /// How many requests are copied; default: 100.
        percent as "percent": default Percent = |_| Percent(100),
    }
}

record! {
    /// Cross-origin resource sharing.
    pub struct Cors {
        /// Origins that may read answers.
        allow_origins as "allowOrigins": optional Vec<StringMatch>,
        /// Methods that may be used.
        allow_methods as "allowMethods": optional Vec<Method>,
        /// Headers that may be sent.
        allow_headers as "allowHeaders": optional Vec<HeaderText>,
        /// Headers that may be read.
        expose_headers as "exposeHeaders": optional Vec<HeaderText>,
        /// How long an answer to a preflight request holds.
        max_age as "maxAge": optional Seconds,
        /// Whether credentials may be sent.
        allow_credentials as "allowCredentials": optional bool,
    }
}

record! {
    /// Changes of headers.
    pub struct Headers {
        /// On the way to the service.
        request as "request": optional HeaderChanges,
        /// On the way back.
        response as "response": optional HeaderChanges,
    }
}

record! {
    /// Changes of headers in one direction.
    pub struct HeaderChanges {
        /// Headers that get this value in place of any other.
        set as "set": optional HeaderValues,
        /// Headers that get this value beside any other.
        add as "add": optional HeaderValues,
        /// Headers that are removed.
        remove as "remove": optional Vec<ChangedHeader>,
    }
}

/// The name of a header as people write it (`X-Try`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderText(pub String);

impl HeaderText {
    fn parse(text: &str) -> Option<Self> {
        HeaderName::parse(&text.to_ascii_lowercase()).map(|_| Self(text.to_owned()))
    }
}

impl Decode for HeaderText {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = super::decode::text(node, "a string: the name of a header", found)?;
        Self::parse(text).or_else(|| {
            bad_value(
                node.place,
                format!("\"{}\" is not the name of a header", short(text)),
                "write the name without a colon",
                found,
            )
        })
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$"})
    }
}

/// The name of a header that is changed on the way: any but `host`, by which the mesh routes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedHeader(pub String);

impl ChangedHeader {
    fn parse(text: &str, place: Place, found: &mut Diagnostics) -> Option<Self> {
        match HeaderText::parse(text) {
            Some(_) if text.eq_ignore_ascii_case("host") => bad_value(
                place,
                "the header `host` cannot be changed: the mesh routes by it",
                "let callers use another host name of the service",
                found,
            ),
            Some(HeaderText(name)) => Some(Self(name)),
            None => bad_value(
                place,
                format!("\"{}\" is not the name of a header", short(text)),
                "write the name without a colon",
                found,
            ),
        }
    }
}

impl Decode for ChangedHeader {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        Self::parse(super::decode::text(node, "a string: the name of a header", found)?, node.place, found)
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        HeaderText::schema(definitions)
    }
}

/// What to do about a header that stands twice.
const SAME_HEADER: &str = "names of headers are the same in capitals and small letters; keep one";

/// Headers and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderValues(pub Vec<(ChangedHeader, String)>);

impl Decode for HeaderValues {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return wrong_type(node, "a map of headers", found);
        };
        if entries.is_empty() {
            return bad_value(
                node.place,
                "an empty map of headers",
                "name at least one header, or leave the field out",
                found,
            );
        }
        let values: Vec<_> = entries
            .iter()
            .map(|entry| {
                let name = ChangedHeader::parse(&entry.key, entry.place, found)?;
                let value = super::decode::text(&entry.node, "a string", found)?;
                if value.chars().any(|c| c.is_control()) {
                    return bad_value(
                        entry.node.place,
                        "a header value with a control character",
                        "write it on one line",
                        found,
                    );
                }
                Some((name, value.to_owned()))
            })
            .collect();
        let values: Vec<(ChangedHeader, String)> = values.into_iter().collect::<Option<_>>()?;
        let mut names: Vec<String> = values.iter().map(|(name, _)| name.0.to_ascii_lowercase()).collect();
        names.sort();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return bad_value(node.place, "the same header twice", SAME_HEADER, found);
        }
        Some(Self(values))
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}})
    }
}

/// How a text is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StringMatch {
    /// It is this text.
    Exact(String),
    /// It begins with this text.
    Prefix(String),
    /// The whole of it fits this regular expression (RE2).
    Regex(String),
}

/// How a header or query parameter is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueMatch {
    /// By its text.
    Text(StringMatch),
    /// It is there, whatever its text.
    Present,
}

fn value_match(node: &Node, presence: bool, found: &mut Diagnostics) -> Option<ValueMatch> {
    let known: &[&str] =
        if presence { &["exact", "prefix", "regex", "present"] } else { &["exact", "prefix", "regex"] };
    super::decode::Fields::of(node, known, found)?;
    let Value::Map(entries) = &node.value else { return None };
    let [entry] = entries.as_slice() else {
        return bad_value(
            node.place,
            "expected exactly one way to compare",
            format!("write one of: {}", known.join(", ")),
            found,
        );
    };
    if &*entry.key == "present" {
        return match bool::decode(&entry.node, found)? {
            true => Some(ValueMatch::Present),
            false => bad_value(
                entry.node.place,
                "`present: false` cannot be expressed",
                "write `present: true`, or leave the condition out",
                found,
            ),
        };
    }
    let text = super::decode::text(&entry.node, "a string", found)?.to_owned();
    if text.is_empty() {
        return bad_value(
            entry.node.place,
            "an empty text to compare with",
            "write the text; `present: true` is for headers and parameters that only have to be there",
            found,
        );
    }
    if text.chars().any(char::is_control) {
        return bad_value(entry.node.place, "a text with a control character", "write it on one line", found);
    }
    match &*entry.key {
        "exact" => Some(ValueMatch::Text(StringMatch::Exact(text))),
        "prefix" => Some(ValueMatch::Text(StringMatch::Prefix(text))),
        "regex" => match super::regex::check(&text) {
            Ok(()) => Some(ValueMatch::Text(StringMatch::Regex(text))),
            Err(problem) => bad_value(
                entry.node.place,
                format!("not a regular expression that Envoy accepts (RE2): {problem}"),
                "mend the expression; look-around and back-references do not exist",
                found,
            ),
        },
        _ => None,
    }
}

fn match_schema(presence: bool) -> Json {
    let mut properties = json!({"exact": {"type": "string", "minLength": 1}, "prefix": {"type": "string", "minLength": 1}, "regex": {"type": "string", "minLength": 1}});
    if presence {
        properties["present"] = json!({"const": true});
    }
    json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": properties})
}

impl Decode for StringMatch {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match value_match(node, false, found)? {
            ValueMatch::Text(text) => Some(text),
            ValueMatch::Present => None,
        }
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        match_schema(false)
    }
}

impl Decode for ValueMatch {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        value_match(node, true, found)
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        match_schema(true)
    }
}

/// Named conditions, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conditions<K>(pub Vec<(K, ValueMatch)>);

impl<K> Default for Conditions<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Names that conditions can have.
trait ConditionName: Ord + Sized + Decode {
    /// The name in the form in which names are compared.
    fn of(text: &str) -> Option<Self>;
}

impl ConditionName for HeaderName {
    fn of(text: &str) -> Option<Self> {
        Self::parse(&text.to_ascii_lowercase())
    }
}

impl ConditionName for QueryName {
    fn of(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

fn conditions<K: ConditionName>(node: &Node, what: &str, found: &mut Diagnostics) -> Option<Conditions<K>> {
    let Value::Map(entries) = &node.value else {
        return wrong_type(node, "a map of conditions", found);
    };
    if entries.is_empty() {
        return bad_value(node.place, "an empty map of conditions", "name at least one, or leave the field out", found);
    }
    let decoded: Vec<_> = entries
        .iter()
        .map(|entry| {
            let value = ValueMatch::decode(&entry.node, found);
            let Some(name) = K::of(&entry.key) else {
                return bad_value(
                    entry.place,
                    format!("\"{}\" is not the name of a {what}", short(&entry.key)),
                    "write the name alone",
                    found,
                );
            };
            Some((name, value?))
        })
        .collect();
    let mut list: Vec<(K, ValueMatch)> = decoded.into_iter().collect::<Option<_>>()?;
    list.sort();
    if list.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return bad_value(node.place, format!("the same {what} twice"), SAME_HEADER, found);
    }
    Some(Conditions(list))
}

impl Decode for Conditions<HeaderName> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        conditions(node, "header", found)
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "object", "minProperties": 1, "additionalProperties": match_schema(true)})
    }
}

impl Decode for Conditions<QueryName> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        conditions(node, "query parameter", found)
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "object", "minProperties": 1, "additionalProperties": match_schema(true)})
    }
}

record! {
    /// A description of requests: all of its conditions hold.
    pub struct RequestMatchParts {
        /// The path, without the query.
        path as "path": optional At<StringMatch>,
        /// Headers by name.
        headers as "headers": optional Conditions<HeaderName>,
        /// Query parameters by name.
        query as "query": optional Conditions<QueryName>,
        /// The method.
        method as "method": optional Method,
    }
}

/// A description of requests with at least one condition, free of places so that descriptions can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestMatch {
    /// The path.
    pub path: Option<StringMatch>,
    /// Headers by name.
    pub headers: Conditions<HeaderName>,
    /// Query parameters by name.
    pub query: Conditions<QueryName>,
    /// The method.
    pub method: Option<Method>,
}

impl Decode for RequestMatch {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let parts = RequestMatchParts::decode(node, found)?;
        let request = Self {
            path: parts.path.as_ref().map(|path| path.value.clone()),
            headers: parts.headers.unwrap_or_default(),
            query: parts.query.unwrap_or_default(),
            method: parts.method,
        };
        if request == Self::default() {
            return bad_value(
                node.place,
                "an item of `match` without conditions",
                "name a path, header, query parameter or method; leave `match` out for all requests",
                found,
            );
        }
        if let Some(At { place, value: StringMatch::Exact(path) | StringMatch::Prefix(path) }) = &parts.path {
            if !path.starts_with('/') {
                let help = "write the path from its first `/`";
                return bad_value(*place, "a path that does not begin with `/`", help, found);
            }
            if path.contains(['?', '#']) {
                let help = "compare parameters with `query`";
                return bad_value(*place, "a path ends before `?` and `#`, so this fits no request", help, found);
            }
        }
        Some(request)
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        RequestMatchParts::schema(definitions)
    }
}

impl RequestMatch {
    /// The place-free text of the description, for tables.
    #[must_use]
    pub fn describe(&self) -> String {
        fn text(value: &StringMatch) -> String {
            match value {
                StringMatch::Exact(text) => format!("={text}"),
                StringMatch::Prefix(text) => format!("={text}*"),
                StringMatch::Regex(text) => format!("~{text}"),
            }
        }
        fn named<K: std::fmt::Display>(kind: &str, name: &K, value: &ValueMatch) -> String {
            match value {
                ValueMatch::Text(value) => format!("{kind} {name}{}", text(value)),
                ValueMatch::Present => format!("{kind} {name}"),
            }
        }
        let mut parts = Vec::new();
        parts.extend(self.method.as_ref().map(|method| format!("method={method}")));
        parts.extend(self.path.as_ref().map(|path| format!("path{}", text(path))));
        parts.extend(self.headers.0.iter().map(|(name, value)| named("header", name, value)));
        parts.extend(self.query.0.iter().map(|(name, value)| named("query", name, value)));
        parts.join(" and ")
    }
}

/// The place of a unit inside a policy, if the policy sets it.
impl TrafficPolicySpec {
    /// Every unit that this policy sets, with its place: the pieces that policies are merged by.
    #[must_use]
    pub fn units(&self) -> Vec<(Unit, Place)> {
        let mut units = Vec::new();
        if let Some(Failover(parts)) = &self.failover {
            units.extend(parts.order.as_ref().map(|order| (Unit::Order, order.place)));
            units.extend(parts.exclude.as_ref().map(|exclude| (Unit::Exclude, exclude.place)));
        }
        units.extend(self.weights.as_ref().map(|unit| (Unit::Weights, unit.place)));
        units.extend(self.outlier.as_ref().map(|unit| (Unit::Outlier, unit.place)));
        units.extend(self.retries.as_ref().map(|unit| (Unit::Retries, unit.place)));
        units.extend(self.timeout.as_ref().map(|unit| (Unit::Timeout, unit.place)));
        units.extend(self.connection.as_ref().map(|unit| (Unit::Connection, unit.place)));
        units.extend(self.fault.as_ref().map(|unit| (Unit::Fault, unit.place)));
        units.extend(self.mirror.as_ref().map(|unit| (Unit::Mirror, unit.place)));
        units.extend(self.cors.as_ref().map(|unit| (Unit::Cors, unit.place)));
        units.extend(self.headers.as_ref().map(|unit| (Unit::Headers, unit.place)));
        units
    }
}

/// The pieces by which policies are merged; each is set by one policy or by none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// `failover.order`
    Order,
    /// `failover.exclude`
    Exclude,
    /// `weights`
    Weights,
    /// `outlier`
    Outlier,
    /// `retries`
    Retries,
    /// `timeout`
    Timeout,
    /// `connection`
    Connection,
    /// `fault`
    Fault,
    /// `mirror`
    Mirror,
    /// `cors`
    Cors,
    /// `headers`
    Headers,
}

impl Unit {
    /// All units, in the order in which the fields are documented.
    pub const ALL: [Self; 11] = [
        Self::Order,
        Self::Exclude,
        Self::Weights,
        Self::Outlier,
        Self::Retries,
        Self::Timeout,
        Self::Connection,
        Self::Fault,
        Self::Mirror,
        Self::Cors,
        Self::Headers,
    ];

    /// The field, as it is written.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Order => "failover.order",
            Self::Exclude => "failover.exclude",
            Self::Weights => "weights",
            Self::Outlier => "outlier",
            Self::Retries => "retries",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Fault => "fault",
            Self::Mirror => "mirror",
            Self::Cors => "cors",
            Self::Headers => "headers",
        }
    }

    /// Whether the unit has a meaning only where requests can be told apart.
    #[must_use]
    pub fn is_http(self) -> bool {
        match self {
            Self::Order | Self::Exclude | Self::Weights | Self::Outlier | Self::Connection => false,
            Self::Retries | Self::Timeout | Self::Fault | Self::Mirror | Self::Cors | Self::Headers => true,
        }
    }
}
