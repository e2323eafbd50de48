//! What a change of documents does to the fleet: to the rows of `explain`, to who may call, and to the objects of each
//! cluster. What authoring shows before it writes, and what `plan` shows before anybody merges.

mod access;

pub use access::AccessChange;

use crate::table::Rows;
use mesh::World;
use mesh::explain::{Caller, Row, rows};
use mesh::manifest::{Kind, Object, to_yaml};
use serde::Serialize;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that differs between two fleets, sorted; the documented form of `plan -o json`.
#[derive(Debug, Serialize)]
pub struct Effect {
    /// Rows that come, go or change.
    pub routes: Vec<RouteChange>,
    /// Calls that are answered in another way.
    pub access: Vec<AccessChange>,
    /// Clusters with objects that come, go or change.
    pub clusters: Vec<ClusterChange>,
}

/// A row of `explain` on both sides.
#[derive(Debug, Serialize)]
pub struct RouteChange {
    /// The row before; absent for a new one.
    pub before: Option<Row>,
    /// The row after; absent for one that goes.
    pub after: Option<Row>,
}

/// The objects of one cluster that differ.
#[derive(Debug, Serialize)]
pub struct ClusterChange {
    /// The cluster.
    pub cluster: String,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<ObjectChange>,
}

/// One object on both sides.
#[derive(Debug, Serialize)]
pub struct ObjectChange {
    /// What happens to it.
    pub change: Verb,
    /// Its kind.
    #[serde(serialize_with = "kind_name")]
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its YAML before and after; empty where it is not there.
    #[serde(skip)]
    pub texts: [String; 2],
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It is new.
    Added,
    /// Its content changes.
    Changed,
    /// It goes.
    Removed,
}

impl Verb {
    /// The word that tables print.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

fn kind_name<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

impl ObjectChange {
    /// `virtualservice.networking.istio.io/name`.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.kind.qualified(), self.name)
    }

    /// A unified diff of its YAML.
    #[must_use]
    pub fn diff(&self, cluster: &str) -> String {
        let path = format!("{cluster}/{}/{}", self.namespace, self.qualified_name());
        let name =
            |text: &str, side: &str| if text.is_empty() { "/dev/null".to_owned() } else { format!("{side}/{path}") };
        let [before, after] = &self.texts;
        TextDiff::from_lines(before, after).unified_diff().header(&name(before, "a"), &name(after, "b")).to_string()
    }
}

impl Effect {
    /// What differs. A fleet that is not right has no objects.
    #[must_use]
    pub fn between(before: &World, after: &World) -> Self {
        Self {
            routes: routes(before, after),
            access: access::changes(before, after),
            clusters: clusters(before, after),
        }
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { routes, access, clusters } = self;
        routes.is_empty() && access.is_empty() && clusters.is_empty()
    }

