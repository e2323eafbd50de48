//! What one copy of a service answers to one caller, with the rules that say so.

use mesh::World;
use mesh::explain::{Caller, Service, file_of};
use mesh::fleet::{ClusterId, ServiceId, ServicePort};
use mesh::intent::access::Mode;
use serde::Serialize;

/// What one copy answers to all callers: one element of `who-can -o json`.
#[derive(Debug, Serialize)]
pub struct Copy {
    /// The called service.
    pub service: Service,
    /// The cluster of the called copy.
    pub cluster: String,
    /// What happens to calls that no rule allows.
    pub mode: Answer,
    /// Every copy of every service of the fleet, as a caller.
    pub callers: Vec<Verdict>,
}

/// What happens to calls that no rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// They are refused.
    Enforce,
    /// They are logged and go on.
    Audit,
    /// No policy holds: everyone may call.
    Open,
}

/// The answer to one caller.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// Who calls.
    pub caller: Identified,
    /// Whether at least one of its requests passes.
    pub allowed: bool,
    /// The rules that admit it; none where everyone may call, and where nobody allows it.
    pub rules: Vec<Rule>,
}

impl Verdict {
    /// The answer in a word: `yes`, `no`, `partly` (only some requests), `open` (no policy holds) or `audit` (no rule
    /// allows it, which is only logged).
    #[must_use]
    pub fn word(&self, mode: Answer) -> &'static str {
        match mode {
            Answer::Open => "open",
            Answer::Audit if self.rules.is_empty() => "audit",
            _ if !self.allowed => "no",
            _ if self.rules.iter().any(Rule::is_unconditional) => "yes",
            _ => "partly",
        }
    }
}

/// A caller and the account under which it runs.
#[derive(Debug, Serialize)]
pub struct Identified {
    /// Its cluster, namespace and name.
    #[serde(flatten)]
    pub caller: Caller,
    /// Its service account in that cluster.
    #[serde(rename = "serviceAccount")]
    pub account: String,
}

/// A rule that admits a caller; a list that is empty is no condition.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// The service's ports.
    pub ports: Vec<u16>,
    /// Methods.
    pub methods: Vec<String>,
    /// Paths.
    pub paths: Vec<String>,
    /// The document that says so.
    pub document: String,
    /// Its file, relative to the path that was named.
    pub file: String,
    /// The line of the rule.
    pub line: u32,
}

/// What is known of a request; absent: anything.
#[derive(Debug)]
pub struct Request<'a> {
    /// The port of the service.
    pub port: Option<&'a ServicePort>,
    /// Its method.
    pub method: Option<&'a str>,
    /// Its path, without a query.
    pub path: Option<&'a str>,
}

impl Rule {
    /// Whether it admits every request.
    pub fn is_unconditional(&self) -> bool {
        self.ports.is_empty() && self.methods.is_empty() && self.paths.is_empty()
    }

    /// Whether it admits a request of which this much is known.
    pub fn may_admit(&self, request: &Request<'_>) -> bool {
        let Request { port, method, path } = request;
        let fits = |pattern: &String, path: &str| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
            (Some(begin), _) => path.starts_with(begin),
            (None, Some(end)) => path.ends_with(end),
            (None, None) => pattern == path,
        };
        // Connections without requests have no methods and paths.
        let about_requests = !self.methods.is_empty() || !self.paths.is_empty();
        port.is_none_or(|port| self.ports.is_empty() || self.ports.contains(&port.number))
            && port.is_none_or(|port| port.protocol.is_http() || !about_requests)
            && method.is_none_or(|method| self.methods.is_empty() || self.methods.iter().any(|known| known == method))
            && path.is_none_or(|path| self.paths.is_empty() || self.paths.iter().any(|known| fits(known, path)))
    }

    /// What it asks of requests: `ports 8080, methods GET`.
    pub fn conditions(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        let parts = [("ports", ports.join(" ")), ("methods", self.methods.join(" ")), ("paths", self.paths.join(" "))];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        parts.map(|(name, values)| format!("{name} {values}")).collect::<Vec<_>>().join(", ")
    }
}

/// What happens to calls of a service that no rule allows.
pub fn answer(world: &World, service: ServiceId) -> Answer {
    match world.effective.access.service(service).mode {
        Some(Mode::Enforce) => Answer::Enforce,
        Some(Mode::Audit) => Answer::Audit,
        None => Answer::Open,
    }
}

/// What one copy answers to all callers.
pub fn copy(world: &World, service: ServiceId, cluster: ClusterId) -> Copy {
    let fleet = &world.effective.fleet;
    let callers = fleet
        .service_ids()
        .flat_map(|(caller, calling)| calling.runs.iter().map(move |from| (caller, from)).collect::<Vec<_>>())
        .map(|(caller, from)| verdict(world, service, cluster, caller, from))
        .collect();
    let called = fleet.service(service);
    Copy {
        service: Service { namespace: called.namespace.to_string(), name: called.name.to_string() },
        cluster: fleet.cluster(cluster).name.to_string(),
        mode: answer(world, service),
        callers,
    }
}

/// What one copy answers to one caller.
pub fn verdict(world: &World, service: ServiceId, cluster: ClusterId, caller: ServiceId, from: ClusterId) -> Verdict {
    let fleet = &world.effective.fleet;
    let rules: Vec<Rule> = world
        .effective
        .access
        .admitted_by(fleet, service, cluster, caller, from)
        .into_iter()
        .map(|(origin, conditions)| Rule {
            ports: conditions.ports.into_iter().flatten().collect(),
            methods: conditions.methods.iter().map(ToString::to_string).collect(),
            paths: conditions.paths.into_iter().map(|path| path.0).collect(),
            document: fleet.document(origin).to_string(),
            file: file_of(&world.files, origin),
            line: origin.place.line,
        })
        .collect();
    let calling = fleet.service(caller);
    Verdict {
        caller: Identified {
            caller: Caller {
                cluster: fleet.cluster(from).name.to_string(),
                namespace: calling.namespace.to_string(),
                service: calling.name.to_string(),
            },
            account: calling.copy(from).account.to_string(),
        },
        allowed: answer(world, service) != Answer::Enforce || !rules.is_empty(),
        rules,
    }
}
