//! The verbs that `expose`, `failover` and `authz` have in common; each plugin says for which kind.

pub mod explain;
pub mod get;
pub mod remove;
pub mod render;
