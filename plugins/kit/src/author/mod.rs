//! Documents are created, edited and removed in people's own files: one document per command, and nothing else in the
//! file changes by a byte.
//!
//! | module | what it does |
//! |---|---|
//! | [`value`] | what a field should say, and how that is written |
//! | [`words`] | the short forms in which flags say it |
//! | [`span`] | where each value begins and ends in the text |
//! | [`edit`] | the smallest change of the text after which a field says it |
//! | [`documents`] | the documents of one file: found, added, taken out |
//! | [`change`] | one change of one file: shown with its effect on the fleet, checked, written |
//! | [`file`] | a file replaced as a whole, and only if it is still what was read |

pub mod change;
pub mod documents;
pub mod edit;
pub mod file;
mod span;
pub mod value;
pub mod words;
