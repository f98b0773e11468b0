//! Where else images are: registries.conf of containers, and the mirror rules of the user.
//!
//! The rules are joined with the files as `EditRegistriesConfig` of openshift/runtime-utils (`pkg/registries`) writes them
//! into a node's file: the longest prefix decides; of one that both have, the mirrors of the rules come first; a prefix
//! of a rule within one of the files is as insecure and as blocked as that. Two things are otherwise. A mirror of a rule
//! is as insecure as the files say that its own registry is. And what lines say of one image is tried before all.
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

mod registries_conf;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::registries_conf::{Mirror, Pulls, Registry, parse};
use super::{credentials::Environment, plain_file};
use crate::{
    image::ImageReference,
    images::mirror::{
        MirrorRules, MirroredSource,
        matching::{longest, matched, moved},
    },
};

/// The name of the file in its folders.
const FILE: &str = "registries.conf";
/// The folder of drop-ins beside it.
const DROP_INS: &str = "registries.conf.d";
/// The ending of drop-ins.
const ENDING: &str = "conf";
/// Drop-ins that are read.
const MOST_DROP_INS: usize = 256;
/// What stands for a file where none says so.
const RULES: &str = "a mirror rule";
/// What references with a digest have.
const DIGEST: &str = "digest";
/// What all others have.
const TAG: &str = "tag";

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
        /// The file, or what else says so.
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
    /// The image's registry may not be asked, and no mirror is for it.
    #[error(
        "{image} may not be pulled: by the mirror rules {prefix} is never contacted, and they give it no mirror for references with a {form}"
    )]
    NeverContacted {
        /// The image.
        image: String,
        /// What is never contacted.
        prefix: String,
        /// What the reference has: a tag or a digest.
        form: &'static str,
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
            Self::NeverContacted { form, .. } => Some(format!(
                "add a mirror for it to {}, or set `mirrorSourcePolicy: AllowContactingSource`",
                match *form {
                    DIGEST => "an ImageDigestMirrorSet",
                    _ => "an ImageTagMirrorSet",
                }
            )),
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
    /// What is said of images one by one.
    rules: MirrorRules,
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
            return Ok(Self {
                by_prefix,
                ..Self::none()
            });
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

    /// The same with mirror rules, which come before what the files say of the same prefix.
    #[must_use]
    pub fn with(mut self, rules: MirrorRules) -> Self {
        let joined: Vec<_> = rules
            .sources()
            .values()
            .map(|source| self.joined(source))
            .collect();
        let joined = joined
            .into_iter()
            .map(|registry| (registry.prefix.clone(), registry));
        self.by_prefix.extend(joined);
        self.rules = rules;
        self
    }

    /// A source of the rules with what the files say of it.
    fn joined(&self, source: &MirroredSource) -> Registry {
        let prefix = &source.source;
        let mut registry = match self.by_prefix.get(prefix) {
            Some(registry) => registry.clone(),
            None => self.within(prefix),
        };
        let mirrors = |locations: &[String], pulls| {
            let mirror = |location: &String| Mirror {
                location: location.clone(),
                insecure: self
                    .find(location)
                    .is_some_and(|registry| registry.insecure),
                pulls,
            };
            locations.iter().map(mirror).collect::<Vec<_>>()
        };
        let mut all = mirrors(&source.digest_mirrors, Pulls::DigestOnly);
        all.extend(mirrors(&source.tag_mirrors, Pulls::TagOnly));
        all.append(&mut registry.mirrors);
        registry.mirrors = all;
        registry.never_contacted = source.never_contact_source;
        registry
    }

    /// A prefix of which the files say nothing, but perhaps of what it is in.
    fn within(&self, prefix: &str) -> Registry {
        let outer = match prefix.strip_prefix("*") {
            // What is below a domain is below all that this one is below.
            Some(domain) => self.find(&format!("any{domain}")),
            None => self.find(prefix),
        };
        let is_wildcard = prefix.starts_with('*');
        Registry {
            prefix: prefix.to_owned(),
            location: if is_wildcard {
                String::new()
            } else {
                prefix.to_owned()
            },
            insecure: outer.is_some_and(|outer| outer.insecure),
            blocked: outer.is_some_and(|outer| outer.blocked),
            never_contacted: false,
            mirrors: vec![],
            path: outer.map_or_else(|| Path::new(RULES).into(), |outer| Arc::clone(&outer.path)),
        }
    }

    /// Where to ask for an image, in order: where lines say that it is, its mirrors, then itself unless it is blocked.
    /// `image` names its registry, as in [`ImageReference::normalized`].
    ///
    /// A blocked registry with mirrors is asked for at those alone: so it is with podman, and so does OpenShift write
    /// that a source must never be contacted.
    ///
    /// # Errors
    /// When every place is blocked, or one is no reference to an image.
    pub fn places(&self, image: &ImageReference) -> Result<Vec<Place>, MirrorError> {
        let text = image.to_string();
        let mut places = self.places_of_lines(image);
        let Some(registry) = self.find(&text) else {
            places.push(Place {
                image: image.clone(),
                insecure: false,
            });
            return Ok(places);
        };
        let is_wanted = |mirror: &&Mirror| match mirror.pulls {
            Pulls::All => true,
            Pulls::DigestOnly => image.digest.is_some(),
            Pulls::TagOnly => image.digest.is_none(),
        };
        for mirror in registry.mirrors.iter().filter(is_wanted) {
            let place = place(registry, &text, &mirror.location, mirror.insecure)?;
            if self.blocks(&place.image).is_none() {
                places.push(place);
            }
        }
        let original = place(registry, &text, &registry.location, registry.insecure)?;
        if registry.never_contacted {
            // A rule may name the source among its mirrors, and another one forbid it.
            places.retain(|place| place.image != original.image);
        }
        let refused = self.refusal(registry, &original, image);
        match refused {
            None => places.push(original),
            Some(refused) if places.is_empty() => return Err(refused),
            Some(_) => {}
        }
        Ok(places)
    }

    /// Where lines say that an image is.
    fn places_of_lines(&self, image: &ImageReference) -> Vec<Place> {
        let places = self.rules.places_of_lines(image).into_iter();
        let places = places.map(|image| Place {
            insecure: self
                .find(&image.to_string())
                .is_some_and(|registry| registry.insecure),
            image,
        });
        places
            .filter(|place| self.blocks(&place.image).is_none())
            .collect()
    }

    /// Why an image may not be asked for where it says.
    fn refusal(
        &self,
        registry: &Registry,
        original: &Place,
        image: &ImageReference,
    ) -> Option<MirrorError> {
        if registry.never_contacted {
            return Some(MirrorError::NeverContacted {
                image: image.to_string(),
                prefix: registry.prefix.clone(),
                form: if image.digest.is_some() { DIGEST } else { TAG },
            });
        }
        let blocking = if registry.blocked {
            registry
        } else {
            self.blocks(&original.image)?
        };
        Some(MirrorError::Blocked {
            image: image.to_string(),
            prefix: blocking.prefix.clone(),
            path: blocking.path.to_path_buf(),
        })
    }

    /// What is said of an image: the longest prefix counts, and of two as long the first by name.
    fn find(&self, image: &str) -> Option<&Registry> {
        longest(&self.by_prefix, image).map(|(_, registry)| registry)
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
