//! Why a source could not be read.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    credentials::CredentialError,
    image_source,
    images::{ImageError, Unfit},
    mirrors::MirrorError,
    place,
    registry::{ErrorClass, RegistryError},
};
use crate::{files::BadPath, image::ReferenceError};

/// Why a source could not be read. Every message names the path and the reason.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Something is in the way of reading.
    #[error("cannot read {}", .path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// A bundle is a folder with folders in it.
    #[error("{} is a file; a bundle is a folder with the folders `manifests` and `metadata`", .0.display())]
    NotAFolder(PathBuf),
    /// A file that stands for a bundle is an archive.
    #[error("{} is neither a folder with the folders `manifests` and `metadata` in it nor a tar archive of one", .0.display())]
    NotAnArchive(PathBuf),
    /// Sockets, pipes and devices are no content.
    #[error("{} is not a plain file", .0.display())]
    NotAFile(PathBuf),
    /// A link may not lead out of the source.
    #[error("{} is a link that leads out of {}", .link.display(), .root.display())]
    LinkOutside {
        /// The link.
        link: PathBuf,
        /// The folder it stands in.
        root: PathBuf,
    },
    /// The name of a file cannot be a path in a source.
    #[error("cannot take a file of {}", .root.display())]
    Name {
        /// The folder.
        root: PathBuf,
        /// What is wrong with the name.
        source: BadPath,
    },
    /// A name in no known encoding.
    #[error("the name of {} is not Unicode", .0.display())]
    NotUnicode(PathBuf),
    /// A limit is reached.
    #[error("{} is over the limit of {limit} {what}", .path.display())]
    Limit {
        /// The file or folder.
        path: PathBuf,
        /// The limit.
        limit: u64,
        /// What it counts.
        what: &'static str,
    },
    /// A text names nothing that could be read.
    #[error("{text:?} names no source: {reason}")]
    Unclear {
        /// The text.
        text: String,
        /// Why.
        reason: String,
    },
    /// A text names no image.
    #[error("{text:?} names no image")]
    Reference {
        /// The text.
        text: String,
        /// Why.
        source: ReferenceError,
    },
    /// An image cannot be read.
    #[error("cannot read the image {image}{}", nothing_in(.tried))]
    Image {
        /// What it is called.
        image: String,
        /// What could have stood for it, and is not there.
        tried: Vec<PathBuf>,
        /// Why.
        source: Box<ImageError>,
    },
    /// An image is not the one that is wanted.
    #[error("{image} {unfit}{}", nothing_in(.tried))]
    Unfit {
        /// What it is called.
        image: String,
        /// What could have stood for it, and is not there.
        tried: Vec<PathBuf>,
        /// Why not.
        unfit: Unfit,
    },
    /// Credentials for registries cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The configuration of mirrors cannot be used.
    #[error(transparent)]
    Mirrors(#[from] MirrorError),
    /// How registries are to be asked makes no sense.
    #[error(transparent)]
    Registry(Box<RegistryError>),
}

impl SourceError {
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }

    /// Why an image was not read.
    pub(super) fn of_image(image: &str, tried: Vec<PathBuf>, error: ImageError) -> Self {
        let image = image.to_owned();
        match error {
            ImageError::Unfit(unfit) => Self::Unfit {
                image,
                tried,
                unfit,
            },
            error => Self::Image {
                image,
                tried,
                source: Box::new(error),
            },
        }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Image { source, .. } => source.class(),
            Self::Credentials(_)
            | Self::Mirrors(_)
            | Self::Reference { .. }
            | Self::Unclear { .. } => ErrorClass::Usage,
            Self::Registry(error) => error.class(),
            _ => ErrorClass::Refused,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Limit { .. } => {
                Some("--no-limits lifts the limits for content you trust".to_owned())
            }
            Self::Image { source, .. } => source.hint(),
            Self::Unfit { image, unfit, .. } => match (unfit, image_source::hint(image)) {
                (Unfit::NotInCache | Unfit::PartlyInCache, Some(other)) => {
                    Some(format!("run it once without --offline, or {other}"))
                }
                _ => unfit.hint(),
            },
            Self::Credentials(error) => error.hint(),
            Self::Mirrors(error) => error.hint(),
            Self::Registry(error) => error.hint(),
            Self::LinkOutside { .. } => Some("put a copy of the file in its place".to_owned()),
            Self::Read { path, source } if source.kind() == io::ErrorKind::NotFound => {
                place::meant(path.to_str()?)
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("give yourself the right to read it".to_owned())
            }
            _ => None,
        }
    }
}

/// Where something was looked for, as the end of a sentence.
fn nothing_in(places: &[PathBuf]) -> String {
    let places: Vec<_> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    if places.is_empty() {
        String::new()
    } else {
        format!(", which is not in {} either", places.join(" or "))
    }
}

impl From<RegistryError> for SourceError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(Box::new(error))
    }
}
