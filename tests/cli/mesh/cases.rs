//! Every finding has a case in `tests/cases`: a folder named after its code, with a whole world in `fleet/` and with
//! `expected.txt`: the command that is run in the folder, what it prints on stdout and then on stderr, and its exit code.

use crate::MESH;
use crate::expected::{assert_none, expect};
use crate::support::{code, run, tests, text};
use mesh::diagnostic::codes;
use mesh::fleet::clusters::MAX_CLUSTERS;
use mesh::source::Limits;
use std::collections::BTreeSet;
use std::path::Path;

/// What a case runs unless the first line of its `expected.txt` says otherwise.
const COMMAND: &str = "$ kubectl-mesh check -f fleet";

/// Codes whose worlds are too large to be kept as files; tests of this crate generate them.
const GENERATED: [&str; 3] = ["MESH003", "MESH222", "MESH612"];

#[test]
fn every_case_says_what_is_expected() {
    let mut differences = Vec::new();
    for name in names() {
        let folder = tests().join("cases").join(&name);
        let file = folder.join("expected.txt");
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        let command = written.lines().next().unwrap_or(COMMAND);
        let actual = transcript(&folder, command);
        let id = name.split('-').next().unwrap_or_default();
        if !actual.contains(&format!("[{id}]")) {
            differences.push(format!("{}: the case does not lead to {id}:\n{actual}", folder.display()));
        }
        if actual.contains("panicked") {
            differences.push(format!("{}: a panic:\n{actual}", folder.display()));
        }
        expect(&file, &actual, &mut differences);
    }
    assert_none(&differences);
}

#[test]
fn every_code_has_a_case_and_every_case_a_code() {
    let cases: BTreeSet<String> = names();
    let known: BTreeSet<&str> = codes::ALL.iter().map(|code| code.id).collect();
    for case in &cases {
        let (id, name) = case.split_once('-').unwrap_or((case, ""));
        assert!(known.contains(id) && !name.is_empty(), "tests/cases/{case} is not called CODE-name");
        for entry in std::fs::read_dir(tests().join("cases").join(case)).unwrap() {
            let entry = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                ["fleet", "expected.txt", "deployment.yaml", "policy.yaml"].contains(&entry.as_str()),
                "{case}/{entry}"
            );
        }
    }
    let covered: BTreeSet<&str> = cases.iter().filter_map(|case| case.split('-').next()).chain(GENERATED).collect();
    let missing: Vec<&&str> = known.difference(&covered).collect();
    assert!(missing.is_empty(), "codes without a case: {missing:?}");
}

#[test]
fn every_code_has_a_page() {
    for expected in codes::ALL {
        let output = run(MESH, &tests(), &["check", "--explain", expected.id]);
        let page = text(&output.stdout);
        assert_eq!(code(&output), 0, "{}", expected.id);
        let title = format!("{} {}: {}\n\n", expected.id, expected.severity.as_str(), expected.title);
        assert!(page.starts_with(&title), "{page}");
        assert!(page.lines().count() >= 3 && page.lines().all(|line| line.chars().count() <= 100), "{page}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&page).ends_with(&words(expected.page)), "{page}");
    }
    let unknown = run(MESH, &tests(), &["check", "--explain", "MESH999"]);
    assert_eq!((code(&unknown), text(&unknown.stdout).as_str()), (2, ""));
    assert!(text(&unknown.stderr).starts_with("error: "), "{}", text(&unknown.stderr));
}

#[test]
fn codes_are_listed_once_and_in_order() {
    let ids: Vec<&str> = codes::ALL.iter().map(|code| code.id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 7 && id[4..].bytes().all(|b| b.is_ascii_digit())), "{ids:?}");
}

/// The worlds behind [`GENERATED`].
#[test]
fn what_is_too_large_is_refused() {
    let first_line = |content: String| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fleet.yaml"), content).unwrap();
        let output = run(MESH, folder.path(), &["check"]);
        assert_eq!(code(&output), 1);
        text(&output.stdout).lines().next().unwrap().to_owned()
    };
    let cluster = |number: usize| {
        format!(
            "apiVersion: meshintent.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: c{number:04}}}\nspec: {{region: here, network: lan}}\n"
        )
    };
    let one_too_many: Vec<String> = (0..=MAX_CLUSTERS).map(cluster).collect();
    let line = format!(
        "error: fleet.yaml:{}:18: {} clusters; one fleet has at most {MAX_CLUSTERS} [MESH222]",
        5 * MAX_CLUSTERS + 3,
        MAX_CLUSTERS + 1
    );
    assert_eq!(first_line(one_too_many.join("---\n")), line);
    let documents = Limits::default().documents;
    let line = format!("error: fleet.yaml:{}:1: more than {documents} documents in one file [MESH003]", documents + 1);
    assert_eq!(first_line("---\n".repeat(documents + 10)), line);

    let rules: String =
        (0..513).map(|rule| format!("\n  - {{from: [{{serviceAccount: s}}], paths: [/{rule}]}}")).collect();
    let service = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: user, namespace: bank}\nspec: {clusters: all, ports: [{name: http, port: 80}]}\n";
    let policy = format!(
        "apiVersion: meshintent.dev/v1alpha1\nkind: AccessPolicy\nmetadata: {{name: user, namespace: bank}}\nspec:\n  to: {{service: user}}\n  allow:{rules}\n"
    );
    let line =
        "error: fleet.yaml:17:5: bank/user would need 513 rules in one object in c0000; Istio takes 512 [MESH612]";
    assert_eq!(first_line([cluster(0).as_str(), service, &policy].join("---\n")), line);
}

/// The folders of cases.
fn names() -> BTreeSet<String> {
    let folder = tests().join("cases");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// The command, what it prints, and its exit code.
fn transcript(folder: &Path, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let ["$", "kubectl-mesh", arguments @ ..] = words.as_slice() else {
        panic!("{}: the first line of expected.txt is not `$ kubectl-mesh …`", folder.display())
    };
    let output = run(MESH, folder, arguments);
    format!("{command}\n{}{}exit code {}\n", text(&output.stdout), text(&output.stderr), code(&output))
}
