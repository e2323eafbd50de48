//! A copy of the example fleet that a test may change, and a program that runs in it.

use crate::support::{code, copy, example, run, text};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// What a program said.
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Its data.
    pub out: String,
    /// Its talk.
    pub err: String,
}

/// A fleet in a folder of its own.
pub struct Fleet {
    program: &'static str,
    folder: TempDir,
}

impl Fleet {
    /// The example fleet, for this program.
    pub fn example(program: &'static str) -> Self {
        let fleet = Self { program, folder: tempfile::tempdir().expect("a folder") };
        copy(&example(), fleet.folder.path());
        fleet
    }

    /// Runs the program in the folder.
    pub fn run(&self, line: &str) -> Said {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = run(self.program, self.folder.path(), &words);
        Said { code: code(&output), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Runs the program, which succeeds.
    pub fn done(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}\n{}{}", said.out, said.err);
        said.out
    }

    /// Runs the program, which refuses and changes nothing; what it says.
    pub fn refused(&self, line: &str) -> String {
        let before = self.everything();
        let said = self.run(line);
        assert_eq!(said.code, 1, "{line}\n{}{}", said.out, said.err);
        assert!(said.err.starts_with("error: "), "{line}\n{}", said.err);
        assert_eq!(self.everything(), before, "{line}");
        said.err
    }

    /// A file's text.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).expect("the file is there")
    }

    /// Writes a file.
    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).expect("the file can be written");
    }

    /// Replaces the first place of a text that has to be there.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let before = self.read(file);
        assert!(before.contains(from), "{from}");
        self.write(file, &before.replacen(from, to, 1));
    }

    /// All files, hidden ones too.
    pub fn everything(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        list(self.folder.path(), &mut files);
        files.sort();
        files
    }
}

fn list(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push((path.display().to_string(), fs::read_to_string(&path).expect("text")));
        }
    }
}
