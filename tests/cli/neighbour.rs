//! `kubectl mesh expose|failover|authz` becomes the program of that name, by every name that kubectl and Krew give it.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{code, text};
use tempfile::TempDir;

/// A folder with `kubectl-mesh` in `store/`, and a link to it in `bin/`.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["store", "bin", "path"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let real = folder.path().join("store/kubectl-mesh");
        let built = Path::new(env!("CARGO_BIN_EXE_kubectl-mesh"));
        // A link between file systems is a copy.
        fs::hard_link(built, &real).or_else(|_| fs::copy(built, &real).map(drop)).unwrap();
        symlink(&real, folder.path().join("bin/kubectl-mesh")).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    /// A program that says how it was called, and ends with 7.
    fn program(&self, file: &str) {
        let text = format!("#!/bin/sh\necho \"{file}: $*\"\nexit 7\n");
        // Written by another process: one that a neighbouring test starts meanwhile would hold the file open for writing,
        // and such a file cannot be run.
        let write = r#"printf '%s' "$2" > "$1" && chmod 755 "$1""#;
        let mut shell = support::command("/bin/sh", self.0.path());
        assert!(shell.args(["-c", write, "sh", self.path(file).to_str().unwrap(), &text]).status().unwrap().success());
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let link = self.path("bin/kubectl-mesh");
        let mut command = support::command(link.to_str().unwrap(), self.0.path());
        command.env("PATH", format!("{}:/bin:/usr/bin", self.path("path").display()));
        command.args(arguments).output().unwrap()
    }
}

#[test]
fn neighbours_are_found_beside_the_real_file_the_link_and_on_path() {
    for file in [
        "store/kubectl-mesh-expose",
        "store/kubectl-mesh_expose",
        "bin/kubectl-mesh_expose",
        "path/kubectl-mesh-expose",
        "path/kubectl-mesh_expose",
    ] {
        let installed = Installed::new();
        installed.program(file);
        let output = installed.run(&["expose", "get", "-f", "fleet/", "--help"]);
        assert_eq!(code(&output), 7, "{file}");
        assert_eq!(text(&output.stdout), format!("{file}: get -f fleet/ --help\n"));
    }
}

#[test]
fn the_nearest_neighbour_is_taken() {
    let installed = Installed::new();
    for file in ["path/kubectl-mesh-authz", "bin/kubectl-mesh_authz", "store/kubectl-mesh_authz"] {
        installed.program(file);
        assert_eq!(text(&installed.run(&["authz"]).stdout), format!("{file}: \n"));
    }
    // Flags in front of the word are the neighbour's too.
    let output = installed.run(&["-f", "fleet", "authz", "get", "-o", "name"]);
    assert_eq!(text(&output.stdout), "store/kubectl-mesh_authz: get -o name -f fleet\n");
}

#[test]
fn a_missing_neighbour_is_named() {
    let installed = Installed::new();
    // Neither a link to the program itself nor a file that cannot run is one.
    symlink(installed.path("store/kubectl-mesh"), installed.path("bin/kubectl-mesh-failover")).unwrap();
    fs::write(installed.path("path/kubectl-mesh-failover"), "text").unwrap();
    let output = installed.run(&["failover", "get"]);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (1, ""));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: kubectl-mesh-failover is neither beside kubectl-mesh nor on PATH"), "{said}");
}
