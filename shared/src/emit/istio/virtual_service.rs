//! VirtualServices: which requests of which caller go to which lanes. One per host name, because the oldest of several
//! would win in silence.

use super::View;
use super::plan::{CallerPlan, Front, Plan, RoutePlan};
use crate::fleet::ServicePort;
use crate::intent::service::Protocol;
use crate::intent::traffic::{self, Conditions, RequestMatch, Unit, ValueMatch};
use crate::intent::types::Method;
use crate::manifest::istio::{
    Abort, ConnectionMatch, CorsPolicy, Delay, Destination, DirectResponse, Fault, HeaderOperations, Headers,
    HttpMatch, HttpRoute, Percentage, PortNumber, Retries, StringMatch, TcpRoute, TlsMatch, TlsRoute, VirtualService,
    WeightedDestination,
};
use crate::manifest::{Body, Object};
use std::collections::BTreeMap;

/// Methods that may be repeated without a second effect (RFC 9110 section 9.2.2).
const REPEATABLE: &str = "DELETE|GET|HEAD|OPTIONS|PUT|TRACE";
/// After these failures a repeatable request is tried again.
const RETRY_REPEATABLE: &str = "connect-failure,refused-stream,reset,unavailable,503";
/// After these failures any request is tried again: nobody has begun to work on it
/// (`reset-before-request`: Istio 1.24 and newer, istio/istio#52032).
const RETRY_ANY: &str = "connect-failure,refused-stream,reset-before-request";
/// gRPC calls are all POST; `unavailable` is the status that says "try again" (grpc.github.io, status codes).
const RETRY_GRPC: &str = "connect-failure,refused-stream,reset-before-request,unavailable";
/// Built in, where no policy says otherwise.
const ATTEMPTS: u8 = 2;

pub(super) fn render(view: View<'_>, plan: &Plan<'_>, objects: &mut Vec<Object>) {
    for front in &plan.fronts {
        let service = virtual_service(view, plan, front);
        if service.http.is_empty() && service.tls.is_empty() && service.tcp.is_empty() {
            continue;
        }
        objects.push(Object::new(
            view.home(plan.provider),
            front.name.clone(),
            plan.intents.clone(),
            Body::VirtualService(service),
        ));
    }
}

fn virtual_service(view: View<'_>, plan: &Plan<'_>, front: &Front) -> VirtualService {
    let mut service = VirtualService {
        hosts: [front.name.clone()],
        export_to: plan.namespaces.clone(),
        http: Vec::new(),
        tls: Vec::new(),
        tcp: Vec::new(),
    };
    // A cluster-local name keeps its plain meaning for everyone who declared nothing.
    let tell_apart = !plan.uniform || front.local;
    let callers = if tell_apart { plan.callers.as_slice() } else { &plan.callers[..1] };
    for caller in callers {
        let source = if tell_apart { source(view, caller) } else { Default::default() };
        for port in &plan.service.ports {
            match port.protocol {
                Protocol::Http | Protocol::Http2 | Protocol::Grpc => {
                    // The Kubernetes Service may have ports that are none of ours.
                    let on = (plan.service.ports.len() > 1 || front.local).then_some(port.number);
                    for route in &caller.routes {
                        http_routes(
                            view,
                            plan,
                            front,
                            port,
                            route,
                            &HttpMatch { port: on, ..source.clone() },
                            &mut service.http,
                        );
                    }
                }
                Protocol::Tls | Protocol::Tcp => {
                    connection_route(front, port, caller, source.clone(), tell_apart, &mut service);
                }
            }
        }
    }
    service
}

/// The pods of a caller.
fn source(view: View<'_>, caller: &CallerPlan) -> HttpMatch {
    let service = view.effective.fleet.service(caller.caller);
    HttpMatch {
        source_namespace: Some(service.namespace.text()),
        source_labels: Some(service.copy(view.cluster).selector.0.0.clone()),
        ..HttpMatch::default()
    }
}

fn destinations(front: &Front, port: &ServicePort, route: &RoutePlan) -> Vec<WeightedDestination> {
    let several = route.split.len() > 1;
    route
        .split
        .iter()
        .map(|(lane, weight)| WeightedDestination {
            destination: destination(front, *lane, port),
            weight: several.then_some(*weight),
        })
        .collect()
}

fn destination(front: &Front, lane: usize, port: &ServicePort) -> Destination {
    Destination { host: front.lane_hosts[lane].clone(), port: PortNumber { number: port.number } }
}

