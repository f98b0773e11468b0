//! What pinning does not reach, and what whoever mirrors the images of a bundle will not find.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    is_csv,
    variables::{Container, Variable, containers},
    words::{first_of, shown},
};
use crate::{
    image::{ImageReference, canonical, split_scheme},
    images::{self, Role, free_text},
    manifest::Manifest,
    problem::Problem,
};

/// Warnings of one rule about one object; of more, the number is told.
const MOST_OF_A_RULE: usize = 20;

/// Warnings of images that pinning does not reach, and of variables that will name none.
#[must_use]
pub fn lint(manifests: &[Manifest]) -> Vec<Problem> {
    let listed = Listed::of(manifests);
    let mut problems = vec![];
    for manifest in manifests {
        let mut warnings = Warnings::default();
        for container in containers(manifest) {
            lint_parts(&container, &mut warnings);
            for variable in container.variables() {
                lint_variable(&container, &variable, &listed, &mut warnings);
            }
            for argument in container.arguments() {
                if let Some(spelling) = listed.otherwise(argument) {
                    let place = format!("an argument of {}", container.description());
                    warnings.add("spelling", other_spelling(&place, argument, spelling));
                }
            }
        }
        if is_csv(manifest) {
            lint_related_images(manifest, &mut warnings);
        }
        problems.extend(warnings.into_problems(manifest));
    }
    problems.sort();
    problems
}

/// Warnings of tags in objects that stay when the objects are pinned. What a ClusterServiceVersion has of them is told of
/// the objects that are made of it.
#[must_use]
pub fn unreached(manifests: &[Manifest]) -> Vec<Problem> {
    let mut problems = vec![];
    for manifest in manifests.iter().filter(|manifest| !is_csv(manifest)) {
        let mut warnings = Warnings::default();
        for container in containers(manifest) {
            lint_parts(&container, &mut warnings);
        }
        problems.extend(warnings.into_problems(manifest));
    }
    problems
}

/// The images that ClusterServiceVersions list.
#[derive(Default)]
struct Listed {
    /// One spelling of each.
    by_canonical: BTreeMap<String, String>,
    texts: BTreeSet<String>,
}

impl Listed {
    fn of(manifests: &[Manifest]) -> Self {
        let mut listed = Self::default();
        for image in manifests.iter().flat_map(images::of) {
            if image.role == Role::RelatedImage {
                let canonical = canonical(&image.text);
                listed.texts.insert(image.text.clone());
                listed.by_canonical.entry(canonical).or_insert(image.text);
            }
        }
        listed
    }

    /// How an image is spelt that is listed, but never in this way.
    fn otherwise(&self, image: &str) -> Option<&str> {
        // A word that stands alone is hardly ever meant as one.
        if !image.contains(['/', ':', '@']) {
            return None;
        }
        let spelling = self.by_canonical.get(&canonical(image))?;
        (!self.texts.contains(image)).then_some(spelling)
    }
}

