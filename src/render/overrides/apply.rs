//! Overrides that were read, put into a Deployment.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    super::containers::{containers, name, pod_spec, template},
    Overrides,
};
use crate::manifest::{Manifest, list_at, map_at};

impl Overrides {
    /// Changes a Deployment. The proxy is for each, the rest for those that the selector does not leave out.
    pub(in crate::render) fn apply(&self, deployment: &mut Manifest) {
        if !self.fields.is_empty() && self.selects(deployment) {
            self.apply_fields(deployment);
        }
        if !self.proxy.is_empty() {
            let pod_spec = pod_spec(map_at(deployment.object_mut(), "spec"));
            for container in containers(pod_spec) {
                merge(container, "env", &self.proxy, replace_by_name);
            }
        }
    }

    fn apply_fields(&self, deployment: &mut Manifest) {
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

    /// Whether `selector` matches the pods of the Deployment; without one, all do.
    fn selects(&self, deployment: &Manifest) -> bool {
        let Some(selector) = &self.selector else {
            return true;
        };
        let spec = deployment.object().get("spec");
        let labels = spec.and_then(|spec| spec.pointer("/template/metadata/labels")?.as_object());
        let labels: BTreeMap<_, _> = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        selector.matches(&labels)
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
