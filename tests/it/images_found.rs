//! Where images are found in objects, and that they are changed there and nowhere else.
//!
//! `testdata/images/<situation>.yaml` is some objects that belong together, and their images in order, or what becomes of
//! the objects when images are changed. `testdata/images/free_text/texts.yaml` is texts and what is found in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use kubectl_olm::{
    images::{self, ImageUse, Role, free_text},
    manifest::Manifest,
};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::{cases::read, corpus, program::root};

/// Objects that belong together, and their images.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    objects: Vec<Value>,
    /// Images that are known from elsewhere, by their canonical texts.
    #[serde(default)]
    known: Vec<String>,
    /// All images, in order.
    uses: Option<Vec<Use>>,
    /// What images are changed to.
    #[serde(default)]
    change: BTreeMap<String, String>,
    /// What the objects are then.
    changed: Option<Vec<Value>>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Use {
    /// Not looked at where there is only one object.
    #[serde(default)]
    object: String,
    pointer: String,
    role: String,
    #[serde(default)]
    name: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
    found: Vec<String>,
}

#[test]
fn images_are_found_and_changed_where_they_stand() {
    let entries = fs::read_dir(root().join("testdata/images")).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    assert!(paths.len() >= 7, "cases are missing");
    for path in paths {
        check(&read(&path), &path);
    }
}

fn check(case: &Case, path: &Path) {
    let is_known = |image: &str| case.known.iter().any(|known| known == image);
    let manifest = |object: &Value| Manifest::generated(object.clone(), "a case");
    let mut manifests: Vec<_> = case.objects.iter().map(manifest).collect();
    if let Some(expected) = &case.uses {
        let uses = images::of_all(&manifests, &is_known);
        let uses: Vec<_> = uses.iter().map(|image| shown(image, &manifests)).collect();
        assert_eq!(&uses, expected, "{}", path.display());
    }
    let Some(expected) = &case.changed else {
        return;
    };
    images::rewrite(&mut manifests, &is_known, &mut |image| {
        case.change.get(&image.text).cloned()
    });
    let changed: Vec<_> = manifests.into_iter().map(Manifest::into_value).collect();
    assert_eq!(&changed, expected, "{}", path.display());
}

/// An image as a case tells of it, after asking whether its text is what stands at its place.
fn shown(image: &ImageUse, manifests: &[Manifest]) -> Use {
    let of_object = manifests.iter().find(|one| one.key() == *image.object);
    let object = of_object.expect("its object").clone().into_value();
    let text = object.pointer(&image.pointer).and_then(Value::as_str);
    let text = text.expect("a text at its pointer");
    assert_eq!(text[image.span.clone()], image.text, "{}", image.pointer);
    let object = match manifests {
        [_] => String::new(),
        _ => image.object.to_string(),
    };
    Use {
        object,
        pointer: image.pointer.to_string(),
        role: format!("{:?}", image.role),
        name: image.name.to_string(),
        text: image.text.clone(),
    }
}

#[test]
fn references_are_found_in_text_of_any_kind() {
    let texts: Vec<Text> = read(&root().join("testdata/images/free_text/texts.yaml"));
    assert!(texts.len() > 20, "texts are missing");
    for Text { text, found } in texts {
        let spans = free_text::references(&text);
        let references: Vec<_> = spans.map(|span| &text[span]).collect();
        assert_eq!(references, found, "{text:?}");
    }
}

/// Memory for pointers must not grow with the product of what is long and what is many.
#[test]
fn what_stands_below_very_long_keys_is_not_followed() {
    let object = |key: &str| {
        serde_json::json!({
            "apiVersion": "example.com/v1", "kind": "App", key: ["quay.io/org/app:1"],
        })
    };
    let found = |key: &str| {
        let manifests = [Manifest::generated(object(key), "a test")];
        images::of_all(&manifests, &|_| true).len()
    };
    assert_eq!(found("key"), 1);
    assert_eq!(found(&"key".repeat(1000)), 0);
}

