//! Which documents a run reads: `-f` with files, folders, standard input; what is skipped, what is refused.

use crate::MESH;
use crate::support::{code, command, copy, example, run, text};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const ONE_CLUSTER: &str = "\
apiVersion: meshintent.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {region: here, network: lan, mesh: {version: \"1.30\"}}
";
const FOREIGN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// What `clusters list -o name` prints for these arguments, its stderr, and its exit code.
fn listed(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = run(MESH, folder, &[&["clusters", "list", "-o", "name"], arguments].concat());
    (text(&output.stdout), text(&output.stderr), code(&output))
}

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

#[test]
fn the_same_documents_by_any_way_give_the_same_bytes() {
    let fleet = example();
    let render = |arguments: &[&str]| {
        let output = run(MESH, &fleet, &[&["render", "--cluster", "eks"], arguments].concat());
        assert_eq!(code(&output), 0, "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let expected = render(&[]);
    let [a, b, c, d, e] =
        ["inventory/clusters.yaml", "intents/bank.yaml", "intents/shop.yaml", "intents/web.yaml", "intents/fleet.yaml"];
    assert_eq!(render(&["-f", "."]), expected);
    assert_eq!(render(&["-R", "-f", "intents,inventory"]), expected);
    assert_eq!(render(&["-f", "intents", "-f", "inventory"]), expected);
    assert_eq!(render(&["-f", &[e, d, c, b, a].join(",")]), expected);
    assert_eq!(render(&["-f", a, "--filename", b, "-f", c, "-f", d, "-f", e]), expected);

    let stream: String = [d, a, e, c, b]
        .map(|path| std::fs::read_to_string(fleet.join(path)).unwrap())
        .join("\n---\n# nothing but a comment\n---\n");
    for stream in [stream.clone(), stream.replace('\n', "\r\n"), format!("\u{FEFF}{stream}")] {
        let mut child = command(MESH, Path::new("/"))
            .args(["render", "--cluster", "eks", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), text(&output.stdout)), (0, expected.clone()));
    }
}

#[test]
fn every_document_in_a_file_of_its_own_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    for file in
        ["inventory/clusters.yaml", "intents/bank.yaml", "intents/shop.yaml", "intents/web.yaml", "intents/fleet.yaml"]
    {
        for document in std::fs::read_to_string(example().join(file)).unwrap().split("\n---\n") {
            number += 7;
            let path = folder.path().join(format!("{:02}/x{}.yml", (number * 11) % 13, (number * 31) % 97));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, document).unwrap();
        }
    }
    for cluster in ["eks", "cluster-1", "cluster-2", "wine", "canary-1"] {
        let arguments = ["render", "--cluster", cluster];
        let (split, whole) = (run(MESH, folder.path(), &arguments), run(MESH, &example(), &arguments));
        assert_eq!((code(&split), text(&split.stdout)), (0, text(&whole.stdout)), "{}", text(&split.stderr));
    }
}

#[test]
fn folders_hold_other_things_that_are_skipped() {
    let folder = written(&[
        ("a/clusters.yaml", &format!("{FOREIGN}---\n{ONE_CLUSTER}")),
        ("a/B.YML", FOREIGN),
        ("a/kustomization.yaml", "resources: [{nonsense"),
        ("a/Kustomization.yml", "{"),
        ("a/.hidden.yaml", "{"),
        (".git/config.yaml", "{"),
        ("README.md", "{"),
        ("values.yaml.tmpl", "{"),
    ]);
    assert_eq!(listed(folder.path(), &[]), ("cluster/east\n".to_owned(), String::new(), 0));
    assert_eq!(listed(folder.path(), &["-f", "a"]).2, 0);
}

#[test]
fn a_file_that_is_named_holds_nothing_else() {
    let folder = written(&[("both.yaml", &format!("{ONE_CLUSTER}---\n{FOREIGN}"))]);
    let (stdout, stderr, code) = listed(folder.path(), &["-f", "both.yaml"]);
    assert_eq!((stdout.as_str(), code), ("", 1));
    assert!(stderr.starts_with("error: both.yaml:6:1: "), "{stderr}");
}

