//! The small values of the documents. Each type is built only by reading, so a value that exists keeps its rule.

use super::decode::{Decode, bad_value, text};
use crate::diagnostic::Diagnostics;
use crate::source::{Entry, Node, Value, short};
use serde::{Serialize, Serializer};
use serde_json::{Map as Object, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Declares a string that follows a rule.
macro_rules! word {
    ($(#[doc = $doc:literal])* $name:ident, $expected:literal, $check:expr, $rule:literal, $pattern:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, shared.
            #[must_use]
            pub fn text(&self) -> Arc<str> {
                self.0.clone()
            }

            /// Builds the value if the text follows the rule.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let check: fn(&str) -> bool = $check;
                check(text).then(|| Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
                let text = text(node, concat!("a string: ", $expected), found)?;
                match Self::parse(text) {
                    Some(value) => Some(value),
                    None => bad_value(node.place, format!("\"{}\" is not {}", short(text), $expected), $rule, found),
                }
            }

            fn schema(_: &mut Object<String, Json>) -> Json {
                json!({"type": "string", "pattern": $pattern})
            }
        }
    };
}

const LABEL: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
const SUBDOMAIN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A DNS label of RFC 1123, as Kubernetes names namespaces.
fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes.iter().all(inner)
        && bytes[0] != b'-'
        && bytes[bytes.len() - 1] != b'-'
}

/// A DNS subdomain of RFC 1123, as Kubernetes names most objects.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| !part.is_empty() && is_label_of_any_length(part))
}

fn is_label_of_any_length(part: &str) -> bool {
    let bytes = part.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    bytes.iter().all(inner) && bytes[0] != b'-' && bytes[bytes.len() - 1] != b'-'
}

word!(
    /// The name of a cluster, for example `cluster-1`. `all`, `local` and `same` are reserved words.
    ClusterName,
    "a cluster name",
    |text| is_subdomain(text) && text.len() <= 63,
    "use at most 63 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit",
    SUBDOMAIN
);
word!(
    /// A Kubernetes namespace, for example `bank`.
    Namespace,
    "the name of a namespace",
    is_label,
    "use at most 63 lower-case letters, digits and `-`, beginning and ending with a letter or digit",
    LABEL
);
word!(
    /// The name of a service, for example `user`; Kubernetes wants a letter first (RFC 1035).
    ServiceName,
    "the name of a service",
    |text| is_label(text) && text.as_bytes()[0].is_ascii_lowercase(),
    "use at most 63 lower-case letters, digits and `-`, beginning with a letter",
    "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
);
word!(
    /// The name of a document, for example `account-to-user`.
    DocumentName,
    "a name",
    is_subdomain,
    "use at most 253 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit",
    SUBDOMAIN
);
word!(
    /// The name of a Kubernetes service account, for example `user`.
    ServiceAccount,
    "the name of a service account",
    is_subdomain,
    "use at most 253 lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit",
    SUBDOMAIN
);
word!(
    /// A trust domain as SPIFFE defines it (SPIFFE-ID section 2.1): lower-case letters, digits, `.`, `-` and `_`.
    TrustDomain,
    "a trust domain",
    |text| !text.is_empty()
        && text.len() <= 255
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_')),
    "use lower-case letters, digits, `.`, `-` and `_`, without `spiffe://`",
    "^[a-z0-9._-]{1,255}$"
);
word!(
    /// The name of a port, for example `http`; a DNS label so that it can be part of Kubernetes names.
    PortName,
    "the name of a port",
    is_label,
    "use at most 63 lower-case letters, digits and `-`, beginning and ending with a letter or digit",
    LABEL
);
word!(
    /// The name of a region, zone or network, for example `us-east-1`.
    Location,
    "the name of a region, zone or network",
    |text| !text.is_empty()
        && text.len() <= 63
        && text != "same"
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')),
    "use at most 63 letters, digits, `-`, `_` and `.`; `same` is a reserved word",
    "^[A-Za-z0-9._-]{1,63}$"
);
word!(
    /// The version of a mesh: `1.30` or `1.30.2`.
    MeshVersion,
    "a version",
    |text| {
        let parts: Vec<&str> = text.split('.').collect();
        (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit()))
    },
    "write a version such as \"1.30\" or \"1.30.2\", in quotes",
    "^[0-9]{1,4}\\.[0-9]{1,4}(\\.[0-9]{1,4})?$"
);
word!(
    /// A kubeconfig context.
    ContextName,
    "the name of a kubeconfig context",
    |text| !text.is_empty() && text.len() <= 1024 && !text.chars().any(char::is_control),
    "write the name as `kubectl config get-contexts` prints it",
    "^.+$"
);
word!(
    /// An HTTP method, for example `GET` (RFC 9110 section 9.1: a token; here upper-case letters).
    Method,
    "an HTTP method",
    |text| !text.is_empty() && text.len() <= 32 && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'),
    "write the method in upper case, for example GET",
    "^[A-Z-]{1,32}$"
);
word!(
    /// The name of an HTTP header (RFC 9110 section 5.1: a token), in lower case as HTTP/2 carries it.
    HeaderName,
    "the name of a header",
    |text| !text.is_empty()
        && text.len() <= 128
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b)),
    "write the name in lower case, without a colon; to match the path or method use `path` and `method`",
    "^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$"
);
word!(
    /// The name of a query parameter.
    QueryName,
    "the name of a query parameter",
    |text| !text.is_empty() && text.len() <= 256 && !text.chars().any(|c| c.is_control() || c.is_whitespace()),
    "write the name as it stands in the URL",
    "^[^\\s]+$"
);

