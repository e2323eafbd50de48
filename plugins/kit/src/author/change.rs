//! One change of one file: what it does to the text and to the fleet is shown before anything is written, and a fleet
//! that would not be right is refused.

use super::documents::{self, Field, Id};
use super::file;
use crate::effect::Effect;
use crate::input::{self, Input};
use crate::run::{self, Failure, Outcome};
use anyhow::{Context, bail};
use mesh::World;
use mesh::diagnostic::{Diagnostic, Diagnostics, Severity, did_you_mean};
use mesh::source::{File, Limits, Node};
use mesh_files::Bounds;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The flags of every command that changes a document.
#[derive(Clone, Debug, clap::Args)]
pub struct Author {
    /// The file with the document, or a folder; without it the document goes to stdout
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// `client`: show the change and its effect, and write nothing
    #[arg(long, value_enum, default_value = "none", require_equals = true)]
    pub dry_run: DryRun,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    /// The file is written.
    None,
    /// Nothing is written.
    Client,
}

/// Creates a document, or changes fields of the one that is there; `fields` is asked with the tree of that one.
///
/// # Errors
///
/// If the document cannot be edited, or the fleet would not be right with it.
pub fn set<'a>(
    input: &Input,
    author: &Author,
    id: &Id,
    fields: impl FnOnce(Option<&Node>) -> anyhow::Result<Vec<Field<'a>>>,
) -> Outcome {
    let fleet = Files::read(input, author.file.as_deref())?;
    let change = match fleet.find(id)? {
        Some(found) => {
            fleet.accept(&found, id, author.file.as_deref())?;
            let text = documents::change(found.text, found.document, &fields(Some(&found.node))?)
                .with_context(|| format!("{id} in {}", found.path.display()))?;
            if author.file.is_none() {
                return fleet.print(id, &found.path, &text);
            }
            if text == found.text {
                run::print(&format!("{} unchanged\n", id.qualified()))?;
                return Ok(0);
            }
            Change { path: found.path, before: Some(found.text.to_owned()), after: Some(text), verb: "configured" }
        }
        None => {
            let text = documents::write(id, &fields(None)?);
            let Some(path) = &author.file else {
                return fleet.print(id, Path::new(&id.file_name()), &text);
            };
            let path = if path.is_dir() { path.join(id.file_name()) } else { path.clone() };
            let before = existing(&path)?;
            if before.is_some() && path.extension().is_some_and(|extension| extension == "json") {
                return Err(
                    anyhow::anyhow!("{} is JSON and holds one document; name another file", path.display()).into()
                );
            }
            let text = documents::append(before.as_deref().unwrap_or_default(), &text);
            Change { path, before, after: Some(text), verb: "created" }
        }
    };
    fleet.carry_out(&change, id, author)
}

/// Changes fields of a document that must be there, in the file where it stands.
///
/// # Errors
///
/// If there is no such document, it cannot be edited, or the fleet would not be right with the change.
pub fn edit<'a>(
    input: &Input,
    author: &Author,
    id: &Id,
    fields: impl FnOnce(&Node) -> anyhow::Result<Vec<Field<'a>>>,
) -> Outcome {
    let fleet = Files::read(input, author.file.as_deref())?;
    let found = fleet.find(id)?.with_context(|| fleet.missing(id))?;
    fleet.accept(&found, id, author.file.as_deref())?;
    let text = documents::change(found.text, found.document, &fields(&found.node)?)
        .with_context(|| format!("{id} in {}", found.path.display()))?;
    if text == found.text {
        run::print(&format!("{} unchanged\n", id.qualified()))?;
        return Ok(0);
    }
    let change =
        Change { path: found.path, before: Some(found.text.to_owned()), after: Some(text), verb: "configured" };
    fleet.carry_out(&change, id, author)
}

/// Takes a document out of its file.
///
/// # Errors
///
/// If there is no such document, or the fleet would not be right without it.
pub fn remove(input: &Input, author: &Author, id: &Id) -> Outcome {
    let fleet = Files::read(input, author.file.as_deref())?;
    let found = fleet.find(id)?.with_context(|| fleet.missing(id))?;
    fleet.accept(&found, id, author.file.as_deref())?;
    let after =
        documents::remove(found.text, found.document).with_context(|| format!("{id} in {}", found.path.display()))?;
    let change = Change { path: found.path, before: Some(found.text.to_owned()), after, verb: "removed" };
    fleet.carry_out(&change, id, author)
}

/// What is to be written.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    verb: &'static str,
}

/// A document in a file.
struct Found<'a> {
    path: PathBuf,
    text: &'a str,
    document: usize,
    node: Node,
}

/// The files of the fleet and the one that is edited.
struct Files {
    files: Vec<File>,
    found: Diagnostics,
    before: World,
}

impl Files {
    fn read(input: &Input, edited: Option<&Path>) -> anyhow::Result<Self> {
        if edited == Some(Path::new("-")) {
            bail!("--file names a file that can be written; without it the document goes to stdout");
        }
        let (mut files, mut found) = mesh_files::read(&input.filename, &Bounds::default());
        // The edited file counts as part of the fleet, wherever it stands.
        if let Some(path) = edited.filter(|path| path.exists()) {
            let known: BTreeSet<PathBuf> = files.iter().filter_map(|file| fs::canonicalize(&file.path).ok()).collect();
            let (more, problems) = mesh_files::read(&[path.to_owned()], &Bounds::default());
            let new =
                more.into_iter().filter(|file| fs::canonicalize(&file.path).is_ok_and(|path| !known.contains(&path)));
            files.extend(new);
            found.extend(problems);
        }
        let before = World::of(files.clone(), &Limits::default(), found.clone());
        Ok(Self { files, found, before })
    }

