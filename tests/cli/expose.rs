//! `kubectl mesh expose` on the command line, on the program itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod fleet;
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use fleet::Fleet;

fn example() -> Fleet {
    Fleet::example(env!("CARGO_BIN_EXE_kubectl-mesh-expose"))
}

#[test]
fn get_says_where_services_run_and_who_depends_on_them() {
    let fleet = example();
    let table = fleet.done("get -n bank");
    assert_eq!(
        table,
        "NAMESPACE   NAME       HOSTNAMES                    CLUSTERS                           DEPENDENTS\n\
         bank        account    <none>                       cluster-1,cluster-2,eks            <none>\n\
         bank        checkout   checkout.mesh.bank.example   canary-1,cluster-1,cluster-2,eks   web/web\n\
         bank        order      order.mesh.bank.example      cluster-2                          bank/checkout\n\
         bank        user       user.mesh.bank.example       cluster-1,cluster-2,eks            bank/account\n"
    );
    assert_eq!(fleet.done("get -A -l data=pii -o name"), "meshservice.meshintent.dev/user\n");
    assert_eq!(fleet.done("get -l !data -o name").lines().count(), 6);
    assert!(!fleet.done("get user --no-headers").contains("NAMESPACE"));
    let wide = fleet.done("get bank/order -o wide");
    assert!(wide.contains("cluster-2:") && wide.contains("eks:") && wide.contains("intents/bank.yaml:19"), "{wide}");
    let written = fleet.done("get bank/user -o yaml");
    assert!(fleet.read("intents/bank.yaml").starts_with(&written), "{written}");
    let json: serde_json::Value = serde_json::from_str(&fleet.done("get user -o json")).unwrap();
    assert_eq!(json["spec"]["expose"]["hostnames"][0], "user.mesh.bank.example");
    assert_eq!(fleet.done("get -n shop -o jsonpath={.items[*].metadata.name}"), "bar web");
    assert_eq!(fleet.done("get user -o jsonpath={.spec.expose.hostnames[0]}"), "user.mesh.bank.example");
    let unknown = fleet.run("get -o tabel");
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.err.contains("unable to match a printer suitable for the output format \"tabel\""),
        "{}",
        unknown.err
    );
    let half = fleet.run("get -o jsonpath={.items");
    assert!(half.code == 1 && half.err.contains("unclosed action"), "{}", half.err);
    let missing = fleet.run("get bank/usr");
    assert_eq!((missing.code, missing.err.as_str()), (1, "error: meshservice \"bank/usr\" not found\n"));
    let nothing = fleet.run("get -n nowhere");
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert_eq!(nothing.err, "No resources found in nowhere namespace.\n");
}

#[test]
fn set_changes_one_field_and_nothing_else() {
    let fleet = example();
    let before = fleet.read("intents/bank.yaml");
    let shown = fleet.done("set bank/user --to bank --file intents/ --dry-run=client");
    assert!(shown.contains("\n+    to: [{namespace: bank}]\n"), "{shown}");
    assert!(shown.ends_with("meshservice.meshintent.dev/user configured (dry run)\n"), "{shown}");
    assert_eq!(fleet.read("intents/bank.yaml"), before);
    let written = fleet.done("set bank/user --to bank --file intents/");
    assert!(written.ends_with("meshservice.meshintent.dev/user configured in intents/bank.yaml\n"), "{written}");
    let line = "    hostnames: [user.mesh.bank.example]\n";
    assert_eq!(
        fleet.read("intents/bank.yaml"),
        before.replace(line, &format!("{line}    to: [{{namespace: bank}}]\n"))
    );
    let again = fleet.done("set bank/user --to bank --file intents/");
    assert_eq!(again, "meshservice.meshintent.dev/user unchanged\n");
    let back = fleet.run("set bank/user --to= --file intents/");
    assert_eq!((back.code, fleet.read("intents/bank.yaml")), (0, before));
}

#[test]
fn comments_and_style_survive() {
    let fleet = example();
    let document = "# Rates.\n# Ask the shop.\n\napiVersion: meshintent.dev/v1alpha1\nkind: MeshService   # one service\nmetadata:\n  name: rates\n  namespace: shop   # not bank\nspec:\n  clusters:\n  # Where the money is.\n  - eks   # first\n  - \"wine\"\n  ports:\n  - name: http\n    port: 8080   # as always\n  dependsOn: [bar]   # for now\n";
    fleet.write("intents/rates.yaml", document);
    fleet.done("set shop/rates --clusters eks,wine,cluster-1 --port http=8080,admin=9090/tcp --label tier=one --file intents/rates.yaml");
    let expected = document
        .replace("  namespace: shop   # not bank\n", "  namespace: shop   # not bank\n  labels: {tier: one}\n")
        .replace("  - \"wine\"\n", "  - \"wine\"\n  - cluster-1\n")
        .replace(
            "    port: 8080   # as always\n",
            "    port: 8080   # as always\n    protocol: HTTP\n  - name: admin\n    port: 9090\n    protocol: TCP\n",
        );
    assert_eq!(fleet.read("intents/rates.yaml"), expected);
}

