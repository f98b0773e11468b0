//! The containers of a Deployment, as JSON.

use serde_json::{Map, Value};

use crate::manifest::{list_at, map_at};

/// The pod template of a Deployment's spec, made when it is missing.
pub(super) fn template(spec: &mut Map<String, Value>) -> &mut Map<String, Value> {
    map_at(spec, "template")
}

/// The pod's spec of a Deployment's spec, made when it is missing.
pub(super) fn pod_spec(spec: &mut Map<String, Value>) -> &mut Map<String, Value> {
    map_at(template(spec), "spec")
}

/// The containers of a pod's spec; init containers are not among them.
pub(super) fn containers(
    pod_spec: &mut Map<String, Value>,
) -> impl Iterator<Item = &mut Map<String, Value>> {
    list_at(pod_spec, "containers")
        .iter_mut()
        .filter_map(Value::as_object_mut)
}

/// The `name` of a volume, mount or variable.
pub(super) fn name(value: &Value) -> &str {
    value
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
