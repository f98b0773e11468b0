//! The ClusterServiceVersion, as OLM v0's catalog operator stores it (operator-lifecycle-manager
//! `operators/catalog/step.go` and `resolver/steps.go`).
//!
//! What the olm-operator adds to it later, when it runs, is left out: the annotations of the OperatorGroup and the
//! label of the Operator are its own business, and with its finalizer the object could never be deleted where no
//! controller takes the finalizer out again. There is no status either.

use serde::Serialize;
use serde_json::{Value, json};

use super::Rendering;
use crate::{
    bundle,
    manifest::{go_json, map_at},
    problem::Problem,
    render::StoredCsv,
};

const PROPERTIES: &str = "operatorframework.io/properties";

/// What the annotation holds, with the fields in Go's order.
#[derive(Serialize)]
struct Properties<'p> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property<'p>>,
}

#[derive(Serialize)]
struct Property<'p> {
    r#type: &'p str,
    value: &'p Value,
}

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    let Some(stored) = &rendering.options.csv else {
        return;
    };
    let mut manifest = rendering.csv.manifest.clone();
    match go_json::text(&properties(stored)) {
        Ok(text) => manifest.annotate(PROPERTIES, text),
        Err(error) => {
            let message = format!("the properties cannot be written as JSON: {error}");
            let problem = Problem::error("properties", message);
            rendering.problems.push(problem.on(manifest.key()));
        }
    }
    manifest.set_namespace(rendering.namespace());
    let metadata = manifest.metadata_mut();
    metadata.remove("finalizers");
    map_at(metadata, "labels").insert("olm.managed".to_owned(), "true".into());
    let object = manifest.object_mut();
    // Real bundles get it wrong, and no API server knows another one.
    object.insert("apiVersion".to_owned(), json!(bundle::CSV_API_VERSION));
    object.remove("status");
    let spec = map_at(object, "spec");
    if stored.replaces.is_empty() {
        spec.remove("replaces");
    } else {
        spec.insert("replaces".to_owned(), stored.replaces.as_str().into());
    }
    rendering.manifests.push(manifest);
}

fn properties(stored: &StoredCsv) -> Properties<'_> {
    let properties = stored.properties.iter();
    Properties {
        properties: properties
            .map(|(kind, value)| Property {
                r#type: kind,
                value,
            })
            .collect(),
    }
}
