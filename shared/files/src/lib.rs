//! Folders of documents become files of a run; findings become text. What the Argo CD plugin and the kubectl plugins
//! share, and nothing that could reach a network.

mod read;
pub mod report;

pub use read::{Bounds, is_document, read, read_below};
