//! A file is replaced as a whole, and only if it still is what was read: whoever else edits it meanwhile loses nothing.

use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Puts `after` in place of `before`; nothing stands for a file that is not there.
///
/// # Errors
///
/// If the file is not what was read any more, or cannot be written. It is then as it was.
pub fn replace(path: &Path, before: Option<&[u8]>, after: Option<&str>) -> anyhow::Result<()> {
    // A link is followed: it is the file behind it that people edit.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // Two of these programs take turns: the second one finds the file changed.
    let lock = match before {
        Some(_) => {
            let file = File::open(path).with_context(|| format!("{} is gone", path.display()))?;
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            Some(file)
        }
        None => None,
    };
    let now = match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if now.as_deref() != before {
        bail!("{} was changed by someone else while this ran; nothing was written, run it again", path.display());
    }
    match after {
        Some(text) => write(path, text, before.is_none()),
        None => fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display())),
    }?;
    drop(lock);
    Ok(())
}

fn write(path: &Path, text: &str, new: bool) -> anyhow::Result<()> {
    let trouble = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Hidden files are no documents, should this one ever be left behind.
    builder.prefix(".kubectl-mesh-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).with_context(trouble)?;
    file.write_all(text.as_bytes()).with_context(trouble)?;
    if !new {
        let permissions = fs::metadata(path).with_context(trouble)?.permissions();
        file.as_file().set_permissions(permissions).with_context(trouble)?;
    }
    file.as_file().sync_all().with_context(trouble)?;
    if new {
        file.persist_noclobber(path).map_err(|error| error.error).with_context(trouble)?;
    } else {
        file.persist(path).map_err(|error| error.error).with_context(trouble)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::replace;
    use std::fs;

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
}