/// A host name in lower case, for example `user.mesh.bank.example`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Arc<str>);

impl HostName {
    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in lower case, shared.
    #[must_use]
    pub fn text(&self) -> Arc<str> {
        self.0.clone()
    }

    /// Builds the name if `text` is a DNS name of at least two labels; capitals become small letters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        (lower.contains('.') && lower.len() <= 240 && lower.split('.').all(is_label)).then(|| Self(lower.into()))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Decode for HostName {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = text(node, "a string: a host name", found)?;
        if let Some(name) = Self::parse(text) {
            return if text.parse::<std::net::IpAddr>().is_ok() {
                bad_value(node.place, "an IP address is not a host name", "write the name that callers use", found)
            } else {
                Some(name)
            };
        }
        let help = if text.contains('*') {
            "a wildcard has no address of its own: list each host name"
        } else {
            "write a DNS name with at least one dot and at most 240 characters, for example user.mesh.bank.example"
        };
        bad_value(node.place, format!("\"{}\" is not a host name", short(text)), help, found)
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "maxLength": 240, "pattern": "^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)+$"})
    }
}

/// A host name, or `*.` and a domain, where `*` stands for one or more labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Whether the pattern admits the name.
    #[must_use]
    pub fn admits(&self, name: &HostName) -> bool {
        match self.0.strip_prefix('*') {
            Some(suffix) => name.as_str().len() > suffix.len() && name.as_str().ends_with(suffix),
            None => self.0 == name.as_str(),
        }
    }

    /// The pattern as it was written, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Decode for HostPattern {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = text(node, "a string: a host name or `*.` and a domain", found)?.to_ascii_lowercase();
        let domain = text.strip_prefix("*.").unwrap_or(&text);
        if !domain.is_empty() && domain.len() <= 250 && domain.split('.').all(is_label) {
            return Some(Self(text));
        }
        bad_value(
            node.place,
            format!("\"{}\" is not a host name pattern", short(&text)),
            "write a host name, or `*.` and a domain",
            found,
        )
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "pattern": "^(\\*\\.)?[A-Za-z0-9.-]+$"})
    }
}