/// What is told of one object, by rule.
#[derive(Default)]
struct Warnings(BTreeMap<&'static str, BTreeSet<String>>);

impl Warnings {
    fn add(&mut self, rule: &'static str, message: String) {
        self.0.entry(rule).or_default().insert(message);
    }

    fn into_problems(self, manifest: &Manifest) -> Vec<Problem> {
        let mut problems = vec![];
        let key = manifest.key();
        for (rule, messages) in self.0 {
            let more = messages.len().saturating_sub(MOST_OF_A_RULE);
            let first = messages.into_iter().take(MOST_OF_A_RULE);
            let more = (more > 0).then(|| format!("… and {more} more of this rule"));
            for message in first.chain(more) {
                let problem = Problem::warning(rule, message);
                problems.push(problem.at(&manifest.origin).on(&key));
            }
        }
        problems
    }
}

/// Tells of tags inside variables and arguments, where they are not replaced.
fn lint_parts(container: &Container, warnings: &mut Warnings) {
    for variable in container.variables() {
        let text = variable.value.and_then(Value::as_str).unwrap_or_default();
        let place = format!("{} var of {}", variable.name, container.description());
        match tags_in(text).as_slice() {
            [] => {}
            [tag] => warnings.add(
                "image-in-variable",
                format!(
                    "{place} has {} in it, which stays as it is, because only a variable that is an image can be pinned: \
                     give it a variable RELATED_IMAGE_* of its own",
                    shown(tag)
                ),
            ),
            tags => warnings.add("several-images", several_images(&place, tags)),
        }
    }
    for argument in container.arguments() {
        let tags = tags_in(argument);
        if !tags.is_empty() {
            warnings.add(
                "image-in-argument",
                format!(
                    "an argument of {} has {} in it, which stays as it is, because only an argument that is an image can \
                     be pinned: pass it by a variable RELATED_IMAGE_*",
                    container.description(),
                    first_of(&tags)
                ),
            );
        }
    }
}

/// The images with a tag in a text that is more than an image.
fn tags_in(text: &str) -> Vec<&str> {
    let (_, image) = split_scheme(text);
    let found = free_text::references(text).filter_map(|span| text.get(span));
    found
        .filter(|found| *found != image && !found.contains('@'))
        .collect()
}

/// Tells of a variable that holds no image, or one that nobody lists.
fn lint_variable(
    container: &Container,
    variable: &Variable,
    listed: &Listed,
    warnings: &mut Warnings,
) {
    let place = format!("{} var of {}", variable.name, container.description());
    if variable.is_related_image() && !variable.is_set() {
        warnings.add(
            "empty-related-image",
            format!("{place} is empty, and an operator may take that for an image: give it one, or take it out"),
        );
    }
    let Some(text) = variable.value.and_then(Value::as_str) else {
        return;
    };
    let (_, text) = split_scheme(text);
    let holds_images = free_text::references(text).next().is_some();
    if variable.is_related_image() && !holds_images && !is_image_or_variable(text) {
        warnings.add(
            "related-image-no-image",
            format!(
                "{place} is {}, which is no image, so it cannot be pinned: give it one",
                shown(text)
            ),
        );
    } else if let Some(spelling) = listed.otherwise(text) {
        warnings.add("spelling", other_spelling(&place, text, spelling));
    } else if !variable.is_related_image()
        && free_text::is_reference(text)
        && !listed.texts.contains(text)
    {
        warnings.add("unlisted-image", unlisted_image(&place, text));
    }
}

/// Whether a text needs no word about what it is: a reference, what stands for the value of another variable, or nothing.
fn is_image_or_variable(text: &str) -> bool {
    let is_variable = text.starts_with("$(") && text.ends_with(')');
    is_variable || text.trim().is_empty() || ImageReference::parse(text).is_ok()
}

fn several_images(place: &str, images: &[&str]) -> String {
    format!(
        "{place} holds several images ({}), and only a variable that holds one can be pinned: give each a variable \
         RELATED_IMAGE_* of its own",
        first_of(images)
    )
}

fn unlisted_image(place: &str, image: &str) -> String {
    format!(
        "{place} is {}, which is in no list of images, so nobody mirrors it: name the variable RELATED_IMAGE_*, or add the \
         image to spec.relatedImages",
        shown(image)
    )
}

fn other_spelling(place: &str, text: &str, spelling: &str) -> String {
    format!(
        "{place} has {}, which is listed as {spelling}; whoever compares texts does not find it: spell both alike",
        shown(text)
    )
}

/// Entries of the list that do not say what they are to say.
fn lint_related_images(csv: &Manifest, warnings: &mut Warnings) {
    let list = csv
        .object()
        .get("spec")
        .and_then(|spec| spec.get("relatedImages"));
    let rule = "related-images-form";
    match list {
        None | Some(Value::Null) => {}
        Some(Value::Array(entries)) => {
            for (position, entry) in entries.iter().enumerate() {
                for field in ["image", "name"] {
                    let text = entry.get(field).and_then(Value::as_str);
                    if text.is_none_or(str::is_empty) {
                        warnings.add(
                            rule,
                            format!("spec.relatedImages[{position}] has no {field}, so it stays as it is: give it one"),
                        );
                    }
                }
            }
        }
        Some(_) => warnings.add(
            rule,
            "spec.relatedImages is no list, so it stays as it is: make it one".to_owned(),
        ),
    }
}
