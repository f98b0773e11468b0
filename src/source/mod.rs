//! I/O. What the user typed becomes files, in memory or read by the piece; nothing else in the program reads content.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

pub mod cache;
mod catalog_files;
pub mod credentials;
mod dir;
mod error;
mod image_source;
mod images;
mod index_cache;
pub mod layout;
mod manifest_files;
pub mod mirrors;
mod place;
mod plain_file;
pub mod registry;
mod sources;
mod tar_files;

use std::path::{self, Path};

pub use self::{
    catalog_files::CatalogSource,
    dir::folders_with,
    error::SourceError,
    image_source::ImageSource,
    images::{ImageError, Unfit},
    index_cache::{Stamp, keep_index, kept_index},
    manifest_files::{Depth, manifest_files},
    place::{STDIN, path_of_image},
    sources::{Read, Settings, Sources},
};
use crate::limits::Limits;

/// Whether `path` is one of these folders of a source, or below one.
#[must_use]
pub fn is_inside(path: &Path, source: &Path, folders: &[&str]) -> bool {
    // A folder that is yet to be made is where its parent is, which may be the working directory.
    let whole = path::absolute(path).unwrap_or_default();
    let mut existing = whole
        .ancestors()
        .filter_map(|path| path.canonicalize().ok());
    let Some(path) = existing.next() else {
        return false;
    };
    let real = |folder: &&str| source.join(folder).canonicalize().ok();
    let mut folders = folders.iter().filter_map(real);
    folders.any(|folder| path.starts_with(folder))
}

/// Reads one file that the user named.
///
/// # Errors
/// When it cannot be read or is over the limit.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Vec<u8>, SourceError> {
    dir::read_file(path, limits)
}
