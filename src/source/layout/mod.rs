//! Images on disk: OCI layouts, and the archives of them and of `docker save`. All of them are read where they are, by
//! digest; nothing is unpacked.
//!
//! What a reference after the path means follows go.podman.io/image (`oci/layout/oci_transport.go`,
//! `docker/internal/tarfile/reader.go`): the name that the image has inside. A digest is taken as well.

mod archive;
mod docker;
mod folder;
mod index;
mod oci;
mod scheme;

use std::{
    fmt::Debug,
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use self::scheme::{form_at, split};
use self::{archive::ImageArchive, docker::DockerArchive, oci::OciLayout};
use crate::{
    limits::Limits,
    oci::{
        DOCUMENT_BYTES,
        digest::Digest,
        manifest::{Delivered, Descriptor},
    },
};

/// The size of a file and a reader of it.
type Opened<'f> = (u64, Box<dyn Read + Send + 'f>);

/// One image, or one for several platforms, and the content that belongs to it.
pub trait Store: Debug + Send + Sync {
    /// The manifest or index of the image.
    ///
    /// # Errors
    /// When it cannot be read.
    fn top(&self) -> Result<Delivered, StoreError>;

    /// Content by its digest. Whether it has that digest and the size, whoever reads it finds out.
    ///
    /// # Errors
    /// When it is missing or cannot be read.
    fn blob(&self, blob: &Descriptor) -> Result<Box<dyn Read + Send + '_>, StoreError>;
}

/// The forms that an image on disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An OCI layout in a folder.
    Layout,
    /// A tar archive of an OCI layout.
    OciArchive,
    /// A tar archive as `docker save` writes it.
    DockerArchive,
}

impl Form {
    /// What stands before the colon and the path, as in containers/image.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Layout => "oci",
            Self::OciArchive => "oci-archive",
            Self::DockerArchive => "docker-archive",
        }
    }

    /// The form of a scheme.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        let mut all = [Self::Layout, Self::OciArchive, Self::DockerArchive].into_iter();
        all.find(|form| form.scheme() == scheme)
    }

    /// What it is called in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Layout => "OCI layout",
            Self::OciArchive => "archive of an OCI layout",
            Self::DockerArchive => "archive of docker save",
        }
    }
}

/// Opens an image on disk; an archive may also come from standard input, for `-`. One that does, or is compressed, is held
/// in memory, up to `limits.catalog_bytes`. `reference` is the name of the image in it, or a digest behind an `@`.
///
/// # Errors
/// When there is none of this form, it is not clear which image is meant, or it does not fit together.
pub fn open(
    form: Form,
    path: &Path,
    reference: Option<&str>,
    limits: &Limits,
) -> Result<Box<dyn Store>, StoreError> {
    let archive = || ImageArchive::open(path, limits);
    Ok(match form {
        Form::Layout => Box::new(OciLayout::in_folder(path, reference)?),
        Form::OciArchive => Box::new(OciLayout::in_archive(archive()?, reference)?),
        Form::DockerArchive => Box::new(DockerArchive::new(archive()?, reference, limits)?),
    })
}

/// Why an image on disk could not be read. What is at fault is the input, always.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something is in the way of reading.
    #[error("cannot read {}", .path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// It is no image of this kind.
    #[error("{} is no {}: {reason}", .path.display(), .form.name())]
    NoneOf {
        /// The folder or file.
        path: PathBuf,
        /// What it should be.
        form: Form,
        /// Why it is none.
        reason: String,
    },
    /// There is no image of this name.
    #[error("{} holds no image {reference:?}{}", .path.display(), those(.names))]
    NoImage {
        /// The folder or file.
        path: PathBuf,
        /// What was asked for.
        reference: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// There are several images, and none was named.
    #[error("{} holds {} images, and none is named{}", .path.display(), .names.len(), those(.names))]
    Several {
        /// The folder or file.
        path: PathBuf,
        /// Their names.
        names: Vec<String>,
        /// What it is.
        form: Form,
    },
    /// A part of the image is missing.
    #[error("{} is incomplete: it has no {file}, which should hold {digest}", .path.display())]
    Missing {
        /// The folder or file.
        path: PathBuf,
        /// The file in it that should be there.
        file: String,
        /// The digest of what is missing.
        digest: Digest,
    },
    /// A part of the image is not what its digest says.
    #[error("digest mismatch: {file} in {} has {actual}, and should have {expected}", .path.display())]
    Digest {
        /// The folder or file.
        path: PathBuf,
        /// The file in it.
        file: String,
        /// The digest that is told.
        expected: Digest,
        /// The digest that it has.
        actual: Digest,
    },
}

/// What to do about an image on disk that is not whole.
pub(super) const MAKE_ANEW: &str = "make it anew, for example with skopeo copy";

impl StoreError {
    fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Several { path, names, form } => {
                let first = cut(names.first().map_or("NAME", String::as_str));
                let (scheme, path) = (form.scheme(), path.display());
                Some(format!("name one: {scheme}:{path}:{first}"))
            }
            Self::Missing { .. } | Self::Digest { .. } => Some(MAKE_ANEW.to_owned()),
            _ => None,
        }
    }
}

/// Names for a message, as its end. There may be as many as the input likes.
fn those(names: &[String]) -> String {
    const SHOWN: usize = 10;
    if names.is_empty() {
        return "; none in it has a name".to_owned();
    }
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| cut(name)).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("; there is {}{more}", shown.join(", "))
}

/// Reads a small file of an image, if there is one; `is_none` makes an error of why it is refused.
fn document(
    name: &str,
    opened: Option<Opened<'_>>,
    is_none: impl Fn(String) -> StoreError,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some((size, mut reader)) = opened else {
        return Ok(None);
    };
    let name = cut(name);
    if size > DOCUMENT_BYTES {
        let reason = format!("{name} is over the limit of {DOCUMENT_BYTES} bytes");
        return Err(is_none(reason));
    }
    let mut content = vec![];
    let read = reader.read_to_end(&mut content);
    read.map_err(|error| is_none(format!("{name} cannot be read ({error})")))?;
    Ok(Some(content))
}

/// The start of a text from the input, for a message.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}
