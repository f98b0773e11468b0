//! A bundle whose objects the catalog holds itself, as the files that its image would have.
//!
//! Reproduces what operator-registry makes of properties of type `olm.bundle.object` (`alpha/declcfg/load.go`,
//! `readBundleObjects`). Such a catalog does not hold `metadata/properties.yaml` apart from the properties that follow
//! from the objects, so the files have none.

use serde_json::{Value, json};

use super::package::{BUNDLE_OBJECT_PROPERTY, CatalogBundle, field};
use crate::{files::FileTree, manifest::decode_base64, problem::Problem};

/// The rule that a bundle in a catalog breaks when its objects cannot be read.
const RULE: &str = "catalog-object";

/// The files of a bundle whose objects the catalog holds; nothing when it holds none.
///
/// # Errors
/// When a property does not hold an object; all of them are told.
pub fn files(package: &str, bundle: &CatalogBundle) -> Result<Option<FileTree>, Vec<Problem>> {
    let (mut files, mut problems) = (FileTree::default(), vec![]);
    let mut insert = |path: String, content: Vec<u8>| {
        let inserted = files.insert(path, content);
        debug_assert!(inserted.is_ok(), "the paths are our own");
    };
    let mut count = 0;
    for value in bundle.properties_of(BUNDLE_OBJECT_PROPERTY) {
        count += 1;
        match object(value) {
            Ok(content) => insert(format!("manifests/object-{count:04}.yaml"), content),
            Err(reason) => {
                let message = format!(
                    "{BUNDLE_OBJECT_PROPERTY} number {count} of {} is not an object in base64: {reason}",
                    bundle.name
                );
                problems.push(Problem::error(RULE, message).at(bundle.place.clone()));
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if count == 0 {
        return Ok(None);
    }
    let annotations = json!({"operators.operatorframework.io.bundle.package.v1": package});
    let annotations = json!({"annotations": annotations}).to_string();
    insert(
        "metadata/annotations.yaml".to_owned(),
        annotations.into_bytes(),
    );
    Ok(Some(files))
}

/// The object that a property of type `olm.bundle.object` holds, as it was written.
///
/// # Errors
/// When it holds none; the text says why.
pub(super) fn object(value: &Value) -> Result<Vec<u8>, String> {
    let data = value.as_object().and_then(|fields| field(fields, "data"));
    let data = data.and_then(Value::as_str);
    decode_base64(data.ok_or("it has no field `data` with text")?)
}
