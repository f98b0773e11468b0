//! The lines that tell what is done, as kubectl words them.

use std::sync::Mutex;

use super::{
    super::{
        failure::Failure,
        output::{self, print_text},
        text::printable,
    },
    DryRun,
};
use crate::{
    cluster::{
        accounts::Entry,
        apply::Report,
        plan::{self, Action, Change, Fate, Plan, Removal},
    },
    manifest::ObjectKey,
};

/// A line about an object: `deployment.apps/manager created`.
pub(in crate::cli) fn line(key: &ObjectKey, word: &str, note: &str, suffix: &str) -> String {
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(" ({note})")
    };
    printable(&format!("{key} {word}{note}{suffix}"))
}

/// What a plan would do, a line for each object, and for each entry of an account.
///
/// # Errors
/// When standard output cannot take it.
pub(in crate::cli) fn show(plan: &Plan, dry_run: DryRun) -> Result<(), Failure> {
    let suffix = match dry_run {
        DryRun::Server => " (server dry run)",
        DryRun::None | DryRun::Client => " (dry run)",
    };
    let of_change = |change: &Change| line(&change.key, change.action.word(), "", suffix);
    let of_entry = |entry: &Entry| {
        let note = format!("Secrets: {}", entry.secret);
        line(&plan::account_key(entry), "patched", &note, suffix)
    };
    let of_removal = |removal: &Removal| {
        let (word, note) = match &removal.fate {
            Fate::Delete { .. } => ("deleted", ""),
            Fate::Gone => return None,
            Fate::Forget(note) => ("left alone", note.as_str()),
            Fate::Foreign => ("left alone", "it never was this install's"),
            Fate::Keep(note) => ("kept", note.as_str()),
            Fate::Unverifiable(note) => ("not checked", note.as_str()),
        };
        Some(line(&removal.key, word, note, suffix))
    };
    let changes = plan.changes.iter().map(of_change);
    let entries = plan.adding.iter().chain(&plan.removing).map(of_entry);
    let removals = plan.removals.iter().filter_map(of_removal);
    let lines: String = changes
        .chain(entries)
        .chain(removals)
        .map(|line| line + "\n")
        .collect();
    print_text(&lines)
}

/// Prints a line for each object on standard output, and what takes a while on standard error where that is a terminal.
///
/// What standard output cannot take is lost: what is under way goes on.
#[derive(Debug, Default)]
pub(in crate::cli) struct Lines {
    unchanged: Unchanged,
    last: Mutex<String>,
}

/// Whether objects are told of that stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) enum Unchanged {
    #[default]
    Told,
    Quiet,
}

impl Lines {
    pub(in crate::cli) fn new(unchanged: Unchanged) -> Self {
        Self {
            unchanged,
            ..Self::default()
        }
    }
}

impl Report for Lines {
    fn object(&self, key: &ObjectKey, word: &str, note: &str) {
        if self.unchanged == Unchanged::Quiet && word == Action::Unchanged.word() {
            return;
        }
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
