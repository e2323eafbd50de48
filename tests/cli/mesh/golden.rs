//! Whole worlds in `tests/golden`: `fleet/` holds the documents; `check.txt`, `explain.json` and `rendered/` what the
//! program makes of them, every file of every cluster.

use crate::MESH;
use crate::expected::{assert_none, expect};
use crate::support::{code, run, tests, text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn worlds_come_out_as_before() {
    let mut differences = Vec::new();
    let mut worlds = 0;
    for world in std::fs::read_dir(tests().join("golden")).unwrap() {
        let world = world.unwrap().path();
        worlds += 1;
        let check = run(MESH, &world, &["check", "-f", "fleet"]);
        assert_eq!((code(&check), text(&check.stderr)), (0, String::new()), "{}", text(&check.stdout));
        expect(&world.join("check.txt"), &text(&check.stdout), &mut differences);

        let explain = run(MESH, &world, &["explain", "-f", "fleet", "-o", "json"]);
        assert_eq!((code(&explain), text(&explain.stderr)), (0, String::new()));
        expect(&world.join("explain.json"), &text(&explain.stdout), &mut differences);

        let rendered = tempfile::tempdir().unwrap();
        let out = rendered.path().to_str().unwrap();
        let render = run(MESH, &world, &["render", "-f", "fleet", "--all", "--output-dir", out]);
        assert_eq!(code(&render), 0, "{}", text(&render.stderr));
        compare(rendered.path(), &world.join("rendered"), &mut differences);
        for entry in std::fs::read_dir(&world).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(["check.txt", "explain.json", "fleet", "rendered"].contains(&name.as_str()), "{world:?}/{name}");
        }
    }
    assert!(worlds >= 4);
    assert_none(&differences);
}

/// Both folders hold the same files with the same bytes.
fn compare(actual: &Path, expected: &Path, differences: &mut Vec<String>) {
    let (is, was) = (files(actual), files(expected));
    for path in is.union(&was) {
        let target = expected.join(path);
        match std::fs::read_to_string(actual.join(path)) {
            Ok(content) => {
                if std::env::var_os("UPDATE_GOLDEN").is_some() {
                    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
                }
                expect(&target, &content, differences);
            }
            Err(_) if std::env::var_os("UPDATE_GOLDEN").is_some() => std::fs::remove_file(target).unwrap(),
            Err(_) => differences.push(format!("{} is not written any more", target.display())),
        }
    }
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(path).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    files
}
