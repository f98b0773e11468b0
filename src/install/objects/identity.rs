//! What names an object, in messages too, and what is wrong with its names.

use serde_json::{Map, Value};

use super::{fault::Fault, fields::Privacy, kinds::Kind, rules};
use crate::manifest::{ObjectKey, names};

/// What names an object of a kind.
pub(super) fn key(object: &Map<String, Value>, kind: &Kind) -> ObjectKey {
    let text = |name: &str| field(object, name).and_then(Value::as_str);
    ObjectKey {
        group: kind.group.to_owned(),
        kind: kind.name.to_owned(),
        namespace: text("namespace").unwrap_or_default().to_owned(),
        name: text("name").unwrap_or_default().to_owned(),
    }
}

/// An object in messages: without its name where that is none.
pub(super) fn shown(key: &ObjectKey, is_named: bool) -> String {
    let whole = key.to_string();
    if is_named && !key.name.is_empty() {
        return whole;
    }
    let of_kind = whole.split_once('/').map_or("", |(kind, _)| kind);
    of_kind.to_owned()
}

/// What is wrong with the name of an object and with its namespace.
pub(super) fn faults(object: &Map<String, Value>, kind: &Kind, privacy: Privacy) -> Vec<Fault> {
    let mut faults = vec![];
    match field(object, "name") {
        None | Some(Value::Null) => {
            let message = match field(object, "generateName") {
                Some(_) => {
                    "`metadata.name` is missing, and `generateName` would give another object each time"
                }
                None => "`metadata.name` is missing",
            };
            faults.push(Fault::error("required-field", "metadata.name", message));
        }
        Some(Value::String(name)) => {
            let is_namespace = kind.name == "Namespace";
            let check = if is_namespace {
                names::label_error
            } else {
                names::subdomain_error
            };
            faults.extend(bad_name("metadata.name", name, check(name), privacy));
        }
        Some(_) => {}
    }
    if let Some(Value::String(namespace)) = field(object, "namespace").filter(|value| **value != "")
    {
        let reason = names::label_error(namespace);
        faults.extend(bad_name("metadata.namespace", namespace, reason, privacy));
    }
    faults
}

fn bad_name(path: &str, name: &str, reason: Option<String>, privacy: Privacy) -> Option<Fault> {
    let reason = reason?;
    let message = match privacy {
        Privacy::Open => format!("`{path}` is {}, no name: {reason}", rules::said(name)),
        Privacy::Private => format!("`{path}` is no name: {reason}"),
    };
    Some(Fault::error("object-name", path, message))
}

fn field<'o>(object: &'o Map<String, Value>, name: &str) -> Option<&'o Value> {
    object.get("metadata")?.get(name)
}
