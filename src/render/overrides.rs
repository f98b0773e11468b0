//! What the user changes on every Deployment: the fields of `Subscription.spec.config` of OLM v0, which are those of
//! `deploymentConfig` of OLM v1.
//!
//! Reproduces operator-controller `generators.go` (`applyCustomConfigToDeployment`) and operator-lifecycle-manager
//! `overrides/inject/inject.go`, in containers and not in init containers as they do. Better on purpose:
//! - a mount replaces the one that uses the same volume only when there is no doubt which one is meant (v1 loses a
//!   second mount of one volume);
//! - an empty `podAntiAffinity` removes just that (v0 removes all affinity);
//! - `selector` is honoured (both ignore it);
//! - an unknown field is refused on every level (both drop it below the first).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::containers::{containers, name, pod_spec, template};
use crate::{
    limits::Limits,
    manifest::{Manifest, conform::conform, go_types, list_at, map_at, yaml},
    problem::Problem,
};

const RULE: &str = "config";

/// The fields of a ClusterExtension's inline configuration.
const INLINE: [&str; 2] = ["watchNamespace", "deploymentConfig"];

/// The overrides; each field is as it was given.
#[derive(Debug, Default)]
pub struct Overrides {
    fields: Map<String, Value>,
}

impl Overrides {
    /// Reads a file that holds either the fields themselves (`Subscription.spec.config`) or the inline configuration
    /// of a ClusterExtension (`watchNamespace` and `deploymentConfig`), whose namespace to watch comes with it.
    ///
    /// Adds everything that is wrong with it to `problems`; `place` names the file.
    pub fn parse(
        text: &[u8],
        place: &str,
        limits: &Limits,
        problems: &mut Vec<Problem>,
    ) -> Option<(Self, Option<String>)> {
        let mut refuse = |message: String| problems.push(Problem::error(RULE, message).at(place));
        let mut documents = match yaml::read(text, limits) {
            Ok(documents) => documents.into_iter(),
            Err(error) => {
                refuse(error.to_string());
                return None;
            }
        };
        let (document, more) = (documents.next(), documents.next());
        if more.is_some() {
            refuse("holds several documents; it takes one".to_owned());
            return None;
        }
        let (value, duplicate_keys) = match document {
            Some(document) => (document.value, document.duplicate_keys),
            None => (Value::Object(Map::new()), vec![]),
        };
        let Value::Object(mut fields) = value else {
            refuse("is not a map of fields".to_owned());
            return None;
        };
        for duplicate in duplicate_keys {
            let message = format!("`{}` stands twice; the last one counts", duplicate.key);
            problems.push(Problem::warning(RULE, message).at(place));
        }
        if !INLINE.iter().any(|field| fields.contains_key(*field)) {
            let overrides = Self::checked(fields, "", place, problems)?;
            return Some((overrides, None));
        }
        let watched = fields
            .remove("watchNamespace")
            .filter(|value| !value.is_null());
        let inner = fields.remove("deploymentConfig").unwrap_or_default();
        for field in fields.keys() {
            let message = format!(
                "unknown field `{field}`; beside {} it belongs into `deploymentConfig`",
                INLINE.join(" and "),
            );
            problems.push(Problem::error(RULE, message).at(place));
        }
        let inner = match inner {
            Value::Null => Map::new(),
            Value::Object(inner) => inner,
            other => Map::from_iter([("deploymentConfig".to_owned(), other)]),
        };
        let overrides = Self::checked(inner, "deploymentConfig.", place, problems)?;
        match watched {
            None => Some((overrides, None)),
            Some(Value::String(namespace)) if !namespace.is_empty() => {
                Some((overrides, Some(namespace)))
            }
            Some(other) => {
                let message =
                    format!("watchNamespace: expected the name of a namespace, found {other}");
                problems.push(Problem::error(RULE, message).at(place));
                None
            }
        }
    }

