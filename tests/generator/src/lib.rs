//! Fleets to test and to measure with. A seed is a fleet: the same documents on every machine, in every run.
//!
//! | module | makes |
//! |---|---|
//! | [`fleet`] | small fleets with anything that documents can say |
//! | [`large`] | fleets of any size |
//! | [`defect`] | fleets with one defect at a known place |
//! | [`coverage`] | a table of the features that fleets had |
//! | [`document`] | YAML in which every place is known |
//! | [`files`] | documents spread over files |
//! | [`world`] | the translation's view of documents |

pub mod coverage;
pub mod defect;
pub mod document;
pub mod files;
pub mod fleet;
pub mod large;
pub mod random;
pub mod world;
