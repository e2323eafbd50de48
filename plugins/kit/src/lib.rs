//! What the kubectl plugins share, and what needs no cluster: flags, exit codes, tables, rendered folders.

pub mod author;
pub mod complete;
pub mod effect;
pub mod explain;
pub mod findings;
pub mod folder;
pub mod input;
pub mod interrupt;
pub mod jsonpath;
pub mod manifest_work;
pub mod output;
pub mod program;
pub mod run;
pub mod table;
pub mod verb;
pub mod verdict;
