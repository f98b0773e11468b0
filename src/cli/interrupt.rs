//! Ctrl-C: at once, or when changes are being made, gently first: what is on its way is waited for, and nothing more sent.

use std::{
    process,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use super::output;
use crate::cluster::connection::Connection;

/// The exit code of what was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// What is stopped first.
static FIRST: Mutex<Weak<Connection>> = Mutex::new(Weak::new());
static WAS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Has SIGINT, SIGTERM and SIGHUP end the program: at once where nothing can be left half done, as files take their names
/// only when they are whole; else after what is on its way, and at once when it comes again.
pub(super) fn end_when_interrupted() {
    let ended = ctrlc::set_handler(|| {
        let first = FIRST
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        match first {
            Some(connection) if !WAS_INTERRUPTED.swap(true, Ordering::Relaxed) => {
                connection.stop();
                output::tell("interrupted: waiting for what is on its way; once more ends at once");
            }
            _ => {
                output::tell("interrupted");
                process::exit(INTERRUPTED.into());
            }
        }
    });
    // Without a handler they end it all the same, and only the exit code is another one.
    drop(ended);
}

/// From now on, and for as long as the connection is there, the first signal only has nothing more sent over it.
pub(super) fn stop_first(connection: &Arc<Connection>) {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(connection);
}

/// Whether a signal has come.
#[must_use]
pub(super) fn was_interrupted() -> bool {
    WAS_INTERRUPTED.load(Ordering::Relaxed)
}
