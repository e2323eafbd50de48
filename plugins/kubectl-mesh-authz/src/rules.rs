//! The rules of a policy as they are written: one per set of callers, so that setting a rule again edits it.

use anyhow::bail;
use mesh::source::{Node, Value as Read};
use mesh_kit::author::value::Value;
use mesh_kit::author::words;

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
