//! Who owns which field, and which fields differ: read from the object and its `managedFields` alone, so that a whole
//! fleet is compared with one list request per kind.

use crate::api::MANAGER;
use serde_json::{Map, Value as Json};

/// Someone who set a field.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Owner {
    /// The field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// When it last changed something here.
    pub time: Option<String>,
}

/// What kubectl calls itself when a person changes an object by hand. Such changes are drift, and applying repairs
/// them; whatever else owns a field is a system with its own reasons, and is left alone.
const BY_HAND: [&str; 5] = ["kubectl-edit", "kubectl-patch", "kubectl-replace", "kubectl-label", "kubectl-annotate"];

/// Whether a field manager stands for a person at a keyboard.
#[must_use]
pub fn is_by_hand(manager: &str) -> bool {
    BY_HAND.contains(&manager)
}

/// A field that is not as it should be.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// Where it stands, as kubectl writes it: `.spec.http[0].timeout`.
    pub field: String,
    /// The same place as a JSON pointer.
    #[serde(skip)]
    pub pointer: String,
    /// What the intents want; absent: nothing.
    pub wanted: Option<Json>,
    /// What is there; absent: nothing.
    pub live: Option<Json>,
    /// Who set what is there, without ourselves.
    pub owners: Vec<Owner>,
}

impl Change {
    /// A field that nobody wants and that someone else put there: applying alone would leave it.
    #[must_use]
    pub fn is_intruder(&self) -> bool {
        self.wanted.is_none() && !self.owners.is_empty()
    }
}

/// How an object differs from what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Fields that are not as they should be.
    pub changes: Vec<Change>,
    /// Whether our last apply set exactly the wanted fields: then applying again would change nothing at all.
    pub applied: bool,
}

/// Compares what is wanted with what is there: all of the content, and our own labels and annotations.
#[must_use]
pub fn compare(wanted: &Json, live: &Json) -> Comparison {
    let managers = Managers::of(live);
    let mut changes = Vec::new();
    for (key, value) in wanted.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for field in ["labels", "annotations"] {
                    for (name, value) in value[field].as_object().into_iter().flatten() {
                        let path = [Step::Key("metadata"), Step::Key(field), Step::Key(name)];
                        differ(&managers, &path, Some(value), live["metadata"][field].get(name), &mut changes);
                    }
                }
            }
            _ => differ(&managers, &[Step::Key(key)], Some(value), live.get(key), &mut changes),
        }
    }
    let applied = managers.ours(wanted["apiVersion"].as_str()).is_some_and(|fields| covers_object(fields, wanted));
    Comparison { changes, applied }
}

