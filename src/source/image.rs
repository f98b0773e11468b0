//! The one way from an image reference to its files.
//!
//! What the user says an image stands for comes first; nothing else is asked yet.

use std::{path::PathBuf, str::FromStr};

use super::SourceError;
use crate::{files::FileTree, image::ImageReference, limits::Limits};

/// The endings of an archive that may stand for an image.
const ENDINGS: [&str; 5] = ["", ".tar", ".tar.gz", ".tgz", ".tar.zst"];

/// What stands for an image, or for all images whose references begin alike: `--image-source REF-OR-PREFIX=SOURCE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    image: String,
    source: PathBuf,
}

impl FromStr for ImageSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((image, source)) if !image.is_empty() && !source.is_empty() => Ok(Self {
                image: image.to_owned(),
                source: PathBuf::from(source),
            }),
            _ => Err("use IMAGE=SOURCE, or PREFIX/=FOLDER for all images below a path".to_owned()),
        }
    }
}

impl ImageSource {
    /// Where an image may be, the likeliest first; nothing when this does not speak of it.
    fn places(&self, image: &str) -> Option<Vec<PathBuf>> {
        if self.image == image {
            return Some(vec![self.source.clone()]);
        }
        let reference = ImageReference::parse(image).ok()?;
        let name = reference.name();
        if self.image == name {
            return Some(vec![self.source.clone()]);
        }
        let below = name.strip_prefix(self.image.as_str())?;
        let rest = match below.strip_prefix('/') {
            Some(rest) => rest,
            None if self.image.ends_with('/') => below,
            None => return None,
        };
        let version = reference.digest.or(reference.tag);
        // A colon is not for file names.
        let version = version.map(|version| format!("{rest}/{}", version.replace(':', "-")));
        let places = version.into_iter().chain([rest.to_owned()]);
        let with_endings =
            places.flat_map(|place| ENDINGS.map(|ending| format!("{place}{ending}")));
        Some(with_endings.map(|place| self.source.join(place)).collect())
    }
}

/// Reads the files below some folders of an image.
///
/// # Errors
/// When nothing stands for the image, or what does cannot be read.
pub fn read_image(
    image: &str,
    given: &[ImageSource],
    folders: &[&str],
    limits: &Limits,
) -> Result<FileTree, SourceError> {
    // The longest is the one that means this image most.
    let mut given: Vec<_> = given.iter().collect();
    given.sort_by_key(|source| std::cmp::Reverse(source.image.len()));
    let mut tried = vec![];
    for source in given {
        let Some(places) = source.places(image) else {
            continue;
        };
        let is_bundle = |place: &&PathBuf| {
            place.is_file() || folders.iter().any(|folder| place.join(folder).is_dir())
        };
        match places.as_slice() {
            [only] => return super::read(only, folders, limits),
            _ => match places.iter().find(is_bundle) {
                Some(place) => return super::read(place, folders, limits),
                None => tried.extend(places),
            },
        }
    }
    let image = image.to_owned();
    // The endings say nothing that the places do not.
    tried.retain(|place| {
        place.extension().is_none_or(|ending| {
            !["tar", "gz", "tgz", "zst"]
                .iter()
                .any(|known| ending == *known)
        })
    });
    Err(SourceError::NoImage { image, tried })
}

/// Where an image that is not at hand could be put, for the hint.
pub(super) fn ways(image: &str) -> String {
    let name = ImageReference::parse(image)
        .map_or_else(|_| image.to_owned(), |reference| reference.name());
    let one =
        format!("give its content, a folder or tar archive, with --image-source {name}=SOURCE");
    match name.rsplit_once('/') {
        Some((folder, _)) => format!(
            "{one}, or that of all images below {folder} with --image-source {folder}/=FOLDER"
        ),
        None => one,
    }
}
