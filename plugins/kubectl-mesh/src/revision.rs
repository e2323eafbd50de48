//! The documents of a Git revision, as they were committed. Git itself is asked: it knows packs, worktrees, partial clones
//! and whose repository may be read.

use anyhow::{Context, bail};
use mesh::diagnostic::Diagnostics;
use mesh::source::File;
use mesh_files::Bounds;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Reads what the paths held at a revision. The tree is put into a temporary folder and read like any other, so that the
/// same rules hold; its files are called `REVISION:PATH`.
///
/// # Errors
///
/// If Git does not know the revision, or the paths stand in no repository.
pub(crate) fn read(revision: &str, paths: &[PathBuf], bounds: &Bounds) -> anyhow::Result<(Vec<File>, Diagnostics)> {
    let here = [PathBuf::from(".")];
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut inside = Vec::new();
    for path in if paths.is_empty() { &here } else { paths } {
        if path == Path::new("-") {
            bail!("stdin has no revisions; name a path with -f");
        }
        inside.push(export(revision, path, folder.path(), bounds)?);
    }
    Ok(mesh_files::read_below(folder.path(), &format!("{revision}:"), &inside, bounds))
}

/// Puts what a path held at a revision below a folder, and says where in the repository the path is.
fn export(revision: &str, path: &Path, folder: &Path, bounds: &Bounds) -> anyhow::Result<PathBuf> {
    // The path may be gone by now; some folder above it is not.
    let full = std::path::absolute(path)?;
    let base = full.ancestors().find(|path| path.is_dir()).context("no folder of the path exists")?;
    let prefix = git(base, &["rev-parse", "--show-prefix"])
        .with_context(|| format!("\"{revision}\" is no folder, and {} has no revisions", path.display()))?;
    let inside = Path::new(prefix.trim_end_matches('\n')).join(full.strip_prefix(base)?);
    let commit = git(base, &["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")])
        .with_context(|| format!("\"{revision}\" is neither a folder nor a Git revision"))?;
    let top = git(base, &["rev-parse", "--show-toplevel"])?;
    let top = Path::new(top.trim_end_matches('\n'));
    let mut list = vec!["ls-tree", "-r", "-z", commit.trim(), "--"];
    let text = inside.to_str().context("the path is not UTF-8")?;
    if !text.is_empty() {
        list.push(text.trim_end_matches('/'));
    }
    let tree = git(top, &list)?;
    let entries: Option<Vec<Entry<'_>>> = tree.split_terminator('\0').map(Entry::parse).collect();
    let mut entries = entries.context("the answer of git ls-tree was not understood")?;
    entries.retain(|entry| entry.path == inside || mesh_files::is_document(entry.path) || entry.kind == Kind::Link);
    // No file is written through a link, whatever names a hostile tree has.
    entries.sort_by_key(|entry| entry.kind);
    write(top, &entries, folder, bounds)?;
    Ok(inside)
}

/// One line of `git ls-tree`.
struct Entry<'a> {
    kind: Kind,
    object: &'a str,
    path: &'a Path,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Link,
    /// Its files are not part of this repository.
    Submodule,
}

impl<'a> Entry<'a> {
    /// `MODE TYPE OBJECT\tPATH`.
    fn parse(line: &'a str) -> Option<Self> {
        let (what, path) = line.split_once('\t')?;
        let (mode, rest) = what.split_once(' ')?;
        let (_, object) = rest.split_once(' ')?;
        let kind = match mode {
            "120000" => Kind::Link,
            "160000" => Kind::Submodule,
            _ => Kind::File,
        };
        Some(Self { kind, object, path: Path::new(path) })
    }
}

/// Writes files to where they belong. A repository of somebody else may hold any names and sizes.
fn write(repository: &Path, entries: &[Entry<'_>], folder: &Path, bounds: &Bounds) -> anyhow::Result<()> {
    let mut child = Command::new("git")
        .current_dir(repository)
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start git")?;
    let mut input = child.stdin.take().context("git has no input")?;
    let mut output = BufReader::new(child.stdout.take().context("git has no output")?);
    for Entry { kind, object, path } in entries.iter().filter(|entry| entry.kind != Kind::Submodule) {
        let shown = path.display();
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("{shown} is no path of a working tree");
        }
        writeln!(input, "{object}")?;
        input.flush()?;
        let mut header = String::new();
        output.read_line(&mut header)?;
        let size = header.trim_end().strip_prefix(object).and_then(|rest| rest.strip_prefix(" blob "));
        let size: u64 = size.and_then(|size| size.parse().ok()).with_context(|| format!("git cannot read {shown}"))?;
        if size > bounds.file_bytes {
            bail!("{shown} is larger than {} bytes in that revision", bounds.file_bytes);
        }
        // Behind the bytes stands a line end.
        let mut bytes = vec![0; usize::try_from(size)? + 1];
        output.read_exact(&mut bytes)?;
        bytes.pop();
        let target = folder.join(path);
        std::fs::create_dir_all(target.parent().unwrap_or(folder)).with_context(|| shown.to_string())?;
        match kind {
            Kind::Link => link(&bytes, &target),
            Kind::File | Kind::Submodule => std::fs::write(&target, bytes),
        }
        .with_context(|| shown.to_string())?;
    }
    drop(input);
    child.wait()?;
    Ok(())
}

/// Links are there so that the reader can refuse them.
#[cfg(unix)]
fn link(leads_to: &[u8], target: &Path) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    std::os::unix::fs::symlink(OsStr::from_bytes(leads_to), target)
}

/// As Git does where links need privileges.
#[cfg(not(unix))]
fn link(leads_to: &[u8], target: &Path) -> std::io::Result<()> {
    std::fs::write(target, leads_to)
}

fn git(folder: &Path, arguments: &[impl AsRef<OsStr>]) -> anyhow::Result<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().context("cannot start git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().next().unwrap_or("git failed").trim_start_matches("fatal: "));
    }
    String::from_utf8(output.stdout).context("git answered with something that is not UTF-8")
}
