//! `explain`, `check`, `clusters`, `schema` and `version`: what scripts rely on.

use crate::MESH;
use crate::support::{code, copy, example, run, tests, text};
use serde_json::{Value, json};

fn parsed(arguments: &[&str]) -> Value {
    let output = run(MESH, &example(), arguments);
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn explain_has_a_stable_shape() {
    let rows = parsed(&["explain", "-o", "json", "--from", "bank/account@eks", "--to", "bank/user"]);
    let expected = json!([{
        "caller": {"cluster": "eks", "namespace": "bank", "service": "account"},
        "service": {"namespace": "bank", "name": "user"},
        "shares": [],
        "tiers": [["eks"], ["cluster-1"], []],
        "removed": [{"cluster": "cluster-2", "reason": "access", "document": "AccessPolicy/bank/user-callers", "file": "intents/bank.yaml", "line": 66}],
    }]);
    assert_eq!(rows, expected);
    let all = parsed(&["explain", "-o", "json"]);
    let keys: Vec<String> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{}/{} {}/{}@{}",
                row["service"]["namespace"],
                row["service"]["name"],
                row["caller"]["namespace"],
                row["caller"]["service"],
                row["caller"]["cluster"]
            )
        })
        .collect();
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(keys, sorted, "by service, then caller");
}

#[test]
fn explain_says_which_condition_is_missing() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = run(MESH, &example(), &[&["explain"], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!((code(&output), text(&output.stdout).as_str()), (1, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && words.iter().all(|word| stderr.contains(word)), "{stderr}");
    };
    refused(
        &["--from", "bank/checkout@cluster-1", "--to", "bank/order"],
        &["bank/checkout", "only in cluster-2, eks", "bank/order"],
    );
    refused(&["--from", "web/web@wine", "--to", "bank/checkout"], &["web", "wine"]);
    refused(&["--from", "shop/web@eks", "--to", "bank/user"], &["shop/web", "bank/user"]);
    refused(&["--from", "bank/acount@eks", "--to", "bank/user"], &["did you mean \"bank/account\"?"]);
    refused(&["--from", "bank/account@esk", "--to", "bank/user"], &["did you mean \"eks\"?"]);
    refused(&["--to", "user"], &["NAMESPACE/NAME"]);
}

#[test]
fn explain_shows_what_it_can() {
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    std::fs::write(
        folder.path().join("bad.yaml"),
        "apiVersion: meshintent.dev/v1alpha1\nkind: Guardrail\nmetadata: {name: x}\nspec: {rule: []}\n",
    )
    .unwrap();
    let output = run(MESH, folder.path(), &["explain", "-o", "json"]);
    assert_eq!(code(&output), 1);
    assert!(
        text(&output.stderr).starts_with("error: bad.yaml:4:8: unknown field \"rule\""),
        "{}",
        text(&output.stderr)
    );
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows, parsed(&["explain", "-o", "json"]));
}

#[test]
fn check_ends_as_asked() {
    let case = |name: &str, arguments: &[&str]| {
        let output = run(MESH, &tests().join("cases").join(name), &[&["check", "-f", "fleet"], arguments].concat());
        assert_eq!(text(&output.stderr), "");
        code(&output)
    };
    assert_eq!(case("MESH204-misspelt-service", &[]), 1);
    assert_eq!(case("MESH304-no-dependency", &[]), 0);
    assert_eq!(case("MESH304-no-dependency", &["--fail-on", "warning"]), 1);
    assert_eq!(case("MESH406-no-policy", &["--fail-on", "warning"]), 0);
    assert_eq!(case("MESH406-no-policy", &["--fail-on", "note"]), 1);
    assert_eq!(case("MESH009-symbolic-link", &[]), 2, "what was not read was not checked");
}

#[test]
fn findings_have_forms_for_programs() {
    let folder = tests().join("cases/MESH110-document-twice");
    let check = |form: &str| {
        let output = run(MESH, &folder, &["check", "-f", "fleet", "-o", form]);
        assert_eq!((code(&output), text(&output.stderr).as_str()), (1, ""));
        text(&output.stdout)
    };
    let json: Value = serde_json::from_str(&check("json")).unwrap();
    assert_eq!(json[0]["code"], "MESH110");
    assert_eq!(
        (&json[0]["severity"], &json[0]["file"], &json[0]["line"]),
        (&"error".into(), &"fleet/services.yaml".into(), &3.into())
    );
    assert_eq!(json[0]["related"][0]["file"], "fleet/more.yaml");

    let sarif: Value = serde_json::from_str(&check("sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(
        (&sarif["version"], &result["ruleId"], &result["level"]),
        (&"2.1.0".into(), &"MESH110".into(), &"error".into())
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"fleet/services.yaml".into(), &3.into())
    );
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][0]["id"], "MESH110");

    let github = check("github");
    assert!(github.starts_with("::error file=fleet/services.yaml,line=3,col=18,title=MESH110"), "{github}");
    assert_eq!(github.lines().count(), 1);

    assert_eq!(check("jsonpath={[*].code}"), "MESH110");

    let clean = run(MESH, &example(), &["check", "-o", "json"]);
    assert_eq!(code(&clean), 0);
    assert!(serde_json::from_slice::<Value>(&clean.stdout).unwrap().is_array());
}

