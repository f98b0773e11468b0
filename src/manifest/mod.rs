//! One Kubernetes object, and what can be said about any object without knowing where it came from.

pub mod conform;
pub mod file_name;
pub(crate) mod findings;
pub mod go_json;
mod go_scalars;
pub mod go_types;
mod key;
pub mod kustomization;
pub mod label_selector;
pub mod names;
pub mod order;
mod quantity;
pub mod served;
pub mod yaml;

use std::{fmt, sync::Arc};

pub use go_scalars::{decode_base64, same_quantity};
pub use key::ObjectKey;
use serde_json::{Map, Value};

use crate::problem::Place;

/// A Kubernetes object as JSON, and where it came from. It may be a Secret, so `Debug` shows none of its fields but those
/// that name it.
#[derive(Clone)]
pub struct Manifest {
    /// The object; always a JSON map.
    object: Map<String, Value>,
    /// Where it came from, for messages.
    pub origin: Origin,
}

/// Where an object came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A document of a file.
    File {
        /// The file's path in its source.
        path: Arc<str>,
        /// The line on which the document starts, from 1.
        line: usize,
    },
    /// Made by the renderer, from the named part of the bundle.
    Generated(&'static str),
}

impl From<&Origin> for Place {
    fn from(origin: &Origin) -> Self {
        match origin {
            // A file that holds one document needs no line.
            Origin::File { path, line } => Self {
                path: path.to_string(),
                line: if *line == 1 { 0 } else { *line },
            },
            Origin::Generated(from) => Self {
                path: format!("generated from {from}"),
                line: 0,
            },
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Place::from(self).fmt(f)
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manifest")
            .field("key", &self.key())
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Manifest {
    /// An object from a JSON value; anything but a map becomes an object without fields.
    #[must_use]
    pub fn new(value: Value, origin: Origin) -> Self {
        let object = match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        Self { object, origin }
    }

    /// An object that the renderer makes, from the named part of the bundle.
    #[must_use]
    pub fn generated(value: Value, from: &'static str) -> Self {
        Self::new(value, Origin::Generated(from))
    }

    /// The object's fields.
    #[must_use]
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// The object's fields, to be changed.
    pub fn object_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.object
    }

    /// The object's fields, for good.
    #[must_use]
    pub fn into_object(self) -> Map<String, Value> {
        self.object
    }

    /// The object as a JSON value.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.object)
    }

    /// `kind`, empty when there is none.
    #[must_use]
    pub fn kind(&self) -> &str {
        text(self.object.get("kind"))
    }

    /// `apiVersion`, empty when there is none.
    #[must_use]
    pub fn api_version(&self) -> &str {
        text(self.object.get("apiVersion"))
    }

    /// The API group: what stands before the `/` of `apiVersion`.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version()
            .rsplit_once('/')
            .map_or("", |(group, _)| group)
    }

    /// `metadata.name`, empty when there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        text(self.metadata("name"))
    }

    /// `metadata.namespace`, empty when there is none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        text(self.metadata("namespace"))
    }

    /// The object's identity.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.group().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }

    /// A field of `metadata`.
    #[must_use]
    pub fn metadata(&self, field: &str) -> Option<&Value> {
        self.object.get("metadata")?.get(field)
    }

    /// `metadata`, made when it is missing or no map.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        map_at(&mut self.object, "metadata")
    }

    /// Sets one annotation.
    pub fn annotate(&mut self, key: &str, value: impl Into<String>) {
        let annotations = map_at(self.metadata_mut(), "annotations");
        annotations.insert(key.to_owned(), Value::String(value.into()));
    }

    /// Sets `metadata.namespace`.
    pub fn set_namespace(&mut self, namespace: &str) {
        self.metadata_mut()
            .insert("namespace".to_owned(), namespace.into());
    }
}

/// The map under `field`, made when it is missing or something else.
pub fn map_at<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = object
        .entry(field)
        .or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made a map just above"),
    }
}

/// The list under `field`, made when it is missing or something else.
pub fn list_at<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Vec<Value> {
    let value = object.entry(field).or_insert_with(|| Value::Array(vec![]));
    if !value.is_array() {
        *value = Value::Array(vec![]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("made a list just above"),
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}
