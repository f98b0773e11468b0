//! The lines that tell what is done, as kubectl words them.

use std::sync::Mutex;

use super::super::{
    output::{self, print_text},
    text::printable,
};
use crate::{cluster::apply::Report, manifest::ObjectKey};

/// A line about an object: `deployment.apps/manager created`.
pub(in crate::cli) fn line(key: &ObjectKey, word: &str, note: &str, suffix: &str) -> String {
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(" ({note})")
    };
    printable(&format!("{key} {word}{note}{suffix}"))
}

/// Prints a line for each object on standard output, and what takes a while on standard error where that is a terminal.
///
/// What standard output cannot take is lost: what is under way goes on.
#[derive(Debug, Default)]
pub(in crate::cli) struct Lines {
    last: Mutex<String>,
}

impl Report for Lines {
    fn object(&self, key: &ObjectKey, word: &str, note: &str) {
        drop(print_text(&format!("{}\n", line(key, word, note, ""))));
    }

    fn progress(&self, text: &str) {
        let Ok(mut last) = self.last.lock() else {
            return;
        };
        // What is the same as before says nothing new.
        if output::is_terminal() && *last != text {
            output::tell(text);
            text.clone_into(&mut last);
        }
    }
}
