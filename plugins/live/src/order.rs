//! Make before break across clusters: what callers elsewhere need stands before they are switched to it, and goes only
//! when they are gone.
//!
//! | step | in every cluster at once; the next one begins when all are through |
//! |---|---|
//! | 1 | what it offers to others: access, anchors, gateways; access is only ever widened here |
//! | 2 | what its own callers use |
//! | 3 | access is narrowed to what is wanted |
//! | 4 | what its callers no longer use is deleted |
//! | 5 | what it no longer offers is deleted |

use crate::survey::{Item, Key};
use mesh::manifest::{Kind, OFFERED};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// A step; see above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What others need.
    Offer,
    /// What a cluster's own callers use.
    Use,
    /// Access as it is wanted.
    Narrow,
    /// What a cluster's own callers no longer use.
    DropUse,
    /// What others no longer need.
    DropOffer,
}

impl Step {
    /// The steps in order.
    pub const ALL: [Self; 5] = [Self::Offer, Self::Use, Self::Narrow, Self::DropUse, Self::DropOffer];

    /// Whether objects of a kind can be made in this step.
    #[must_use]
    pub fn concerns(self, kind: Kind) -> bool {
        let offers = matches!(kind, Kind::AuthorizationPolicy | Kind::PeerAuthentication | Kind::Gateway);
        match self {
            Self::Offer => offers || kind == Kind::ServiceEntry,
            Self::Use => !offers,
            Self::Narrow => kind == Kind::AuthorizationPolicy,
            Self::DropUse | Self::DropOffer => false,
        }
    }
}

/// Whether callers in other clusters depend on an object, rather than callers in its own.
#[must_use]
pub fn is_offer(key: &Key) -> bool {
    match key.kind {
        Kind::AuthorizationPolicy | Kind::PeerAuthentication | Kind::Gateway => true,
        Kind::ServiceEntry => key.name.ends_with(OFFERED),
        Kind::ConfigMap | Kind::Service | Kind::DestinationRule | Kind::VirtualService | Kind::Sidecar => false,
    }
}

/// How an access policy gets from what it is to what it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// It refuses nobody whom it allows now, or it protects what nothing protected before.
    First,
    /// It only refuses more: that waits until callers have been sent elsewhere.
    Last,
    /// Both: first this, which allows whoever may call before or after.
    Both(Box<Json>),
}

/// When an item is applied, as far as access goes.
#[must_use]
pub fn access(item: &Item) -> Access {
    let (Kind::AuthorizationPolicy, Some(live)) = (item.key.kind, &item.live) else { return Access::First };
    let wanted = &item.wanted["spec"];
    // Another action or other pods: nothing is known about who may call in between.
    if ["action", "selector"].iter().any(|field| wanted[field] != live["spec"][field]) {
        return Access::First;
    }
    let rules = |spec: &Json| spec["rules"].as_array().cloned().unwrap_or_default();
    let (old, mut all) = (rules(&live["spec"]), rules(wanted));
    let narrowed: Vec<Json> = old.iter().filter(|rule| !all.contains(rule)).cloned().collect();
    if narrowed.is_empty() {
        return Access::First;
    }
    if all.iter().all(|rule| old.contains(rule)) {
        return Access::Last;
    }
    all.extend(narrowed);
    let mut both = item.wanted.clone();
    both["spec"]["rules"] = Json::Array(all);
    Access::Both(Box::new(both))
}

/// Hosts that may not be switched now, because callers would newly be sent to gateways (by their addresses) that are not
/// ready for them.
#[derive(Debug, Default)]
pub struct Waiting {
    hosts: BTreeSet<String>,
    /// Those that callers use already: nothing about them is touched.
    used: BTreeSet<String>,
}

impl Waiting {
    /// What waits in a cluster.
    #[must_use]
    pub fn of(items: &[Item], unready: &BTreeSet<&str>) -> Self {
        let mut waiting = Self::default();
        let entries = || items.iter().filter(|item| item.key.kind == Kind::ServiceEntry && !is_offer(&item.key));
        for entry in entries().filter(|_| !unready.is_empty()) {
            for host in strings(&entry.wanted["spec"]["hosts"]) {
                let live = || {
                    let live = entries().filter_map(|entry| entry.live.as_ref());
                    live.filter(|live| strings(&live["spec"]["hosts"]).contains(&host))
                };
                let reached: BTreeSet<&str> = live().flat_map(addresses).collect();
                if addresses(&entry.wanted).any(|address| unready.contains(address) && !reached.contains(address)) {
                    waiting.hosts.insert(host.to_owned());
                    if live().next().is_some() {
                        waiting.used.insert(host.to_owned());
                    }
                }
            }
        }
        waiting
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(String::as_str)
    }

