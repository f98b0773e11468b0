//! I/O. What the user typed becomes a [`FileTree`]; nothing else in the program reads content.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

pub mod cache;
mod catalog_files;
pub mod credentials;
mod dir;
mod image;
mod index_cache;
pub mod mirrors;
mod plain_file;
pub mod registry;
mod tar_files;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

pub use self::{
    catalog_files::CatalogSource,
    dir::folders_with,
    image::{ImageSource, read_image},
    index_cache::{Stamp, keep_index, kept_index},
};
use crate::{
    files::{BadPath, FileTree},
    limits::Limits,
};

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
    /// Nothing stands for an image.
    #[error("the image {image} is not at hand, and this version asks no registry{}", no_bundle_in(.tried))]
    NoImage {
        /// Its reference.
        image: String,
        /// Where it could have been.
        tried: Vec<PathBuf>,
    },
    /// An image or archive, which this version does not read.
    #[error("{0:?} is an image, and only folders and archives on disk can be read")]
    NotOnDisk(String),
}

impl SourceError {
    fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Limit { .. } => {
                Some("--no-limits lifts the limits for content you trust".to_owned())
            }
            Self::NotOnDisk(_) => Some(
                "copy its files into a folder: `manifests` and `metadata` of a bundle, `configs` of a catalog".to_owned(),
            ),
            Self::NoImage { image, .. } => Some(image::ways(image)),
            Self::LinkOutside { .. } => Some("put a copy of the file in its place".to_owned()),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("give yourself the right to read it".to_owned())
            }
            _ => None,
        }
    }
}

/// Where something was looked for, as the end of a sentence.
fn no_bundle_in(places: &[PathBuf]) -> String {
    let places: Vec<_> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    if places.is_empty() {
        String::new()
    } else {
        format!("; there is no bundle in {}", places.join(" or "))
    }
}

/// What stands for standard input on the command line.
pub const STDIN: &str = "-";

/// Reads the files below some folders of a source: a folder, an archive, or an archive on standard input. An archive may
/// have the folders in a folder of its own.
///
/// # Errors
/// The first thing that cannot be read.
pub fn read(source: &Path, folders: &[&str], limits: &Limits) -> Result<FileTree, SourceError> {
    match place_of(source)? {
        Place::Folder => dir::read(source, folders, limits),
        Place::File => tar_files::folders(source, open(source)?, folders, limits),
        Place::Stdin => tar_files::folders(source, Box::new(io::stdin().lock()), folders, limits),
    }
}

/// Finds the files of a catalog: a folder, a file, an archive, or either of the latter on standard input.
///
/// # Errors
/// When there are none, they cannot be read, or a limit is reached.
pub fn catalog(source: &Path, limits: &Limits) -> Result<CatalogSource, SourceError> {
    match place_of(source)? {
        Place::Folder => dir::catalog(source, limits),
        Place::File => catalog_files::of_file(source, open(source)?, limits),
        Place::Stdin => catalog_files::of_stream(source, Box::new(io::stdin().lock()), limits),
    }
}

/// Where a source is.
enum Place {
    Folder,
    File,
    Stdin,
}

fn place_of(source: &Path) -> Result<Place, SourceError> {
    if source == Path::new(STDIN) {
        return Ok(Place::Stdin);
    }
    if let Some(text) = source.to_str()
        && ["docker://", "oci:", "oci-archive:", "docker-archive:"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    {
        return Err(SourceError::NotOnDisk(text.to_owned()));
    }
    // Asked first, because opening a pipe would wait for its other end.
    let metadata = fs::metadata(source).map_err(|error| SourceError::reading(source, error))?;
    if metadata.is_dir() {
        Ok(Place::Folder)
    } else if metadata.is_file() {
        Ok(Place::File)
    } else {
        Err(SourceError::NotAFile(source.to_owned()))
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, SourceError> {
    let file = File::open(path).map_err(|error| SourceError::reading(path, error))?;
    Ok(Box::new(file))
}

/// Whether `path` is one of these folders of a source, or below one.
#[must_use]
pub fn is_inside(path: &Path, source: &Path, folders: &[&str]) -> bool {
    // A folder that is yet to be made is where its parent is.
    let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok());
    let path = real(path);
    let mut folders = folders
        .iter()
        .filter_map(|folder| source.join(folder).canonicalize().ok());
    path.is_some_and(|path| folders.any(|folder| path.starts_with(folder)))
}

/// Reads one file that the user named.
///
/// # Errors
/// When it cannot be read or is over the limit.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Vec<u8>, SourceError> {
    dir::read_file(path, limits)
}
