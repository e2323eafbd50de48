//! `can-i`: may this caller call this copy, and which document says so.

use anyhow::{Context, bail};
use mesh::World;
use mesh::explain::file_of;
use mesh::fleet::{Service, ServiceId};
use mesh::intent::types::Method;
use mesh_kit::input::{self, Input};
use mesh_kit::output::{self, Form};
use mesh_kit::run::{self, Outcome};
use mesh_kit::verdict::{self, Answer, Request, Rule, Verdict};

/// Say whether a caller may call a service in a cluster, and which document says so
#[derive(clap::Args)]
#[command(after_help = "\
Exit code: 0 yes, 1 no. A yes may hold for some requests only; --port, --method and --path ask about one request.

Examples:
  kubectl mesh authz can-i bank/account@eks bank/user --in cluster-2 -f fleet/
  kubectl mesh authz can-i bank/account@eks bank/user --in eks \\
    --port 8080 --method GET --path /v1/me -f fleet/
  kubectl mesh authz can-i bank/account@eks bank/user --in eks --quiet -f fleet/ && echo allowed")]
pub(crate) struct Args {
    /// The caller: NAMESPACE/NAME@CLUSTER
    #[arg(value_name = "CALLER")]
    caller: String,
    /// The called service: NAMESPACE/NAME
    #[arg(value_name = "SERVICE")]
    service: String,
    /// The cluster of the called copy
    #[arg(long = "in", value_name = "CLUSTER")]
    within: String,
    /// The namespace of services that are named without one
    #[arg(short, long)]
    namespace: Option<String>,
    /// The port of the request, as callers use it: a number or a name
    #[arg(long)]
    port: Option<String>,
    /// The method of the request
    #[arg(long)]
    method: Option<String>,
    /// The path of the request
    #[arg(long)]
    path: Option<String>,
    /// The form of the output
    #[arg(short, long, value_parser = output::ANSWER, default_value = "text")]
    output: Form,
    /// Print nothing; the exit code is the answer
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(input: &Input, args: &Args) -> Outcome {
    let world = input.right_world()?;
    let fleet = &world.effective.fleet;
    let namespace = args.namespace.as_deref();
    let (caller, from) = input::caller(fleet, &args.caller, namespace)?;
    let from =
        from.with_context(|| format!("\"{}\" does not say from where; write NAMESPACE/NAME@CLUSTER", args.caller))?;
    let service = input::service(fleet, &args.service, namespace)?;
    let copy = input::cluster(fleet, &args.within)?;
    for (id, cluster, text) in [(caller, from, &args.caller), (service, copy, &args.service)] {
        let (runs, place) = (fleet.service(id).runs, &fleet.cluster(cluster).name);
        if !runs.contains(cluster) {
            let names: Vec<&str> = runs.iter().map(|id| fleet.cluster(id).name.as_str()).collect();
            return Err(anyhow::anyhow!("{text} does not run in {place}; it runs in {}", names.join(", ")).into());
        }
    }
    let request = request(args, fleet.service(service))?;
    let mut verdict = verdict::verdict(&world, service, copy, caller, from);
    let answer = verdict::answer(&world, service);
    verdict.rules.retain(|rule| rule.may_admit(&request));
    verdict.allowed = answer != Answer::Enforce || !verdict.rules.is_empty();
    if !args.quiet {
        let text = args.output.of(&verdict)?.unwrap_or_else(|| explain(&world, service, answer, &verdict, args));
        run::print(&text)?;
    }
    Ok(u8::from(!verdict.allowed))
}

/// The request that is asked about. One that no client can send has no answer, and "yes" would be wrong.
fn request<'a>(args: &'a Args, service: &'a Service) -> anyhow::Result<Request<'a>> {
    let Args { port, method, path, .. } = args;
    let called = || format!("{}/{}", service.namespace, service.name);
    let ports = || {
        let ports = service.ports.iter();
        ports
            .map(|port| format!("{} {} ({})", port.name, port.number, port.protocol.as_str()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let known = |text: &String| {
        let found = service.ports.iter().find(|port| port.name.as_str() == text || port.number.to_string() == *text);
        found.with_context(|| format!("{} has no port \"{text}\"; it has {}", called(), ports()))
    };
    let port = port.as_ref().map(known).transpose()?;
    if let Some(method) = method.as_ref().filter(|method| Method::parse(method).is_none()) {
        bail!("\"{method}\" is not an HTTP method; write it in upper case, for example GET");
    }
    let is_path =
        |path: &str| path.starts_with('/') && !path.contains(['?', '#']) && !path.contains(char::is_whitespace);
    if let Some(path) = path.as_ref().filter(|path| !is_path(path)) {
        bail!("\"{path}\" is not a path; write it from its first `/` and without its query, for example /v1/orders");
    }
    let requests = port.map_or(service.speaks_http(), |port| port.protocol.is_http());
    if !requests && (method.is_some() || path.is_some()) {
        bail!("connections to {} have no methods and paths: its ports are {}", called(), ports());
    }
    Ok(Request { port, method: method.as_deref(), path: path.as_deref() })
}

fn explain(world: &World, service: ServiceId, answer: Answer, verdict: &Verdict, args: &Args) -> String {
    let said = |rule: &Rule| format!("{} ({}:{})", rule.document, rule.file, rule.line);
    // The rule that admits the most is the one to name.
    let rule = verdict.rules.iter().find(|rule| rule.is_unconditional()).or(verdict.rules.first());
    match (rule, answer) {
        (Some(rule), _) => {
            let conditions = rule.conditions();
            let only = if conditions.is_empty() { String::new() } else { format!(", only {conditions}") };
            format!("yes - {} allows it{only}\n", said(rule))
        }
        (None, Answer::Open) => {
            "yes - no AccessPolicy holds for the service: everyone in the mesh may call it\n".to_owned()
        }
        (None, Answer::Audit) => format!("yes - {} only audits: the call is logged\n", origin(world, service)),
        (None, Answer::Enforce) => {
            let request =
                if args.port.is_some() || args.method.is_some() || args.path.is_some() { "this" } else { "any" };
            format!(
                "no - {} does not allow {request} request of the caller in {}\n",
                origin(world, service),
                args.within
            )
        }
    }
}

/// The policy that decides, and where it begins to allow.
fn origin(world: &World, service: ServiceId) -> String {
    let fleet = &world.effective.fleet;
    world.effective.access.origin(fleet, service).map_or_else(
        || "the access policy".to_owned(),
        |origin| format!("{} ({}:{})", fleet.document(origin), file_of(&world.files, origin), origin.place.line),
    )
}
