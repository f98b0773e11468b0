//! What the metadata of a live object says.

use serde_json::Value;

/// A text of an object's metadata, such as `resourceVersion`; nothing when there is none.
#[must_use]
pub fn text<'o>(object: &'o Value, field: &str) -> Option<&'o str> {
    object.get("metadata")?.get(field)?.as_str()
}

/// An object's uid.
#[must_use]
pub fn uid(object: &Value) -> Option<&str> {
    text(object, "uid")
}

/// Whether an object is being deleted.
#[must_use]
pub fn is_going(object: &Value) -> bool {
    text(object, "deletionTimestamp").is_some()
}
