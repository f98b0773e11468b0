//! The bundles that were chosen, read from where they are.

use std::path::Path;

use super::{
    super::{
        failure::{Class, Failure},
        locked,
        pin_args::Images,
        read_args::ReadArgs,
    },
    Chosen, Content, Outcome, Part,
    catalogs::Catalogs,
};
use crate::{
    bundle,
    catalog::{Catalog, CatalogBundle, Detail, RelatedImage, embedded},
    concurrent::concurrently,
    files::FileTree,
    manifest::names,
    problem::Problem,
    render::StoredCsv,
    resolve::lock::LockedInstall,
    source::{ImageSource, Sources},
};

/// Bundle images that are waited for at the same time.
const IMAGES_AT_ONCE: usize = 16;

/// What bundles are read with.
#[derive(Clone, Copy)]
pub(super) struct Reading<'r> {
    pub(super) catalogs: &'r Catalogs,
    pub(super) image_sources: &'r [ImageSource],
    pub(super) read: &'r ReadArgs,
    pub(super) sources: &'r Sources,
    /// Whether images get digests.
    pub(super) images: Images,
    /// Whether the ClusterServiceVersion is printed as OLM stores it.
    pub(super) wants_csv: bool,
}

/// What is known of a bundle before its image is read.
#[derive(Default)]
struct Known {
    /// Its files, unless they are in an image.
    files: Option<FileTree>,
    /// What a catalog says of it.
    stored: Option<StoredCsv>,
    /// The images that it lists.
    listed: Vec<RelatedImage>,
}

/// Reads the bundles; what they are installed for fails when one cannot be had. What is wrong with them is told.
pub(super) fn fetch(chosen: Vec<Chosen>, reading: Reading<'_>, outcome: &mut Outcome) -> Vec<Part> {
    let mut known = vec![];
    for chosen in chosen {
        if !outcome.have_failed(&chosen.roots) {
            match reading.known(&chosen) {
                Ok(found) => known.push((chosen, found)),
                Err(failure) => outcome.fail_all(&chosen.roots, failure),
            }
        }
    }
    let is_image = |(chosen, known): &&(Chosen, Known)| {
        known.files.is_none() && !matches!(chosen.content, Content::Source(_))
    };
    let to_fetch: Vec<_> = known
        .iter()
        .filter(is_image)
        .map(|(chosen, _)| chosen)
        .collect();
    let fetched = concurrently(&to_fetch, IMAGES_AT_ONCE, |chosen| {
        let pin = locked::pin(&chosen.locked.image_digest);
        let (image, given) = (&chosen.locked.image, reading.image_sources);
        reading
            .sources
            .image(image, given, pin.as_ref(), &bundle::FOLDERS)
    });
    let mut fetched = fetched.into_iter();
    let mut parts = vec![];
    for (
        mut chosen,
        Known {
            files,
            stored,
            listed,
        },
    ) in known
    {
        let files = match (files, &chosen.content) {
            (Some(files), _) => Ok(files),
            (None, Content::Source(path)) => reading.source(path),
            (None, Content::Catalog | Content::Image) => match fetched.next() {
                Some(Ok(read)) => {
                    chosen.locked.image_digest = read.image.map(|digest| digest.to_string());
                    Ok(read.content)
                }
                Some(Err(error)) => Err(missing(error.into(), &chosen.locked)),
                None => continue,
            },
        };
        let roots = chosen.roots.clone();
        let part = files.and_then(|files| part(chosen, files, stored, reading, outcome));
        match part {
            Ok(part) => parts.extend(part.map(|part| Part { listed, ..part })),
            Err(failure) => outcome.fail_all(&roots, failure),
        }
    }
    parts
}

fn missing(mut failure: Failure, install: &LockedInstall) -> Failure {
    let name = match install.bundle.as_str() {
        "" => &install.image,
        name => name,
    };
    failure.prefix(format!("the content of the bundle {name} is missing"));
    failure
}

