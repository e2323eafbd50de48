//! `explain`: the rows of the effective fleet as a table, with the document and line behind each decision.

use crate::table::Rows;
use mesh::explain::{Caller, Match, Row, Service};

/// The headers of the columns that say whose calls a row is about; `matched` adds which ones of them.
#[must_use]
pub fn headers_of_calls(matched: bool) -> Vec<&'static str> {
    let mut names = vec!["CLUSTER", "CALLER", "SERVICE"];
    names.extend(matched.then_some("MATCH"));
    names
}

/// The cells below these headers.
#[must_use]
pub fn calls(caller: &Caller, service: &Service, requests: Option<&[Match]>, matched: bool) -> Vec<String> {
    let mut cells = vec![
        caller.cluster.clone(),
        format!("{}/{}", caller.namespace, caller.service),
        format!("{}/{}", service.namespace, service.name),
    ];
    cells.extend(matched.then(|| requests.map_or_else(|| "-".to_owned(), matches)));
    cells
}

/// The rows as a table.
#[must_use]
pub fn table(rows: &[Row], headers: bool) -> String {
    let deepest = rows.iter().map(|row| row.tiers.len()).max().unwrap_or(0);
    const TIERS: [&str; 8] = ["TIER 0", "TIER 1", "TIER 2", "TIER 3", "TIER 4", "TIER 5", "TIER 6", "TIER 7"];
    let shown = deepest.min(TIERS.len());
    let matched = rows.iter().any(|row| row.matches.is_some());
    let mut names = headers_of_calls(matched);
    names.push("SHARES");
    names.extend(&TIERS[..shown]);
    names.push("REMOVED");
    let mut table = Rows::new(&names);
    for row in rows {
        let mut cells = calls(&row.caller, &row.service, row.matches.as_deref(), matched);
        let shares: Vec<String> =
            row.shares.iter().map(|share| format!("{} {}%", share.clusters.join("+"), share.percent)).collect();
        cells.push(or_dash(shares.join(", ")));
        for index in 0..shown {
            // More tiers than columns: the last column holds the rest.
            let tiers = if index + 1 == TIERS.len() {
                row.tiers.get(index..).unwrap_or_default()
            } else {
                row.tiers.get(index..=index).unwrap_or_default()
            };
            cells.push(or_dash(tiers.iter().map(|tier| tier.join(", ")).collect::<Vec<_>>().join(" > ")));
        }
        let removed: Vec<String> = row
            .removed
            .iter()
            .map(|removed| match (&removed.document, &removed.file, removed.line) {
                (Some(document), Some(file), Some(line)) => {
                    format!("{}: {} ({document}, {file}:{line})", removed.cluster, removed.reason)
                }
                _ => format!("{}: {} (built in)", removed.cluster, removed.reason),
            })
            .collect();
        cells.push(or_dash(removed.join("; ")));
        table.push(cells);
    }
    table.render(headers)
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Which requests.
fn matches(matches: &[Match]) -> String {
    matches.iter().map(describe).collect::<Vec<_>>().join(" or ")
}

fn describe(request: &Match) -> String {
    use mesh::explain::Comparison;
    let text = |comparison: &Comparison| match comparison {
        Comparison::Exact(text) => format!("={text}"),
        Comparison::Prefix(text) => format!("={text}*"),
        Comparison::Regex(text) => format!("~{text}"),
        Comparison::Present(_) => String::new(),
    };
    let mut parts = Vec::new();
    parts.extend(request.method.clone());
    parts.extend(request.path.as_ref().map(|path| format!("path{}", text(path))));
    parts.extend(request.headers.iter().map(|(name, value)| format!("{name}{}", text(value))));
    parts.extend(request.query.iter().map(|(name, value)| format!("?{name}{}", text(value))));
    parts.join(" and ")
}
