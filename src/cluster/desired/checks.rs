//! What the API server would refuse in an object, as far as it can be seen without asking it: sizes, names, labels, and
//! lists that server-side apply cannot take. Bundles are checked for some of it when they are read; here it is looked for
//! in what is sent, wherever it came from.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    cluster::{
        inventory::{is_our_key, is_ours},
        list_keys,
    },
    manifest::{Manifest, decode_base64, findings::Path, names},
    problem::Problem,
};

/// The largest request that an API server reads (kubernetes/apiserver `pkg/server/config.go`).
const REQUEST_BYTES: usize = 3 << 20;
/// The data that a Secret or ConfigMap may hold (kubernetes `pkg/apis/core/validation`).
const DATA_BYTES: usize = 1 << 20;
/// What all annotations of an object may hold together (apimachinery `pkg/api/validation/objectmeta.go`).
const ANNOTATION_BYTES: usize = 256 << 10;
/// Duplicates that are told of one object.
const TOLD: usize = 20;

/// What nobody but this program may bring.
pub(super) fn reserved(manifest: &Manifest) -> Vec<Problem> {
    let mut problems = vec![];
    if is_ours(&manifest.key()) {
        let message = "names that begin with kubectl-olm. are for the inventories and Leases of this program; rename it";
        problems.push(Problem::error("reserved-name", message));
    }
    for field in ["labels", "annotations"] {
        for (key, _) in texts(manifest, field).filter(|(key, _)| is_our_key(key)) {
            let message =
                format!("metadata.{field} has {key}, which only this program sets; take it out");
            problems.push(Problem::error("reserved-name", message));
        }
    }
    problems
}

/// What no API server takes, of an object as it is sent.
pub(super) fn unsendable(manifest: &Manifest) -> Vec<Problem> {
    let mut problems = vec![];
    name(manifest, &mut problems);
    labels(manifest, &mut problems);
    sizes(manifest, &mut problems);
    secret_data(manifest, &mut problems);
    if list_keys::knows(manifest.group()) {
        let mut found = vec![];
        duplicates_in(manifest.object(), "", &Path::Root, &mut found);
        problems.append(&mut found);
    }
    problems
}

fn name(manifest: &Manifest, problems: &mut Vec<Problem>) {
    let name = manifest.name();
    if name.is_empty() && manifest.metadata("generateName").is_some() {
        let message = "has metadata.generateName, which would give another object each time; give it a metadata.name";
        problems.push(Problem::error("object-name", message));
        return;
    }
    let reason =
        names::path_segment_error(name).or_else(|| match (manifest.group(), manifest.kind()) {
            ("rbac.authorization.k8s.io", _) => None,
            ("", "Namespace" | "Service") => names::label_error(name),
            _ => names::subdomain_error(name),
        });
    let what = [("metadata.name", name, reason)];
    let namespace = manifest.namespace();
    let reason = names::label_error(namespace).filter(|_| !namespace.is_empty());
    for (field, name, reason) in what
        .into_iter()
        .chain([("metadata.namespace", namespace, reason)])
    {
        if let Some(reason) = reason {
            let message = format!("{field} {name:?} is invalid: {reason}");
            problems.push(Problem::error("object-name", message));
        }
    }
    for (field, text) in [
        ("apiVersion", manifest.api_version()),
        ("kind", manifest.kind()),
    ] {
        if text.is_empty() {
            let message = format!("has no {field}, so that the API server cannot know what it is");
            problems.push(Problem::error("object-kind", message));
        }
    }
}

fn labels(manifest: &Manifest, problems: &mut Vec<Problem>) {
    for (key, value) in texts(manifest, "labels") {
        let reason = match value.as_str() {
            None => Some("its value is no text; quote it".to_owned()),
            Some(value) => names::label_key_error(key).or_else(|| names::label_value_error(value)),
        };
        if let Some(reason) = reason {
            let message = format!("metadata.labels has {key:?}, which is invalid: {reason}");
            problems.push(Problem::error("label", message));
        }
    }
    for (key, value) in texts(manifest, "annotations") {
        let reason = match value.as_str() {
            None => Some("its value is no text; quote it".to_owned()),
            // The API server lets annotations have capitals where labels may not.
            Some(_) => names::label_key_error(&key.to_lowercase()),
        };
        if let Some(reason) = reason {
            let message = format!("metadata.annotations has {key:?}, which is invalid: {reason}");
            problems.push(Problem::error("annotation", message));
        }
    }
}

