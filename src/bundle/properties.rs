//! `metadata/properties.yaml`: properties of the bundle, merged into the annotation `olm.properties` of the
//! ClusterServiceVersion, and with all annotations into the pod templates.
//!
//! Reproduces operator-controller `rukpak/bundle/source/source.go`, `copyMetadataPropertiesToCSV`, to the byte.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    limits::Limits,
    manifest::{go_json, yaml},
    problem::Problem,
};

/// The path of the file in a bundle.
pub(super) const PATH: &str = "metadata/properties.yaml";

/// The annotation that holds properties.
pub(super) const ANNOTATION: &str = "olm.properties";

/// One property; its value stays as it was written.
#[derive(Deserialize, Serialize)]
struct Property {
    #[serde(default)]
    r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
}

const RULE: &str = "properties";

/// The new text of the annotation, or `None` when the file adds nothing and the annotation stays as it is.
///
/// # Errors
/// What is wrong with the annotation or the file.
pub(crate) fn merged(
    annotation: Option<&str>,
    file: Option<&[u8]>,
    limits: &Limits,
) -> Result<Option<String>, Problem> {
    let text = annotation.filter(|text| !text.is_empty()).unwrap_or("null");
    let properties: Option<Vec<Property>> = serde_json::from_str(text).map_err(|error| {
        let message = format!("annotation {ANNOTATION} is no JSON list of properties: {error}");
        Problem::error(RULE, message)
    })?;
    let mut properties = properties.unwrap_or_default();
    let in_file = |message: &str| Problem::error(RULE, message).at(PATH);
    let documents = match file.map(|file| yaml::read(file, limits)) {
        None => return Ok(None),
        Some(Ok(documents)) => documents,
        Some(Err(error)) => return Err(super::unreadable(PATH, &error)),
    };
    let first = documents.into_iter().next().map(|document| document.value);
    let added = match first.as_ref().and_then(|value| value.get("properties")) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(added)) if added.is_empty() => return Ok(None),
        Some(Value::Array(added)) => added,
        Some(_) => return Err(in_file("properties is not a list")),
    };
    for property in added {
        let read = serde_json::from_str(&property.to_string());
        properties.push(read.map_err(|error| in_file(&format!("not a property: {error}")))?);
    }
    let text = go_json::text(&properties).map_err(|error| in_file(&error.to_string()))?;
    Ok(Some(text))
}
