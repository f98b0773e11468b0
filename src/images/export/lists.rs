//! Lists of images alone, for programs that are told the destination by a flag.

use serde_json::{Map, Value, json};

use super::{Needed, sources};
use crate::manifest::{list_at, map_at, yaml};

/// An ImageSetConfiguration for oc-mirror v2 (`internal/pkg/api/v2alpha1/type_config.go`). An image with tag and digest
/// goes by its digest: some versions of oc-mirror take the tag instead.
#[must_use]
pub fn imageset(needed: &[Needed]) -> String {
    let sources = sources(needed);
    let names: Vec<_> = sources
        .keys()
        .map(|source| json!({"name": source.to_string()}))
        .collect();
    written(&json!({
        "apiVersion": "mirror.openshift.io/v2alpha1",
        "kind": "ImageSetConfiguration",
        "mirror": {"additionalImages": names},
    }))
}

/// The list that `skopeo sync --src yaml` reads (containers/skopeo `docs/skopeo-sync.1.md`). Without its flag `--scoped`
/// skopeo keeps only the last part of the repository.
#[must_use]
pub fn skopeo(needed: &[Needed]) -> String {
    let mut registries = Map::new();
    for (source, _) in sources(needed) {
        let registry = source.registry.unwrap_or_default();
        let images = map_at(map_at(&mut registries, &registry), "images");
        let version = source.digest.or(source.tag).unwrap_or_default();
        list_at(images, &source.repository).push(Value::String(version));
    }
    written(&Value::Object(registries))
}

fn written(value: &Value) -> String {
    let mut text = String::new();
    yaml::write(value, &mut text);
    text
}
