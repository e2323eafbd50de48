//! Whether one request can fit two descriptions, and the description of the requests that fit both.

use crate::intent::traffic::{Conditions, RequestMatch, StringMatch, ValueMatch};

/// The requests that fit one description of each of two lists.
pub enum Join {
    /// There are none.
    Never,
    /// One of these descriptions fits.
    Some(Vec<RequestMatch>),
    /// There may be some, and no single description can say which.
    Inexpressible(String),
}

/// Joins two lists of alternatives.
#[must_use]
pub fn join(left: &[RequestMatch], right: &[RequestMatch]) -> Join {
    let mut joined = Vec::new();
    for a in left {
        for b in right {
            match join_one(a, b) {
                Ok(Some(request)) => joined.push(request),
                Ok(None) => {}
                Err(what) => return Join::Inexpressible(what),
            }
        }
    }
    joined.sort();
    joined.dedup();
    if joined.is_empty() { Join::Never } else { Join::Some(joined) }
}

/// `Ok(None)`: an exact path, method or header keeps the two apart.
fn join_one(a: &RequestMatch, b: &RequestMatch) -> Result<Option<RequestMatch>, String> {
    let method = match (&a.method, &b.method) {
        (Some(a), Some(b)) if a != b => return Ok(None),
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    // Everything that can keep them apart is looked at before anything is called inexpressible.
    if let (Some(a), Some(b)) = (&a.path, &b.path)
        && both(a, b) == Both::Never
    {
        return Ok(None);
    }
    if apart(&a.headers, &b.headers) {
        return Ok(None);
    }
    let path = match (&a.path, &b.path) {
        (Some(a), Some(b)) => match both(a, b) {
            Both::Never => return Ok(None),
            Both::First => Some(a.clone()),
            Both::Second => Some(b.clone()),
            Both::Unknown => return Err("they compare the path in ways that do not include each other".to_owned()),
        },
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    let Some(headers) = join_conditions("header", &a.headers, &b.headers)? else { return Ok(None) };
    let Some(query) = join_conditions("parameter", &a.query, &b.query)? else { return Ok(None) };
    Ok(Some(RequestMatch { path, headers, query, method }))
}

fn apart<K: Ord>(a: &Conditions<K>, b: &Conditions<K>) -> bool {
    a.0.iter().any(|(name, value)| {
        b.0.iter().any(|(other, against)| {
            name == other
                && matches!((value, against), (ValueMatch::Text(a), ValueMatch::Text(b)) if both(a, b) == Both::Never)
        })
    })
}

fn join_conditions<K: Ord + Clone + std::fmt::Display>(
    what: &str,
    a: &Conditions<K>,
    b: &Conditions<K>,
) -> Result<Option<Conditions<K>>, String> {
    let mut joined = a.0.clone();
    for (name, value) in &b.0 {
        match joined.iter_mut().find(|(other, _)| other == name) {
            None => joined.push((name.clone(), value.clone())),
            Some((_, present)) => match (&*present, value) {
                (_, ValueMatch::Present) => {}
                (ValueMatch::Present, text) => *present = text.clone(),
                (ValueMatch::Text(first), ValueMatch::Text(second)) => match both(first, second) {
                    Both::Never => return Ok(None),
                    Both::First => {}
                    Both::Second => *present = value.clone(),
                    Both::Unknown => {
                        return Err(format!(
                            "they compare the {what} \"{name}\" in ways that do not include each other"
                        ));
                    }
                },
            },
        }
    }
    joined.sort();
    Ok(Some(Conditions(joined)))
}

/// What fits two comparisons of one text.
#[derive(PartialEq, Eq)]
enum Both {
    /// Nothing.
    Never,
    /// Exactly what fits the first one.
    First,
    /// Exactly what fits the second one.
    Second,
    /// Something that neither of them says.
    Unknown,
}

fn both(a: &StringMatch, b: &StringMatch) -> Both {
    match (a, b) {
        (a, b) if a == b => Both::First,
        (StringMatch::Exact(_), StringMatch::Exact(_)) => Both::Never,
        (StringMatch::Exact(text), StringMatch::Prefix(prefix)) => {
            if text.starts_with(prefix.as_str()) {
                Both::First
            } else {
                Both::Never
            }
        }
        (StringMatch::Prefix(prefix), StringMatch::Exact(text)) => {
            if text.starts_with(prefix.as_str()) {
                Both::Second
            } else {
                Both::Never
            }
        }
        (StringMatch::Prefix(a), StringMatch::Prefix(b)) if a.starts_with(b.as_str()) => Both::First,
        (StringMatch::Prefix(a), StringMatch::Prefix(b)) if b.starts_with(a.as_str()) => Both::Second,
        (StringMatch::Prefix(_), StringMatch::Prefix(_)) => Both::Never,
        (StringMatch::Regex(_), _) | (_, StringMatch::Regex(_)) => Both::Unknown,
    }
}