impl Reading<'_> {
    fn source(self, path: &Path) -> Result<FileTree, Failure> {
        self.read.files(path, self.sources).map_err(|failure| {
            // What is not there may be meant as the name of a package.
            let is_name = |text: &str| names::label_error(text).is_none();
            if path.to_str().is_some_and(is_name) && !path.exists() {
                failure.with_hint("for a package of a catalog, name the catalog with --catalog")
            } else {
                failure
            }
        })
    }

    /// What its catalog says of a bundle, and its files when the catalog holds them.
    fn known(self, chosen: &Chosen) -> Result<Known, Failure> {
        if !matches!(chosen.content, Content::Catalog) {
            return Ok(Known::default());
        }
        let install = &chosen.locked;
        let LockedInstall {
            package,
            bundle: name,
            ..
        } = install;
        let unreadable = |problems| {
            Failure::refused(problems, format!("{name} cannot be read from the catalog"))
        };
        let catalog = self.catalogs.get(&install.catalog);
        let bundle = match catalog.map(|catalog| catalog.bundle(package, name)) {
            Some(bundle) => bundle.map_err(unreadable)?,
            None => None,
        };
        let is_meant = |bundle: &CatalogBundle| {
            bundle.image == install.image && bundle.version().unwrap_or_default() == install.version
        };
        let Some(bundle) = bundle.filter(is_meant) else {
            return Err(not_there(install));
        };
        let files = embedded::files(package, &bundle).map_err(unreadable)?;
        if files.is_none() && bundle.image.is_empty() {
            let message = format!(
                "catalog {} has neither an image nor objects of the bundle {name}",
                install.catalog
            );
            let hint = "`kubectl olm catalog check` shows all that is wrong with a catalog";
            return Err(Failure::new(Class::Refused, message).with_hint(hint));
        }
        let stored = catalog
            .filter(|_| self.wants_csv)
            .map(|catalog| stored(catalog, install, &bundle));
        Ok(Known {
            files,
            stored,
            listed: bundle.related_images,
        })
    }
}

/// What OLM writes into the ClusterServiceVersion: what the entry of the channel replaces, else that of the default
/// channel or of any, and the properties.
fn stored(catalog: &Catalog, install: &LockedInstall, bundle: &CatalogBundle) -> StoredCsv {
    let outline = catalog
        .package(&install.package, Detail::Outline)
        .ok()
        .flatten();
    let outline = outline.unwrap_or_default();
    let mut channels: Vec<_> = outline.channels.iter().collect();
    let default = outline.default_channel();
    channels.sort_by_key(|channel| (channel.name != install.channel, channel.name != default));
    let entries = channels.into_iter().flat_map(|channel| &channel.entries);
    let mut entries = entries.filter(|entry| entry.name == install.bundle);
    let replaces = entries.next().map(|entry| entry.replaces.clone());
    StoredCsv {
        replaces: install.replaces.clone().or(replaces).unwrap_or_default(),
        properties: bundle.for_resolver(),
    }
}

/// The failure to find what a lock says.
fn not_there(install: &LockedInstall) -> Failure {
    let image = match install.image.as_str() {
        "" => String::new(),
        image => format!(", with the image {image}"),
    };
    let message = format!(
        "catalog {} has no bundle {} in version {}{image}",
        install.catalog, install.bundle, install.version
    );
    let hint = "give the catalogs that the lock was made of, or choose anew without --locked";
    Failure::new(Class::Refused, message).with_hint(hint)
}

/// The bundle that files make, which must be the one that is meant; nothing when it cannot be parsed. What is wrong with
/// it is told.
fn part(
    mut chosen: Chosen,
    files: FileTree,
    stored: Option<StoredCsv>,
    reading: Reading<'_>,
    outcome: &mut Outcome,
) -> Result<Option<Part>, Failure> {
    let install = &mut chosen.locked;
    let refuse =
        |message: String, hint: &str| Err(Failure::new(Class::Refused, message).with_hint(hint));
    let digest = files.digest();
    if !install.digest.is_empty() && install.digest != digest {
        return refuse(
            format!(
                "the files of {} are not those that the lock was made of",
                install.bundle
            ),
            "see what changed, then choose anew without --locked",
        );
    }
    let mut found = vec![];
    let images = match install.images.is_empty() {
        true => reading.images,
        false => Images::Pinned,
    };
    let bundle = reading.read.parsed(files, images, &mut found);
    let found = found
        .into_iter()
        .map(|problem| chosen.content.of_bundle(problem, &install.bundle));
    outcome.tell(chosen.roots.iter().copied(), found);
    let Some(bundle) = bundle else {
        return Ok(None);
    };
    if install.bundle.is_empty() {
        install.package.clone_from(&bundle.package);
        install.bundle.clone_from(&bundle.csv.name);
    } else if bundle.csv.name != install.bundle {
        return refuse(
            format!(
                "what stands for the bundle {} is {}",
                install.bundle, bundle.csv.name
            ),
            "see that --image-source names the bundle that the catalog means",
        );
    }
    install.digest = digest;
    let stored = stored.or_else(|| {
        reading.wants_csv.then(|| StoredCsv {
            replaces: bundle.csv.replaces().to_owned(),
            properties: bundle.properties(),
        })
    });
    Ok(Some(Part {
        chosen,
        bundle,
        stored,
        listed: vec![],
    }))
}

impl Content {
    /// What a bundle's problem is about comes before where in the bundle it stands, where there may be several bundles.
    pub(super) fn of_bundle(&self, mut problem: Problem, bundle: &str) -> Problem {
        if matches!(self, Self::Source(_)) {
            return problem;
        }
        let path = &mut problem.place.path;
        *path = match path.as_str() {
            "" => bundle.to_owned(),
            path => format!("{bundle}: {path}"),
        };
        problem
    }
}