#[test]
fn all_containers_of_real_bundles_are_found_and_nothing_else_is_changed() {
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    let cases = corpus::cases(&corpus);
    let counts = cases.par_iter().map(|case| {
        let folder = corpus.join("bundles").join(&case.operator);
        let manifests = corpus::manifests(&folder.join(&case.version));
        check_bundle(&manifests, &format!("{}/{}", case.operator, case.version))
    });
    let containers: usize = counts.sum();
    assert!(containers > 250, "only {containers} containers were found");
}

/// Checks one bundle, and gives the number of its containers.
fn check_bundle(manifests: &[Manifest], bundle: &str) -> usize {
    let uses = images::of_all(manifests, &|_| false);
    let mut containers = 0;
    for manifest in manifests {
        let is_here = |image: &&ImageUse| image.origin == manifest.origin;
        let pulled = uses.iter().filter(is_here);
        let pulled =
            pulled.filter(|image| image.role.is_pulled() && image.role != Role::ImageVolume);
        let found: BTreeSet<_> = pulled.map(|image| image.pointer.to_string()).collect();
        let value = manifest.clone().into_value();
        let expected = container_images(&value);
        assert_eq!(found, expected, "{bundle}: {}", manifest.key());
        containers += expected.len();
    }
    let mut same = manifests.to_vec();
    images::rewrite(&mut same, &|_| false, &mut |image| Some(image.text.clone()));
    let mut other = manifests.to_vec();
    images::rewrite(&mut other, &|_| false, &mut |_| Some("CHANGED".to_owned()));
    for ((manifest, same), other) in manifests.iter().zip(same).zip(other) {
        let before = leaves(&manifest.clone().into_value());
        assert_eq!(leaves(&same.into_value()), before, "{bundle}");
        let after = leaves(&other.into_value());
        assert!(before.keys().eq(after.keys()), "{bundle}: another shape");
        let changed = before
            .iter()
            .filter(|(pointer, value)| after[*pointer] != **value);
        let changed: BTreeSet<_> = changed.map(|(pointer, _)| pointer.as_str()).collect();
        let listed = uses.iter().filter(|image| image.origin == manifest.origin);
        let listed: BTreeSet<_> = listed.map(|image| &*image.pointer).collect();
        assert_eq!(changed, listed, "{bundle}: {}", manifest.key());
    }
    containers
}

/// The pointers of the images of containers in a ClusterServiceVersion, by plain indexing.
fn container_images(csv: &Value) -> BTreeSet<String> {
    let mut pointers = BTreeSet::new();
    if csv["kind"] != "ClusterServiceVersion" {
        return pointers;
    }
    let has = |pointer: &str| csv.pointer(pointer).is_some();
    for deployment in 0.. {
        let deployment = format!("/spec/install/spec/deployments/{deployment}");
        if !has(&deployment) {
            break;
        }
        for field in ["containers", "initContainers"] {
            let container = |at| format!("{deployment}/spec/template/spec/{field}/{at}");
            let containers = (0..).map(container).take_while(|container| has(container));
            let images = containers.map(|container| format!("{container}/image"));
            pointers
                .extend(images.filter(|image| csv.pointer(image).is_some_and(|text| text != "")));
        }
    }
    pointers
}

/// Every value that holds no others, by its pointer.
fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    let mut waiting = vec![(String::new(), value)];
    while let Some((pointer, value)) = waiting.pop() {
        match value {
            Value::Object(map) if !map.is_empty() => {
                waiting.extend(map.iter().map(|(key, value)| {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    (format!("{pointer}/{key}"), value)
                }))
            }
            Value::Array(list) if !list.is_empty() => {
                let items = list.iter().enumerate();
                waiting.extend(items.map(|(at, value)| (format!("{pointer}/{at}"), value)));
            }
            leaf => {
                leaves.insert(pointer, leaf.clone());
            }
        }
    }
    leaves
}
