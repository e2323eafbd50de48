//! What the tests of all programs share: running a program, and expectations that are files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder that holds all tests.
pub fn tests() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().find(|folder| folder.join("tests/cases").is_dir());
    root.expect("the tests stand beside the crates").join("tests")
}

/// The example fleet.
pub fn example() -> PathBuf {
    tests().join("golden/example/fleet")
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a new folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

/// Runs a program in a folder, with nothing in the environment that could change what it says.
pub fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    command(program, folder).args(arguments).output().expect("the program starts")
}

/// A program that will run in a folder, with nothing in the environment that could change what it says.
pub fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear();
    command
}

/// Text of a program, which is always UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("programs print UTF-8")
}

/// The exit code; a program never dies of a signal.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("killed by a signal: {:?}", output.status))
}

/// Compares a file with what it should hold, and collects what differs. With UPDATE_GOLDEN=1 it is written instead.
pub fn expect(path: &Path, actual: &str, differences: &mut Vec<String>) {
    let expected = std::fs::read_to_string(path).ok();
    if expected.as_deref() == Some(actual) {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, actual).expect("expectations can be written");
        return;
    }
    let expected = expected.unwrap_or_else(|| "(no such file)".to_owned());
    let line = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    differences.push(format!(
        "{} differs from line {}:\n  expected: {}\n  actual:   {}",
        path.display(),
        line + 1,
        expected.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)"),
    ));
}

/// Fails with all differences at once, and says how to accept them.
pub fn assert_none(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{}\n\n{} differences; UPDATE_GOLDEN=1 writes what came out: read it before accepting it",
        differences.join("\n"),
        differences.len()
    );
}
