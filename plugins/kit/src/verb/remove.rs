//! `remove`: one document taken out of its file.

use crate::author::change::{self, Author, DryRun};
use crate::author::documents::Id;
use crate::input::Input;
use crate::run::Outcome;
use mesh::intent::Kind;
use std::path::PathBuf;

/// The flags of `remove`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The document: NAMESPACE/NAME, or NAME with -n
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The namespace of a document that is named without one
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// The file or folder in which the document is expected; any of the fleet's files otherwise
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// `client`: show the change and its effect, and write nothing
    #[arg(long, value_enum, default_value = "none", require_equals = true)]
    pub dry_run: DryRun,
}

impl Flags {
    /// Where and whether the change is written.
    #[must_use]
    pub fn author(&self) -> Author {
        Author { file: self.file.clone(), dry_run: self.dry_run }
    }
}

/// Takes the document out, after showing what that changes.
///
/// # Errors
///
/// If there is no such document, or the fleet would not be right without it.
pub fn run(input: &Input, flags: &Flags, kind: Kind) -> Outcome {
    change::remove(input, &flags.author(), &Id::parse(kind, &flags.name, flags.namespace.as_deref())?)
}
