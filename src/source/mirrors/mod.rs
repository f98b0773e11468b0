//! Where else images are: registries.conf of containers.
//!
//! Which files there are follows go.podman.io/storage `pkg/configfile` (`getSearchPaths`, `readDropInsFromPaths`): the
//! one that `CONTAINERS_REGISTRIES_CONF` names and nothing else, or the first of the user's and the machine's, and then
//! the drop-ins of all of them by name, where the user's hides the machine's of the same name. What later files say of
//! a prefix replaces what earlier ones said. Not read are drop-ins for root or for others alone, and
//! `CONTAINERS_REGISTRIES_CONF_OVERRIDE`. What the files mean follows go.podman.io/image `pkg/sysregistriesv2`.
//!
//! Nothing is asked here; who asks a mirror must send it the mirror's own login and no other.
//!
//! | File | What it does |
//! | --- | --- |
//! | `registries_conf.rs` | reads one file, and holds it to the rules |
//! | `matching.rs` | which prefix an image has, and its name elsewhere |

pub mod matching;
mod registries_conf;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use self::{
    matching::{matched, moved},
    registries_conf::{Mirror, Pulls, Registry, parse},
};
use super::{credentials::Environment, plain_file};
use crate::image::ImageReference;

/// The name of the file in its folders.
const FILE: &str = "registries.conf";
/// The folder of drop-ins beside it.
const DROP_INS: &str = "registries.conf.d";
/// The ending of drop-ins.
const ENDING: &str = "conf";
/// Drop-ins that are read.
const MOST_DROP_INS: usize = 256;

/// Why mirrors could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A file that was named is not there.
    #[error("there is no {}, which CONTAINERS_REGISTRIES_CONF names", .0.display())]
    Missing(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why it was not read.
        source: io::Error,
    },
    /// A folder of drop-ins cannot be read.
    #[error("cannot read the folder {}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why it was not read.
        source: io::Error,
    },
    /// A folder has too many drop-ins.
    #[error("there are more than {MOST_DROP_INS} files in {}", .0.display())]
    TooMany(PathBuf),
    /// A file is no TOML, or of the wrong shape.
    #[error("{}, line {line}, column {column}: {message}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A file in the format that containers read until 2024.
    #[error("{} is in version 1 of its format, which containers no longer read either", .0.display())]
    VersionOne(PathBuf),
    /// A file says what makes no sense.
    #[error("{}, registry {name:?}: {rule}", .path.display())]
    Rule {
        /// The file.
        path: PathBuf,
        /// The prefix or location.
        name: String,
        /// What is wrong.
        rule: &'static str,
    },
    /// A location is none.
    #[error("{} moves {image} to {location:?}, and that makes no reference to an image", .path.display())]
    Location {
        /// The file.
        path: PathBuf,
        /// The image.
        image: String,
        /// Where it should be.
        location: String,
    },
    /// The image may not be asked for.
    #[error("{image} may not be pulled: {} blocks {prefix}", .path.display())]
    Blocked {
        /// The image.
        image: String,
        /// What is blocked.
        prefix: String,
        /// The file that blocks it.
        path: PathBuf,
    },
}

impl MirrorError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing(_) => Some("unset CONTAINERS_REGISTRIES_CONF or name a file that is there".to_owned()),
            Self::VersionOne(_) => Some(
                "write `[[registry]]` tables with `location` and `insecure` or `blocked`; containers-registries.conf(5) shows how"
                    .to_owned(),
            ),
            Self::Read { .. }
            | Self::Folder { .. }
            | Self::TooMany(_)
            | Self::Invalid { .. }
            | Self::Rule { .. }
            | Self::Location { .. } => Some(
                "correct the file, or name another one by CONTAINERS_REGISTRIES_CONF".to_owned(),
            ),
            Self::Blocked { .. } => Some(
                "whoever runs this machine does not want images from there; a mirror of it can be set in the same file".to_owned(),
            ),
        }
    }
}

/// Where images are asked for, by what they begin with.
#[derive(Debug, Default)]
pub struct Mirrors {
    by_prefix: BTreeMap<String, Registry>,
}

/// One place where an image may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The image, as it is called there.
    pub image: ImageReference,
    /// Whether http, and https with a certificate that nobody knows, will do.
    pub insecure: bool,
}

