//! What is not tied to content: images without a digest, and texts that are no images where one must be.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    has_no_digest,
    words::{description, first_of, shown},
};
use crate::{
    image::ImageReference,
    images::{self, ImageUse, Role},
    manifest::Manifest,
    problem::{Problem, Severity},
};

/// The images without a digest: errors for those that a kubelet pulls, warnings for all others.
///
/// A variable `RELATED_IMAGE_*` counts as pulled, because the operator hands it to a kubelet.
#[must_use]
pub fn unpinned(manifests: &[Manifest]) -> Vec<Problem> {
    let mut problems: Vec<_> = manifests.iter().flat_map(unpinned_of).collect();
    problems.sort();
    problems
}

/// One problem for each field of an object.
fn unpinned_of(manifest: &Manifest) -> Vec<Problem> {
    let mut uses = images::of(manifest);
    uses.retain(|image| severity(image).is_some());
    let mut fields: BTreeMap<&str, Vec<&ImageUse>> = BTreeMap::new();
    let mut pointers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for image in &uses {
        fields.entry(&image.pointer).or_default().push(image);
        pointers
            .entry(description(image))
            .or_default()
            .insert(&image.pointer);
    }
    let mut problems = vec![];
    for (pointer, uses) in &fields {
        let Some((first, severity)) = uses
            .first()
            .and_then(|first| Some((*first, severity(first)?)))
        else {
            continue;
        };
        let mut place = description(first);
        // Several deployments may have a container of that name.
        if pointers
            .get(&place)
            .is_some_and(|pointers| pointers.len() > 1)
        {
            place = format!("{place} ({pointer})");
        }
        let problem = Problem {
            severity,
            ..Problem::error("unpinned", unpinned_message(&place, uses))
        };
        problems.push(problem.at(&manifest.origin).on(&first.object));
    }
    problems
}

/// How bad it is that an image has no digest; nothing where it has one, or need not have one.
fn severity(image: &ImageUse) -> Option<Severity> {
    let is_reference = ImageReference::parse(&image.text).is_ok();
    let severity = match image.role {
        Role::RelatedImage => Severity::Warning,
        role if role.is_pulled() => Severity::Error,
        Role::RelatedImageVariable if is_reference => Severity::Error,
        Role::Annotation | Role::Variable | Role::Argument if is_reference => Severity::Warning,
        _ => return None,
    };
    has_no_digest(&image.text).then_some(severity)
}

fn unpinned_message(place: &str, uses: &[&ImageUse]) -> String {
    let mut images: Vec<_> = uses.iter().map(|image| image.text.as_str()).collect();
    images.dedup();
    match images.as_slice() {
        [image] if ImageReference::parse(image).is_err() => {
            format!(
                "{} in {place} is no image, so nothing can be pulled: name one",
                shown(image)
            )
        }
        [image] => format!(
            "{image} in {place} has no digest, so it may become another image: name the digest by --pins, or {}",
            other_way(uses)
        ),
        images => format!(
            "{} in {place} have no digests, so they may become other images: name the digests by --pins, or let the \
             registry be asked for them",
            first_of(images)
        ),
    }
}

/// How a digest is found that nobody names.
fn other_way(uses: &[&ImageUse]) -> &'static str {
    // Registries are not asked for what may be something else than an image.
    let has = |role| uses.iter().any(|image| image.role == role);
    if has(Role::Variable) {
        "name the variable RELATED_IMAGE_*"
    } else if has(Role::Argument) {
        "pass it by a variable RELATED_IMAGE_*"
    } else {
        "let the registry be asked for it"
    }
}