#[test]
fn the_inventory_is_listed() {
    let table = text(&run(MESH, &example(), &["clusters", "list"]).stdout);
    assert!(table.starts_with("CLUSTER") && table.lines().count() == 6, "{table}");
    let bare = text(&run(MESH, &example(), &["clusters", "list", "--no-headers"]).stdout);
    assert!(bare.lines().count() == 5 && !bare.contains("REGION"), "{bare}");
    let names = text(&run(MESH, &example(), &["clusters", "list", "-o", "name"]).stdout);
    assert_eq!(names, "cluster/canary-1\ncluster/cluster-1\ncluster/cluster-2\ncluster/eks\ncluster/wine\n");
    assert_eq!(parsed(&["clusters", "list", "-o", "json"])[3]["trustDomain"], "eks.bank.example");
    let wide = text(&run(MESH, &example(), &["clusters", "list", "-o", "wide"]).stdout);
    assert!(wide.lines().next().unwrap().ends_with("TRUST DOMAIN"), "{wide}");

    let one = text(&run(MESH, &example(), &["clusters", "requirements", "--cluster", "eks"]).stdout);
    let all = text(&run(MESH, &example(), &["clusters", "requirements"]).stdout);
    assert!(all.contains(&one) && one.contains("cluster-1.bank.example"), "{one}");
    let unknown = run(MESH, &example(), &["clusters", "requirements", "--cluster", "ek"]);
    assert_eq!((code(&unknown), text(&unknown.stdout).as_str()), (1, ""));
}

/// What breaks a mesh and stands in no document (see docs/traps.md).
#[test]
fn requirements_name_what_documents_cannot_show() {
    let one = text(&run(MESH, &example(), &["clusters", "requirements", "--cluster", "eks"]).stdout);
    for needed in ["must pass TCP through", "trustDomains: [cluster-1.bank.example]", "clusterLocal", "by a wildcard"] {
        assert!(one.contains(needed), "{needed}: {one}");
    }
}

#[test]
fn schema_and_version_need_no_documents() {
    let nowhere = std::path::Path::new("/");
    let version = run(MESH, nowhere, &["version"]);
    assert_eq!((code(&version), text(&version.stdout)), (0, format!("kubectl-mesh v{}\n", env!("CARGO_PKG_VERSION"))));
    let kind: Value = serde_json::from_slice(&run(MESH, nowhere, &["schema", "trafficpolicy"]).stdout).unwrap();
    assert_eq!(kind["properties"]["kind"]["const"], "TrafficPolicy");
    let unknown = run(MESH, nowhere, &["schema", "TrafficPolcy"]);
    assert_eq!((code(&unknown), text(&unknown.stdout).as_str()), (1, ""));
    assert!(
        text(&unknown.stderr).starts_with("error: ")
            && text(&unknown.stderr).contains("did you mean \"TrafficPolicy\"?")
    );
}

#[test]
fn a_misused_command_line_is_told() {
    for arguments in [
        &["rendr"][..],
        &["render"],
        &["render", "--cluster"],
        &["render", "--cluster", "eks", "--all"],
        &["render", "--all"],
        &["render", "--output-dir", "out"],
        &["render", "--cluster", "eks", "-o", "xml"],
        &["check", "--fail-on", "never"],
        &["explain", "--form", "x"],
        &["diff", "--clutser", "eks"],
        &[],
    ] {
        let output = run(MESH, &example(), arguments);
        // kubectl's code for trouble; where 1 means findings or differences, trouble is more than that.
        let trouble = if matches!(arguments, ["check" | "diff", ..]) { 2 } else { 1 };
        assert_eq!(code(&output), trouble, "{arguments:?}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        let first = if arguments.is_empty() { "Steer a fleet" } else { "error: " };
        assert!(text(&output.stderr).starts_with(first), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn cluster_is_the_first_column() {
    for arguments in [&["explain"][..], &["clusters", "list"], &["clusters", "list", "-o", "wide"]] {
        let output = run(MESH, &example(), arguments);
        assert!(text(&output.stdout).starts_with("CLUSTER   "), "{arguments:?}");
    }
    let names = text(&run(MESH, &example(), &["clusters", "list", "-o", "jsonpath={[*].name}"]).stdout);
    assert_eq!(names, "canary-1 cluster-1 cluster-2 eks wine");
}

#[test]
fn nothing_is_coloured_for_programs() {
    for arguments in
        [&["--help"][..], &["explain"], &["check"], &["clusters", "list"], &["render", "--cluster", "nobody"]]
    {
        let output = run(MESH, &example(), arguments);
        assert!(!output.stdout.contains(&0x1B) && !output.stderr.contains(&0x1B), "{arguments:?}");
    }
}
