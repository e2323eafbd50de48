//! What the tests of all programs share: the example fleet, and running a program.

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