#[test]
fn new_documents_go_where_they_are_wanted() {
    let fleet = example();
    let flags = "--clusters eks,hosting=on-prem --port http=8080 --hostname rates.mesh.bank.example";
    let text = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: rates, namespace: bank}\nspec:\n  clusters: [eks, {hosting: on-prem}]\n  ports: [{name: http, port: 8080, protocol: HTTP}]\n  expose:\n    hostnames: [rates.mesh.bank.example]\n";
    let before = fleet.everything();
    assert_eq!(fleet.done(&format!("set bank/rates {flags}")), text);
    assert_eq!(fleet.everything(), before);
    fleet.done(&format!("set rates -n bank {flags} --file intents/web.yaml"));
    assert!(fleet.read("intents/web.yaml").ends_with(&format!("\n---\n{text}")));
    let elsewhere = fleet.refused("set bank/rates --to bank --file intents/shop.yaml");
    assert!(elsewhere.contains("stands in intents/web.yaml"), "{elsewhere}");
    fleet.done("remove bank/rates");
    assert_eq!(fleet.everything(), before);
    fleet.done(&format!("set bank/rates {flags} --file intents"));
    assert_eq!(fleet.read("intents/meshservice-bank-rates.yaml"), text);
    fleet.done("remove bank/rates");
    assert_eq!(fleet.everything(), before);
}

#[test]
fn the_effect_on_the_fleet_is_shown() {
    let fleet = example();
    let shown = fleet.done("set bank/order --clusters cluster-2,eks --file intents --dry-run=client");
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("bank/checkout")).collect();
    assert_eq!(rows.len(), 4, "{shown}");
    assert!(rows[0].starts_with("- cluster-2") && rows[1].starts_with("+ cluster-2"), "{shown}");
    assert!(shown.contains("\nCLUSTER     OBJECTS ADDED   CHANGED   REMOVED\n"), "{shown}");
    let nothing = fleet.done("set bank/user --label team=one --file intents --dry-run=client");
    assert!(nothing.contains("\nNo effect on the fleet.\n"), "{nothing}");
}

#[test]
fn what_would_not_be_right_is_refused() {
    let fleet = example();
    let unknown = fleet.refused("set bank/user --clusters eks,nowhere --file intents");
    assert!(unknown.contains("no cluster is called \"nowhere\" [MESH202]"), "{unknown}");
    assert!(unknown.ends_with("error: nothing was written: the documents would not be right\n"), "{unknown}");
    fleet.refused("set bank/user --hostname user.elsewhere.example --file intents");
    fleet.refused("remove bank/user");
    fleet.refused("set bank/user --port 8080 --file intents");
    fleet.refused("set bank/user --file intents");
    fleet.refused("set user --to bank --file intents");
    fleet.refused("set bank/user --to bank --file -");
    let near = fleet.refused("remove bank/usr");
    assert!(near.contains("did you mean"), "{near}");
    fleet.refused("set bank/user --unknown x");
}

#[test]
fn half_written_files_stop_every_edit() {
    let fleet = example();
    let half = fleet.read("intents/bank.yaml");
    fleet.write("intents/bank.yaml", &half[..half.len() / 3]);
    fleet.refused("set bank/user --to bank --file intents");
    fleet.write(
        "intents/bank.yaml",
        "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: user, nam",
    );
    let said = fleet.refused("set bank/user --to bank --file intents");
    assert!(said.contains("intents/bank.yaml"), "{said}");
    fleet.refused("set bank/new --clusters all --port http=80 --file intents/bank.yaml");
}

#[test]
fn two_edits_at_once_lose_nothing() {
    let fleet = example();
    let commands: Vec<String> = (0..8)
        .map(|number| format!("set shop/s{number} --clusters all --port http=80 --file intents/shop.yaml"))
        .collect();
    let said: Vec<_> = std::thread::scope(|scope| {
        let fleet = &fleet;
        let handles: Vec<_> = commands.iter().map(|line| scope.spawn(move || fleet.run(line))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let text = fleet.read("intents/shop.yaml");
    assert!(said.iter().any(|said| said.code == 0));
    for (number, said) in said.iter().enumerate() {
        let written = text.contains(&format!("name: s{number},"));
        assert_eq!(written, said.code == 0, "{}{}", said.out, said.err);
        assert!(written || said.err.contains("changed by someone else"), "{}", said.err);
    }
    fleet.done("get");
}

#[test]
fn render_shows_what_the_whole_suite_renders() {
    let fleet = example();
    let names = fleet.done("render --cluster cluster-1 -o name");
    assert!(names.lines().any(|name| name.starts_with("serviceentry.networking.istio.io/")), "{names}");
    assert!(!names.contains("security.istio.io"), "{names}");
    assert!(fleet.done("render --cluster cluster-1").starts_with("apiVersion: networking.istio.io/v1\n"));
    fleet.refused("render --cluster nowhere");
}

#[test]
fn explain_is_about_the_service() {
    let fleet = example();
    let rows = fleet.done("explain bank/user --no-headers");
    assert_eq!(rows.lines().count(), 3, "{rows}");
    assert!(rows.lines().all(|row| row.contains("bank/user")), "{rows}");
    let unknown = fleet.refused("explain bank/usr");
    assert!(unknown.contains("MeshService/bank/user"), "{unknown}");
}
