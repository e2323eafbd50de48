//! A file is replaced as a whole, and only if it still is what was read: whoever else edits it meanwhile loses nothing.

use anyhow::{Context, bail};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// How long an edit waits for another one of the same file; edits take milliseconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// Puts `after` in place of `before`; nothing stands for a file that is not there.
///
/// # Errors
///
/// If the file is not what was read any more, or cannot be written. It is then as it was.
pub fn replace(path: &Path, before: Option<&[u8]>, after: Option<&str>) -> anyhow::Result<()> {
    let trouble = || format!("cannot write {}", path.display());
    // A link is followed: it is the file behind it that people edit.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut next = claim(&real, PATIENCE).with_context(trouble)?;
    let now = match fs::read(&real) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if now.as_deref() != before {
        bail!("{} was changed by someone else while this ran; nothing was written, run it again", path.display());
    }
    let Some(text) = after else {
        return fs::remove_file(&real).with_context(|| format!("cannot remove {}", path.display()));
    };
    next.write_all(text.as_bytes()).with_context(trouble)?;
    if before.is_some() {
        let permissions = fs::metadata(&real).with_context(trouble)?.permissions();
        next.as_file().set_permissions(permissions).with_context(trouble)?;
    }
    next.as_file().sync_all().with_context(trouble)?;
    let moved = if before.is_some() { next.persist(&real) } else { next.persist_noclobber(&real) };
    moved.map(drop).map_err(|error| error.error).with_context(trouble)
}

/// Creates the file that takes the place of another one. Only one program can have created it, so two edits take turns,
/// and the second one finds the file changed. (A lock on the edited file would keep Windows from replacing it.)
fn claim(path: &Path, patience: Duration) -> anyhow::Result<NamedTempFile> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Hidden files are no documents, should this one ever be left behind.
    let name = format!(".{}.kubectl-mesh", path.file_name().unwrap_or_default().display());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&name).rand_bytes(0);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let begin = Instant::now();
    loop {
        match builder.tempfile_in(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            Err(_) if begin.elapsed() < patience => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => {
                bail!("another edit of the file is going on; if none is, one was killed: remove {name} beside the file")
            }
            Ok(file) => return Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{claim, replace};
    use std::fs;
    use std::time::Duration;

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        replace(&path, None, Some("one\n")).expect("new");
        assert!(replace(&path, None, Some("two\n")).is_err());
        fs::write(&path, "theirs\n").expect("written");
        assert!(replace(&path, Some(b"one\n"), Some("two\n")).is_err());
        assert!(replace(&path, Some(b"one\n"), None).is_err());
        assert_eq!(fs::read_to_string(&path).expect("there"), "theirs\n");
        replace(&path, Some(b"theirs\n"), Some("two\n")).expect("the same file");
        assert_eq!(fs::read_to_string(&path).expect("there"), "two\n");
        replace(&path, Some(b"two\n"), None).expect("the same file");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        assert!(replace(&path, Some(b"two\n"), Some("three\n")).is_err());
    }

    #[test]
    fn what_a_killed_edit_left_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        let left = folder.path().join(".a.yaml.kubectl-mesh");
        fs::write(&left, "half").expect("written");
        let said = claim(&path, Duration::ZERO).expect_err("taken").to_string();
        assert!(said.contains("remove .a.yaml.kubectl-mesh"), "{said}");
        assert_eq!(fs::read_to_string(left).expect("there"), "half");
    }
}