    /// Whether an item has to wait. What nobody uses yet can break nothing.
    #[must_use]
    pub fn holds(&self, item: &Item) -> bool {
        if self.hosts.is_empty() || item.is_settled() || is_offer(&item.key) {
            return false;
        }
        let wanted = strings(&item.wanted["spec"]);
        let live = item.live.as_ref().map(|live| strings(&live["spec"]));
        self.hosts
            .iter()
            .filter(|host| wanted.contains(host.as_str()))
            .any(|host| self.used.contains(host) || live.as_ref().is_some_and(|live| !live.contains(host.as_str())))
    }
}

fn addresses(entry: &Json) -> impl Iterator<Item = &str> {
    let endpoints = entry["spec"]["endpoints"].as_array().into_iter().flatten();
    endpoints.filter_map(|endpoint| endpoint["address"].as_str())
}

/// All strings in a value.
fn strings(value: &Json) -> BTreeSet<&str> {
    match value {
        Json::String(text) => BTreeSet::from([text.as_str()]),
        Json::Array(items) => items.iter().flat_map(strings).collect(),
        Json::Object(map) => map.values().flat_map(strings).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Comparison;
    use crate::survey::State;
    use serde_json::json;

    fn item(kind: Kind, name: &str, wanted: &Json, live: Option<&Json>) -> Item {
        let whole = |spec: &Json| json!({"spec": spec});
        Item {
            key: Key { kind, namespace: "bank".to_owned(), name: name.to_owned() },
            wanted: whole(wanted),
            live: live.map(whole),
            state: if live.is_some() { State::Drifted } else { State::Missing },
            comparison: Comparison::default(),
        }
    }

    fn policy(live: Option<&[&str]>, wanted: &[&str]) -> Item {
        let spec = |rules: &[&str]| json!({"action": "ALLOW", "rules": rules});
        item(Kind::AuthorizationPolicy, "user", &spec(wanted), live.map(spec).as_ref())
    }

    #[test]
    fn access_is_widened_first_and_narrowed_last() {
        assert_eq!(access(&policy(None, &["a"])), Access::First, "what is offered is protected before");
        assert_eq!(access(&policy(Some(&["a"]), &["b", "a"])), Access::First);
        assert_eq!(access(&policy(Some(&["a", "b"]), &["a"])), Access::Last);
        assert_eq!(access(&policy(Some(&["a"]), &[])), Access::Last);
        let both = json!({"spec": {"action": "ALLOW", "rules": ["b", "c", "a"]}});
        assert_eq!(access(&policy(Some(&["a", "b"]), &["b", "c"])), Access::Both(Box::new(both)));
    }

    #[test]
    fn offers_are_what_gateways_need() {
        let key = |kind, name: &str| Key { kind, namespace: String::new(), name: name.to_owned() };
        assert!(is_offer(&key(Kind::Gateway, "user-bank-4")));
        assert!(is_offer(&key(Kind::ServiceEntry, "user.bank.exported.meshintent.dev")));
        assert!(!is_offer(&key(Kind::ServiceEntry, "user.mesh.bank.example.remote")));
        assert!(!is_offer(&key(Kind::VirtualService, "user.mesh.bank.example")));
    }

    fn entry(host: &str, wanted: &[&str], live: Option<&[&str]>) -> Item {
        let spec = |addresses: &[&str]| {
            let endpoints: Vec<Json> = addresses.iter().map(|address| json!({"address": address})).collect();
            json!({"hosts": [host], "endpoints": endpoints})
        };
        item(Kind::ServiceEntry, host, &spec(wanted), live.map(spec).as_ref())
    }

    #[test]
    fn only_what_is_used_waits_for_a_gateway_that_is_not_ready() {
        let items = [
            entry("used.example", &["1.1.1.1", "9.9.9.9"], Some(&["1.1.1.1"])),
            entry("new.example", &["9.9.9.9"], None),
            entry("same.example", &["9.9.9.9", "1.1.1.1"], Some(&["9.9.9.9"])),
            entry("other.example", &["2.2.2.2"], Some(&["1.1.1.1"])),
            item(Kind::DestinationRule, "used", &json!({"host": "used.example"}), None),
            item(
                Kind::VirtualService,
                "other",
                &json!({"hosts": ["other.example"], "to": "new.example"}),
                Some(&json!({"hosts": ["other.example"]})),
            ),
            item(Kind::VirtualService, "new", &json!({"hosts": ["new.example"]}), None),
        ];
        let waiting = Waiting::of(&items, &BTreeSet::from(["9.9.9.9"]));
        assert_eq!(waiting.hosts().collect::<Vec<_>>(), ["new.example", "used.example"]);
        let held: Vec<bool> = items.iter().map(|item| waiting.holds(item)).collect();
        assert_eq!(held, [true, false, false, false, true, true, false]);
        assert!(!Waiting::of(&items, &BTreeSet::new()).holds(&items[0]));
    }
}
