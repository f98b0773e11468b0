//! `metadata/properties.yaml`: properties of the bundle, merged into the annotation `olm.properties` of the
//! ClusterServiceVersion, and with all annotations into the pod templates. The object itself stays as it was written,
//! since OLM v0 stores it like that.
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

/// The properties that the file lists, as they stand there; none without a file.
///
/// # Errors
/// What is wrong with the file as a whole.
pub(super) fn read(file: Option<&[u8]>, limits: &Limits) -> Result<Vec<Value>, Problem> {
    let documents = match file.map(|file| yaml::read(file, limits)) {
        None => return Ok(vec![]),
        Some(Ok(documents)) => documents,
        Some(Err(error)) => return Err(error.in_file(PATH)),
    };
    let first = documents.into_iter().next().map(|document| document.value);
    match first.and_then(|mut value| Some(value.get_mut("properties")?.take())) {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Array(listed)) => Ok(listed),
        Some(_) => Err(in_file("properties is not a list")),
    }
}

/// The new text of the annotation, or `None` when the file adds nothing and the annotation stays as it is.
///
/// # Errors
/// What is wrong with the annotation, or with a property that the file lists.
pub(super) fn merged(annotation: Option<&str>, added: &[Value]) -> Result<Option<String>, Problem> {
    let text = annotation.filter(|text| !text.is_empty()).unwrap_or("null");
    let properties: Option<Vec<Property>> = serde_json::from_str(text).map_err(|error| {
        let message = format!("annotation {ANNOTATION} is no JSON list of properties: {error}");
        Problem::error(RULE, message)
    })?;
    if added.is_empty() {
        return Ok(None);
    }
    let mut properties = properties.unwrap_or_default();
    for property in added {
        let read = serde_json::from_str(&property.to_string());
        properties.push(read.map_err(|error| in_file(&format!("not a property: {error}")))?);
    }
    let text = go_json::text(&properties).map_err(|error| in_file(&error.to_string()))?;
    Ok(Some(text))
}

fn in_file(message: &str) -> Problem {
    Problem::error(RULE, message).at(PATH)
}
