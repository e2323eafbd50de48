//! What is wanted in a cluster beside what is there.

use crate::api::{self, Api, Error, PARALLEL};
use crate::fields::{self, Comparison};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use mesh::intent::GROUP;
use mesh::manifest::{INTENTS, Kind, MANAGED_BY, Object};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// What identifies an object within a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    fn of(object: &Object) -> Self {
        Self { kind: object.kind, namespace: object.namespace.to_string(), name: object.name.to_string() }
    }

    fn of_live(kind: Kind, live: &Json) -> Self {
        let text = |key: &str| live["metadata"][key].as_str().unwrap_or_default().to_owned();
        Self { kind, namespace: text("namespace"), name: text("name") }
    }

    /// The path of the object on its API server.
    #[must_use]
    pub fn path(&self) -> String {
        api::path(self.kind, &self.namespace, &self.name)
    }

    /// `virtualservice.networking.istio.io/name`.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}/{}", self.kind.qualified(), self.name)
    }
}

/// How a wanted object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum State {
    /// As wanted.
    #[serde(rename = "in sync")]
    InSync,
    /// Not there.
    #[serde(rename = "missing")]
    Missing,
    /// There, and different.
    #[serde(rename = "drifted")]
    Drifted,
    /// There is an object of this name that the suite never wrote.
    #[serde(rename = "foreign")]
    Foreign,
    /// There, and no longer wanted.
    #[serde(rename = "surplus")]
    Surplus,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InSync => "in sync",
            Self::Missing => "missing",
            Self::Drifted => "drifted",
            Self::Foreign => "foreign",
            Self::Surplus => "surplus",
        }
    }
}

/// A wanted object.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub key: Key,
    /// As it should be.
    pub wanted: Json,
    /// As it is.
    pub live: Option<Json>,
    /// How it stands.
    pub state: State,
    /// How the two differ.
    pub comparison: Comparison,
}

impl Item {
    fn new(object: &Object, live: Option<Json>) -> Self {
        let wanted = serde_json::to_value(object).expect("objects hold only strings, numbers, lists and maps");
        let comparison = live.as_ref().map(|live| fields::compare(&wanted, live)).unwrap_or_default();
        let state = match &live {
            None => State::Missing,
            Some(live) if !is_labelled(live) && !fields::is_applied_by_us(live) => State::Foreign,
            Some(_) if comparison.changes.is_empty() => State::InSync,
            Some(_) => State::Drifted,
        };
        Self { key: Key::of(object), wanted, live, state, comparison }
    }

    /// Whether applying would change nothing, not even who owns the fields.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state == State::InSync && self.comparison.applied
    }
}

/// An object that the suite put there and that is no longer wanted.
#[derive(Clone, Debug)]
pub struct Surplus {
    /// What it is.
    pub key: Key,
    /// As it is.
    pub live: Json,
}

/// What is wanted in a cluster beside what is there.
#[derive(Debug, Default)]
pub struct Survey {
    /// The wanted objects, in the order in which they are applied.
    pub items: Vec<Item>,
    /// What is no longer wanted, in the same order.
    pub surplus: Vec<Surplus>,
    /// Kinds that could not be read, and why.
    pub unread: BTreeMap<Kind, Error>,
}

/// Compares a cluster's wanted objects with what is there. `surplus` also looks for what is no longer wanted.
///
/// # Errors
///
/// If the cluster cannot be reached. A kind that cannot be read does not keep the others from being compared.
pub async fn survey(api: &Api, objects: &[Object], kinds: &[Kind], surplus: bool) -> Result<Survey, Error> {
    let wanted = |kind: Kind| objects.iter().filter(move |object| object.kind == kind);
    let lists: Vec<(Kind, Result<Vec<Json>, Error>)> =
        stream::iter(kinds.iter().copied().filter(|kind| surplus || wanted(*kind).next().is_some()))
            .map(async |kind| (kind, api.list_ours(kind).await))
            .buffered(PARALLEL)
            .collect()
            .await;
    let mut survey = Survey::default();
    for (kind, list) in lists {
        let ours = match list {
            Ok(ours) => ours,
            Err(error) if error.is_final() => return Err(error),
            // A kind that the server does not know holds nothing.
            Err(error) if error.is_not_found() && wanted(kind).next().is_none() => continue,
            Err(error) if error.is_not_found() => {
                survey.unread.insert(kind, unknown_kind(kind));
                continue;
            }
            // Who may not list may still get the objects one by one.
            Err(error) if error.is_forbidden() && !surplus => Vec::new(),
            Err(error) => {
                survey.unread.insert(kind, error);
                continue;
            }
        };
        let mut live: BTreeMap<Key, Json> =
            ours.into_iter().map(|object| (Key::of_live(kind, &object), object)).collect();
        let pairs: Vec<(&Object, Option<Json>)> =
            wanted(kind).map(|object| (object, live.remove(&Key::of(object)))).collect();
        // An object without our label may stand in the way of one that seems to be missing.
        let items: Result<Vec<Item>, Error> = stream::iter(pairs)
            .map(async |(object, live)| {
                let live = match live {
                    Some(live) => Some(live),
                    None => api.get(&Key::of(object).path()).await?,
                };
                Ok(Item::new(object, live))
            })
            .buffered(PARALLEL)
            .try_collect()
            .await;
        match items {
            Ok(items) => survey.items.extend(items),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => {
                survey.unread.insert(kind, error);
                continue;
            }
        }
        if surplus {
            let unwanted = live.into_iter().filter(|(key, live)| is_from_intents(key, live));
            survey.surplus.extend(unwanted.map(|(key, live)| Surplus { key, live }));
        }
    }
    Ok(survey)
}

fn unknown_kind(kind: Kind) -> Error {
    Error::Local(format!(
        "no matches for kind \"{}\" in version \"{}\"; ensure CRDs are installed first",
        kind.as_str(),
        kind.api_version()
    ))
}

fn is_labelled(live: &Json) -> bool {
    live["metadata"]["labels"]["app.kubernetes.io/managed-by"] == MANAGED_BY
}

/// Whether the suite put an object there: the label alone could be anyone's copy.
fn is_from_intents(key: &Key, live: &Json) -> bool {
    let from_documents = live["metadata"]["annotations"][INTENTS].is_string();
    let is_marker = key.kind == Kind::ConfigMap && key.name == MANAGED_BY && live["data"]["rendered-by"] == GROUP;
    is_labelled(live) && (from_documents || is_marker)
}
