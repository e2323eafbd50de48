//! Ctrl-C and the signals that end a process, for work that must be undone before the process ends.

use anyhow::{Context, bail};
use signal_hook::consts::TERM_SIGNALS;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From here on the process ends where [`check`] is called, and not anywhere else.
///
/// # Errors
///
/// If the system does not let the process handle its signals.
pub fn watch() -> anyhow::Result<()> {
    static WATCHED: Once = Once::new();
    let mut result = Ok(());
    WATCHED.call_once(|| {
        let watch = |signal: &i32| signal_hook::flag::register(*signal, Arc::clone(&ASKED));
        result = signals().try_for_each(|signal| watch(signal).map(drop));
    });
    result.context("cannot handle signals")
}

fn signals() -> impl Iterator<Item = &'static i32> {
    // The terminal is gone.
    #[cfg(unix)]
    let closed = [signal_hook::consts::SIGHUP].iter();
    #[cfg(not(unix))]
    let closed = [].iter();
    TERM_SIGNALS.iter().chain(closed)
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