/// Where a gateway listens: an IP address, or a host name that is looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IPv4 or IPv6 address.
    Ip(std::net::IpAddr),
    /// A DNS name.
    Name(HostName),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Decode for Address {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let text = text(node, "a string: an IP address or a host name", found)?;
        if let Ok(ip) = text.parse::<std::net::IpAddr>() {
            let ip = ip.to_canonical();
            let beside = match ip {
                std::net::IpAddr::V4(ip) => ip.is_link_local(),
                std::net::IpAddr::V6(ip) => ip.is_unicast_link_local(),
            };
            if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || beside {
                return bad_value(
                    node.place,
                    format!("no gateway can be reached at {ip}"),
                    "write the address of the gateway's load balancer",
                    found,
                );
            }
            return Some(Self::Ip(ip));
        }
        // `1.2.3.400` would pass for a host name.
        let numeric = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        match HostName::parse(text.trim_end_matches('.')).filter(|_| !numeric) {
            Some(name) => Some(Self::Name(name)),
            None => bad_value(
                node.place,
                format!("\"{}\" is neither an IP address nor a host name", short(text)),
                "write the address of the gateway's load balancer, without port or scheme",
                found,
            ),
        }
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string"})
    }
}

/// One value or a list of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMore<T>(pub Vec<T>);

impl<T: Decode> Decode for OneOrMore<T> {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Seq(_) => Vec::decode(node, found).map(Self),
            _ => T::decode(node, found).map(|value| Self(vec![value])),
        }
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        let one = T::schema(definitions);
        json!({"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]})
    }
}

/// Reads a whole number within bounds.
fn number(node: &Node, bounds: std::ops::RangeInclusive<i64>, found: &mut Diagnostics) -> Option<i64> {
    match &node.value {
        Value::Int(number) if bounds.contains(number) => Some(*number),
        Value::Int(_) | Value::Float(_) => bad_value(
            node.place,
            format!("expected a whole number from {} to {}", bounds.start(), bounds.end()),
            "write a number within these bounds",
            found,
        ),
        Value::Ambiguous(_, what) => bad_value(
            node.place,
            format!("expected a whole number, found a plain word that is {what}"),
            "write the number in decimal digits, without leading zeros, signs or underscores",
            found,
        ),
        Value::Refused => None,
        _ => {
            let message = format!("expected a whole number, found {}", node.kind());
            found.push(
                crate::diagnostic::Diagnostic::new(&crate::diagnostic::codes::WRONG_TYPE, node.place, message)
                    .help("write digits only, without quotes or a unit"),
            );
            None
        }
    }
}

/// Declares a whole number within bounds.
macro_rules! bounded {
    ($(#[doc = $doc:literal])* $name:ident, $inner:ty, $min:literal, $max:literal) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl Decode for $name {
            fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
                let number = number(node, $min..=$max, found)?;
                <$inner>::try_from(number).ok().map(Self)
            }

            fn schema(_: &mut Object<String, Json>) -> Json {
                json!({"type": "integer", "minimum": $min, "maximum": $max})
            }
        }
    };
}

bounded!(
    /// A port number, 1 to 65535.
    Port, u16, 1, 65535
);
bounded!(
    /// A share in whole per cent, 1 to 100.
    Percent, u8, 1, 100
);
bounded!(
    /// A count, 1 to 1000000.
    Count, u32, 1, 1_000_000
);
bounded!(
    /// How often a request is tried again, 0 (never) to 10.
    Attempts, u8, 0, 10
);
bounded!(
    /// The status of an answer, 200 to 599.
    HttpStatus, u16, 200, 599
);

/// A length of time, in milliseconds: `500ms`, `5s`, `2m`, `1h`, and sums of them (`1m30s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Duration {
    /// Builds a duration; zero and everything over a day are refused, as is a fraction of a millisecond.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            let amount: u64 = rest[..end].parse().ok()?;
            let unit = rest[end..].split(|c: char| c.is_ascii_digit()).next()?;
            let factor = match unit {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                _ => return None,
            };
            total = total.checked_add(amount.checked_mul(factor)?)?;
            rest = &rest[end + unit.len()..];
        }
        (1..=86_400_000).contains(&total).then_some(Self(total))
    }
}

