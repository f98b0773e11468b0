//! Everything that a run installs, from what is wanted to what is written: catalogs are opened, bundles chosen, read and
//! rendered, and pull Secrets added. What is wrong with one install stops that one, and the others go on.

mod catalogs;
mod choose;
mod fetch;
mod lock;
mod naming;
mod outcome;
mod rendered;
mod secrets;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use self::{
    catalogs::Catalogs,
    fetch::Reading,
    rendered::{Objects, Rendering, Whole},
};
pub(super) use self::{
    choose::{judge, request},
    outcome::Outcome,
};
use super::{
    certificate_args::Supplier,
    failure::Failure,
    install_args::InstallArgs,
    locked,
    output::Output,
    package::PackageArgs,
    parts::{Part as Kind, Parts},
    pin_args::Images,
    secret_args::PullSecretFlag,
    source_args::tell_notices,
};
use crate::{
    bundle::Bundle,
    catalog::RelatedImage,
    images::{mirror::MirrorRules, pin::Pins},
    install::{self, BundleSource, Install, Wanted},
    manifest::Manifest,
    render::StoredCsv,
    resolve::lock::{Lock, LockedInstall},
    source::Sources,
};

/// What is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is installed.
    Install,
    /// It is looked at. Where it would be installed does not matter, and need not be known.
    Look,
}

/// What installs are rendered with.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) purpose: Purpose,
    /// How to install.
    pub(super) install: &'r InstallArgs,
    /// Where content is.
    pub(super) package: &'r PackageArgs,
    /// What content is read with.
    pub(super) sources: &'r Sources,
    /// What is printed.
    pub(super) parts: &'r Parts,
    /// The Secrets of the input.
    pub(super) secrets: &'r [Manifest],
    /// The ServiceAccounts of the input, which are in the cluster already.
    pub(super) service_accounts: &'r [Manifest],
    /// The Namespaces that are to be created, as the user wrote them.
    pub(super) namespaces: &'r [Manifest],
    /// Pull Secrets for every install.
    pub(super) pull_secrets: &'r [PullSecretFlag],
    /// ServiceAccounts of every install that use them besides those of Deployments.
    pub(super) also_service_accounts: &'r [String],
    /// The digests that the user gives.
    pub(super) pins: &'r Pins,
    /// Whether images get digests.
    pub(super) images: Images,
    /// The rules by which images are renamed; nothing when they keep their names.
    pub(super) mirrors: Option<&'r MirrorRules>,
    /// Who gives certificates that are made before rendering.
    pub(super) certificates: &'r dyn Supplier,
}

/// A bundle that is installed.
struct Chosen {
    /// What a lock says of it.
    locked: LockedInstall,
    /// The install that asks for it; nothing when others need it.
    asked: Option<usize>,
    /// The installs that it is installed for.
    roots: BTreeSet<usize>,
    /// Where its content is.
    content: Content,
}

/// Where the content of a bundle is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// Where its catalog says.
    Catalog,
    /// In an image, which no catalog names.
    Image,
    /// In a source that the user names.
    Source(PathBuf),
}

/// A bundle that was read.
struct Part {
    chosen: Chosen,
    bundle: Bundle,
    stored: Option<StoredCsv>,
    /// The images that its catalog lists.
    listed: Vec<RelatedImage>,
}

impl Part {
    /// What a lock says of a bundle, with the image that it is in; nothing when it is in none that has a reference.
    fn image(&self) -> Option<LockedInstall> {
        let mut locked = self.chosen.locked.clone();
        if let Content::Source(source) = &self.chosen.content {
            locked.image = source.to_str()?.strip_prefix("docker://")?.to_owned();
        }
        (!locked.image.is_empty()).then_some(locked)
    }
}

/// What a run came to.
pub(super) struct Rendered {
    /// What is written.
    pub(super) output: Output,
    /// What there is to say of what is written, and of what is not.
    pub(super) outcome: Outcome,
    /// The lock to write when all else is written, and its text.
    pub(super) lock: Option<(PathBuf, String)>,
    /// Whether images have digests where it is installed.
    pub(super) is_pinned: bool,
    /// The digests that took the place of tags; where it is only looked at, those that are known without asking for them.
    pub(super) pins: Pins,
    /// What was chosen that is in an image of its own.
    pub(super) bundles: Vec<LockedInstall>,
}

