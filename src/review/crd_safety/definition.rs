//! A CustomResourceDefinition in the form that Go reads it in, and its versions.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::{Map, Value};

use crate::{
    manifest::{conform::conform, go_types},
    problem::Problem,
};

/// Nesting of a definition's JSON. Real ones come to 58; the API server's own limits stop far below this.
const DEEPEST: usize = 400;
/// Versions that are served at once and compared with each other, each pair of them. Real definitions have up to six.
const MOST_SERVED: usize = 24;

/// A definition.
pub(super) struct Definition {
    /// Its identity, as kubectl prints it.
    pub(super) object: String,
    pub(super) name: String,
    /// `Namespaced` or `Cluster`.
    pub(super) scope: String,
    /// Its versions, as they are listed.
    pub(super) versions: Vec<Version>,
    /// The versions in which objects are stored, as its status says.
    pub(super) stored: Vec<String>,
    /// Whether a webhook converts between versions.
    pub(super) has_webhook: bool,
}

/// A version of a definition.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) is_served: bool,
    /// Whether objects are stored in it.
    pub(super) is_stored: bool,
    /// The schema; an empty one when it has none.
    pub(super) schema: Value,
}

impl Definition {
    /// Reads a definition. Nothing for what is none of `apiextensions.k8s.io/v1`; a problem for one that is too large to be
    /// compared.
    pub(super) fn read(value: &Value) -> Option<Result<Self, Problem>> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        if text("apiVersion") != Some("apiextensions.k8s.io/v1")
            || text("kind") != Some("CustomResourceDefinition")
        {
            return None;
        }
        let name = value.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let object = format!("customresourcedefinition.apiextensions.k8s.io/{name}");
        if is_deeper(value, DEEPEST) {
            let message = format!("its schema nests deeper than {DEEPEST}, so it was not compared");
            return Some(Err(Problem::error("too-large", message).on(object)));
        }
        let definition = Self::of(value, name, object);
        if definition.served().len() > MOST_SERVED {
            let message =
                format!("more than {MOST_SERVED} versions are served, so they were not compared");
            return Some(Err(
                Problem::error("too-large", message).on(definition.object)
            ));
        }
        Some(Ok(definition))
    }

    fn of(value: &Value, name: &str, object: String) -> Self {
        let stored = value.pointer("/status/storedVersions");
        let stored = stored.and_then(Value::as_array).into_iter().flatten();
        let stored = stored.filter_map(Value::as_str).map(str::to_owned);
        // The metadata may hold a copy of it all, and nothing of it is compared.
        let spec = value.get("spec").cloned().unwrap_or_default();
        let mut value = Value::Object(Map::from_iter([("spec".to_owned(), spec)]));
        // What Go does not know is not compared; it was told when the definition was read.
        conform(&mut value, &go_types::CUSTOM_RESOURCE_DEFINITION);
        let text = |pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (scope, strategy) = (text("/spec/scope"), text("/spec/conversion/strategy"));
        let versions = value.pointer_mut("/spec/versions").map(Value::take);
        let versions = match versions {
            Some(Value::Array(versions)) => versions.into_iter().map(Version::of).collect(),
            _ => vec![],
        };
        Self {
            object,
            name: name.to_owned(),
            scope,
            versions,
            stored: stored.collect(),
            has_webhook: strategy == "Webhook",
        }
    }

    /// A version by its name.
    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The versions in which objects are stored and which a new definition does not have.
    pub(super) fn stored_and_gone(&self, new: &Self) -> Vec<&str> {
        let stored: BTreeSet<_> = self.stored.iter().map(String::as_str).collect();
        let gone = stored
            .into_iter()
            .filter(|name| new.version(name).is_none());
        gone.collect()
    }

    /// The versions that are served, the least stable first.
    pub(super) fn served(&self) -> Vec<&Version> {
        let served = self.versions.iter().filter(|version| version.is_served);
        let mut served: Vec<_> = served.collect();
        served.sort_by(|one, other| compare_names(&one.name, &other.name));
        served
    }
}

impl Version {
    fn of(mut value: Value) -> Self {
        let schema = value.pointer_mut("/schema/openAPIV3Schema");
        Self {
            schema: schema.map_or_else(|| Value::Object(Map::new()), Value::take),
            name: value
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            is_served: value.get("served") == Some(&Value::Bool(true)),
            is_stored: value.get("storage") == Some(&Value::Bool(true)),
        }
    }
}

/// Whether a value nests deeper than `limit`.
pub(super) fn is_deeper(value: &Value, limit: usize) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((value, depth)) = pending.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => {
                pending.extend(entries.values().map(|entry| (entry, depth + 1)));
            }
            _ => {}
        }
    }
    false
}

/// The order of versions' names, the least stable first: `foo`, `v1alpha1`, `v1beta1`, `v1beta2`, `v1`, `v2`.
/// Reproduces k8s.io/apimachinery `pkg/version/helpers.go` (`CompareKubeAwareVersionStrings`).
pub(super) fn compare_names(one: &str, other: &str) -> Ordering {
    match (stability(one), stability(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => other.cmp(one),
    }
}

/// How stable a version is, its number, and that of the alpha or beta; nothing for a name of another form.
fn stability(name: &str) -> Option<(u8, u64, u64)> {
    let number = |digits: &str| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number);
        number.filter(|_| !digits.starts_with('0'))
    };
    let rest = name.strip_prefix('v')?;
    for (stable, word) in [(0, "alpha"), (1, "beta")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stable, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order that apimachinery's own tests of `CompareKubeAwareVersionStrings` state, turned round.
    #[test]
    fn versions_sort_by_how_stable_they_are() {
        let sorted = [
            "v4-other", "foo2", "foo1", "v1alpha1", "v1alpha2", "v3alpha1", "v3beta1", "v11beta2",
            "v1", "v2", "v10",
        ];
        let mut names = sorted;
        names.reverse();
        names.sort_by(|one, other| compare_names(one, other));
        assert_eq!(names, sorted);
    }
}
