//! Where a source is, by the text that names it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    SourceError,
    layout::{self, Form},
};
use crate::{image::ImageReference, oci::digest::Digest};

/// What stands for standard input on the command line.
pub const STDIN: &str = "-";
/// What messages call it.
pub(super) const STDIN_NAME: &str = "standard input";

/// Where a source is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A folder on disk.
    Folder,
    /// A file on disk.
    File,
    /// Standard input.
    Stdin,
    /// An image.
    Image(ImagePlace),
}

/// Whether a text begins with a scheme of images.
pub(super) fn has_scheme(source: &str) -> bool {
    ImagePlace::of(source).is_some()
}

/// Of a text that names an image by a scheme, the path of the image, without scheme, tag, name and digest.
#[must_use]
pub fn path_of_image(source: &str) -> Option<String> {
    match ImagePlace::of(source)?.ok()? {
        ImagePlace::Registry(image) => Some(image.repository),
        ImagePlace::OnDisk(_, path, _) => path.into_os_string().into_string().ok(),
    }
}

/// Where an image is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImagePlace {
    /// An image in a registry, its reference complete.
    Registry(ImageReference),
    /// An image on disk, with the name that it has there if one is given.
    OnDisk(Form, PathBuf, Option<String>),
}

impl Place {
    /// Where `source` is.
    ///
    /// # Errors
    /// When it is nowhere, names no image, or is something that is never content.
    pub(super) fn of(source: &Path) -> Result<Self, SourceError> {
        if source == Path::new(STDIN) {
            return Ok(Self::Stdin);
        }
        if let Some(image) = source.to_str().and_then(ImagePlace::of) {
            return image.map(Self::Image);
        }
        // Asked first, because opening a pipe would wait for its other end.
        let metadata = fs::metadata(source).map_err(|error| SourceError::reading(source, error))?;
        if metadata.is_dir() {
            Ok(Self::Folder)
        } else if metadata.is_file() {
            Ok(Self::File)
        } else {
            Err(SourceError::NotAFile(source.to_owned()))
        }
    }
}

impl ImagePlace {
    /// The image that a text names by a scheme; nothing when it begins with none. The schemes are those of
    /// containers/image.
    fn of(text: &str) -> Option<Result<Self, SourceError>> {
        let (scheme, rest) = text.split_once(':')?;
        if scheme == "docker" {
            return Some(Self::registry(rest.strip_prefix("//")?));
        }
        let form = Form::of_scheme(scheme)?;
        let unclear = |reason: String| {
            let text = text.to_owned();
            Some(Err(SourceError::Unclear { text, reason }))
        };
        let (path, name) = layout::split(rest);
        if path.as_os_str().is_empty() {
            return unclear(format!("there is no path behind {scheme}:"));
        }
        if let Some(path) = rest.strip_prefix("//")
            && !Path::new(rest).exists()
        {
            return unclear(format!(
                "a path stands right behind the colon: {scheme}:{path}"
            ));
        }
        Some(Ok(Self::OnDisk(form, path, name)))
    }

    /// The image in a registry that a reference names.
    ///
    /// # Errors
    /// When it is no reference.
    pub(super) fn registry(text: &str) -> Result<Self, SourceError> {
        match ImageReference::parse(text) {
            Ok(image) => Ok(Self::Registry(image.normalized())),
            Err(source) => {
                let text = text.to_owned();
                Err(SourceError::Reference { text, source })
            }
        }
    }

    /// The same image, with what its tag stands for where that is known.
    pub(super) fn at(self, digest: Option<&Digest>) -> Self {
        match (self, digest) {
            (Self::Registry(image), Some(digest)) => Self::Registry(ImageReference {
                digest: Some(digest.to_string()),
                ..image
            }),
            (place, _) => place,
        }
    }
}

/// What a text that names nothing may have been meant as, as a hint.
pub(super) fn meant(text: &str) -> Option<String> {
    let image = |reference: &str| {
        let is_image = ImageReference::parse(reference).is_ok_and(|image| image.registry.is_some());
        is_image.then(|| format!("an image is written docker://{reference}"))
    };
    let lower = text.to_ascii_lowercase();
    let schemes = ["docker://", "docker:/", "docker:", "https://", "http://"];
    let behind = schemes
        .iter()
        .find(|scheme| lower.starts_with(*scheme))
        .and_then(|scheme| text.get(scheme.len()..));
    if let Some(hint) = image(behind.unwrap_or(text)) {
        return Some(hint);
    }
    let (scheme, _) = text.split_once(':')?;
    let is_word = |character: char| character.is_ascii_alphabetic() || character == '-';
    (scheme.len() > 1 && scheme.chars().all(is_word)).then(|| {
        "images are named by docker://, oci:, oci-archive: and docker-archive:, and all else by its path"
            .to_owned()
    })
}
