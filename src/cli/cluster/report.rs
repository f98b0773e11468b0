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
        inventory::InstallName,
        plan::{self, Action, Change, Fate, Plan, Removal},
    },
    manifest::ObjectKey,
};

/// An object for messages about an install. The namespace is told where it is not that of the install.
pub(in crate::cli) fn named(key: &ObjectKey, home: &str) -> String {
    match key.namespace.as_str() {
        "" => key.to_string(),
        namespace if namespace == home => key.to_string(),
        namespace => format!("{key} in {namespace}"),
    }
}

/// A line about an object: `deployment.apps/manager created`.
pub(in crate::cli) fn line(
    (key, home): (&ObjectKey, &str),
    word: &str,
    note: &str,
    suffix: &str,
) -> String {
    let note = if note.is_empty() {
        String::new()
    } else {
        format!(" ({note})")
    };
    printable(&format!("{} {word}{note}{suffix}", named(key, home)))
}

/// What the plan of an install would do, a line for each object, and for each entry of an account.
///
/// # Errors
/// When standard output cannot take it.
pub(in crate::cli) fn show(
    install: &InstallName,
    plan: &Plan,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let home = install.namespace.as_str();
    let suffix = match dry_run {
        DryRun::Server => " (server dry run)",
        DryRun::None | DryRun::Client => " (dry run)",
    };
    let of_change = |change: &Change| line((&change.key, home), change.action.word(), "", suffix);
    let of_entry = |entry: &Entry, what: &str| {
        let note = format!("{what}: {}", entry.secret);
        line((&plan::account_key(entry), home), "patched", &note, suffix)
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
        Some(line((&removal.key, home), word, note, suffix))
    };
    let changes = plan.changes.iter().map(of_change);
    let adding = plan.adding.iter().map(|entry| of_entry(entry, "Secrets"));
    let removing = plan.removing.iter();
    let removing = removing.map(|entry| of_entry(entry, "no longer Secrets"));
    let removals = plan.removals.iter().filter_map(of_removal);
    let lines: String = changes
        .chain(adding)
        .chain(removing)
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
    /// The namespace of the install.
    home: String,
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
    /// For an install.
    pub(in crate::cli) fn new(install: &InstallName, unchanged: Unchanged) -> Self {
        Self {
            home: install.namespace.clone(),
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
        drop(print_text(&format!(
            "{}\n",
            line((key, &self.home), word, note, "")
        )));
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
