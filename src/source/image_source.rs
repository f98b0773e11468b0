//! What the user says that images stand for, which comes before any registry.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use super::place;
use crate::image::ImageReference;

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
        let usage = "use IMAGE=SOURCE, or PREFIX/=FOLDER for all images below a path";
        let (image, source) = text.split_once('=').ok_or(usage)?;
        let image = image.strip_prefix("docker://").unwrap_or(image);
        if image.is_empty() || source.is_empty() {
            return Err(usage.to_owned());
        }
        if image.ends_with('/') && place::has_scheme(source) {
            return Err(format!(
                "{image} takes a folder; what stands for a registry is configured in registries.conf"
            ));
        }
        if image.ends_with('/') && !Path::new(source).is_dir() {
            return Err(format!("there is no folder {source}"));
        }
        Ok(Self {
            image: image.to_owned(),
            source: PathBuf::from(source),
        })
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

/// The source that stands for an image. Of folders only those count that hold one of `folders`; any, where there are
/// none.
///
/// # Errors
/// Where one could have been, when none is there.
pub(super) fn find(
    image: &str,
    given: &[ImageSource],
    folders: &[&str],
) -> Result<PathBuf, Vec<PathBuf>> {
    // The longest is the one that means this image most.
    let mut given: Vec<_> = given.iter().collect();
    given.sort_by_key(|source| std::cmp::Reverse(source.image.len()));
    let mut tried = vec![];
    for source in given {
        let Some(mut places) = source.places(image) else {
            continue;
        };
        let holds_one = |place: &PathBuf| match folders {
            [] => place.is_dir(),
            folders => folders.iter().any(|folder| place.join(folder).is_dir()),
        };
        let is_content = |place: &PathBuf| place.is_file() || holds_one(place);
        // What stands for this image alone was named by the user, and is told to be missing when it is.
        let position = match places.len() {
            1 => Some(0),
            _ => places.iter().position(is_content),
        };
        match position {
            Some(position) => return Ok(places.swap_remove(position)),
            None => tried.extend(places),
        }
    }
    // The endings say nothing that the places do not.
    let [_, endings @ ..] = ENDINGS;
    let has_ending = |place: &PathBuf| {
        let place = place.to_string_lossy();
        endings.iter().any(|ending| place.ends_with(ending))
    };
    tried.retain(|place| !has_ending(place));
    Err(tried)
}

/// How to say what stands for an image; nothing when it was named as a source itself.
pub(super) fn hint(image: &str) -> Option<String> {
    let name = ImageReference::parse(image).ok()?.name();
    Some(format!(
        "give its content, a folder or an archive, with --image-source {name}=SOURCE"
    ))
}