/// Whether we ever applied this object.
#[must_use]
pub fn is_applied_by_us(live: &Json) -> bool {
    Managers::of(live).ours(None).is_some()
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    /// An item of a list, with its content: lists may be keyed by it.
    Item(usize, &'a Json),
}

fn differ(
    managers: &Managers<'_>,
    path: &[Step<'_>],
    wanted: Option<&Json>,
    live: Option<&Json>,
    changes: &mut Vec<Change>,
) {
    match (wanted, live) {
        (Some(Json::Object(wanted)), Some(Json::Object(live))) => {
            for (key, value) in wanted {
                differ(managers, &[path, &[Step::Key(key)]].concat(), Some(value), live.get(key), changes);
            }
            for (key, value) in live.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                differ(managers, &[path, &[Step::Key(key)]].concat(), None, Some(value), changes);
            }
        }
        (Some(Json::Array(wanted)), Some(Json::Array(live))) if wanted.len() == live.len() => {
            for (index, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                differ(managers, &[path, &[Step::Item(index, live)]].concat(), Some(wanted), Some(live), changes);
            }
        }
        (wanted, live) if same(wanted, live) => {}
        (wanted, live) => {
            let (owned, owners) = if live.is_some() { managers.owners(path) } else { (false, Vec::new()) };
            // What nobody owns was filled in by the server.
            if wanted.is_none() && !owned && owners.is_empty() {
                return;
            }
            let (field, pointer) = name(path);
            changes.push(Change { field, pointer, wanted: wanted.cloned(), live: live.cloned(), owners });
        }
    }
}

/// Numbers may come back as 1 or 1.0.
fn same(wanted: Option<&Json>, live: Option<&Json>) -> bool {
    wanted == live
        || matches!((wanted.and_then(Json::as_f64), live.and_then(Json::as_f64)), (Some(wanted), Some(live)) if wanted == live)
}

fn name(path: &[Step<'_>]) -> (String, String) {
    let (mut field, mut pointer) = (String::new(), String::new());
    for step in path {
        match step {
            Step::Key(key) => {
                if key.contains(['.', '/']) {
                    field.push_str(&format!("[{key}]"));
                } else {
                    field.push_str(&format!(".{key}"));
                }
                pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")));
            }
            Step::Item(index, _) => {
                field.push_str(&format!("[{index}]"));
                pointer.push_str(&format!("/{index}"));
            }
        }
    }
    (field, pointer)
}

/// The entries of `metadata.managedFields` about the object itself.
struct Managers<'a>(Vec<&'a Json>);

impl<'a> Managers<'a> {
    fn of(live: &'a Json) -> Self {
        let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
        Self(entries.filter(|entry| entry.get("subresource").is_none_or(|name| name == "")).collect())
    }

    /// The fields of our own apply.
    fn ours(&self, api_version: Option<&str>) -> Option<&'a Map<String, Json>> {
        self.0
            .iter()
            .find(|entry| {
                is_ours(entry) && api_version.is_none_or(|version| entry["apiVersion"].as_str() == Some(version))
            })
            .and_then(|entry| entry["fieldsV1"].as_object())
    }

    /// Whether we own what stands at a path, and who else does.
    fn owners(&self, path: &[Step<'_>]) -> (bool, Vec<Owner>) {
        let (ours, others): (Vec<&&Json>, Vec<&&Json>) = self
            .0
            .iter()
            .filter(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| owns(fields, path)))
            .partition(|entry| is_ours(entry));
        let text = |entry: &Json, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let others = others
            .into_iter()
            .map(|entry| Owner {
                manager: text(entry, "manager"),
                operation: text(entry, "operation"),
                time: entry["time"].as_str().map(ToOwned::to_owned),
            })
            .collect();
        (!ours.is_empty(), others)
    }
}

fn is_ours(entry: &Json) -> bool {
    entry["manager"] == MANAGER && entry["operation"] == "Apply"
}

/// A set without children is a leaf: a value, or a list or map that is owned as a whole.
fn is_leaf(fields: &Map<String, Json>) -> bool {
    fields.keys().all(|key| key == ".")
}

fn owns(fields: &Map<String, Json>, path: &[Step<'_>]) -> bool {
    let Some((step, rest)) = path.split_first() else { return true };
    if is_leaf(fields) {
        return true;
    }
    let child = match step {
        Step::Key(key) => fields.get(&format!("f:{key}")),
        Step::Item(index, item) => fields.iter().find(|(key, _)| is_item(key, *index, item)).map(|(_, child)| child),
    };
    child.and_then(Json::as_object).is_some_and(|child| owns(child, rest))
}

/// Items are named by key fields (`k:{"name":"http"}`), by value (`v:"a"`) or by place (`i:0`).
fn is_item(key: &str, index: usize, item: &Json) -> bool {
    let parse = |text: &str| serde_json::from_str::<Json>(text).ok();
    match key.split_at_checked(2) {
        Some(("k:", keys)) => parse(keys)
            .and_then(|keys| keys.as_object().map(|keys| keys.iter().all(|(key, value)| item.get(key) == Some(value))))
            .unwrap_or(false),
        Some(("v:", value)) => parse(value).as_ref() == Some(item),
        Some(("i:", place)) => place.parse() == Ok(index),
        _ => false,
    }
}

/// Whether the fields of an apply are exactly those of an object.
fn covers_object(fields: &Map<String, Json>, object: &Json) -> bool {
    let Some(object) = object.as_object() else { return false };
    let content: Map<String, Json> = object
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
        .map(pair)
        .collect();
    let metadata: Map<String, Json> = object
        .get("metadata")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| !matches!(key.as_str(), "name" | "namespace"))
        .map(pair)
        .collect();
    let whole = Json::Object(content.into_iter().chain([("metadata".to_owned(), Json::Object(metadata))]).collect());
    covers(fields, &whole)
}

fn pair((key, value): (&String, &Json)) -> (String, Json) {
    (key.clone(), value.clone())
}

