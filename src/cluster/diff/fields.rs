//! Which fields of two objects differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is nested deeper is compared as a whole.
const DEPTH: usize = 1_000;

/// The fields that differ, as JSON pointers (RFC 6901), in the order in which they stand; what only one side has counts
/// as one field.
pub(super) fn changed(before: &Value, after: &Value) -> Vec<String> {
    let mut fields = vec![];
    compare(
        Some(before),
        Some(after),
        &mut String::new(),
        DEPTH,
        &mut fields,
    );
    fields
}

/// Adds the fields that differ below `path`, which is as it was afterwards.
fn compare(
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut String,
    depth: usize,
    fields: &mut Vec<String>,
) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) if depth > 0 => {
            let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let step = key.replace('~', "~0").replace('/', "~1");
                below(path, &step, |path| {
                    compare(before.get(key), after.get(key), path, depth - 1, fields);
                });
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if depth > 0 => {
            for at in 0..before.len().max(after.len()) {
                below(path, &at.to_string(), |path| {
                    compare(before.get(at), after.get(at), path, depth - 1, fields);
                });
            }
        }
        _ => fields.push(path.clone()),
    }
}

/// Does something with the path of a value below this one.
fn below(path: &mut String, step: &str, work: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(step);
    work(path);
    path.truncate(length);
}
