//! Ctrl-C and the signals that end a process, for work that must be undone before the process ends.

use anyhow::{Context, bail};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on the process ends where [`check`] is called, and not anywhere else.
///
/// # Errors
///
/// If the system does not let the process handle its signals.
pub fn watch() -> anyhow::Result<()> {
    static WATCHED: Once = Once::new();
    let mut result = Ok(());
    WATCHED.call_once(|| result = ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed)));
    result.context("cannot handle signals")
}

/// A place where the work can be undone.
///
/// # Errors
///
/// If the user wants the process to end.
pub fn check() -> anyhow::Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