impl Mirrors {
    /// None at all: every image is where it says.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads the files that the environment leads to.
    ///
    /// # Errors
    /// When one of them cannot be read or makes no sense.
    pub fn read(environment: &Environment) -> Result<Self, MirrorError> {
        if let Some(path) = &environment.containers_registries_conf {
            let found = read_file(path)?;
            let by_prefix = found.ok_or_else(|| MirrorError::Missing(path.clone()))?;
            return Ok(Self { by_prefix });
        }
        let folders: Vec<_> = environment
            .user_folder()
            .into_iter()
            .chain(environment.system_folders.iter().cloned())
            .collect();
        let mut mirrors = Self::none();
        for folder in &folders {
            if let Some(found) = read_file(&folder.join(FILE))? {
                mirrors.by_prefix = found;
                break;
            }
        }
        for path in drop_ins(&folders)? {
            // One that is gone by now, or a link to nothing, is none.
            mirrors
                .by_prefix
                .extend(read_file(&path)?.unwrap_or_default());
        }
        Ok(mirrors)
    }

    /// Where to ask for an image, in order: its mirrors, then itself unless it is blocked. `image` names its registry,
    /// as in [`ImageReference::normalized`].
    ///
    /// A blocked registry with mirrors is asked for at those alone: so it is with podman, and so does OpenShift write
    /// that a source must never be contacted.
    ///
    /// # Errors
    /// When every place is blocked, or one is no reference to an image.
    pub fn places(&self, image: &ImageReference) -> Result<Vec<Place>, MirrorError> {
        let text = image.to_string();
        let Some(registry) = self.find(&text) else {
            return Ok(vec![Place {
                image: image.clone(),
                insecure: false,
            }]);
        };
        let is_wanted = |mirror: &&Mirror| match mirror.pulls {
            Pulls::All => true,
            Pulls::DigestOnly => image.digest.is_some(),
            Pulls::TagOnly => image.digest.is_none(),
        };
        let mut places = vec![];
        for mirror in registry.mirrors.iter().filter(is_wanted) {
            let place = place(registry, &text, &mirror.location, mirror.insecure)?;
            if self.blocks(&place.image).is_none() {
                places.push(place);
            }
        }
        let original = place(registry, &text, &registry.location, registry.insecure)?;
        let blocking = if registry.blocked {
            Some(registry)
        } else {
            self.blocks(&original.image)
        };
        match blocking {
            None => places.push(original),
            Some(blocking) if places.is_empty() => {
                return Err(MirrorError::Blocked {
                    image: text,
                    prefix: blocking.prefix.clone(),
                    path: blocking.path.to_path_buf(),
                });
            }
            Some(_) => {}
        }
        Ok(places)
    }

    /// What is said of an image: the longest prefix counts, and of two as long the first by name.
    fn find(&self, image: &str) -> Option<&Registry> {
        let matching = |registry: &&Registry| matched(&registry.prefix, image).is_some();
        let registries = self.by_prefix.values().filter(matching);
        // The last of the greatest is given.
        registries
            .rev()
            .max_by_key(|registry| registry.prefix.len())
    }

    fn blocks(&self, image: &ImageReference) -> Option<&Registry> {
        self.find(&image.to_string())
            .filter(|registry| registry.blocked)
    }
}

fn place(
    registry: &Registry,
    image: &str,
    location: &str,
    insecure: bool,
) -> Result<Place, MirrorError> {
    let length = matched(&registry.prefix, image).unwrap_or_default();
    let moved = moved(image, length, location).ok_or_else(|| MirrorError::Location {
        path: registry.path.to_path_buf(),
        image: image.to_owned(),
        location: location.to_owned(),
    })?;
    Ok(Place {
        image: moved,
        insecure,
    })
}

fn read_file(path: &Path) -> Result<Option<BTreeMap<String, Registry>>, MirrorError> {
    let text = plain_file::read_config(path).map_err(|source| MirrorError::Read {
        path: path.to_owned(),
        source,
    })?;
    text.map(|text| parse(path, &text)).transpose()
}

/// The drop-ins of all folders by name; those of earlier folders hide those of later ones.
fn drop_ins(folders: &[PathBuf]) -> Result<Vec<PathBuf>, MirrorError> {
    let mut by_name = BTreeMap::new();
    for folder in folders.iter().rev() {
        let path = folder.join(DROP_INS);
        let failed = |source| MirrorError::Folder {
            path: path.clone(),
            source,
        };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let file = entry.map_err(failed)?.path();
            if file.extension().is_some_and(|ending| ending == ENDING) && !file.is_dir() {
                by_name.insert(file.file_name().map(ToOwned::to_owned), file);
            }
            if by_name.len() > MOST_DROP_INS {
                return Err(MirrorError::TooMany(path));
            }
        }
    }
    Ok(by_name.into_values().collect())
}