/// Whole seconds in seconds, everything else in milliseconds: both Istio and Go read it back unchanged.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) { write!(f, "{}s", self.0 / 1000) } else { write!(f, "{}ms", self.0) }
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Decode for Duration {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        const EXPECTED: &str = "a duration such as 500ms, 5s or 2m";
        let help = "write a number and a unit (ms, s, m, h), more than zero and at most 24h";
        if matches!(node.value, Value::Int(_) | Value::Float(_)) {
            return bad_value(node.place, format!("expected {EXPECTED}, found a number without a unit"), help, found);
        }
        let text = text(node, "a string: a duration such as 500ms, 5s or 2m", found)?;
        Self::parse(text)
            .or_else(|| bad_value(node.place, format!("\"{}\" is not {EXPECTED}", short(text)), help, found))
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"})
    }
}

/// A length of time in whole seconds, where what is configured counts no smaller parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub Duration);

impl Decode for Seconds {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let duration = Duration::decode(node, found)?;
        if !duration.0.is_multiple_of(1000) {
            return bad_value(node.place, "a part of a second", "write whole seconds, for example 2s", found);
        }
        Some(Self(duration))
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        Duration::schema(definitions)
    }
}

/// Labels by key; shared by everything that carries or chooses them.
pub type LabelMap = Arc<BTreeMap<Arc<str>, Arc<str>>>;

/// Labels, as Kubernetes has them: keys with an optional prefix, values of at most 63 characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(pub LabelMap);

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(labels: I) -> Self {
        Self(Arc::new(labels.into_iter().collect()))
    }
}

impl Labels {
    /// Whether every entry of `wanted` is an entry of these labels.
    #[must_use]
    pub fn contain(&self, wanted: &Self) -> bool {
        wanted.0.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }
}

fn is_qualified_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
}

fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_word(name),
        None => is_qualified_word(text),
    }
}

/// One entry of a label map, checked.
pub(super) fn label(entry: &Entry, found: &mut Diagnostics) -> Option<(Arc<str>, Arc<str>)> {
    let key = if is_label_key(&entry.key) {
        Some(Arc::from(&*entry.key))
    } else {
        bad_value(
            entry.place,
            format!("\"{}\" is not a label key", short(&entry.key)),
            "use at most 63 letters, digits, `-`, `_` and `.`, with an optional DNS prefix and `/`",
            found,
        )
    };
    let value = text(&entry.node, "a string: a label value", found)?;
    if !value.is_empty() && !is_qualified_word(value) {
        return bad_value(
            entry.node.place,
            format!("\"{}\" is not a label value", short(value)),
            "use at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit",
            found,
        );
    }
    key.map(|key| (key, Arc::from(value)))
}

impl Decode for Labels {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return super::decode::wrong_type(node, "a map of labels", found);
        };
        let labels: Vec<_> = entries.iter().map(|entry| label(entry, found)).collect();
        labels.into_iter().collect()
    }

    fn schema(_: &mut Object<String, Json>) -> Json {
        json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}})
    }
}

/// Labels that choose workloads: at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(pub Labels);

impl Decode for Selector {
    fn decode(node: &Node, found: &mut Diagnostics) -> Option<Self> {
        let labels = Labels::decode(node, found)?;
        if labels.0.is_empty() {
            return bad_value(
                node.place,
                "a selector without labels would choose every workload",
                "name at least one label",
                found,
            );
        }
        Some(Self(labels))
    }

    fn schema(definitions: &mut Object<String, Json>) -> Json {
        let mut schema = Labels::schema(definitions);
        schema["minProperties"] = json!(1);
        schema
    }
}
