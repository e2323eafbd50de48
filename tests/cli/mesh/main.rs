//! The contract of `kubectl-mesh` on the command line, on the program itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cases;
mod expected;
mod golden;
mod input;
mod limits;
mod names;
mod plan;
mod proofs;
mod render;
#[path = "../support.rs"]
mod support;
mod verbs;

/// The program under test.
const MESH: &str = env!("CARGO_BIN_EXE_kubectl-mesh");
