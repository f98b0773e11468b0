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
            for variable in container.variables() {
                lint_variable(&container, &variable, &listed, &mut warnings);
            }
            for argument in container.arguments() {
                lint_argument(&container, argument, &listed, &mut warnings);
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

/// Tells of a variable that holds no image, or not one alone, or one that nobody lists.
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
    let found = free_text::references(text).filter_map(|span| text.get(span));
    let found: Vec<_> = found.collect();
    if found.len() > 1 {
        warnings.add("several-images", several_images(&place, &found));
    } else if variable.is_related_image() && !is_image_or_variable(text) {
        warnings.add(
            "related-image-no-image",
            format!(
                "{place} is {}, which is no image, so it cannot be pinned: give it one",
                shown(text)
            ),
        );
    } else if let Some(spelling) = listed.otherwise(text) {
        warnings.add("spelling", other_spelling(&place, text, spelling));
    } else if !variable.is_related_image() && found == [text] && !listed.texts.contains(text) {
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

/// Tells of an argument that has an image in it but is none, or one that is listed otherwise.
fn lint_argument(container: &Container, argument: &str, listed: &Listed, warnings: &mut Warnings) {
    let place = format!("an argument of {}", container.description());
    if let Some(spelling) = listed.otherwise(argument) {
        warnings.add("spelling", other_spelling(&place, argument, spelling));
        return;
    }
    let found = free_text::references(argument).filter_map(|span| argument.get(span));
    let parts: Vec<_> = found.filter(|image| *image != argument).collect();
    if !parts.is_empty() {
        warnings.add(
            "image-in-argument",
            format!(
                "{place} has {} in it, which stays as it is, because only an argument that is an image can be pinned: pass \
                 it by a variable RELATED_IMAGE_*",
                first_of(&parts)
            ),
        );
    }
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
