//! `kubectl mesh failover` on the command line, on the program itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod fleet;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use fleet::Fleet;
use serde_json::Value;

fn example() -> Fleet {
    Fleet::example(env!("CARGO_BIN_EXE_kubectl-mesh-failover"))
}

#[test]
fn simulate_says_who_is_served_from_where_and_what_is_lost() {
    let fleet = example();
    let said = fleet.run("simulate --down cluster-2");
    assert_eq!(
        said.out,
        "CLUSTER   CALLER          SERVICE      BEFORE      AFTER    LOST\n\
         eks       bank/checkout   bank/order   cluster-2   nobody   100%\n"
    );
    assert_eq!(said.err, "Callers that lose requests: 1; served from elsewhere: 0; down themselves: 3.\n");
    let moved = fleet.done("simulate --down wine --no-headers");
    assert!(moved.contains("20% wine, 80% cluster-2   cluster-2   -\n") && !moved.contains("nobody"), "{moved}");
    let rows: Value = serde_json::from_str(&fleet.done("simulate --down wine,cluster-2 -o json")).unwrap();
    let web = rows.as_array().unwrap().iter().find(|row| row["service"]["name"] == "bar").unwrap();
    assert_eq!(web["caller"]["cluster"], "eks");
    assert_eq!(web["after"][0]["percent"], 100);
    let unknown = fleet.refused("simulate --down clster-1");
    assert!(unknown.contains("cluster-1"), "{unknown}");
    assert_eq!(fleet.run("simulate").code, 1);
}

#[test]
fn every_failure_is_listed_the_worst_first() {
    let fleet = example();
    let each = fleet.done("simulate --each --no-headers");
    assert_eq!(each.lines().count(), 5, "{each}");
    assert!(each.starts_with("cluster-2   1   0   bank/checkout@eks -> bank/order\n"), "{each}");
    let pairs: Value = serde_json::from_str(&fleet.done("simulate --pairs -o json")).unwrap();
    let pairs = pairs.as_array().unwrap();
    assert_eq!(pairs.len(), 10);
    let lost: Vec<u64> = pairs.iter().map(|pair| pair["lost"].as_u64().unwrap()).collect();
    assert!(lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    assert_eq!(pairs[0]["losing"][0], "bank/checkout@eks -> bank/order");
}

#[test]
fn drain_is_one_word_in_the_clusters_document() {
    let fleet = example();
    let before = fleet.read("inventory/clusters.yaml");
    let shown = fleet.done("drain cluster-1 --dry-run=client");
    assert!(shown.contains("cluster-1: drain (Cluster/cluster-1, inventory/clusters.yaml:"), "{shown}");
    assert_eq!(fleet.read("inventory/clusters.yaml"), before);
    fleet.done("drain cluster-1");
    let after = fleet.read("inventory/clusters.yaml");
    assert_eq!(after.replace("  drain: true\n", ""), before);
    assert_ne!(after, before);
    assert_eq!(fleet.done("drain cluster-1"), "cluster.meshintent.dev/cluster-1 unchanged\n");
    fleet.done("drain cluster-1 --undo");
    assert_eq!(fleet.read("inventory/clusters.yaml"), before);
    let unknown = fleet.refused("drain cluster-9");
    assert!(unknown.contains("there is no Cluster/cluster-9"), "{unknown}");
}

#[test]
fn orders_exclusions_and_shares_are_set() {
    let fleet = example();
    let before = fleet.read("intents/bank.yaml");
    fleet.done(
        "set bank/account-to-user --order local,hosting=on-prem --exclude eks --timeout 5s --retries 2 --per-try-timeout 2s --file intents",
    );
    let expected = before
        .replace(
            "order: [local, {hosting: on-prem, region: same}, {hosting: on-prem}]",
            "order: [local, {hosting: on-prem}]",
        )
        .replace(
            "    exclude: [{hosting: public-cloud}]\n",
            "    exclude: [eks]\n  retries: {attempts: 2, perTryTimeout: 2s}\n  timeout: 5s\n",
        );
    assert_eq!(fleet.read("intents/bank.yaml"), expected);
    fleet.done("set shop/bar-to-wine --weight wine=30 --weight canary=true=5 --file intents");
    assert!(
        fleet
            .read("intents/shop.yaml")
            .contains("weights: [{clusters: [wine], percent: 30}, {clusters: [{canary: \"true\"}], percent: 5}]")
    );
    let capped = fleet.refused("set bank/checkout-canary --weight canary=true=50 --file intents");
    assert!(capped.contains("canary-cap"), "{capped}");
    fleet.done("set fleet --order local,all --file intents");
    assert!(fleet.read("intents/fleet.yaml").contains("failover: {order: [local, all]}"));
    fleet.refused("set new --to bar --order local --file intents");
    fleet.refused("set shop/new --to bar --weight wine --file intents");
    let text = fleet.done("set shop/new --from web@eks --to bar --retries 1");
    assert_eq!(
        text,
        "apiVersion: meshintent.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: new, namespace: shop}\nspec:\n  from: [{service: web, clusters: [eks]}]\n  to: {service: bar}\n  retries: {attempts: 1}\n"
    );
}

#[test]
fn a_policy_is_listed_explained_and_removed() {
    let fleet = example();
    assert_eq!(fleet.done("get --no-headers").lines().count(), 4);
    assert_eq!(fleet.done("explain bank/account-to-user -o json").matches("\"removed\"").count(), 3);
    let before = fleet.read("intents/bank.yaml");
    let shown = fleet.done("remove bank/account-to-user");
    assert!(shown.contains("\n- cluster-1   bank/account   bank/user"), "{shown}");
    let after = fleet.read("intents/bank.yaml");
    assert!(!after.contains("account-to-user") && !after.contains("stay on premises"), "{after}");
    assert!(after.lines().all(|line| line == "---" || before.contains(line)), "{after}");
    assert_eq!(after.matches("\n---\n").count() + 1, before.matches("\n---\n").count());
    assert!(
        fleet
            .done("render --cluster cluster-1 -o name")
            .lines()
            .all(|name| { name.starts_with("destinationrule.") || name.starts_with("virtualservice.") })
    );
}
