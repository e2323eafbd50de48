//! Documents handed to the translation as files.

use crate::document::Text;
use mesh::World;
use mesh::diagnostic::Diagnostics;
use mesh::source::{File, Limits};

/// The world of documents of which each is a file.
#[must_use]
pub fn world_of(texts: &[Text]) -> World {
    let files = texts.iter().enumerate().map(|(index, text)| file(&format!("{index:05}.yaml"), &text.yaml));
    world(files.collect())
}

/// The world of files.
#[must_use]
pub fn world(files: Vec<File>) -> World {
    World::of(files, &Limits::default(), Diagnostics::default())
}

/// A file that was found in a folder.
#[must_use]
pub fn file(name: &str, text: &str) -> File {
    File { path: name.to_owned(), relative: name.to_owned(), bytes: text.as_bytes().to_vec(), explicit: false }
}
