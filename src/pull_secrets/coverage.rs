//! Images that no login is for.

use std::collections::BTreeSet;

use crate::{
    image::ImageReference,
    images::{self, ImageUse, Role},
    manifest::Manifest,
    problem::Problem,
};

/// A warning for each image that pods of objects run, or are told to run, and that nothing covers: `covers` is given its whole name, as in
/// [`normalized`](ImageReference::normalized). Texts that are no references are passed over.
#[must_use]
pub fn uncovered(manifests: &[Manifest], covers: &dyn Fn(&ImageReference) -> bool) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let mut problems = vec![];
    for image in manifests.iter().flat_map(images::of).filter(is_run) {
        let Ok(reference) = ImageReference::parse(&image.text) else {
            continue;
        };
        let reference = reference.normalized();
        if !seen.insert(reference.clone()) || covers(&reference) {
            continue;
        }
        let message = format!(
            "no pull Secret is for the image {reference} at {}; if not everyone may pull it, give a Secret for it by \
             --pull-secret, or name one in spec.secrets of the CatalogSource",
            image.pointer
        );
        let warning = Problem::warning("uncovered-image", message);
        problems.push(warning.at(&image.origin).on(image.object));
    }
    problems
}

/// Whether a kubelet pulls it, now or when the operator makes pods of its own.
fn is_run(image: &ImageUse) -> bool {
    image.role.is_pulled() || image.role == Role::RelatedImageVariable
}