    fn find(&self, id: &Id) -> anyhow::Result<Option<Found<'_>>> {
        for file in &self.files {
            // Only files that hold the name are read again.
            let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
            if !text.contains(&id.name) {
                continue;
            }
            if let Some((document, node)) = documents::find(text, id).with_context(|| file.path.clone())? {
                return Ok(Some(Found { path: PathBuf::from(&file.path), text, document, node }));
            }
        }
        Ok(None)
    }

    fn missing(&self, id: &Id) -> String {
        let names: Vec<String> = self.before.effective.fleet.documents.iter().map(ToString::to_string).collect();
        let help = did_you_mean(&id.to_string(), names.iter().map(String::as_str))
            .unwrap_or_else(|| "write NAMESPACE/NAME, and name the documents with -f".to_owned());
        format!("there is no {id} in the documents; {help}")
    }

    /// A document is edited where it stands, and only if that is where the user expects it.
    fn accept(&self, found: &Found<'_>, id: &Id, named: Option<&Path>) -> anyhow::Result<()> {
        if found.path == Path::new("<stdin>") {
            bail!("{id} comes from stdin, which cannot be edited; name its file with -f");
        }
        let Some(named) = named else { return Ok(()) };
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !real(&found.path).starts_with(real(named)) {
            bail!("{id} stands in {}, not in {}; name that file with --file", found.path.display(), named.display());
        }
        Ok(())
    }

    /// The fleet with a file changed, or why it would not be right.
    fn after(&self, path: &Path, text: Option<&str>) -> Result<World, Failure> {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let target = real(path);
        let mut files: Vec<File> =
            self.files.iter().filter(|file| real(Path::new(&file.path)) != target).cloned().collect();
        if let Some(text) = text {
            let old = self.files.iter().find(|file| real(Path::new(&file.path)) == target);
            files.push(match old {
                Some(old) => File { bytes: text.as_bytes().to_vec(), ..old.clone() },
                None => File {
                    path: path.to_string_lossy().into_owned(),
                    relative: path.to_string_lossy().into_owned(),
                    bytes: text.as_bytes().to_vec(),
                    explicit: true,
                },
            });
        }
        let world = World::of(files, &Limits::default(), self.found.clone());
        let found = world.check();
        if found.iter().any(|finding| finding.code.severity == Severity::Error) {
            let already = self.before.found.has_errors();
            let refused = input::refuse(&world, &found);
            eprintln!(
                "error: nothing was written: {}",
                if already { "the documents have errors" } else { "the documents would not be right" }
            );
            return Err(refused);
        }
        let known: BTreeSet<(&str, String)> =
            self.before.check().iter().map(|finding| (finding.code.id, finding.message.clone())).collect();
        let new: Vec<Diagnostic> =
            found.into_iter().filter(|finding| !known.contains(&(finding.code.id, finding.message.clone()))).collect();
        input::warn(&world, &new, Severity::Warning);
        Ok(world)
    }

    /// The document alone on stdout, its effect on stderr.
    fn print(&self, id: &Id, path: &Path, text: &str) -> Outcome {
        let after = self.after(path, Some(text))?;
        let (index, _) = documents::find(text, id)?.context("the document is not in its own text")?;
        eprint!("{}", shown(&self.before, &after));
        let document = documents::text_of(text, index)?;
        run::print(document)?;
        Ok(0)
    }

    fn carry_out(&self, change: &Change, id: &Id, author: &Author) -> Outcome {
        let after = self.after(&change.path, change.after.as_deref())?;
        let mut text = diff(change);
        text += &shown(&self.before, &after);
        if author.dry_run == DryRun::Client {
            text += &format!("{} {} (dry run)\n", id.qualified(), change.verb);
            run::print(&text)?;
            return Ok(0);
        }
        run::print(&text)?;
        file::replace(&change.path, change.before.as_deref().map(str::as_bytes), change.after.as_deref())?;
        run::print(&format!("{} {} in {}\n", id.qualified(), change.verb, change.path.display()))?;
        Ok(0)
    }
}

/// The text of a file that may not be there yet.
fn existing(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))?;
            super::edit::read(text.trim_start_matches('\u{FEFF}')).with_context(|| path.display().to_string())?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// What the change does to the fleet.
fn shown(before: &World, after: &World) -> String {
    let effect = Effect::between(before, after);
    if effect.is_empty() { "\nNo effect on the fleet.\n".to_owned() } else { format!("\n{}", effect.to_text()) }
}

fn diff(change: &Change) -> String {
    // Programs that apply patches know one separator.
    let path = change.path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
    let name = |there: bool, side: &str| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    TextDiff::from_lines(before, after)
        .unified_diff()
        .header(&name(change.before.is_some(), "a"), &name(change.after.is_some(), "b"))
        .to_string()
}