#[test]
fn json_is_read_like_yaml() {
    let folder = written(&[(
        "clusters.json",
        "{\n\t\"apiVersion\": \"meshintent.dev\\/v1alpha1\",\n\t\"kind\": \"Cluster\",\n\t\"metadata\": {\"name\": \"east\", \
         \"annotations\": {\"note\": \"\\uD83D\\uDE00 \\u00e9\"}, \"labels\": {\"a\": \"b\"}},\n\t\"spec\": {\"region\": \"here\", \"network\": \"lan\"}\n}\n",
    )]);
    assert_eq!(listed(folder.path(), &["-f", "clusters.json"]), ("cluster/east\n".to_owned(), String::new(), 0));
    let file = folder.path().join("clusters.json");
    let right = std::fs::read_to_string(&file).unwrap();
    for (word, misspelt) in [("\"network\"", "\"netwrok\""), ("\"labels\"", "\"lables\"")] {
        let broken = right.replace(word, misspelt);
        std::fs::write(&file, &broken).unwrap();
        let (line, column) =
            broken.lines().zip(1..).find_map(|(text, line)| Some((line, text.find(misspelt)? + 1))).unwrap();
        let (_, stderr, code) = listed(folder.path(), &[]);
        let first = format!("error: clusters.json:{line}:{column}: unknown field {misspelt}");
        assert!(code == 1 && stderr.starts_with(&first), "{stderr}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_and_never_an_absence() {
    let folder = written(&[("clusters.yaml", ONE_CLUSTER), ("elsewhere/more/intents.yaml", FOREIGN)]);
    let refused = |arguments: &[&str], first: &str| {
        let (stdout, stderr, code) = listed(folder.path(), arguments);
        assert_eq!((stdout.as_str(), code), ("", 1), "{stderr}");
        assert!(stderr.starts_with(first), "{stderr}");
    };
    refused(&["-f", "missing"], "error: missing: no such file or folder");
    refused(&["-f", "clusters.yaml,missing.yaml"], "error: missing.yaml: no such file or folder");
    refused(&["-f", "/dev/null/x"], "error: /dev/null/x: ");
    refused(&["-f", "/dev/zero"], "error: /dev/zero: neither a file nor a folder");
    refused(&["-f", "elsewhere"], "error: no Cluster document was read");

    // A link below a folder could lead out of the repository; one that the user names is the user's choice.
    std::os::unix::fs::symlink("clusters.yaml", folder.path().join("link.yaml")).unwrap();
    refused(&[], "error: link.yaml: a symbolic link");
    assert_eq!(listed(folder.path(), &["-f", "link.yaml"]).2, 0);
    std::fs::remove_file(folder.path().join("link.yaml")).unwrap();
    std::os::unix::fs::symlink("elsewhere/more", folder.path().join("folder")).unwrap();
    refused(&[], "error: folder: a symbolic link");
    std::fs::remove_file(folder.path().join("folder")).unwrap();
    // A link to nothing that could hold documents is nobody's business.
    std::os::unix::fs::symlink("README.md", folder.path().join("NOTES.md")).unwrap();
    assert_eq!(listed(folder.path(), &[]).2, 0);

    let fifo = folder.path().join("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    refused(&[], "error: pipe.yaml: not a regular file");
    refused(&["-f", "pipe.yaml"], "error: pipe.yaml: neither a file nor a folder");
}

#[test]
fn a_file_that_may_not_be_read_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = written(&[("clusters.yaml", ONE_CLUSTER), ("secret.yaml", FOREIGN)]);
    let secret = folder.path().join("secret.yaml");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&secret).is_ok() {
        return eprintln!("skipped: this user may read everything");
    }
    let (stdout, stderr, code) = listed(folder.path(), &[]);
    assert_eq!((stdout.as_str(), code), ("", 1));
    assert!(stderr.starts_with("error: secret.yaml: permission denied"), "{stderr}");
}

#[test]
fn a_document_named_twice_is_read_once_or_told() {
    let folder = written(&[("clusters.yaml", ONE_CLUSTER)]);
    let (stdout, stderr, code) = listed(folder.path(), &["-f", "clusters.yaml", "-f", "."]);
    assert!(code == 1 && stdout.is_empty() && stderr.contains("stands twice"), "{stderr}");
}

#[test]
fn removing_a_document_removes_what_it_caused_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    let clusters = ["eks", "cluster-1", "cluster-2", "wine", "canary-1"];
    let objects = || -> Vec<std::collections::BTreeMap<String, serde_json::Value>> {
        clusters
            .iter()
            .map(|cluster| {
                let output = run(MESH, folder.path(), &["render", "--cluster", cluster, "-o", "json"]);
                assert_eq!(code(&output), 0, "{}", text(&output.stderr));
                let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let items = list["items"].as_array().unwrap().iter();
                items
                    .map(|item| {
                        let name = |key: &str| item["metadata"][key].as_str().unwrap_or_default().to_owned();
                        (format!("{} {}/{}", item["kind"], name("namespace"), name("name")), item.clone())
                    })
                    .collect()
            })
            .collect()
    };
    let causes = |object: &serde_json::Value| -> Vec<String> {
        let intents = object["metadata"]["annotations"]["meshintent.dev/intents"].as_str().unwrap_or_default();
        intents.split([',', ' ', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let before = objects();
    let mut removed = 0;
    for (file, document) in [
        ("intents/shop.yaml", "TrafficPolicy/shop/bar-to-wine"),
        ("intents/bank.yaml", "TrafficPolicy/bank/checkout-canary"),
        ("intents/bank.yaml", "TrafficPolicy/bank/account-to-user"),
        ("intents/fleet.yaml", "TrafficPolicy/fleet"),
        ("intents/web.yaml", "MeshService/web/web"),
    ] {
        let path = folder.path().join(file);
        let whole = std::fs::read_to_string(&path).unwrap();
        let (kind, name) = (document.split('/').next().unwrap(), document.rsplit('/').next().unwrap());
        let rest: Vec<&str> = whole
            .split("\n---\n")
            .filter(|part| {
                !(part.contains(&format!("kind: {kind}\n"))
                    && (part.contains(&format!("name: {name},")) || part.contains(&format!("name: {name}}}"))))
            })
            .collect();
        assert_ne!(rest.len(), whole.split("\n---\n").count(), "{document} stands in {file}");
        std::fs::write(&path, rest.join("\n---\n")).unwrap();
        for (before, after) in before.iter().zip(objects()) {
            for (name, object) in before {
                if after.get(name) != Some(object) {
                    removed += 1;
                    assert!(
                        causes(object).contains(&document.to_owned()),
                        "{document} changed {name}: {:?}",
                        causes(object)
                    );
                }
            }
            for (name, object) in &after {
                assert!(!causes(object).contains(&document.to_owned()), "{name} still names {document}");
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert!(removed > 5, "the documents caused something");
}