/// Renders what is wanted.
///
/// # Errors
/// When a lock cannot be read, or a catalog cannot be read again for one.
pub(super) fn render(wanted: &Wanted, run: Run<'_>) -> Result<Rendered, Failure> {
    let installs = &wanted.installs;
    let mut outcome = begin(wanted);
    let package = run.package;
    let old = old_lock(run)?;
    let path = package.lock.as_deref().filter(|_| package.locked);
    let pinned = path.zip(old.as_ref());
    let pins = pinned.map_or_else(BTreeMap::new, |(_, lock)| locked::pins(lock));
    let mut catalogs = Catalogs::open(wanted, &pins, &package.image_source, run.sources);
    let mut chosen = of_sources(installs, pinned.is_some());
    chosen.extend(match pinned {
        Some(locked) => lock::installs(locked, installs, &mut catalogs, &mut outcome),
        None => choose::choose(installs, &mut catalogs, &mut outcome),
    });
    if let Some((path, lock)) = pinned {
        outcome.tell(None, locked::changed(path, lock, catalogs.opened())?);
    }
    catalogs.tell_failures(wanted, &mut outcome);
    let reading = Reading {
        catalogs: &catalogs,
        image_sources: &package.image_source,
        read: &run.install.read,
        sources: run.sources,
        images: match run.purpose {
            Purpose::Install => run.images,
            // Whoever lists images sees how they are named.
            Purpose::Look => Images::Pinned,
        },
        wants_csv: run.parts.has(Kind::Csv),
    };
    let parts = fetch::fetch(chosen, reading, &mut outcome);
    tell_notices(run.sources);
    let bundles = parts.iter().filter_map(Part::image).collect();
    let Whole {
        written,
        locks,
        is_pinned,
        pins,
    } = Rendering { wanted, run }.render(parts, &mut outcome);
    let stopped = outcome.stopped(installs);
    let mut lock = None;
    if let Some(path) = package.lock.clone().filter(|_| !package.locked) {
        let text = lock::text(old.as_ref(), &catalogs, locks, &stopped, &outcome)?;
        lock = Some((path, text));
    }
    Ok(Rendered {
        output: Output {
            installs: written,
            stopped,
        },
        outcome,
        lock,
        is_pinned,
        pins,
        bundles,
    })
}

/// The lock that is there; with `--locked` there must be one.
fn old_lock(run: Run<'_>) -> Result<Option<Lock>, Failure> {
    match &run.package.lock {
        Some(path) if run.package.locked => locked::read(path, run.sources.limits()).map(Some),
        Some(path) => locked::read_old(path, run.sources.limits()),
        None => Ok(None),
    }
}

/// What is known of the installs before anything is read.
fn begin(wanted: &Wanted) -> Outcome {
    let mut outcome = Outcome::default();
    for (id, stopped) in &wanted.stopped {
        outcome.stop(
            id,
            catalogs::refused(stopped, &format!("{id} was not rendered")),
        );
    }
    for (root, install) in wanted.installs.iter().enumerate() {
        outcome.tell(Some(root), install.notes.iter().cloned());
    }
    outcome
}

/// The bundles that installs name without a catalog. With a lock, it says what images there are.
fn of_sources(installs: &[Install], is_locked: bool) -> Vec<Chosen> {
    let mut chosen = vec![];
    for (root, install) in installs.iter().enumerate() {
        let install::Content::Bundle(source) = &install.content else {
            continue;
        };
        let (content, image) = match source {
            BundleSource::Source(path) => (Content::Source(path.clone()), String::new()),
            BundleSource::Image(_) if is_locked => continue,
            BundleSource::Image(image) => (Content::Image, image.clone()),
        };
        chosen.push(Chosen {
            locked: LockedInstall {
                image,
                ..LockedInstall::default()
            },
            asked: Some(root),
            roots: BTreeSet::from([root]),
            content,
        });
    }
    chosen
}