/// The routes of one kind of request on one port: repeatable methods may be tried again after more failures.
fn http_routes(
    view: View<'_>,
    plan: &Plan<'_>,
    front: &Front,
    port: &ServicePort,
    route: &RoutePlan,
    source: &HttpMatch,
    routes: &mut Vec<HttpRoute>,
) {
    let matches: Vec<RequestMatch> =
        if route.matches.is_empty() { vec![RequestMatch::default()] } else { route.matches.clone() };
    if route.split.is_empty() {
        let matches = matches.iter().map(|request| http_match(source, request)).collect();
        routes.push(HttpRoute {
            matches,
            direct_response: Some(DirectResponse { status: 503 }),
            ..HttpRoute::default()
        });
        return;
    }
    let base = requests(view, plan, front, port, route);
    let attempts = base.retries.as_ref().map_or(0, |retries| retries.attempts);
    let one = |retry_on: &'static str, matches: Vec<HttpMatch>| {
        let mut route = HttpRoute { matches, ..base.clone() };
        if let Some(retries) = route.retries.as_mut().filter(|retries| retries.attempts > 0) {
            retries.retry_on = Some(retry_on);
        }
        route.matches.retain(|request| *request != HttpMatch::default());
        route
    };
    let all =
        |requests: &[RequestMatch]| requests.iter().map(|request| http_match(source, request)).collect::<Vec<_>>();
    if port.protocol == Protocol::Grpc || attempts == 0 {
        routes.push(one(RETRY_GRPC, all(&matches)));
        return;
    }
    let repeatable: Vec<HttpMatch> = matches
        .iter()
        .filter_map(|request| match &request.method {
            None => {
                let method = Some(StringMatch::Regex(REPEATABLE.into()));
                Some(HttpMatch { method, ..http_match(source, request) })
            }
            Some(method) if is_repeatable(method) => Some(http_match(source, request)),
            Some(_) => None,
        })
        .collect();
    let others: Vec<RequestMatch> = matches
        .iter()
        .filter(|request| request.method.as_ref().is_none_or(|method| !is_repeatable(method)))
        .cloned()
        .collect();
    if !repeatable.is_empty() {
        routes.push(one(RETRY_REPEATABLE, repeatable));
    }
    if !others.is_empty() {
        routes.push(one(RETRY_ANY, all(&others)));
    }
}

fn is_repeatable(method: &Method) -> bool {
    REPEATABLE.split('|').any(|repeatable| repeatable == method.as_str())
}

/// What holds for requests, whatever their method.
fn requests(view: View<'_>, plan: &Plan<'_>, front: &Front, port: &ServicePort, route: &RoutePlan) -> HttpRoute {
    let fleet = &view.effective.fleet;
    let policy = |unit: Unit| route.units.policy(unit).map(|policy| policy.of(fleet));
    let remote =
        route.split.iter().any(|(lane, _)| plan.lanes[*lane].clusters().any(|cluster| cluster != view.cluster));
    let written = policy(Unit::Retries).and_then(|policy| policy.retries.as_ref());
    let attempts = written.map_or(ATTEMPTS, |retries| retries.attempts.0);
    HttpRoute {
        matches: Vec::new(),
        route: destinations(front, port, route),
        direct_response: None,
        timeout: policy(Unit::Timeout).and_then(|policy| policy.timeout),
        retries: Some(Retries {
            attempts: u32::from(attempts),
            per_try_timeout: written
                .and_then(|retries| retries.per_try_timeout.as_ref())
                .filter(|_| attempts > 0)
                .map(|timeout| timeout.value),
            retry_on: None,
            retry_remote_localities: (remote && attempts > 0).then_some(true),
        }),
        fault: policy(Unit::Fault).and_then(|policy| policy.fault.as_ref()).map(fault),
        mirror: route.mirror.map(|(lane, _)| destination(front, lane, port)),
        mirror_percentage: route.mirror.map(|(_, percent)| Percentage { value: percent }),
        cors_policy: policy(Unit::Cors).and_then(|policy| policy.cors.as_ref()).map(cors),
        headers: policy(Unit::Headers).and_then(|policy| policy.headers.as_ref()).map(headers),
    }
}

