//! The other objects of the bundle, in the install namespace (`BundleAdditionalResourcesGenerator`).

use serde_json::Value;

use super::Rendering;
use crate::bundle::KINDS;

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    for mut object in std::mem::take(&mut rendering.others) {
        let namespaced = KINDS
            .iter()
            .any(|(kind, namespaced)| *kind == object.kind() && *namespaced);
        if namespaced {
            object.set_namespace(rendering.namespace());
        } else {
            object.metadata_mut().remove("namespace");
        }
        object.object_mut().remove("status");
        for value in object.object_mut().values_mut() {
            forget_creation(value);
        }
        rendering.manifests.push(object);
    }
}

/// Takes out the `creationTimestamp: null` that Go's tools have left in objects and templates alike.
fn forget_creation(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| !(name == "creationTimestamp" && value.is_null()));
            fields.values_mut().for_each(forget_creation);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_creation),
        _ => {}
    }
}
