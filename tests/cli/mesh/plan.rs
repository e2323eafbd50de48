//! `plan` and `graph`: what a change does to the fleet, and what the fleet looks like.

use crate::MESH;
use crate::support::{code, command, example, run, text};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Runs Git in a folder, with nothing of the user's configuration.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=somebody", "-c", "user.email=somebody@bank.example"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The example fleet as the first commit of a repository, in its folder `fleet`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    crate::support::copy(&example(), &folder.path().join("fleet"));
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "--quiet", "--message", "first"]);
    folder
}

fn edit(path: &Path, from: &str, to: &str) {
    let before = std::fs::read_to_string(path).unwrap();
    assert!(before.contains(from), "{from}");
    std::fs::write(path, before.replacen(from, to, 1)).unwrap();
}

/// Runs a program that finds Git.
fn plan(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(MESH, folder)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .arg("plan")
        .args(arguments)
        .output()
        .unwrap();
    (code(&output), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_revision_is_compared_with_the_files_as_they_are() {
    let repository = repository();
    let folder = repository.path();
    assert_eq!(
        plan(folder, &["main", "-f", "fleet"]),
        (0, String::new(), "No effect on the fleet.\n".to_owned()),
        "nothing changed"
    );
    edit(&folder.join("fleet/intents/bank.yaml"), "exclude: [{hosting: public-cloud}]", "exclude: [cluster-2]");
    let (code, out, err) = plan(folder, &["main", "-f", "fleet"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with(['-', '+'])).collect();
    assert!(rows.iter().all(|row| row.contains("bank/account   bank/user")), "{out}");
    assert!(
        rows.iter().any(|row| row.starts_with("- cluster-1") && row.contains("cluster-2"))
            && rows.iter().any(|row| row.starts_with("+ cluster-1") && row.contains("cluster-2: exclude")),
        "{out}"
    );
    // From below the fleet, and when what -f names is gone, the revision is found all the same.
    let (_, below, _) = plan(&folder.join("fleet/intents"), &["main", "-f", ".."]);
    assert_eq!(below.replace("intents/", ""), out.replace("intents/", ""));
    git(folder, &["commit", "--quiet", "--all", "--message", "second"]);
    std::fs::remove_dir_all(folder.join("fleet")).unwrap();
    assert_eq!(plan(folder, &["main~1", "main", "-f", "fleet"]).1, out, "between two revisions");
}

#[test]
fn what_it_says_of_objects_is_what_render_says() {
    let repository = repository();
    let folder = repository.path();
    edit(&folder.join("fleet/intents/bank.yaml"), "exclude: [{hosting: public-cloud}]", "exclude: [cluster-2]");
    git(folder, &["commit", "--quiet", "--all", "--message", "second"]);
    let (code, out, err) = plan(folder, &["main~1", "main", "-f", "fleet", "-o", "json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let effect: Value = serde_json::from_str(&out).unwrap();
    let mut claimed: Vec<(String, String, String)> = Vec::new();
    for cluster in effect["clusters"].as_array().unwrap() {
        for object in cluster["objects"].as_array().unwrap() {
            let word = |key: &str| object[key].as_str().unwrap().to_owned();
            let name = format!("{}/{}/{}", word("kind"), word("namespace"), word("name"));
            claimed.push((cluster["cluster"].as_str().unwrap().to_owned(), name, word("change")));
        }
    }
    claimed.sort();
    // The same, from what `render` prints for both sides.
    let rendered = |revision: &str, cluster: &str| -> std::collections::BTreeMap<String, Value> {
        git(folder, &["checkout", "--quiet", revision]);
        let output = run(MESH, folder, &["render", "-f", "fleet", "--cluster", cluster, "-o", "json"]);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let items = list["items"].as_array().cloned().unwrap_or_else(|| vec![list.clone()]);
        items
            .into_iter()
            .map(|item| {
                let word = |value: &Value| value.as_str().unwrap().to_owned();
                let metadata = &item["metadata"];
                (format!("{}/{}/{}", word(&item["kind"]), word(&metadata["namespace"]), word(&metadata["name"])), item)
            })
            .collect()
    };
    let mut expected = Vec::new();
    for cluster in ["canary-1", "cluster-1", "cluster-2", "eks", "wine"] {
        let (old, new) = (rendered("main~1", cluster), rendered("main", cluster));
        let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let change = match (old.get(name), new.get(name)) {
                (None, _) => "added",
                (_, None) => "removed",
                (Some(old), Some(new)) if old != new => "changed",
                _ => continue,
            };
            expected.push((cluster.to_owned(), name.clone(), change.to_owned()));
        }
    }
    expected.sort();
    assert!(!expected.is_empty());
    assert_eq!(claimed, expected);

    let diff = plan(folder, &["main~1", "main", "-f", "fleet", "-o", "diff"]).1;
    let heads: Vec<&str> =
        diff.lines().filter(|line| line.starts_with("+++ ") || line.starts_with("--- /dev/null")).collect();
    assert!(heads.len() >= expected.len(), "{diff}");
    let wide = plan(folder, &["main~1", "main", "-f", "fleet", "-o", "wide"]).1;
    assert!(expected.iter().all(|(_, name, _)| wide.contains(name.rsplit('/').next().unwrap())), "{wide}");
}

#[test]
fn access_that_changes_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::copy(&example(), folder.path());
    edit(&folder.path().join("intents/bank.yaml"), "in: [eks, cluster-1]", "in: [eks]");
    let output = run(MESH, folder.path(), &["plan", example().to_str().unwrap(), "-o", "json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let effect: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([{
        "caller": {"cluster": "eks", "namespace": "bank", "service": "account"},
        "service": {"namespace": "bank", "name": "user"},
        "in": "cluster-1", "before": "yes", "after": "no",
    }]);
    assert_eq!(effect["access"], expected);
}

#[test]
fn a_caller_that_changes_its_account_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::copy(&example(), folder.path());
    // What the called service grants stays the same: to an account, whoever runs under it.
    edit(
        &folder.path().join("intents/bank.yaml"),
        "mode: enforce\n  allow:\n",
        "mode: enforce\n  allow:\n  - {from: [{namespace: web, serviceAccount: web}]}\n",
    );
    let before = tempfile::tempdir().unwrap();
    crate::support::copy(folder.path(), before.path());
    edit(
        &folder.path().join("intents/web.yaml"),
        "metadata: {name: web, namespace: web}\nspec:\n",
        "metadata: {name: web, namespace: web}\nspec:\n  workload: {serviceAccount: front}\n",
    );
    let output = run(MESH, folder.path(), &["plan", before.path().to_str().unwrap(), "-o", "json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let effect: Value = serde_json::from_slice(&output.stdout).unwrap();
    let access = effect["access"].as_array().unwrap();
    assert!(!access.is_empty() && access.iter().all(|one| one["before"] == "yes" && one["after"] == "no"), "{effect}");
}

/// What one fleet calls the first cluster is another one in the other fleet.
#[test]
fn access_follows_the_names_of_clusters() {
    let fleet = |clusters: [&str; 3], allowed: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut documents = clusters.map(|name| {
            format!(
                "apiVersion: meshintent.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\n\
                 spec: {{region: here, network: {name}, gateway: {{address: {name}.example}}, mesh: {{trustDomain: {name}.example}}}}\n---\n"
            )
        });
        documents[2] += &format!(
            "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {{name: caller, namespace: shop}}\n\
             spec: {{clusters: all, ports: [{{name: http, port: 80}}]}}\n---\n\
             apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {{name: called, namespace: shop}}\n\
             spec: {{clusters: [c], ports: [{{name: http, port: 80}}]}}\n---\n\
             apiVersion: meshintent.dev/v1alpha1\nkind: AccessPolicy\nmetadata: {{name: called, namespace: shop}}\n\
             spec: {{to: {{service: called}}, allow: [{{from: [{{service: caller, clusters: [{allowed}]}}]}}]}}\n"
        );
        std::fs::write(folder.path().join("fleet.yaml"), documents.concat()).unwrap();
        folder
    };
    let (before, after) = (fleet(["a", "b", "c"], "a"), fleet(["b", "c", "d"], "b"));
    let output = run(MESH, after.path(), &["plan", before.path().to_str().unwrap(), "-o", "json"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let effect: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([{
        "caller": {"cluster": "b", "namespace": "shop", "service": "caller"},
        "service": {"namespace": "shop", "name": "called"},
        "in": "c", "before": "no", "after": "yes",
    }]);
    assert_eq!(effect["access"], expected);
}

/// Every document has a number, and this one moves all others.
#[test]
fn a_document_in_front_changes_nothing_of_others() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::copy(&example(), folder.path());
    let lonely = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: aaa, namespace: aaa}\n\
        spec: {clusters: [eks], ports: [{name: http, port: 80, protocol: HTTP}]}\n";
    std::fs::write(folder.path().join("inventory/aaa.yaml"), lonely).unwrap();
    let output = run(MESH, folder.path(), &["plan", example().to_str().unwrap()]);
    assert_eq!((code(&output), text(&output.stdout)), (0, String::new()));
}

#[test]
fn what_is_not_right_is_refused_with_the_side_it_stands_on() {
    let repository = repository();
    let folder = repository.path();
    edit(&folder.join("fleet/intents/bank.yaml"), "exclude:", "exclud:");
    git(folder, &["commit", "--quiet", "--all", "--message", "second"]);
    edit(&folder.join("fleet/intents/bank.yaml"), "exclud:", "exclude:");
    let refused = |arguments: &[&str], word: &str| {
        let (code, out, err) = plan(folder, arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.starts_with("error: ") && err.contains(word), "{arguments:?}: {err}");
    };
    refused(&["main", "-f", "fleet"], "main:fleet/intents/bank.yaml:48");
    refused(&["mian", "-f", "fleet"], "\"mian\" is neither a folder nor a Git revision");
    refused(&["--", "--output=x"], "neither a folder nor a Git revision");
    refused(&["main~1", "-f", "flet"], "main~1:flet: no such file or folder");
    refused(&["main~1", "-f", "-"], "stdin");
    let lonely = tempfile::tempdir().unwrap();
    let (code, _, err) = plan(lonely.path(), &["main"]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with("error: \"main\" is no folder, and . has no revisions: ")
            && err.contains("not a git repository"),
        "{err}"
    );
}

/// Git itself would not check such a tree out.
#[cfg(unix)]
#[test]
fn links_of_a_revision_are_refused_as_links_of_a_folder_are() {
    let repository = repository();
    let folder = repository.path();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("fleet/more")).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--message", "a link"]);
    let (code, out, err) = plan(folder, &["main", "main~1", "-f", "fleet"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("main:fleet/more: a symbolic link"), "{err}");
}

#[test]
fn a_graph_has_what_explain_says() {
    let graph = |arguments: &[&str]| {
        let output = run(MESH, &example(), &[&["graph"], arguments].concat());
        assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""));
        text(&output.stdout)
    };
    let json: Value = serde_json::from_str(&graph(&["-o", "json", "--from", "shop/web@eks"])).unwrap();
    let node = |cluster: &str, service: &str| json!({"cluster": cluster, "namespace": "shop", "service": service});
    let line = |to: &str, more: &[(&str, Value)]| {
        let mut line = json!({"from": node("eks", "web"), "to": node(to, "bar"), "match": false});
        for (key, value) in more {
            line[*key] = value.clone();
        }
        line
    };
    let expected = json!({
        "nodes": [node("canary-1", "bar"), node("cluster-1", "bar"), node("cluster-2", "bar"), node("eks", "bar"), node("eks", "web"), node("wine", "bar")],
        "edges": [
            line("wine", &[("percent", 20.into())]),
            line("eks", &[("tier", 0.into()), ("percent", 80.into())]),
            line("canary-1", &[("tier", 1.into())]),
            line("cluster-1", &[("tier", 1.into())]),
            line("cluster-2", &[("tier", 2.into())]),
            line("wine", &[("tier", 2.into())]),
        ],
    });
    assert_eq!(json, expected);
    let mermaid = graph(&["--from", "shop/web@eks"]);
    assert!(
        mermaid.starts_with("flowchart LR\n")
            && mermaid.contains("-.->|\"tier 1\"|")
            && mermaid.contains("-->|\"20%\"|"),
        "{mermaid}"
    );
    let dot = graph(&["-o", "dot", "--cluster", "wine"]);
    assert!(dot.starts_with("digraph mesh {") && !dot.contains("bank/user") && dot.contains("shop/bar"), "{dot}");
}