fn sizes(manifest: &Manifest, problems: &mut Vec<Problem>) {
    let annotations = texts(manifest, "annotations");
    let annotations =
        annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    let whole = serde_json::to_vec(manifest.object()).map_or(usize::MAX, |text| text.len());
    let found = [
        ("it is", whole, REQUEST_BYTES),
        ("its data is", data_bytes(manifest), DATA_BYTES),
        ("its annotations are", annotations.sum(), ANNOTATION_BYTES),
    ];
    for (what, bytes, most) in found {
        if bytes > most {
            let message = format!("{what} {bytes} bytes; the API server takes at most {most}");
            problems.push(Problem::error("size", message));
        }
    }
}

/// The bytes in the data of a Secret or ConfigMap; 0 for other objects.
fn data_bytes(manifest: &Manifest) -> usize {
    let encoded = match (manifest.group(), manifest.kind()) {
        ("", "ConfigMap") => "binaryData",
        ("", "Secret") => "data",
        _ => return 0,
    };
    let bytes = ["data", "binaryData"].into_iter().map(|field| {
        let values = manifest.object().get(field).and_then(Value::as_object);
        let texts = values
            .into_iter()
            .flatten()
            .filter_map(|(_, value)| value.as_str());
        let size = |text: &str| {
            if field == encoded {
                text.len() / 4 * 3
                    - text
                        .bytes()
                        .rev()
                        .take_while(|byte| *byte == b'=')
                        .count()
                        .min(2)
            } else {
                text.len()
            }
        };
        texts.map(size).sum::<usize>()
    });
    bytes.sum()
}

/// The API server repeats what it cannot decode in its refusal, so that data of Secrets would be shown.
fn secret_data(manifest: &Manifest, problems: &mut Vec<Problem>) {
    if !(manifest.kind() == "Secret" && manifest.group().is_empty()) {
        return;
    }
    let message = match manifest.object().get("data") {
        None | Some(Value::Null) => return,
        Some(Value::Object(data)) => {
            let is_bad = |value: &Value| {
                value
                    .as_str()
                    .is_none_or(|text| decode_base64(text).is_err())
            };
            let bad = data.iter().filter(|(_, value)| is_bad(value));
            let keys: Vec<_> = bad.map(|(key, _)| key.as_str()).collect();
            if keys.is_empty() {
                return;
            }
            format!(
                "data is no base64 text under {}; encode it",
                keys.join(", ")
            )
        }
        Some(_) => "data is no map; make it one of texts in base64".to_owned(),
    };
    problems.push(Problem::error("secret-data", message));
}

/// Server-side apply refuses lists in which two items have the same keys, with a permanent error 500. This calls itself as
/// deep as the object is nested, which its reader has bounded.
fn duplicates_in(
    object: &Map<String, Value>,
    above: &str,
    at: &Path<'_>,
    problems: &mut Vec<Problem>,
) {
    for (field, value) in object {
        let here = Path::Key(at, field);
        match value {
            Value::Object(object) => duplicates_in(object, field, &here, problems),
            Value::Array(items) => {
                if let Some(keys) = list_keys::of(field, above) {
                    duplicates_of(items, keys, &here, problems);
                }
                for (index, item) in items.iter().enumerate() {
                    if let Value::Object(item) = item {
                        duplicates_in(item, field, &Path::Index(&here, index), problems);
                    }
                }
            }
            _ => {}
        }
    }
}

fn duplicates_of(
    items: &[Value],
    keys: &[list_keys::Key],
    at: &Path<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Value::Object(item) = item else { continue };
        let identity = list_keys::identity(item, keys);
        let Some(first) = seen.insert(Value::from(identity.clone()).to_string(), index) else {
            continue;
        };
        if problems.len() >= TOLD {
            return;
        }
        let fields = keys.iter().map(|key| key.field).zip(&identity);
        let fields: Vec<_> = fields
            .map(|(field, value)| format!("{field} {value}"))
            .collect();
        let message = format!(
            "{at} has {} twice, as items {first} and {index}; server-side apply refuses that, so remove one",
            fields.join(" and ")
        );
        problems.push(Problem::error("duplicate-item", message));
    }
}

/// What is in a map of metadata.
fn texts<'m>(manifest: &'m Manifest, field: &str) -> impl Iterator<Item = (&'m String, &'m Value)> {
    let map = manifest.metadata(field).and_then(Value::as_object);
    map.into_iter().flatten()
}
