//! `kubectl mesh authz` on the command line, on the program itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod fleet;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use fleet::Fleet;
use serde_json::Value;

fn example() -> Fleet {
    Fleet::example(env!("CARGO_BIN_EXE_kubectl-mesh-authz"))
}

#[test]
fn can_i_answers_with_the_deciding_document() {
    let fleet = example();
    let no = fleet.run("can-i bank/account@eks bank/user --in cluster-2");
    assert_eq!(no.code, 1);
    assert!(no.out.starts_with("no - AccessPolicy/bank/user-callers (intents/bank.yaml:"), "{}", no.out);
    let yes = fleet.run("can-i bank/account@eks bank/user --in eks");
    assert_eq!(
        (yes.code, yes.out.as_str()),
        (0, "yes - AccessPolicy/bank/user-callers (intents/bank.yaml:67) allows it\n")
    );
    let open = fleet.done("can-i bank/user@eks bank/account --in eks");
    assert!(open.starts_with("yes - no AccessPolicy holds"), "{open}");
    let quiet = fleet.run("can-i account@eks user --in cluster-2 -n bank --quiet");
    assert_eq!((quiet.code, quiet.out.as_str()), (1, ""));
    for wrong in [
        "can-i bank/account bank/user --in eks",
        "can-i bank/account@wine bank/user --in eks",
        "can-i bank/account@eks bank/user --in wine",
        "can-i bank/account@eks bank/usr --in eks",
        "can-i bank/account@eks bank/user",
    ] {
        fleet.refused(wrong);
    }
}

#[test]
fn conditions_are_told_and_asked() {
    let fleet = example();
    fleet.done(
        "set bank/order-callers --to order --allow dependents --ports 8080 --methods GET --paths /v1/* --file intents",
    );
    let yes = fleet.done("can-i bank/checkout@eks bank/order --in cluster-2");
    assert!(yes.ends_with(" allows it, only ports 8080, methods GET, paths /v1/*\n"), "{yes}");
    let ask = "can-i bank/checkout@eks bank/order --in cluster-2 --port 8080";
    fleet.done(&format!("{ask} --method GET --path /v1/a"));
    assert_eq!(fleet.run(&format!("{ask} --method POST --path /v1/a")).code, 1);
    assert_eq!(fleet.run(&format!("{ask} --method GET --path /v2/a")).code, 1);
    let table = fleet.done("who-can bank/order --no-headers");
    assert_eq!(
        table,
        "cluster-2   bank/checkout   bank/order   partly\neks         bank/checkout   bank/order   partly\n"
    );
}

/// "Yes" to a request that no client can send, or that reaches no port of the service, would be a wrong answer.
#[test]
fn requests_that_cannot_be_sent_have_no_answer() {
    let fleet = example();
    // The first service of the file is the called one.
    fleet.edit("intents/bank.yaml", "  ports: [", "  ports: [{name: db, port: 5432, protocol: TCP}, ");
    let ask = "can-i bank/account@eks bank/user --in eks";
    let port = fleet.refused(&format!("{ask} --port 9999"));
    assert!(port.contains("bank/user has no port \"9999\"; it has db 5432 (TCP), http 8080 (HTTP)"), "{port}");
    fleet.refused(&format!("{ask} --method get"));
    fleet.refused(&format!("{ask} --path v1"));
    fleet.refused(&format!("{ask} --path /v1?x=1"));
    fleet.refused(&format!("{ask} --port 5432 --method GET"));
    fleet.done(&format!("{ask} --port 5432"));
    fleet.done(&format!("{ask} --port http --method GET"));
    fleet.edit("intents/bank.yaml", "in: [eks, cluster-1]}", "in: [eks, cluster-1], methods: [GET]}");
    fleet.done(&format!("{ask} --port 8080"));
    assert_eq!(fleet.run(&format!("{ask} --port 5432")).code, 1, "methods never fit a connection without requests");
}

