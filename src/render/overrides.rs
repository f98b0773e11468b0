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

use serde_json::{Map, Value};

use super::containers::{containers, name, pod_spec, template};
use crate::{
    limits::Limits,
    manifest::{Manifest, conform::conform, go_types, list_at, map_at, yaml},
    problem::Problem,
};

const RULE: &str = "config";

/// The overrides; each field is as it was given.
#[derive(Debug, Default)]
pub struct Overrides {
    fields: Map<String, Value>,
}

impl Overrides {
    /// Reads a file that holds either the fields themselves (`Subscription.spec.config`) or the inline configuration
    /// of a ClusterExtension (`watchNamespace` and `deploymentConfig`), whose namespace to watch comes with it.
    ///
    /// # Errors
    /// Everything that is wrong with it; `place` names the file.
    pub fn parse(
        text: &[u8],
        place: &str,
        limits: &Limits,
    ) -> Result<(Self, Option<String>), Vec<Problem>> {
        let refuse = |message: String| vec![Problem::error(RULE, message).at(place)];
        let documents = yaml::read(text, limits).map_err(|error| refuse(error.to_string()))?;
        let mut documents = documents.into_iter().map(|document| document.value);
        let mut fields = match (documents.next(), documents.next()) {
            (None, _) => Map::new(),
            (Some(Value::Object(fields)), None) => fields,
            (Some(_), None) => return Err(refuse("is not a map of fields".to_owned())),
            (_, Some(_)) => return Err(refuse("holds several documents; it takes one".to_owned())),
        };
        let is_inline =
            fields.contains_key("watchNamespace") || fields.contains_key("deploymentConfig");
        if !is_inline {
            return Self::checked(fields, "", place).map(|overrides| (overrides, None));
        }
        let watched = match fields.remove("watchNamespace") {
            None | Some(Value::Null) => None,
            Some(Value::String(namespace)) => Some(namespace),
            Some(other) => {
                return Err(refuse(format!(
                    "watchNamespace: expected a text, found {other}"
                )));
            }
        };
        let inner = match fields.remove("deploymentConfig") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inner)) => inner,
            Some(_) => return Err(refuse("deploymentConfig is not a map of fields".to_owned())),
        };
        if !fields.is_empty() {
            let unknown = fields.keys().map(|field| unknown_field(field, place));
            return Err(unknown.collect());
        }
        Self::checked(inner, "deploymentConfig.", place).map(|overrides| (overrides, watched))
    }

    fn checked(fields: Map<String, Value>, path: &str, place: &str) -> Result<Self, Vec<Problem>> {
        // Go drops an empty block, but here `affinity: {}` and `resources: {}` are orders to remove.
        let given = fields.clone();
        let mut value = Value::Object(fields);
        let findings = conform(&mut value, &go_types::SUBSCRIPTION_CONFIG);
        let wrong = findings
            .errors
            .iter()
            .map(|finding| Problem::error(RULE, format!("{path}{finding}")).at(place));
        let unknown = findings
            .dropped
            .iter()
            .map(|field| unknown_field(&format!("{path}{field}"), place));
        let problems: Vec<_> = wrong.chain(unknown).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut fields = match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let part = fields.entry(name).or_insert_with(|| value.clone());
            keep_empty_parts(part, value);
        }
        Ok(Self { fields })
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

fn unknown_field(field: &str, place: &str) -> Problem {
    let known = go_types::SUBSCRIPTION_CONFIG
        .fields
        .iter()
        .map(|field| field.name);
    let message = if field.contains(['.', '[']) {
        format!("unknown field `{field}`; Kubernetes would leave it out without a word")
    } else {
        format!(
            "unknown field `{field}`; there are {}",
            known.collect::<Vec<_>>().join(", ")
        )
    };
    Problem::error(RULE, message).at(place)
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