    fn checked(
        fields: Map<String, Value>,
        path: &str,
        place: &str,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        // Go drops an empty block, but here `affinity: {}` and `resources: {}` are orders to remove.
        let given = fields.clone();
        let mut value = Value::Object(fields);
        let findings = conform(&mut value, &go_types::SUBSCRIPTION_CONFIG);
        let wrong = findings
            .errors
            .iter()
            .map(|finding| format!("{path}{finding}"));
        let unknown = findings
            .dropped
            .iter()
            .map(|field| unknown_field(&format!("{path}{field}")));
        let mut fields = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let errors: Vec<_> = wrong.chain(unknown).chain(unnamed(&fields, path)).collect();
        let is_good = errors.is_empty();
        problems.extend(
            errors
                .into_iter()
                .map(|message| Problem::error(RULE, message).at(place)),
        );
        problems.extend(
            named_twice(&fields, path).map(|message| Problem::warning(RULE, message).at(place)),
        );
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let part = fields.entry(name).or_insert_with(|| value.clone());
            keep_empty_parts(part, value);
        }
        is_good.then_some(Self { fields })
    }

    /// Changes a Deployment, unless the selector leaves it out.
    pub(super) fn apply(&self, deployment: &mut Manifest) {
        if self.fields.is_empty() || !self.selects(deployment) {
            return;
        }
        if let Some(annotations) = self.fields.get("annotations").and_then(Value::as_object) {
            annotate(deployment.metadata_mut(), annotations);
            let spec = map_at(deployment.object_mut(), "spec");
            annotate(map_at(template(spec), "metadata"), annotations);
        }
        let pod_spec = pod_spec(map_at(deployment.object_mut(), "spec"));
        for container in containers(pod_spec) {
            merge(container, "env", self.list("env"), replace_by_name);
            merge(container, "envFrom", self.list("envFrom"), add_unless_there);
            let mounts = self.list("volumeMounts");
            for mount in mounts {
                replace_mount(list_at(container, "volumeMounts"), mount, mounts);
            }
            if let Some(resources) = self.fields.get("resources") {
                set_or_remove(container, "resources", resources);
            }
        }
        merge(pod_spec, "volumes", self.list("volumes"), replace_by_name);
        merge(
            pod_spec,
            "tolerations",
            self.list("tolerations"),
            add_unless_there,
        );
        if let Some(selector) = self.fields.get("nodeSelector") {
            set_or_remove(pod_spec, "nodeSelector", selector);
        }
        if let Some(affinity) = self.fields.get("affinity").and_then(Value::as_object) {
            change_affinity(pod_spec, affinity);
        }
    }

    fn list(&self, field: &str) -> &[Value] {
        self.fields
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// Whether `selector` matches the pods of the Deployment; without one, all do.
    fn selects(&self, deployment: &Manifest) -> bool {
        let Some(selector) = self.fields.get("selector") else {
            return true;
        };
        let labels = deployment
            .object()
            .get("spec")
            .and_then(|spec| spec.pointer("/template/metadata/labels"));
        let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
        let wanted = selector.get("matchLabels").and_then(Value::as_object);
        let equal = wanted
            .into_iter()
            .flatten()
            .all(|(key, value)| label(key) == value.as_str());
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        equal
            && expressions
                .into_iter()
                .flatten()
                .all(|expression| matches(expression, label))
    }
}

fn unknown_field(field: &str) -> String {
    let known = go_types::SUBSCRIPTION_CONFIG
        .fields
        .iter()
        .map(|field| field.name);
    match field.trim_start_matches("deploymentConfig.") {
        inner if inner.contains(['.', '[']) => {
            format!("unknown field `{field}`; Kubernetes would leave it out without a word")
        }
        _ => format!(
            "unknown field `{field}`; there are {}",
            known.collect::<Vec<_>>().join(", ")
        ),
    }
}