#[test]
fn who_can_shows_every_caller_against_every_copy() {
    let fleet = example();
    assert_eq!(
        fleet.done("who-can bank/user"),
        "CLUSTER     CALLER         SERVICE     IN CLUSTER-1   IN CLUSTER-2   IN EKS\n\
         cluster-1   bank/account   bank/user   yes            yes            yes\n\
         cluster-2   bank/account   bank/user   yes            yes            yes\n\
         eks         bank/account   bank/user   yes            no             yes\n"
    );
    let copies: Value = serde_json::from_str(&fleet.done("who-can -o json")).unwrap();
    let copies = copies.as_array().unwrap();
    assert_eq!(copies.len(), 23);
    let user = copies.iter().find(|copy| copy["service"]["name"] == "user" && copy["cluster"] == "cluster-2").unwrap();
    assert_eq!(user["mode"], "enforce");
    let callers = user["callers"].as_array().unwrap();
    assert_eq!(callers.len(), 23);
    let allowed: Vec<&Value> = callers.iter().filter(|caller| caller["allowed"] == true).collect();
    assert_eq!(allowed.len(), 2);
    assert_eq!(allowed[0]["caller"]["serviceAccount"], "account");
    assert_eq!(allowed[0]["rules"][0]["document"], "AccessPolicy/bank/user-callers");
    assert!(callers.iter().all(|caller| caller["allowed"] == true || caller["rules"] == serde_json::json!([])));
}

#[test]
fn rules_are_set_and_removed_one_by_one() {
    let fleet = example();
    let before = fleet.read("intents/bank.yaml");
    let shown = fleet.done("set bank/user-callers --allow account@eks --in eks --file intents");
    assert!(shown.contains("\neks       bank/account   bank/user   cluster-1   yes      no\n"), "{shown}");
    assert_eq!(fleet.read("intents/bank.yaml"), before.replace("in: [eks, cluster-1]", "in: [eks]"));
    fleet.done("set bank/user-callers --allow account@eks --in eks,cluster-1 --file intents");
    assert_eq!(fleet.read("intents/bank.yaml"), before);
    fleet.done("set bank/user-callers --allow shop/web --ports 8080 --file intents");
    let rule = "  - {from: [{service: web, namespace: shop}], ports: [8080]}\n";
    assert_eq!(fleet.read("intents/bank.yaml"), format!("{before}{rule}"));
    let unknown = fleet.refused("remove bank/user-callers --allow shop/bar");
    assert!(unknown.contains("has no rule for exactly"), "{unknown}");
    fleet.done("remove bank/user-callers --allow shop/web");
    assert_eq!(fleet.read("intents/bank.yaml"), before);
    fleet.refused("set bank/user-callers --in eks --file intents");
    fleet.refused("set bank/user-callers --allow account --ports http --file intents");
    fleet.refused("set bank/user-callers --allow account --ports 9999 --file intents");
    fleet.refused("set bank/new --to user --file intents");
    // The guardrail wants a policy for personal data.
    fleet.refused("remove bank/user-callers");
}

#[test]
fn nobody_is_a_list_without_callers() {
    let fleet = example();
    let text = fleet.done("set bank/account-callers --to account --nobody");
    assert!(text.ends_with("spec:\n  to: {service: account}\n  allow: []\n"), "{text}");
    fleet.done("set bank/account-callers --to account --nobody --file intents");
    fleet.done("set bank/account-callers --allow dependents --file intents");
    let text = fleet.read("intents/accesspolicy-bank-account-callers.yaml");
    assert!(text.ends_with("  allow:\n  - {from: [dependents]}\n"), "{text}");
}

#[test]
fn policies_are_listed_explained_and_rendered() {
    let fleet = example();
    let table = fleet.done("get --no-headers");
    assert!(table.starts_with("bank   user-callers   user   enforce   [{service: account, clusters:"), "{table}");
    assert_eq!(fleet.done("explain bank/user-callers --no-headers").lines().count(), 3);
    let names = fleet.done("render --cluster eks -o name");
    assert_eq!(
        names,
        "authorizationpolicy.security.istio.io/user.bank\npeerauthentication.security.istio.io/user.bank\n"
    );
    let nothing = fleet.run("render --cluster wine");
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert!(nothing.err.starts_with("No resources found"), "{}", nothing.err);
}