fn covers(fields: &Map<String, Json>, value: &Json) -> bool {
    if is_leaf(fields) {
        return true;
    }
    let children = || fields.iter().filter(|(key, _)| *key != ".");
    let matches = |child: &Json, value: &Json| child.as_object().is_some_and(|child| covers(child, value));
    match value {
        Json::Object(map) => {
            children().count() == map.len()
                && map
                    .iter()
                    .all(|(key, value)| fields.get(&format!("f:{key}")).is_some_and(|child| matches(child, value)))
        }
        Json::Array(items) => {
            children().count() == items.len()
                && items.iter().enumerate().all(|(index, item)| {
                    children().any(|(key, child)| is_item(key, index, item) && matches(child, item))
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted() -> Json {
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
            "metadata": {"name": "a", "namespace": "b", "labels": {"l": "1"}},
            "spec": {"hosts": ["x"], "ports": [{"name": "http", "number": 80}], "resolution": "STATIC"},
        })
    }

    fn live() -> Json {
        let mut live = wanted();
        live["metadata"]["managedFields"] = json!([{
            "manager": "kubectl-mesh", "operation": "Apply", "apiVersion": "networking.istio.io/v1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {"f:hosts": {}, "f:resolution": {}, "f:ports": {
                    "k:{\"name\":\"http\"}": {".": {}, "f:name": {}, "f:number": {}}}},
            },
        }]);
        live
    }

    fn edited(manager: &str, fields: &Json) -> Json {
        json!({"manager": manager, "operation": "Update", "apiVersion": "networking.istio.io/v1",
               "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    #[test]
    fn what_we_applied_is_left_alone() {
        assert_eq!(compare(&wanted(), &live()), Comparison { changes: Vec::new(), applied: true });
    }

    #[test]
    fn what_others_applied_with_the_same_values_is_no_change_but_not_ours() {
        let mut live = live();
        live["metadata"]["managedFields"][0]["manager"] = json!("argocd-controller");
        assert_eq!(compare(&wanted(), &live), Comparison { changes: Vec::new(), applied: false });
    }

    #[test]
    fn an_edit_names_field_and_manager() {
        let mut live = live();
        live["spec"]["ports"][0]["number"] = json!(81);
        let entries = live["metadata"]["managedFields"].as_array_mut().expect("there is one");
        entries
            .push(edited("kubectl-edit", &json!({"f:spec": {"f:ports": {"k:{\"name\":\"http\"}": {"f:number": {}}}}})));
        let found = compare(&wanted(), &live).changes;
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].field.as_str(), found[0].pointer.as_str()),
            (".spec.ports[0].number", "/spec/ports/0/number")
        );
        assert_eq!(found[0].owners[0].manager, "kubectl-edit");
        assert!(!found[0].is_intruder());
    }

    #[test]
    fn a_field_that_someone_added_is_a_change_and_a_default_is_none() {
        let mut live = live();
        live["spec"]["location"] = json!("MESH_EXTERNAL");
        assert_eq!(compare(&wanted(), &live).changes, [], "nobody owns it");
        let entries = live["metadata"]["managedFields"].as_array_mut().expect("there is one");
        entries.push(edited("kubectl-patch", &json!({"f:spec": {"f:location": {}}})));
        let found = compare(&wanted(), &live).changes;
        assert!(found[0].is_intruder(), "{found:?}");
        assert!(found[0].owners.iter().all(|owner| is_by_hand(&owner.manager)));
    }

    #[test]
    fn a_field_that_we_no_longer_want_is_a_change_without_other_owners() {
        let mut wanted = wanted();
        wanted["spec"].as_object_mut().expect("a map").remove("resolution");
        let found = compare(&wanted, &live());
        assert_eq!((found.changes.len(), found.applied), (1, false));
        assert!(!found.changes[0].is_intruder());
    }

    #[test]
    fn an_owner_of_a_whole_list_owns_its_items() {
        let mut live = live();
        live["spec"]["hosts"] = json!(["y"]);
        let entries = live["metadata"]["managedFields"].as_array_mut().expect("there is one");
        entries.push(edited("other", &json!({"f:spec": {"f:hosts": {}}})));
        let found = compare(&wanted(), &live).changes;
        assert_eq!((found[0].field.as_str(), found[0].owners[0].manager.as_str()), (".spec.hosts[0]", "other"));
    }
}
