//! The rules of a policy as they are written: one per set of callers, so that setting a rule again edits it.

use crate::verdict::{self, Answer};
use anyhow::bail;
use mesh::World;
use mesh::fleet::{Clusters, ServiceId};
use mesh::source::{Node, Value as Read};
use mesh_kit::author::value::Value;
use mesh_kit::author::words;
use mesh_kit::table::Rows;
use std::collections::{BTreeMap, BTreeSet};

/// The rules of a document.
pub(crate) fn of(node: Option<&Node>) -> anyhow::Result<Vec<Value>> {
    let allow = node.and_then(|node| node.get("spec")).and_then(|spec| spec.get("allow"));
    match allow.map(|allow| &allow.value) {
        None => Ok(Vec::new()),
        Some(Read::Seq(rules)) => {
            let rules: Option<Vec<Value>> = rules.iter().map(Value::of).collect();
            rules.map_or_else(|| bail!("`spec.allow` holds an empty rule; mend it first"), Ok)
        }
        Some(_) => bail!("`spec.allow` is not a list; mend it first"),
    }
}

/// The callers that flags name: `dependents`, or a short form of a caller.
pub(crate) fn callers(callers: &[String], accounts: &[String]) -> anyhow::Result<Value> {
    let mut list = Vec::new();
    for caller in callers {
        list.push(if caller == "dependents" { Value::text("dependents") } else { words::caller(caller, "service")? });
    }
    for account in accounts {
        list.push(words::caller(account, "serviceAccount")?);
    }
    Ok(Value::List(list))
}

/// Whether a rule is the one about these callers.
pub(crate) fn is_about(rule: &Value, callers: &Value) -> bool {
    matches!(rule, Value::Map(fields) if fields.iter().any(|(key, value)| key == "from" && value == callers))
}

/// Which calls are answered in another way after a change: `-` before, `+` after.
pub(crate) fn effect(before: &World, after: &World) -> String {
    // A question about every caller is expensive in a large fleet: it is asked only where rules changed.
    let (old, new) = (signatures(before), signatures(after));
    let changed = |name: &String| old.get(name) != new.get(name);
    let (old, new) = (answers(before, changed), answers(after, changed));
    let mut table = Rows::new(&["CLUSTER", "CALLER", "SERVICE", "IN", "BEFORE", "AFTER"]);
    let calls: BTreeSet<&Call> = old.keys().chain(new.keys()).collect();
    for call in calls {
        let word = |answers: &Answers| answers.get(call).copied();
        let (old, new) = (word(&old), word(&new));
        // Only one side knows services that differ there; what is said of neither did not change.
        if let (Some(old), Some(new)) = (old, new)
            && old != new
        {
            let (service, copy, cluster, caller) = call.clone();
            table.push([cluster, caller, service, copy, old.to_owned(), new.to_owned()]);
        }
    }
    if table.is_empty() { String::new() } else { table.render(true) }
}

/// Service, the cluster of its copy, the caller's cluster, the caller.
type Call = (String, String, String, String);
type Answers = BTreeMap<Call, &'static str>;

/// What the copies of each service grant, in a form that can be compared.
fn signatures(world: &World) -> BTreeMap<String, String> {
    let (fleet, access) = (&world.effective.fleet, &world.effective.access);
    let of = |id: ServiceId| {
        let copies = fleet.service(id).runs;
        let grants =
            copies.iter().flat_map(|copy| access.grants(fleet, id, copy).into_iter().map(move |grant| (copy, grant)));
        let grants: Vec<_> = grants.map(|(copy, grant)| (copy, grant.conditions, grant.identities)).collect();
        format!("{:?} {copies:?} {grants:?}", access.service(id).mode)
    };
    fleet.service_ids().map(|(id, service)| (format!("{}/{}", service.namespace, service.name), of(id))).collect()
}

/// The answers of all copies of some services.
fn answers(world: &World, wanted: impl Fn(&String) -> bool) -> Answers {
    let fleet = &world.effective.fleet;
    let mut answers = Answers::new();
    let services =
        fleet.service_ids().map(|(id, service)| (id, service, format!("{}/{}", service.namespace, service.name)));
    for (id, service, name) in services.filter(|(.., name)| wanted(name)) {
        let copies: Clusters = service.runs;
        for copy in copies.iter() {
            for verdict in verdict::copy(world, id, copy).callers {
                let caller = &verdict.caller.caller;
                let word = match (verdict::answer(world, id), verdict.allowed) {
                    (Answer::Open, _) => "open",
                    (Answer::Audit, _) if verdict.rules.is_empty() => "audit",
                    (_, false) => "no",
                    (_, true) if verdict.rules.iter().any(verdict::Rule::is_unconditional) => "yes",
                    (_, true) => "partly",
                };
                let call = (
                    name.clone(),
                    fleet.cluster(copy).name.to_string(),
                    caller.cluster.clone(),
                    format!("{}/{}", caller.namespace, caller.service),
                );
                answers.insert(call, word);
            }
        }
    }
    answers
}