/// What the API server would refuse: items without what tells them apart.
fn unnamed<'a>(fields: &'a Map<String, Value>, path: &'a str) -> impl Iterator<Item = String> + 'a {
    let required = [
        ("env", "name"),
        ("volumes", "name"),
        ("volumeMounts", "name"),
        ("volumeMounts", "mountPath"),
    ];
    required.into_iter().flat_map(move |(list, field)| {
        let items = fields
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let lacking = items
            .enumerate()
            .filter(move |(_, item)| item.get(field).is_none());
        lacking.map(move |(at, _)| format!("{path}{list}[{at}].{field} is missing"))
    })
}

fn named_twice<'a>(
    fields: &'a Map<String, Value>,
    path: &'a str,
) -> impl Iterator<Item = String> + 'a {
    ["env", "volumes"].into_iter().flat_map(move |list| {
        let items = fields
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut seen = BTreeSet::new();
        let again = items.map(name).filter(move |name| !seen.insert(*name));
        again.map(move |name| format!("{path}{list} holds {name:?} twice; the last one counts"))
    })
}

/// Puts back the empty maps that Go's encoder would leave out, one level deep: that is where they mean "remove".
fn keep_empty_parts(part: &mut Value, given: Value) {
    if let (Value::Object(part), Value::Object(given)) = (part, given) {
        for (name, value) in given {
            if value.as_object().is_some_and(Map::is_empty) {
                part.entry(name).or_insert(value);
            }
        }
    }
}

fn matches<'a>(expression: &Value, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let text = |field: &str| {
        expression
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let value = label(text("key"));
    let values = expression.get("values").and_then(Value::as_array);
    let among = values
        .into_iter()
        .flatten()
        .any(|one| value.is_some() && one.as_str() == value);
    match text("operator") {
        "In" => among,
        "NotIn" => !among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// Existing annotations win.
fn annotate(metadata: &mut Map<String, Value>, added: &Map<String, Value>) {
    let annotations = map_at(metadata, "annotations");
    for (key, value) in added {
        annotations.entry(key).or_insert_with(|| value.clone());
    }
}

fn merge(
    owner: &mut Map<String, Value>,
    field: &str,
    added: &[Value],
    how: fn(&mut Vec<Value>, &Value),
) {
    if added.is_empty() {
        return;
    }
    let list = list_at(owner, field);
    for item in added {
        how(list, item);
    }
}

fn replace_by_name(list: &mut Vec<Value>, item: &Value) {
    match list.iter_mut().find(|old| name(old) == name(item)) {
        Some(old) => *old = item.clone(),
        None => list.push(item.clone()),
    }
}

fn add_unless_there(list: &mut Vec<Value>, item: &Value) {
    if !list.contains(item) {
        list.push(item.clone());
    }
}

/// A path takes one mount, so the same path is replaced; else the mount of the same volume is, if on both sides there
/// is only one.
fn replace_mount(list: &mut Vec<Value>, item: &Value, added: &[Value]) {
    let same_name = |mount: &&Value| name(mount) == name(item);
    let path = item.get("mountPath");
    let same_path = list.iter().position(|old| old.get("mountPath") == path);
    let is_only = |mounts: &[Value]| mounts.iter().filter(same_name).count() == 1;
    let only = (is_only(list) && is_only(added))
        .then(|| list.iter().position(|old| name(old) == name(item)));
    match same_path.or(only.flatten()) {
        Some(at) => list[at] = item.clone(),
        None => list.push(item.clone()),
    }
}

fn set_or_remove(owner: &mut Map<String, Value>, field: &str, value: &Value) {
    if value.as_object().is_some_and(Map::is_empty) {
        owner.remove(field);
    } else {
        owner.insert(field.to_owned(), value.clone());
    }
}

/// `{}` removes everything; a part that is given replaces its like, and an empty one removes it.
fn change_affinity(pod_spec: &mut Map<String, Value>, given: &Map<String, Value>) {
    let mut affinity = match pod_spec.remove("affinity") {
        Some(Value::Object(affinity)) if !given.is_empty() => affinity,
        _ => Map::new(),
    };
    for (part, value) in given {
        set_or_remove(&mut affinity, part, value);
    }
    if !affinity.is_empty() {
        pod_spec.insert("affinity".to_owned(), affinity.into());
    }
}