    /// Tables for people, an empty line between them.
    #[must_use]
    pub fn to_text(&self) -> String {
        let parts = [self.routes_table(), self.access_table(), self.objects_table()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// The rows: `-` before, `+` after.
    fn routes_table(&self) -> String {
        if self.routes.is_empty() {
            return String::new();
        }
        let sides = self.routes.iter().flat_map(|RouteChange { before, after }| {
            [('-', before), ('+', after)].into_iter().filter_map(|(mark, row)| Some((mark, row.clone()?)))
        });
        let (marks, rows): (Vec<char>, Vec<Row>) = sides.unzip();
        let table = crate::explain::table(&rows, true);
        let marks = std::iter::once(' ').chain(marks);
        marks.zip(table.lines()).map(|(mark, line)| format!("{mark} {line}\n")).collect()
    }

    fn access_table(&self) -> String {
        let mut table = Rows::new(&["CLUSTER", "CALLER", "SERVICE", "IN", "BEFORE", "AFTER"]);
        for AccessChange { caller, service, within, before, after } in &self.access {
            table.push([
                caller.cluster.clone(),
                format!("{}/{}", caller.namespace, caller.service),
                format!("{}/{}", service.namespace, service.name),
                within.clone(),
                (*before).to_owned(),
                (*after).to_owned(),
            ]);
        }
        if table.is_empty() { String::new() } else { table.render(true) }
    }

    /// How many objects come, change and go in each cluster.
    fn objects_table(&self) -> String {
        let mut table = Rows::new(&["CLUSTER", "OBJECTS ADDED", "CHANGED", "REMOVED"]);
        for ClusterChange { cluster, objects } in &self.clusters {
            let count = |verb| objects.iter().filter(|object| object.change == verb).count().to_string();
            table.push([cluster.clone(), count(Verb::Added), count(Verb::Changed), count(Verb::Removed)]);
        }
        if table.is_empty() { String::new() } else { table.render(true) }
    }
}

/// The keys of two maps, each once and in order, with both values.
fn sides<'a, K: Ord, V>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
) -> Vec<(&'a K, Option<&'a V>, Option<&'a V>)> {
    let keys: BTreeSet<&K> = old.keys().chain(new.keys()).collect();
    keys.into_iter().map(|key| (key, old.get(key), new.get(key))).collect()
}

fn routes(before: &World, after: &World) -> Vec<RouteChange> {
    let key = |row: &Row| {
        let matches = row.matches.as_ref().map(|matches| serde_json::to_string(matches).expect("rows are JSON"));
        let Caller { cluster, namespace, service } = &row.caller;
        let caller = (namespace.clone(), service.clone(), cluster.clone());
        ((row.service.namespace.clone(), row.service.name.clone()), caller, matches)
    };
    let of = |world: &World| -> BTreeMap<_, Row> {
        rows(&world.effective, &world.files, |_| true).into_iter().map(|row| (key(&row), row)).collect()
    };
    let (old, new) = (of(before), of(after));
    sides(&old, &new)
        .into_iter()
        .filter(|(_, old, new)| old.map(without_lines) != new.map(without_lines))
        .map(|(_, before, after)| RouteChange { before: before.cloned(), after: after.cloned() })
        .collect()
}

/// A row as it reads wherever its documents stand: moving a line is no effect.
fn without_lines(row: &Row) -> Row {
    let mut row = row.clone();
    for removed in &mut row.removed {
        removed.line = None;
        removed.file = None;
    }
    row
}

fn clusters(before: &World, after: &World) -> Vec<ClusterChange> {
    let names: BTreeSet<&str> = [before, after]
        .iter()
        .flat_map(|world| world.effective.fleet.clusters.iter().map(|cluster| cluster.name.as_str()))
        .collect();
    names
        .into_iter()
        .map(|name| ClusterChange { cluster: name.to_owned(), objects: changed_objects(before, after, name) })
        .filter(|change| !change.objects.is_empty())
        .collect()
}

fn changed_objects(before: &World, after: &World, cluster: &str) -> Vec<ObjectChange> {
    let (old, new) = (objects(before, cluster), objects(after, cluster));
    sides(&old, &new)
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|((kind, namespace, name), old, new)| ObjectChange {
            change: match (old, new) {
                (None, _) => Verb::Added,
                (Some(_), None) => Verb::Removed,
                (Some(_), Some(_)) => Verb::Changed,
            },
            kind: *kind,
            namespace: namespace.clone(),
            name: name.clone(),
            texts: [old, new].map(|object| object.map(to_yaml).unwrap_or_default()),
        })
        .collect()
}

/// The objects of a cluster; none where the fleet is not right or the cluster not there.
fn objects(world: &World, cluster: &str) -> BTreeMap<(Kind, String, String), Object> {
    let id = world.effective.fleet.cluster_named(cluster);
    let rendered = id.and_then(|id| world.render(id).ok());
    let objects = rendered.map(|rendered| rendered.objects).unwrap_or_default();
    objects
        .into_iter()
        .map(|object| ((object.kind, object.namespace.to_string(), object.name.to_string()), object))
        .collect()
}
