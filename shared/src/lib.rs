//! `render(intents, inventory, cluster) -> manifests`, as a pure function.
//!
//! The modules are the pipeline, top to bottom; each sees only what stands above it:
//!
//! | module | from | to |
//! |---|---|---|
//! | [`source`] | text | trees in which every key and value knows its place |
//! | [`intent`] | trees | what people wrote, one type per kind of document |
//! | [`fleet`] | documents | clusters, services and policies that refer to each other |
//! | [`resolve`] | fleet | the effective fleet: who may go where, in which order, and why |
//! | [`check`] | effective fleet | findings that hold for any mesh |
//! | [`emit`] | effective fleet | one cluster's resources, by one backend per mesh |
//! | [`manifest`] | resources | bytes that Kubernetes reads back unchanged |
//!
//! [`diagnostic`] is what every stage says when something is wrong, [`explain`] prints the effective fleet.
//!
//! What is deliberately absent: files, environment, network, processes, threads, clocks. Same input, same bytes.

pub mod check;
pub mod diagnostic;
pub mod emit;
pub mod explain;
pub mod fleet;
pub mod intent;
pub mod manifest;
pub mod resolve;
pub mod source;

use diagnostic::{Diagnostic, Diagnostics};
use fleet::{ClusterId, Fleet};
use manifest::Object;
use resolve::Effective;
use source::{File, Limits};

/// A resolved fleet with the files it was read from and everything that was found on the way.
#[derive(Debug)]
pub struct World {
    /// The files by name, in the order in which places count them; their bytes have been read and are gone.
    pub files: Vec<File>,
    /// The effective fleet; incomplete where there are errors.
    pub effective: Effective,
    /// Findings about text, documents and the effective fleet.
    pub found: Diagnostics,
    /// Documents of other API groups that were skipped.
    pub skipped: usize,
}

impl World {
    /// Reads and resolves the documents of all files. `found` holds what is already known to be wrong, such as files
    /// that could not be read.
    #[must_use]
    pub fn of(mut files: Vec<File>, limits: &Limits, mut found: Diagnostics) -> Self {
        // The order in which files are handed in has no meaning.
        files.sort_by(|a, b| (&a.relative, &a.path).cmp(&(&b.relative, &b.path)));
        let mut reader = intent::Reader::default();
        for (index, file) in files.iter_mut().enumerate() {
            let index = u32::try_from(index).expect("fewer than 2^32 files fit into memory");
            let (nodes, problems) = source::read(index, file, limits);
            found.extend(problems);
            reader.file(file, &nodes, &mut found);
            file.bytes = Vec::new();
        }
        let documents = reader.end(&found);
        let (skipped, complete) = (documents.skipped, documents.lost.is_empty());
        let mut unfit = Diagnostics::default();
        let fleet = Fleet::build(&documents, &mut unfit);
        drop(documents);
        // What an incomplete fleet would do says nothing about the right one.
        let complete = complete && !unfit.has_errors();
        found.extend(unfit);
        let mut effect = Diagnostics::default();
        let effective = Effective::resolve(fleet, &mut effect);
        check::check(&effective, &mut effect);
        if complete {
            found.extend(effect);
        }
        Self { files, effective, found, skipped }
    }

    /// All resources of one cluster, or the findings that stop the rendering. Any error anywhere in the documents stops
    /// it: a fleet is rendered from documents that are right, or not at all.
    ///
    /// # Errors
    ///
    /// The findings of the run, if one of them is an error.
    pub fn render(&self, cluster: ClusterId) -> Result<Rendered, Vec<Diagnostic>> {
        let (objects, own) = self.emit(cluster);
        let mut found = self.found.clone();
        found.extend(own);
        if found.has_errors() { Err(found.sorted()) } else { Ok(Rendered { objects, found: found.sorted() }) }
    }

    /// What the backend makes of one cluster, and what only it found: for those who render many clusters and tell once what
    /// is known of the whole run. Nothing is made of documents with errors, and what goes with an error is incomplete.
    #[must_use]
    pub fn emit(&self, cluster: ClusterId) -> (Vec<Object>, Diagnostics) {
        let mut own = Diagnostics::default();
        let objects =
            if self.found.has_errors() { Vec::new() } else { emit::render(&self.effective, cluster, &mut own) };
        (objects, own)
    }

    /// The findings of the whole run, those of every cluster's backend included.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnostic> {
        let mut found = self.found.clone();
        for (cluster, _) in self.effective.fleet.cluster_ids() {
            found.extend(self.emit(cluster).1);
        }
        found.sorted()
    }
}

/// What was rendered for one cluster.
#[derive(Debug)]
pub struct Rendered {
    /// The objects, in the order in which they are applied; never none.
    pub objects: Vec<Object>,
    /// Warnings and notes.
    pub found: Vec<Diagnostic>,
}
