//! What a run wants a folder to hold, and what becomes of the files of earlier runs: decided by names and owners alone.
//!
//! A run may render several installs, of which some stop. What earlier runs wrote for those stays as it is: it is
//! neither written nor removed, and still listed.

use std::collections::{BTreeMap, BTreeSet};

use super::list::{List, Owners, owner_word};
use crate::manifest::{file_name, kustomization, order};

/// What is in a folder besides the files of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Layout {
    /// Nothing.
    Plain,
    /// A `kustomization.yaml` that lists them.
    Kustomize,
}

/// Files by name, with their owners, and the owners that have stopped. The texts may be Secrets, so there is no `Debug`.
pub(in crate::cli) struct Wanted {
    layout: Layout,
    stopped: Owners,
    files: BTreeMap<String, String>,
    list: List,
}

impl Wanted {
    /// No files yet. `stopped` are the owners whose files stay, whatever is added.
    pub(in crate::cli) fn new(layout: Layout, stopped: &BTreeSet<String>) -> Self {
        Self {
            layout,
            stopped: words(stopped),
            files: BTreeMap::new(),
            list: List::default(),
        }
    }

    /// Adds a file, which belongs to all of `owners`.
    pub(in crate::cli) fn add(&mut self, name: String, owners: &BTreeSet<String>, text: String) {
        self.list.add(&name, words(owners));
        self.files.insert(name, text);
    }

    /// The names of all files that were added.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Whether nothing is to be written because everything has stopped.
    pub(super) fn is_nothing(&self) -> bool {
        self.files.is_empty() && !self.stopped.is_empty()
    }

    /// The listed files that stay as they are: what has stopped owns them, also together with what goes on. Of a file
    /// without owners nobody can tell whose it is; unless it is rendered, it stays too, until a run in which nothing stops.
    pub(super) fn kept<'a>(&self, listed: &'a List) -> BTreeSet<&'a str> {
        let kept = listed.iter().filter(|(name, owners)| {
            let is_nobodys = owners.is_empty() && !self.files.contains_key(*name);
            *name != kustomization::FILE_NAME
                && !self.stopped.is_empty()
                && (is_nobodys || !owners.is_disjoint(&self.stopped))
        });
        kept.map(|(name, _)| name).collect()
    }

    /// Leaves out what stays as it is.
    pub(super) fn leave_out(&mut self, kept: &BTreeSet<&str>) {
        self.files.retain(|name, _| !kept.contains(name.as_str()));
    }

    /// The list once all is done. A file that stays belongs to all that it belonged to.
    pub(super) fn list(&self, listed: &List) -> List {
        let mut list = self.list.clone();
        for name in self.kept(listed) {
            list.add(name, listed.owners(name).cloned().collect());
        }
        if self.layout == Layout::Kustomize {
            list.add(kustomization::FILE_NAME, Owners::new());
        }
        list
    }

    /// The files to write, with the kustomization where one is wanted, which lists the files of `kept` too.
    ///
    /// All of them are sorted by their names alone. So what it says depends on nothing but which files there are, and
    /// a run in which something stops does not move the lines of what has.
    pub(super) fn into_files<'a>(
        self,
        kept: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let mut files = self.files;
        if self.layout == Layout::Kustomize {
            // A forged list may name what is no manifest, or what YAML would take for something else than a text.
            let kept = kept.filter(|name| file_name::is_file_name(name));
            let mut names: Vec<_> = files
                .keys()
                .cloned()
                .chain(kept.map(str::to_owned))
                .collect();
            order::sort_files(&mut names);
            let text = kustomization::kustomization(&names);
            files.insert(kustomization::FILE_NAME.to_owned(), text);
        }
        files
    }
}

/// An owner without a name is none.
fn words(owners: &BTreeSet<String>) -> Owners {
    let named = owners.iter().filter(|owner| !owner.is_empty());
    named.map(|owner| owner_word(owner)).collect()
}
