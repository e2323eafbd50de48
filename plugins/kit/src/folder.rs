//! Rendered folders: one per cluster, with a `kustomization.yaml`. All or nothing: whatever goes wrong, the folder stays
//! as it was. Only files that begin with our own first line are ever replaced or removed.

use crate::interrupt;
use crate::manifest_work::ManifestWork;
use anyhow::{Context, bail};
use mesh::manifest::{Object, add_yaml, add_yaml_stream};
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The first line of every file that is written here.
pub const HEADER: &str = "# Rendered by kubectl-mesh from the intents; changes are overwritten.\n";

/// How a cluster's objects are put into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// One file per object.
    Files,
    /// One file, `manifest.yaml`.
    Single,
    /// One file, `manifestwork.yaml`, for the hub of Open Cluster Management.
    #[value(skip)]
    ManifestWork,
}

/// What writing changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that are new.
    pub created: usize,
    /// Files whose content is new.
    pub changed: usize,
    /// Files that were removed.
    pub removed: usize,
    /// Files that were right already.
    pub unchanged: usize,
}

/// Writes the files of a cluster into the buffer, one after the other, and hands each to `stage` with its path.
fn each_file(
    cluster: &str,
    objects: &[Object],
    layout: Layout,
    text: &mut String,
    stage: &mut dyn FnMut(PathBuf, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut resources = Vec::new();
    let mut file = |name: &str, write: &dyn Fn(&mut String)| {
        text.clear();
        text.push_str(HEADER);
        write(text);
        stage(Path::new(cluster).join(name), text)
    };
    let mut resource = |name: &str, write: &dyn Fn(&mut String)| {
        resources.push(format!("- {name}\n"));
        file(name, write)
    };
    match layout {
        Layout::Single => resource("manifest.yaml", &|text| add_yaml_stream(text, objects))?,
        Layout::ManifestWork => {
            let work = ManifestWork::of(cluster, objects)?;
            resource("manifestwork.yaml", &|text| add_yaml(text, &work))?;
        }
        Layout::Files => {
            for object in objects {
                resource(&short_name(&object.file_name()), &|text| add_yaml(text, object))?;
            }
        }
    }
    resources.sort();
    file("kustomization.yaml", &|text| {
        text.push_str("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n");
        text.extend(resources.iter().map(String::as_str));
    })
}

/// File systems take 255 bytes for a name.
fn short_name(name: &str) -> String {
    if name.len() <= 250 {
        return name.to_owned();
    }
    let stem = name.strip_suffix(".yaml").unwrap_or(name);
    let cut: String = stem.chars().take(220).collect();
    format!("{cut}-{:016x}.yaml", mesh::resolve::vip::hash(name.as_bytes()))
}

/// What the names of staging folders begin with.
const STAGING: &str = ".kubectl-mesh-";
/// The file in a staging folder that its process holds a lock on for as long as it lives.
const LOCK: &str = "lock";

/// A folder that is about to change. New files are staged beside the old ones, cluster by cluster and from several
/// threads, so that a full disk is found before anything is touched and no more than a cluster is in memory at a time.
pub struct Staging {
    folder: PathBuf,
    existed: bool,
    made: Vec<PathBuf>,
    own: BTreeSet<PathBuf>,
    /// Dropped before the folder that holds it: not every file system of Windows removes what is open.
    lock: fs::File,
    files: tempfile::TempDir,
}

/// The staged files of one cluster.
#[derive(Default)]
pub struct Staged {
    /// Staged files, and where they belong.
    moves: Vec<(PathBuf, PathBuf)>,
    /// Every file that the cluster has.
    wanted: Vec<PathBuf>,
    written: Written,
}

impl Staging {
    /// Prepares a folder; nothing in it is changed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read or written to, or another process is writing to it.
    pub fn begin(folder: &Path) -> anyhow::Result<Self> {
        interrupt::watch()?;
        let existed = folder.exists();
        let made = create_folder(folder)?;
        remove_left_over(folder)?;
        let files = tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(folder)
            .with_context(|| format!("cannot write below {}", folder.display()))?;
        let lock = fs::File::create(files.path().join(LOCK))
            .and_then(|file| file.lock().map(|()| file))
            .with_context(|| format!("cannot write below {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), existed, made, own: own_files(folder)?, lock, files })
    }

    /// Stages the files of one cluster. The buffer is one that may be used for further clusters, so that none asks for
    /// memory again.
    ///
    /// # Errors
    ///
    /// If a file of someone else is in the way, a file cannot be staged, or the user interrupts.
    pub fn stage(
        &self,
        cluster: &str,
        objects: &[Object],
        layout: Layout,
        buffer: &mut String,
    ) -> anyhow::Result<Staged> {
        let mut staged = Staged::default();
        each_file(cluster, objects, layout, buffer, &mut |path, text| {
            self.stage_file(cluster, self.folder.join(path), text, &mut staged)
        })?;
        Ok(staged)
    }

    fn stage_file(&self, cluster: &str, target: PathBuf, text: &str, staged: &mut Staged) -> anyhow::Result<()> {
        let index = staged.wanted.len();
        staged.wanted.push(target.clone());
        interrupt::check()?;
        // A link could lead anywhere, and nothing below it would be ours.
        let parent = target.parent().unwrap_or(&self.folder);
        if fs::symlink_metadata(parent).is_ok_and(|metadata| !metadata.is_dir()) {
            bail!("{} is in the way: it is not a folder", parent.display());
        }
        match fs::symlink_metadata(&target) {
            Ok(metadata) if !metadata.is_file() => bail!("{} is in the way: it is not a file", target.display()),
            Ok(_) if !self.own.contains(&target) => {
                bail!(
                    "{} is in the way: it was not written by kubectl-mesh; move it, or choose another folder",
                    target.display()
                )
            }
            Ok(metadata)
                if metadata.len() == text.len() as u64
                    && fs::read(&target).is_ok_and(|bytes| bytes == text.as_bytes()) =>
            {
                staged.written.unchanged += 1;
                return Ok(());
            }
            Ok(_) => staged.written.changed += 1,
            Err(_) => staged.written.created += 1,
        }
        let file = self.files.path().join(format!("new-{cluster}-{index}"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", target.display()))?;
        staged.moves.push((file, target));
        Ok(())
    }

    /// Makes the folder hold exactly the staged files of ours; files of others stay.
    ///
    /// # Errors
    ///
    /// If a file cannot be moved into its place, or the user interrupts. The folder is then as it was.
    pub fn commit(self, clusters: Vec<Staged>) -> anyhow::Result<Written> {
        let Self { folder, existed, made, own, lock, files } = self;
        let mut journal = Journal { undo: Vec::new(), made };
        let result = replace(&own, clusters, files.path(), &mut journal);
        if result.is_err() {
            journal.roll_back();
        }
        // Saved files go with the staging folder.
        drop((lock, files));
        if result.is_err() {
            if !existed {
                let _ = fs::remove_dir(folder);
            }
            return result;
        }
        for parent in own.iter().filter_map(|path| path.parent()) {
            // Only empty folders can be removed.
            let _ = fs::remove_dir(parent);
        }
        result
    }

    /// Gives up: the folder stays as it was.
    pub fn abandon(self) {
        let Self { folder: _, existed: _, made, own: _, lock, files } = self;
        drop((lock, files));
        Journal { undo: Vec::new(), made }.roll_back();
    }
}

/// Creates a folder and says which ones were new, the outermost first.
fn create_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(missing)
}

/// What has been done, so that it can be undone.
struct Journal {
    /// A place and what stood there before: a saved file, or nothing.
    undo: Vec<(PathBuf, Option<PathBuf>)>,
    made: Vec<PathBuf>,
}

impl Journal {
    fn roll_back(&mut self) {
        while let Some((path, before)) = self.undo.pop() {
            // The first error is the one that is told.
            let _ = match before {
                Some(saved) => fs::rename(saved, &path),
                None => fs::remove_file(&path),
            };
        }
        for folder in self.made.drain(..).rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn replace(
    own: &BTreeSet<PathBuf>,
    clusters: Vec<Staged>,
    staging: &Path,
    journal: &mut Journal,
) -> anyhow::Result<Written> {
    let mut written = Written::default();
    let mut wanted = BTreeSet::new();
    for cluster in clusters {
        written.created += cluster.written.created;
        written.changed += cluster.written.changed;
        written.unchanged += cluster.written.unchanged;
        wanted.extend(cluster.wanted);
        for (file, target) in cluster.moves {
            interrupt::check()?;
            if let Some(parent) = target.parent() {
                journal.made.extend(create_folder(parent)?);
            }
            save(&target, staging, journal)?;
            fs::rename(&file, &target).with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    for stale in own.difference(&wanted) {
        save(stale, staging, journal)?;
        written.removed += 1;
    }
    Ok(written)
}

/// Moves what stands at a place into the staging folder.
fn save(target: &Path, staging: &Path, journal: &mut Journal) -> anyhow::Result<()> {
    let before = if fs::symlink_metadata(target).is_ok() {
        let saved = staging.join(format!("old-{}", journal.undo.len()));
        fs::rename(target, &saved).with_context(|| format!("cannot replace {}", target.display()))?;
        Some(saved)
    } else {
        None
    };
    journal.undo.push((target.to_owned(), before));
    Ok(())
}

/// Removes staging folders of processes that were killed; the folder itself is right again after this run.
fn remove_left_over(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(STAGING) || !entry.file_type()?.is_dir() {
            continue;
        }
        // Without a lock file it was made a moment ago, by a process that will say what stands in its way.
        let Ok(lock) = fs::File::open(entry.path().join(LOCK)) else { continue };
        match lock.try_lock() {
            Ok(()) => {
                drop(lock);
                match fs::remove_dir_all(entry.path()) {
                    // Its process was about to end, and has removed it itself.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    removed => removed.with_context(|| {
                        format!("cannot remove {}, which a killed process left", entry.path().display())
                    })?,
                }
            }
            Err(fs::TryLockError::WouldBlock) => {
                bail!("another process is writing to {}; wait until it has ended", folder.display())
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", entry.path().display()));
            }
        }
    }
    Ok(())
}

/// Files that were written here before: in the folders of clusters, with our first line.
fn own_files(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut own = BTreeSet::new();
    let list = |path: &Path| fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()));
    for cluster in list(folder)? {
        let cluster = cluster?;
        if !cluster.file_type()?.is_dir() || cluster.file_name().to_string_lossy().starts_with(STAGING) {
            continue;
        }
        for entry in list(&cluster.path())? {
            let entry = entry?;
            if entry.file_type()?.is_file() && begins_with_header(&entry.path()) {
                own.insert(entry.path());
            }
        }
    }
    Ok(own)
}

fn begins_with_header(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEADER.len() as u64 + 1).read_to_end(&mut first));
    read.is_ok() && is_written_by_us(&first, HEADER)
}

/// Whether a text begins with this line. Git may have changed the line ends.
#[must_use]
pub fn is_written_by_us(text: &[u8], header: &str) -> bool {
    text.strip_prefix(header.trim_end().as_bytes())
        .is_some_and(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}
