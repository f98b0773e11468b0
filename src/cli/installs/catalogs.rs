//! The catalogs that installs choose from, opened together.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    super::{
        catalog_args,
        failure::{Class, Failure},
    },
    Outcome,
};
use crate::{
    catalog::Catalog,
    concurrent::concurrently,
    install::{CatalogContent, CatalogRef, Content, Install, Stopped, Wanted},
    oci::digest::Digest,
    problem::Problem,
    source::{ImageSource, Sources},
};

/// Catalogs that are waited for at the same time.
const CATALOGS_AT_ONCE: usize = 4;

/// The catalogs of a run, those that can be read.
#[derive(Debug, Default)]
pub(super) struct Catalogs {
    opened: Vec<Catalog>,
    /// Why the others cannot be, until somebody takes it to tell it.
    failures: BTreeMap<String, Failure>,
    /// The kinds of these failures.
    classes: BTreeMap<String, Class>,
    /// Those that an install failed for.
    blamed: BTreeSet<String>,
}

impl Catalogs {
    /// Opens the catalogs that installs ask. `pins` says what the tags of some images stand for.
    pub(super) fn open(
        wanted: &Wanted,
        pins: &BTreeMap<String, Digest>,
        given: &[ImageSource],
        sources: &Sources,
    ) -> Self {
        let scopes = wanted
            .installs
            .iter()
            .filter_map(|install| match &install.content {
                Content::Package(wish) => Some(&wish.scope),
                Content::Bundle(_) => None,
            });
        let scopes: BTreeSet<_> = scopes.flatten().collect();
        // That an image is not known is told even when nothing needs it.
        let is_needed = |catalog: &&CatalogRef| {
            scopes.contains(&catalog.id) || matches!(catalog.content, CatalogContent::Unresolved(_))
        };
        let needed: Vec<_> = wanted.catalogs.iter().filter(is_needed).collect();
        // Registries are slower than disks, and several of them may be waited for at once.
        let found = concurrently(&needed, CATALOGS_AT_ONCE, |catalog| {
            let pin = pins.get(&catalog.id);
            match &catalog.content {
                CatalogContent::Source(path) => Ok((path.clone(), sources.catalog(path, pin))),
                CatalogContent::Image(image) => {
                    Ok((image.into(), sources.catalog_image(image, given, pin)))
                }
                CatalogContent::Unresolved(stopped) | CatalogContent::Unreadable(stopped) => {
                    let message = format!("the catalog {} was not read", catalog.id);
                    Err(refused(stopped, &message))
                }
            }
        });
        let mut catalogs = Self::default();
        for (catalog, found) in needed.into_iter().zip(found) {
            let (name, priority) = (&catalog.id, catalog.priority.unwrap_or(0));
            let opened = found.and_then(|(source, found)| {
                catalog_args::open(name, &source, priority, found, sources.limits())
            });
            match opened {
                Ok(opened) => catalogs.opened.push(opened),
                Err(failure) => {
                    catalogs.classes.insert(catalog.id.clone(), failure.class());
                    catalogs.failures.insert(catalog.id.clone(), failure);
                }
            }
        }
        catalogs
            .opened
            .sort_by_key(|catalog| Reverse(catalog.priority));
        catalogs
    }

    /// All that could be opened.
    pub(super) fn opened(&self) -> &[Catalog] {
        &self.opened
    }

    /// A catalog, by id; nothing when it could not be opened.
    pub(super) fn get(&self, id: &str) -> Option<&Catalog> {
        self.opened.iter().find(|catalog| catalog.name == id)
    }

    /// What kind of failure keeps a catalog from being read; nothing when none does.
    pub(super) fn class_of_failure(&self, id: &str) -> Option<Class> {
        self.classes.get(id).copied()
    }

    /// Why a catalog cannot be read that an install needs. What flags ask for fails with that; beside others the catalog
    /// fails by itself, once.
    pub(super) fn failure(&mut self, id: &str, class: Class, install: Option<&Install>) -> Failure {
        self.blamed.insert(id.to_owned());
        let own = install.filter(|install| install.is_of_flags());
        let own = own.and_then(|_| self.failures.remove(id));
        own.unwrap_or_else(|| {
            Failure::new(class, format!("it cannot go on without the catalog {id}"))
        })
    }

    /// Tells why catalogs could not be opened. One that nothing needed is only warned of, unless its image is not known.
    pub(super) fn tell_failures(&mut self, wanted: &Wanted, outcome: &mut Outcome) {
        for (id, failure) in std::mem::take(&mut self.failures) {
            let is_unresolved = wanted.catalogs.iter().any(|catalog| {
                catalog.id == id && matches!(catalog.content, CatalogContent::Unresolved(_))
            });
            if is_unresolved || self.blamed.contains(&id) {
                outcome.stop_catalog(owner(&id), failure);
            } else {
                let message = format!("{id} was not asked: {}", failure.message());
                outcome.tell(None, [Problem::warning("catalog", message)]);
            }
        }
    }
}

/// What a catalog is called beside installs, none of which has a colon in its name.
pub(super) fn owner(id: &str) -> String {
    format!("catalog:{id}")
}

/// The failure of something that stopped before it was read; `message` says what was not done.
pub(super) fn refused(stopped: &Stopped, message: &str) -> Failure {
    let failure = Failure::refused(stopped.problems.clone(), message);
    match &stopped.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
