//! References to images against what Go makes of them: `testdata/image/references.yaml`.

use std::fs;

use kubectl_olm::{image::ImageReference, limits::Limits, manifest::yaml};
use serde::Deserialize;

use super::program::root;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    text: String,
    normal: Option<String>,
    registry: Option<String>,
    repository: Option<String>,
    tag: Option<String>,
    digest: Option<String>,
    error: Option<String>,
}

#[test]
fn references_are_read_as_go_reads_them() {
    let text = fs::read(root().join("testdata/image/references.yaml")).expect("the references");
    let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
    let value = documents.into_iter().next().expect("a document").value;
    let references: Vec<Reference> = serde_json::from_value(value).expect("references");
    assert!(references.len() > 150, "references are missing");
    let wrong: Vec<_> = references.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is read otherwise than by Go.
fn difference(reference: &Reference) -> Option<String> {
    let text = &reference.text;
    let read = match (ImageReference::parse(text), &reference.error) {
        (Err(_), Some(_)) => return None,
        (Err(error), None) => return Some(format!("{text:?} is refused: {error}")),
        (Ok(_), Some(error)) => return Some(format!("{text:?} is taken, and by Go not: {error}")),
        (Ok(read), None) => read,
    };
    let normal = read.normalized();
    let has_parts = reference.registry.is_some();
    let parts_differ = normal.registry != reference.registry
        || Some(&normal.repository) != reference.repository.as_ref()
        || normal.tag != reference.tag
        || normal.digest != reference.digest;
    let differs = read.to_string() != *text
        || Some(normal.to_string()) != reference.normal
        || (has_parts && parts_differ);
    differs.then(|| format!("{text:?} is read as {read:?}"))
}
