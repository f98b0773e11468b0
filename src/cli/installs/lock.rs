//! What a lock says of the installs of a run, and what is written into the next one.

use std::{collections::BTreeSet, path::Path};

use super::{
    super::{
        failure::Failure,
        locked::{self, refused},
    },
    Chosen, Content, Outcome,
    catalogs::Catalogs,
    choose::asked_by,
};
use crate::{
    install::{self, BundleSource, Install},
    resolve::lock::{Asked, Lock, LockedInstall},
};

/// The bundles that a lock says, dependencies first. An install that it was not made for fails, and one whose catalog
/// cannot be read.
pub(super) fn installs(
    (path, lock): (&Path, &Lock),
    installs: &[Install],
    catalogs: &mut Catalogs,
    outcome: &mut Outcome,
) -> Vec<Chosen> {
    let mut chosen = vec![];
    for (root, install) in installs.iter().enumerate() {
        if let Err(failure) = is_made_for(lock, path, install) {
            outcome.fail(root, failure);
        }
    }
    for locked in &lock.installs {
        let is_for = |(root, install): &(usize, &Install)| {
            is_for(locked, install) && !outcome.has_failed(*root)
        };
        let roots = installs.iter().enumerate().filter(is_for);
        let roots: Vec<_> = roots.collect();
        if let Some(class) = catalogs.class_of_failure(&locked.catalog) {
            for (root, install) in &roots {
                outcome.fail(
                    *root,
                    catalogs.failure(&locked.catalog, class, Some(install)),
                );
            }
            continue;
        }
        let asked = roots
            .iter()
            .find(|(_, install)| is_asked_by(locked, install));
        if roots.is_empty() {
            continue;
        }
        chosen.push(Chosen {
            locked: locked.clone(),
            asked: asked.map(|(root, _)| *root),
            roots: roots.iter().map(|(root, _)| *root).collect(),
            content: if locked.catalog.is_empty() {
                Content::Image
            } else {
                Content::Catalog
            },
        });
    }
    chosen
}

/// Whether an entry is for an install. Without a name it is for what flags ask for.
fn is_for(locked: &LockedInstall, install: &Install) -> bool {
    match install.object {
        Some(_) => locked.installs.contains(&install.id),
        None => locked.installs.is_empty(),
    }
}

/// Whether an entry is what an install asks for itself.
fn is_asked_by(locked: &LockedInstall, install: &Install) -> bool {
    let is_named = match &install.content {
        install::Content::Package(wish) => locked.package == wish.package,
        install::Content::Bundle(BundleSource::Image(image)) => locked.image == *image,
        install::Content::Bundle(BundleSource::Source(_)) => false,
    };
    is_named && locked.asked.is_some()
}

fn is_made_for(lock: &Lock, path: &Path, install: &Install) -> Result<(), Failure> {
    let asked = match &install.content {
        install::Content::Package(wish) => asked_by(wish),
        install::Content::Bundle(BundleSource::Image(_)) => Asked::default(),
        // What the user names is on this machine.
        install::Content::Bundle(BundleSource::Source(_)) => return Ok(()),
    };
    let entries = lock
        .installs
        .iter()
        .filter(|locked| is_for(locked, install));
    let mut entries = entries.filter(|locked| is_asked_by(locked, install));
    let (path, id) = (path.display(), &install.id);
    match entries.next() {
        None => Err(refused(format!("{path} was not made for {id}"))),
        Some(locked) if locked.asked.as_ref() != Some(&asked) => {
            let what = if install.is_of_flags() {
                "with other flags that choose"
            } else {
                "when it asked for something else"
            };
            Err(refused(format!("{path} was made for {id} {what}")))
        }
        Some(_) => Ok(()),
    }
}

impl Chosen {
    /// What a lock says of it; nothing of what the user names on this machine.
    pub(super) fn for_lock(
        &self,
        installs: &[Install],
    ) -> Option<(BTreeSet<usize>, LockedInstall)> {
        if matches!(self.content, Content::Source(_)) {
            return None;
        }
        let named = self.roots.iter().filter_map(|root| installs.get(*root));
        let named = named.filter(|install| !install.is_of_flags());
        let mut locked = self.locked.clone();
        locked.installs = named.map(|install| install.id.clone()).collect();
        if self.content == Content::Image {
            locked.asked = Some(Asked::default());
        }
        Some((self.roots.clone(), locked))
    }
}

/// The text of a lock of what was installed. Of what stopped it keeps what the old one says.
///
/// # Errors
/// When a catalog cannot be read again.
pub(super) fn text(
    old: Option<&Lock>,
    catalogs: &Catalogs,
    new: Vec<(BTreeSet<usize>, LockedInstall)>,
    stopped: &BTreeSet<String>,
    outcome: &Outcome,
) -> Result<String, Failure> {
    let mut installs = vec![];
    for (roots, mut install) in new {
        if !outcome.have_failed(&roots) {
            install.installs.retain(|id| !stopped.contains(id));
            installs.push(install);
        }
    }
    let mut locked = catalogs
        .opened()
        .iter()
        .map(locked::catalog)
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(old) = old {
        for install in &old.installs {
            let kept = install.installs.intersection(stopped).cloned();
            let kept: BTreeSet<_> = kept.collect();
            if !kept.is_empty() {
                let install = LockedInstall {
                    installs: kept,
                    ..install.clone()
                };
                let is_named = |name: &str| locked.iter().any(|catalog| catalog.name == name);
                let catalog = old
                    .catalogs
                    .iter()
                    .find(|other| other.name == install.catalog);
                let catalog = catalog.filter(|catalog| !is_named(&catalog.name)).cloned();
                locked.extend(catalog);
                installs.push(install);
            }
        }
    }
    Ok(Lock::new(locked, installs).to_text())
}
