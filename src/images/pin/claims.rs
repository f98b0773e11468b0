//! Whether a bundle says that it is for clusters without the internet, by either of OpenShift's annotations, and whether it
//! is: such a cluster has the images that were mirrored, so they must be named by digest.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{has_no_digest, is_csv, words::first_of};
use crate::{
    image,
    images::{self, Role},
    manifest::Manifest,
    problem::Problem,
};

/// The annotation of today: `"true"` or `"false"`.
const FEATURE: &str = "features.operators.openshift.io/disconnected";
/// The older one: a JSON list of words.
const FEATURES: &str = "operators.openshift.io/infrastructure-features";

/// The annotation by which a ClusterServiceVersion says that it can be installed on a disconnected cluster.
#[must_use]
pub fn claims_disconnected(csv: &Manifest) -> Option<&'static str> {
    let annotations = csv.metadata("annotations")?;
    let text = |key| annotations.get(key).and_then(Value::as_str);
    // Real bundles have the word in curly quotes too, out of a document that somebody copied it from.
    let quotes = |letter: char| letter.is_whitespace() || "“”‘’\"'".contains(letter);
    let is_true = |text: &str| text.trim_matches(quotes).eq_ignore_ascii_case("true");
    if text(FEATURE).is_some_and(is_true) {
        return Some(FEATURE);
    }
    text(FEATURES).is_some_and(lists_it).then_some(FEATURES)
}

/// Whether a text is a JSON list in which the word is.
fn lists_it(text: &str) -> bool {
    let words: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let mut words = words.iter().filter_map(Value::as_str);
    words.any(|word| word.trim().eq_ignore_ascii_case("disconnected"))
}

/// A warning when a ClusterServiceVersion among objects says that it can be installed on a disconnected cluster, and images
/// that the cluster needs have no digest.
#[must_use]
pub fn claim_broken(manifests: &[Manifest]) -> Option<Problem> {
    let mut csvs = manifests.iter().filter(|manifest| is_csv(manifest));
    let (csv, annotation) = csvs.find_map(|csv| Some((csv, claims_disconnected(csv)?)))?;
    let images = needed_by_tag(manifests);
    let count = match images.len() {
        0 => return None,
        1 => "1 image has".to_owned(),
        count => format!("{count} images have"),
    };
    let images: Vec<_> = images.iter().map(String::as_str).collect();
    let message = format!(
        "the annotation {annotation} says that it can be installed on a disconnected cluster, but {count} no digest ({}): \
         pin with kubectl olm pin",
        first_of(&images)
    );
    Some(
        Problem::warning("disconnected", message)
            .at(&csv.origin)
            .on(csv.key()),
    )
}

/// The images without a digest that a cluster needs, each once, in the order of the walk.
fn needed_by_tag(manifests: &[Manifest]) -> Vec<String> {
    let is_needed = |role: Role| {
        role.is_pulled() || matches!(role, Role::RelatedImageVariable | Role::RelatedImage)
    };
    let mut seen = BTreeSet::new();
    let uses = manifests.iter().flat_map(images::of);
    uses.filter(|image| is_needed(image.role) && has_no_digest(&image.text))
        .filter(|image| seen.insert(image::canonical(&image.text)))
        .map(|image| image.text)
        .collect()
}
