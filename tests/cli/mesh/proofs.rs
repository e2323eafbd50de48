//! The pages say what would fail if their lines were not true; all of that exists, and no line is missing.

use crate::support::tests;
use mesh::diagnostic::codes;
use std::collections::BTreeSet;

/// What users of other tools ran into, and what Istio does that nobody expects.
const TRAPS: [(&str, usize); 2] = [("T", 18), ("I", 52)];
/// What documents mean together.
const MEANINGS: (&str, usize) = ("S", 17);

#[test]
fn every_trap_is_kept_away_by_something_that_exists() {
    let page = page("traps");
    let numbers = numbered(&page, &TRAPS.map(|(list, _)| list));
    let wanted = TRAPS.iter().flat_map(|(list, last)| (1..=*last).map(move |number| format!("{list}{number}")));
    assert_eq!(numbers, wanted.collect::<Vec<_>>());
    codes_exist(&page);
}

#[test]
fn every_meaning_is_kept_by_something_that_exists() {
    let (list, last) = MEANINGS;
    let numbers = numbered(&page("translation"), &[list]);
    assert_eq!(numbers, (1..=last).map(|number| format!("{list}{number}")).collect::<Vec<_>>());
}

/// A row holds for its field and everything below, so every field of the reference has one, and no row is about nothing.
#[test]
fn every_field_becomes_something_that_a_test_sees() {
    let page = page("translation");
    codes_exist(&page);
    let proofs = Proofs::read();
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells = cells(line);
        let [field, becomes, kept_by] = cells.as_slice() else { panic!("not three cells: {line}") };
        assert!(!becomes.is_empty(), "{line}");
        proofs.check(field, kept_by);
        rows.push(field.trim_matches('`'));
    }
    let fields = fields();
    let below = |field: &str, row: &str| {
        field.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    for field in &fields {
        let parent = fields.iter().any(|other| other != field && below(other, field));
        assert!(parent || rows.iter().any(|row| below(field, row)), "{field} has no row");
    }
    for row in rows {
        assert!(fields.contains(row), "{row} is no field");
    }
}

#[test]
fn every_manner_is_seen_by_something_that_exists() {
    let page = page("kubectl-manners");
    let functions = functions();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 20);
    for row in rows {
        let seen = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        assert!(seen.contains('`') || seen.contains("]("), "not seen: {row}");
        for test in seen.split('`').skip(1).step_by(2) {
            assert!(functions.contains(test), "there is no {test}");
        }
    }
}

fn page(name: &str) -> String {
    std::fs::read_to_string(tests().join("../docs").join(name).with_extension("md")).unwrap()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// The numbers of the rows of these lists, whose last cells name what exists.
fn numbered(page: &str, lists: &[&str]) -> Vec<String> {
    let proofs = Proofs::read();
    let of_list = |line: &&str| {
        lists.iter().any(|list| {
            line.strip_prefix("| ")
                .and_then(|line| line.strip_prefix(list))
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        })
    };
    let mut numbers = Vec::new();
    for line in page.lines().filter(of_list) {
        let cells = cells(line);
        let [number, _, here, kept_by] = cells.as_slice() else { panic!("not four cells: {line}") };
        assert!(!here.is_empty(), "{line}");
        proofs.check(number, kept_by);
        numbers.push((*number).to_owned());
    }
    numbers
}

/// `Kind.field` for every field of every spec, from the generated reference.
fn fields() -> BTreeSet<String> {
    let mut kind = "";
    let mut fields = BTreeSet::new();
    for line in page("reference/fields").lines() {
        if let Some(title) = line.strip_prefix("## ") {
            kind = title;
        } else if let Some((field, _)) = line.strip_prefix("| `spec.").and_then(|rest| rest.split_once('`')) {
            fields.insert(format!("{kind}.{field}"));
        }
    }
    assert!(fields.len() > 150);
    fields
}

fn codes_exist(page: &str) {
    let known: BTreeSet<&str> = codes::ALL.iter().map(|code| code.id).collect();
    for id in page.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.starts_with("MESH")) {
        assert!(known.contains(id), "{id} is no code");
    }
}

/// Everything that can keep a line true.
struct Proofs {
    mutations: String,
    outcomes: String,
    functions: BTreeSet<String>,
}

impl Proofs {
    fn read() -> Self {
        Self {
            mutations: std::fs::read_to_string(tests().join("judge/mutate_test.go")).unwrap(),
            outcomes: std::fs::read_to_string(tests().join("generator/src/coverage.rs")).unwrap(),
            functions: functions(),
        }
    }

    /// A cell names at least one, and all of them exist.
    fn check(&self, line: &str, cell: &str) {
        let proofs: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!proofs.is_empty(), "{line}: nothing keeps it");
        for proof in proofs {
            let exists = if let Some(name) = proof.strip_prefix("judge: ") {
                self.mutations.contains(&format!("{{\"{name}\", \""))
            } else if let Some(name) = proof.strip_prefix("test: ") {
                self.functions.contains(name)
            } else if let Some(name) = proof.strip_prefix("random: ") {
                self.outcomes.contains(&format!("    \"{name}\",\n"))
            } else if let Some(world) = proof.strip_prefix("golden/") {
                tests().join("golden").join(world).is_dir()
            } else {
                tests().join("cases").join(proof).is_dir()
            };
            assert!(exists, "{line}: there is no {proof}");
        }
    }
}

/// The names of all functions in tests, in Rust, Go and Python.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = vec![tests()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|extension| !["rs", "go", "py"].iter().any(|known| extension == *known)) {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let name = ["fn ", "func ", "    def "].iter().find_map(|keyword| line.strip_prefix(keyword));
            names.extend(name.and_then(|rest| rest.split('(').next()).map(str::to_owned));
        }
    }
    names
}
