//! Every image by its digest: which are not yet, what a map says of them, and objects that say it.
//!
//! Reproduces operator-manifest (Python) `operator_manifest/operator.py` (`OperatorCSV`): where images are looked for, what
//! is replaced, and how `spec.relatedImages` is made of what is found. It differs where a comment says so.

mod claims;
mod file;
mod lint;
mod listed;
mod pins;
mod related_images;
mod unpinned;
mod variables;
mod words;

use std::collections::BTreeMap;

use serde_json::Value;

use self::related_images::related_images;
pub use self::{
    claims::{claim_broken, claims_disconnected},
    file::{PinnedFile, csvs, pin_file},
    lint::{lint, unreached},
    listed::{ListedImage, listed},
    pins::{Pins, PinsError},
    related_images::listed_twice,
    unpinned::unpinned,
};
use super::{ImageUse, Role, fields::CLUSTER_SERVICE_VERSION};
use crate::{
    image::{self, ImageReference},
    manifest::{Manifest, map_at},
    problem::Problem,
};

/// An image that has no digest yet, and where it is named.
#[derive(Debug, Clone)]
pub struct Unpinned {
    /// As it was written first.
    pub image: String,
    /// Where it is named, in the order of the walk.
    pub uses: Vec<ImageUse>,
}

/// The images of objects that have to get a digest, each once, in the order of the walk: those that stand in a field for
/// images or in an annotation, but not those of variables other than `RELATED_IMAGE_*`, which may be something else.
///
/// A text in a field for images that is no reference is among them: nobody can give it a digest, and nobody can pull it.
#[must_use]
pub fn wanted(manifests: &[Manifest]) -> Vec<Unpinned> {
    let mut wanted: Vec<Unpinned> = vec![];
    let mut positions = BTreeMap::new();
    let uses = manifests.iter().flat_map(super::of);
    for image_use in uses.filter(wants_digest) {
        let next = wanted.len();
        let position = positions
            .entry(image::canonical(&image_use.text))
            .or_insert(next);
        match wanted.get_mut(*position) {
            Some(unpinned) => unpinned.uses.push(image_use),
            None => wanted.push(Unpinned {
                image: image_use.text.clone(),
                uses: vec![image_use],
            }),
        }
    }
    wanted
}

/// Puts digests in the place of tags, wherever a text as a whole is an image of the map, and in annotations wherever one
/// stands in the text; and makes `spec.relatedImages` anew in ClusterServiceVersions. Gives what was put there, by the
/// spellings of the objects.
///
/// # Errors
/// Every variable `RELATED_IMAGE_*` that takes its value from elsewhere, and every two images that would get one name in
/// `relatedImages`. The objects are as they were then.
pub fn pin(manifests: &mut [Manifest], pins: &Pins) -> Result<Pins, Vec<Problem>> {
    let mut problems = vec![];
    let mut lists = vec![];
    for (position, manifest) in manifests.iter().enumerate() {
        problems.extend(variables::values_from_elsewhere(manifest));
        if is_csv(manifest) {
            match related_images(manifest, pins) {
                Ok(list) => lists.extend(list.map(|list| (position, list))),
                Err(conflicts) => problems.extend(conflicts),
            }
        }
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(problems);
    }
    let is_known = |image: &str| pins.knows(image);
    let mut used = Pins::default();
    super::rewrite(manifests, &is_known, &mut |image| {
        let pinned = replacement(image, pins)?;
        used.insert(&image.text, pinned.clone());
        Some(pinned)
    });
    for (position, list) in lists {
        if let Some(manifest) = manifests.get_mut(position) {
            let spec = map_at(manifest.object_mut(), "spec");
            spec.insert("relatedImages".to_owned(), Value::Array(list));
        }
    }
    Ok(used)
}

/// What takes the place of an image; nothing where it stays. Of variables and arguments that are more than an image, as
/// operator-manifest leaves them alone, and nobody knows what reads them.
fn replacement(image: &ImageUse, pins: &Pins) -> Option<String> {
    if image.role.is_part() {
        return None;
    }
    pins.get(&image.text).filter(|pinned| *pinned != image.text)
}

/// Whether an object is a ClusterServiceVersion, which OLM tells by the kind alone.
fn is_csv(manifest: &Manifest) -> bool {
    manifest.kind() == CLUSTER_SERVICE_VERSION
}

/// Whether a text is not tied to content: a reference without a digest, or none.
fn has_no_digest(text: &str) -> bool {
    ImageReference::parse(text).map_or(true, |reference| reference.digest.is_none())
}

/// Whether an image has to get a digest.
fn wants_digest(image: &ImageUse) -> bool {
    match image.role {
        Role::Container | Role::InitContainer | Role::ImageVolume | Role::RelatedImage => {
            has_no_digest(&image.text)
        }
        // Here a text that is no reference is not meant to be one.
        Role::RelatedImageVariable | Role::Annotation => {
            ImageReference::parse(&image.text).is_ok_and(|reference| reference.digest.is_none())
        }
        Role::Variable
        | Role::VariablePart
        | Role::Argument
        | Role::ArgumentPart
        | Role::Text
        | Role::Catalog
        | Role::Bundle => false,
    }
}