fn connection_route(
    front: &Front,
    port: &ServicePort,
    caller: &CallerPlan,
    source: HttpMatch,
    tell_apart: bool,
    service: &mut VirtualService,
) {
    // Without a lane there is no route, and behind the name there is nobody.
    let Some(base) = caller.routes.last().filter(|base| !base.split.is_empty()) else { return };
    // Where the name itself is the only lane, connections find it without a route.
    let itself = base.split.len() == 1 && front.lane_hosts[base.split[0].0] == front.name;
    if itself && !tell_apart {
        return;
    }
    let connection = ConnectionMatch {
        port: port.number,
        source_namespace: source.source_namespace,
        source_labels: source.source_labels,
    };
    let route = destinations(front, port, base);
    match port.protocol {
        Protocol::Tls => service
            .tls
            .push(TlsRoute { matches: vec![TlsMatch { sni_hosts: [front.name.clone()], connection }], route }),
        Protocol::Tcp | Protocol::Http | Protocol::Http2 | Protocol::Grpc => {
            service.tcp.push(TcpRoute { matches: vec![connection], route });
        }
    }
}

fn http_match(source: &HttpMatch, request: &RequestMatch) -> HttpMatch {
    fn conditions<K: std::fmt::Display>(conditions: &Conditions<K>) -> BTreeMap<String, StringMatch> {
        conditions.0.iter().map(|(name, value)| (name.to_string(), value_match(value))).collect()
    }
    let RequestMatch { path, headers, query, method } = request;
    HttpMatch {
        method: method.as_ref().map(|method| StringMatch::Exact(method.as_str().to_owned().into())),
        uri: path.as_ref().map(string_match),
        headers: conditions(headers),
        query_params: conditions(query),
        ..source.clone()
    }
}

fn string_match(value: &traffic::StringMatch) -> StringMatch {
    match value {
        traffic::StringMatch::Exact(text) => StringMatch::Exact(text.clone().into()),
        traffic::StringMatch::Prefix(text) => StringMatch::Prefix(text.clone().into()),
        traffic::StringMatch::Regex(text) => StringMatch::Regex(text.clone().into()),
    }
}

/// Presence as an expression that every value fits: an empty `exact` would match nothing.
fn value_match(value: &ValueMatch) -> StringMatch {
    match value {
        ValueMatch::Text(text) => string_match(text),
        ValueMatch::Present => StringMatch::Regex(".*".into()),
    }
}

fn fault(fault: &traffic::Fault) -> Fault {
    let traffic::Fault { delay, abort, place: _ } = fault;
    Fault {
        delay: delay
            .as_ref()
            .map(|delay| Delay { percentage: Percentage { value: delay.percent.0 }, fixed_delay: delay.duration }),
        abort: abort
            .as_ref()
            .map(|abort| Abort { percentage: Percentage { value: abort.percent.0 }, http_status: abort.status.0 }),
    }
}

fn cors(cors: &traffic::Cors) -> CorsPolicy {
    let traffic::Cors {
        allow_origins,
        allow_methods,
        allow_headers,
        expose_headers,
        max_age,
        allow_credentials,
        place: _,
    } = cors;
    let texts = |list: &Option<Vec<traffic::HeaderText>>| list.iter().flatten().map(|text| text.0.clone()).collect();
    CorsPolicy {
        allow_origins: allow_origins.iter().flatten().map(string_match).collect(),
        allow_methods: allow_methods.iter().flatten().map(ToString::to_string).collect(),
        allow_headers: texts(allow_headers),
        expose_headers: texts(expose_headers),
        max_age: max_age.map(|age| age.0),
        allow_credentials: *allow_credentials,
    }
}

fn headers(headers: &traffic::Headers) -> Headers {
    let traffic::Headers { request, response, place: _ } = headers;
    Headers { request: request.as_ref().map(operations), response: response.as_ref().map(operations) }
}

/// Envoy fills in what stands between two `%` (custom request and response headers); doubled, it is the character.
fn literal(value: &str) -> String {
    value.replace('%', "%%")
}

fn operations(changes: &traffic::HeaderChanges) -> HeaderOperations {
    let traffic::HeaderChanges { set, add, remove, place: _ } = changes;
    let values = |values: &Option<traffic::HeaderValues>| -> BTreeMap<String, String> {
        values.iter().flat_map(|values| &values.0).map(|(name, value)| (name.0.clone(), literal(value))).collect()
    };
    HeaderOperations {
        set: values(set),
        add: values(add),
        remove: remove.iter().flatten().map(|name| name.0.clone()).collect(),
    }
}
