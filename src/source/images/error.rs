//! Why an image could not be used.

use std::io;

use super::super::{
    layout::{MAKE_ANEW, StoreError},
    registry::{ErrorClass, RegistryError},
};
use crate::{
    limits::Over,
    oci::{
        digest::{BadDigest, Digest},
        manifest::ManifestError,
    },
};

/// Why an image could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The registry did not give it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The layout or archive did not give it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its manifest is refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its configuration is refused.
    #[error("its configuration is refused: {0}")]
    Config(String),
    /// There is none for the platform.
    #[error("{0}")]
    Platform(String),
    /// Content is not what its digest says.
    #[error("digest mismatch: what should be {expected} is {actual}")]
    Mismatch {
        /// What was asked for.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// Content has another size than the manifest says.
    #[error("{digest} should have {expected} bytes, and has {actual}")]
    Size {
        /// What was asked for.
        digest: Digest,
        /// As many the manifest says.
        expected: u64,
        /// As many there are, or were read before it was given up.
        actual: u64,
    },
    /// The reference names it by a digest that is not read.
    #[error(transparent)]
    Digest(#[from] BadDigest),
    /// A layer is refused, or cannot be read.
    #[error("its layer {layer} cannot be used")]
    Layer {
        /// Which one.
        layer: Digest,
        /// Why.
        source: io::Error,
    },
    /// What the layers make together is refused.
    #[error("{0}")]
    Files(String),
    /// More files or bytes than a bundle or catalog may have.
    #[error(transparent)]
    Over(#[from] Over),
    /// It is not what is wanted.
    #[error("the image {0}")]
    Unfit(#[from] Unfit),
}

/// Why an image is not the one that is wanted, as the end of a sentence that begins with its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nothing of it was kept, and no registry may be asked.
    #[error("is not in the cache, and --offline asks no registry")]
    NotInCache,
    /// Something of it was kept, but not all that is wanted of it now, and no registry may be asked.
    #[error(
        "is only in part in the cache, for another platform or purpose, and --offline asks no registry"
    )]
    PartlyInCache,
    /// It is a catalog where a bundle is wanted.
    #[error("is a catalog, not a bundle")]
    Catalog,
    /// It is a bundle where a catalog is wanted.
    #[error("is a bundle, not a catalog")]
    Bundle,
    /// It is a catalog of a kind that is no longer made.
    #[error("is a catalog in an SQLite database, which is not read")]
    Database,
    /// It is neither.
    #[error("is no bundle: it has no folders `manifests` and `metadata`")]
    NoBundle,
    /// It is neither.
    #[error("is no catalog: it has no files below /{0}")]
    NoCatalog(String),
}

impl ImageError {
    /// What kind of failure it is.
    pub(in crate::source) fn class(&self) -> ErrorClass {
        match self {
            Self::Registry(error) => error.class(),
            _ => ErrorClass::Refused,
        }
    }

    /// What to do about it.
    pub(in crate::source) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Registry(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::Manifest(error) => return error.hint(),
            Self::Unfit(unfit) => return unfit.hint(),
            // Registries judge for themselves what they give.
            Self::Mismatch { .. } | Self::Size { .. } => MAKE_ANEW,
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl Unfit {
    /// What to do about it.
    pub(in crate::source) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotInCache | Self::PartlyInCache => "run it once without --offline",
            Self::Catalog => {
                "name it behind --catalog, and the package before it: `kubectl olm render PACKAGE --catalog SOURCE`"
            }
            Self::Bundle => "`kubectl olm render SOURCE` renders it",
            Self::Database => "make a file-based catalog of it with `opm migrate`",
            Self::NoBundle | Self::NoCatalog(_) => return None,
        };
        Some(hint.to_owned())
    }
}
