//! Lists whose items have an identity of their own, so that the API server merges them item by item: which fields make it.
//!
//! Reproduces `x-kubernetes-list-map-keys` of Kubernetes' own types (k8s.io/api, 1.36) as far as these are applied by
//! installs. Of custom resources nothing is known here.

use serde_json::{Map, Value};

/// A field of items that is part of their identity, and its value where it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) field: &'static str,
    pub(super) default: &'static str,
}

const fn key(field: &'static str) -> Key {
    let default = "";
    Key { field, default }
}

const PROTOCOL: Key = Key {
    field: "protocol",
    default: "TCP",
};

/// What a list is in: the field above it, or nothing at the top of an object.
const CONTAINERS: &[&str] = &["containers", "initContainers", "ephemeralContainers"];
const SPEC: &[&str] = &["spec"];
const TOP: &[&str] = &[""];

/// The lists: the field that holds one, the fields that may be above it, and the keys of its items.
const LISTS: [(&str, &[&str], &[Key]); 19] = [
    ("containers", SPEC, &[key("name")]),
    ("initContainers", SPEC, &[key("name")]),
    ("ephemeralContainers", SPEC, &[key("name")]),
    ("volumes", SPEC, &[key("name")]),
    ("imagePullSecrets", SPEC, &[key("name")]),
    ("hostAliases", SPEC, &[key("ip")]),
    ("resourceClaims", SPEC, &[key("name")]),
    ("schedulingGates", SPEC, &[key("name")]),
    (
        "topologySpreadConstraints",
        SPEC,
        &[key("topologyKey"), key("whenUnsatisfiable")],
    ),
    ("env", CONTAINERS, &[key("name")]),
    ("ports", CONTAINERS, &[key("containerPort"), PROTOCOL]),
    ("volumeMounts", CONTAINERS, &[key("mountPath")]),
    ("volumeDevices", CONTAINERS, &[key("devicePath")]),
    ("claims", &["resources"], &[key("name")]),
    // Those of a Service.
    ("ports", SPEC, &[key("port"), PROTOCOL]),
    ("webhooks", TOP, &[key("name")]),
    ("matchConditions", &["webhooks", "spec"], &[key("name")]),
    ("variables", SPEC, &[key("name")]),
    ("secrets", TOP, &[key("name")]),
];

/// The groups whose types the table knows.
const GROUPS: [&str; 6] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "batch",
    "networking.k8s.io",
    "policy",
];

/// Whether the lists of objects of a group are known.
pub(super) fn knows(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// The keys of the items of a list, by the names of its field and of the field above it; empty at the top.
pub(super) fn of(field: &str, above: &str) -> Option<&'static [Key]> {
    let is_it = |list: &&(&str, &[&str], &[Key])| list.0 == field && list.1.contains(&above);
    LISTS.iter().find(is_it).map(|(_, _, keys)| *keys)
}

/// The identity of an item: the values of its keys.
pub(super) fn identity(item: &Map<String, Value>, keys: &[Key]) -> Vec<Value> {
    let value = |key: &Key| match item.get(key.field) {
        Some(Value::Null) | None => Value::from(key.default),
        Some(value) => value.clone(),
    };
    keys.iter().map(value).collect()
}
