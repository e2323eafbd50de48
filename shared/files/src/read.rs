//! Reads what the user named: files, folders, standard input. Within bounds, and never through a symbolic link below a
//! folder, so that a repository cannot point out of itself.

use mesh::diagnostic::{Diagnostic, Diagnostics, codes};
use mesh::source::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// How much one run reads.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Files.
    pub files: usize,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Folders inside each other.
    pub depth: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { files: 50_000, total_bytes: 64 << 20, file_bytes: 16 << 20, depth: 32 }
    }
}

/// Reads all documents below the paths; `-` is standard input, no path is the current folder. Whatever cannot be read
/// is a finding, because an unread document could have changed the result.
#[must_use]
pub fn read(paths: &[PathBuf], bounds: &Bounds) -> (Vec<File>, Diagnostics) {
    let here = [PathBuf::from(".")];
    Reader::new(Path::new("."), "", bounds).all(if paths.is_empty() { &here } else { paths })
}

/// Reads paths below a folder that stands for something else, such as a revision: findings call its files by `label` and
/// their path inside the folder.
#[must_use]
pub fn read_below(root: &Path, label: &str, paths: &[PathBuf], bounds: &Bounds) -> (Vec<File>, Diagnostics) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
    Reader::new(root, label, bounds).all(&paths)
}

struct Reader<'a> {
    /// What is left out of the paths that are shown, and what stands there instead.
    root: &'a Path,
    label: &'a str,
    bounds: &'a Bounds,
    files: Vec<File>,
    bytes: u64,
    found: Diagnostics,
    full: bool,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Path, label: &'a str, bounds: &'a Bounds) -> Self {
        Self { root, label, bounds, files: Vec::new(), bytes: 0, found: Diagnostics::default(), full: false }
    }

    fn all(mut self, paths: &[PathBuf]) -> (Vec<File>, Diagnostics) {
        for path in paths {
            self.path(path);
        }
        (self.files, self.found)
    }

    /// `./x` is shown as `x`.
    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(self.root).ok().filter(|inside| !inside.as_os_str().is_empty()) {
            Some(inside) => format!("{}{}", self.label, printable(inside)),
            None if self.label.is_empty() => printable(path),
            None => self.label.to_owned(),
        }
    }

    fn refuse(&mut self, path: &Path, what: impl std::fmt::Display) {
        let path = self.shown(path);
        self.found.push(Diagnostic::new(&codes::UNREADABLE, None, format!("{path}: {what}")));
    }

    fn path(&mut self, path: &Path) {
        if path == Path::new("-") {
            self.take(&mut std::io::stdin().lock(), path, "<stdin>".to_owned(), true);
            return;
        }
        match std::fs::metadata(path) {
            Err(error) => self.refuse(path, describe(&error)),
            Ok(metadata) if metadata.is_dir() => self.folder(path),
            Ok(metadata) if metadata.is_file() => {
                let name = printable(path.file_name().map_or(path, Path::new));
                self.file(path, name, true);
            }
            Ok(_) => self.refuse(path, "neither a file nor a folder"),
        }
    }

    fn folder(&mut self, root: &Path) {
        let walk = WalkDir::new(root).follow_links(false).max_depth(self.bounds.depth + 1).sort_by_file_name();
        for entry in walk.into_iter().filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry)) {
            if self.full {
                return;
            }
            match entry {
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_owned();
                    let what = error.io_error().map_or_else(|| "cannot be read".to_owned(), describe);
                    self.refuse(&path, what);
                }
                Ok(entry) => self.entry(root, &entry),
            }
        }
    }

    fn entry(&mut self, root: &Path, entry: &DirEntry) {
        let path = entry.path();
        let kind = entry.file_type();
        if kind.is_dir() {
            if entry.depth() > self.bounds.depth {
                self.refuse(path, format!("folders more than {} deep", self.bounds.depth));
            }
            return;
        }
        if kind.is_symlink() && entry.depth() > 0 {
            // A link to a folder may hide documents as well as a link to a file.
            if is_document(path) || std::fs::metadata(path).is_ok_and(|target| target.is_dir()) {
                self.refuse(path, "a symbolic link, which is not followed; put the file itself here");
            }
            return;
        }
        if !is_document(path) {
            return;
        }
        if !kind.is_file() {
            self.refuse(path, "not a regular file");
            return;
        }
        // The same on every system: it is part of what is printed for machines.
        let relative = printable(path.strip_prefix(root).unwrap_or(path)).replace(std::path::MAIN_SEPARATOR, "/");
        self.file(path, relative, false);
    }

    fn file(&mut self, path: &Path, relative: String, explicit: bool) {
        match std::fs::File::open(path) {
            Ok(mut file) => self.take(&mut file, path, relative, explicit),
            Err(error) => self.refuse(path, describe(&error)),
        }
    }

    /// Reads at most one byte more than is accepted, whatever the size was said to be.
    fn take(&mut self, input: &mut dyn Read, path: &Path, relative: String, explicit: bool) {
        if self.files.len() >= self.bounds.files {
            self.full = true;
            return self.refuse(path, format!("more than {} files", self.bounds.files));
        }
        let mut bytes = Vec::new();
        if let Err(error) = input.take(self.bounds.file_bytes + 1).read_to_end(&mut bytes) {
            return self.refuse(path, describe(&error));
        }
        let size = bytes.len() as u64;
        self.bytes += size;
        if size > self.bounds.file_bytes {
            return self
                .refuse(path, format!("larger than {} bytes; split it into several files", self.bounds.file_bytes));
        }
        if self.bytes > self.bounds.total_bytes {
            self.full = true;
            return self.refuse(path, format!("more than {} bytes in all files together", self.bounds.total_bytes));
        }
        let shown = if explicit && path == Path::new("-") { relative.clone() } else { self.shown(path) };
        self.files.push(File { path: shown, relative, bytes, explicit });
    }
}

/// A name that stays one line and moves no cursor, whatever bytes it has: whoever names a file must not write messages.
fn printable(path: &Path) -> String {
    // Beside control characters, those that turn the direction of text.
    let turns = |c| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    path.to_string_lossy().chars().map(|c| if c.is_control() || turns(c) { '\u{FFFD}' } else { c }).collect()
}

/// The reason alone: the system's error number helps nobody.
fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

/// Whether a folder's file of this name is read: `.yaml`, `.yml` and `.json`, but not kustomize's own files.
#[must_use]
pub fn is_document(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.to_lowercase();
    let known = path
        .extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)));
    known && stem != "kustomization.yaml" && stem != "kustomization.yml"
}
