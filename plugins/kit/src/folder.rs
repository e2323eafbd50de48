//! Rendered folders: one per cluster, with a `kustomization.yaml`. All or nothing: whatever goes wrong, the folder stays
//! as it was. Only files that begin with our own first line are ever replaced or removed.

use anyhow::{Context, bail};
use mesh::manifest::{Object, to_yaml, to_yaml_stream};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
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

/// The files of all clusters, by path below the folder.
#[must_use]
pub fn files(clusters: &BTreeMap<String, Vec<Object>>, layout: Layout) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for (cluster, objects) in clusters {
        let mut resources: Vec<String> = match layout {
            Layout::Single => {
                files.insert(Path::new(cluster).join("manifest.yaml"), format!("{HEADER}{}", to_yaml_stream(objects)));
                vec!["manifest.yaml".to_owned()]
            }
            Layout::Files => objects
                .iter()
                .map(|object| {
                    let name = short_name(&object.file_name());
                    files.insert(Path::new(cluster).join(&name), format!("{HEADER}{}", to_yaml(object)));
                    name
                })
                .collect(),
        };
        resources.sort();
        let list: String = resources.iter().map(|resource| format!("- {resource}\n")).collect();
        let kustomization =
            format!("{HEADER}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{list}");
        files.insert(Path::new(cluster).join("kustomization.yaml"), kustomization);
    }
    files
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

/// Makes the folder hold exactly these files of ours; files of others stay.
///
/// # Errors
///
/// If a file of someone else is in the way, or anything cannot be written. The folder is then as it was.
pub fn write(folder: &Path, wanted: &BTreeMap<PathBuf, String>) -> anyhow::Result<Written> {
    let existed = folder.exists();
    let created_parents = create_folder(folder)?;
    let mut journal = Journal { undo: Vec::new(), made: created_parents };
    let result = replace(folder, wanted, &mut journal);
    if result.is_err() {
        journal.roll_back();
        if !existed {
            let _ = fs::remove_dir(folder);
        }
    }
    result
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

fn replace(folder: &Path, wanted: &BTreeMap<PathBuf, String>, journal: &mut Journal) -> anyhow::Result<Written> {
    let own = own_files(folder)?;
    let mut written = Written::default();
    // Everything is written beside the folder's files first, so that a full disk is found before anything is touched.
    let staging = tempfile::Builder::new()
        .prefix(".kubectl-mesh-")
        .tempdir_in(folder)
        .with_context(|| format!("cannot write below {}", folder.display()))?;
    let mut staged = Vec::new();
    for (index, (path, text)) in wanted.iter().enumerate() {
        let target = folder.join(path);
        match fs::symlink_metadata(&target) {
            Ok(metadata) if !metadata.is_file() => bail!("{} is in the way: it is not a file", target.display()),
            Ok(_) if !own.contains(&target) => bail!(
                "{} is in the way: it was not written by kubectl-mesh; move it, or choose another folder",
                target.display()
            ),
            Ok(_) if fs::read(&target).is_ok_and(|bytes| bytes == text.as_bytes()) => {
                written.unchanged += 1;
                continue;
            }
            Ok(_) => written.changed += 1,
            Err(_) => written.created += 1,
        }
        let file = staging.path().join(format!("new-{index}"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", target.display()))?;
        staged.push((file, target));
    }
    for (file, target) in staged {
        if let Some(parent) = target.parent() {
            journal.made.extend(create_folder(parent)?);
        }
        save(&target, staging.path(), journal)?;
        fs::rename(&file, &target).with_context(|| format!("cannot write {}", target.display()))?;
    }
    for stale in own.iter().filter(|path| path.strip_prefix(folder).is_ok_and(|path| !wanted.contains_key(path))) {
        save(stale, staging.path(), journal)?;
        written.removed += 1;
    }
    // Saved files go with the staging folder; from here on nothing can fail.
    journal.undo.clear();
    drop(staging);
    for parent in own.iter().filter_map(|path| path.parent()) {
        // Only empty folders can be removed.
        let _ = fs::remove_dir(parent);
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

/// Files that were written here before: in the folders of clusters, with our first line.
fn own_files(folder: &Path) -> anyhow::Result<std::collections::BTreeSet<PathBuf>> {
    let mut own = std::collections::BTreeSet::new();
    let list = |path: &Path| fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()));
    for cluster in list(folder)? {
        let cluster = cluster?;
        if !cluster.file_type()?.is_dir() {
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
    let mut first = vec![0; HEADER.len()];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == HEADER.as_bytes()
}
