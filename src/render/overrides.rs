//! What the user changes on every Deployment: the fields of `Subscription.spec.config` of OLM v0, which are those of
//! `deploymentConfig` of OLM v1.
//!
//! Reproduces operator-controller `generators.go` (`applyCustomConfigToDeployment`) and operator-lifecycle-manager
//! `overrides/inject/inject.go`, in containers and not in init containers as they do. Better on purpose:
//! - a mount replaces the one that uses the same volume only when there is no doubt which one is meant (v1 loses a
//!   second mount of one volume);
//! - an empty `podAntiAffinity` removes just that (v0 removes all affinity);
//! - `selector` is honoured (both ignore it), but not for the cluster's proxy, which is no wish of the user's;
//! - an unknown field is refused on every level (both drop it below the first).

mod apply;

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value, json};

use super::containers::name;
use crate::{
    limits::Limits,
    manifest::{conform::conform, go_types, label_selector::LabelSelector, yaml},
    problem::{Place, Problem},
};

const RULE: &str = "config";

/// The fields of a ClusterExtension's inline configuration.
const INLINE: [&str; 2] = ["watchNamespace", "deploymentConfig"];

/// The overrides; each field is as it was given. Passwords may stand in variables, so none is shown in debug output.
#[derive(Clone, Default)]
pub struct Overrides {
    fields: Map<String, Value>,
    /// `selector`, read; without one every Deployment is meant.
    selector: Option<LabelSelector>,
    /// The variables of the cluster's proxy.
    proxy: Vec<Value>,
}

/// The proxy of a cluster: `status` of OpenShift's Proxy object `cluster`. Passwords may stand in it, so it is not
/// shown in debug output.
#[derive(Clone, Default)]
pub struct Proxy {
    /// `httpProxy`
    pub http: Option<String>,
    /// `httpsProxy`
    pub https: Option<String>,
    /// `noProxy`
    pub no: Option<String>,
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.fields.keys().collect();
        let mut shown = f.debug_struct("Overrides");
        shown.field("fields", &fields).finish_non_exhaustive()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
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
        let Value::Object(fields) = value else {
            refuse("is not a map of fields".to_owned());
            return None;
        };
        for duplicate in duplicate_keys {
            let message = format!("`{}` stands twice; the last one counts", duplicate.key);
            problems.push(Problem::warning(RULE, message).at(place));
        }
        let place = Place::from(place);
        if INLINE.iter().any(|field| fields.contains_key(*field)) {
            return Self::of_inline(fields, &place, problems);
        }
        Some((Self::of_subscription(fields, &place, problems)?, None))
    }

    /// The overrides that `Subscription.spec.config` holds.
    ///
    /// Adds everything that is wrong with them to `problems`; `place` is where they stand.
    pub fn of_subscription(
        config: Map<String, Value>,
        place: &Place,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        Self::checked(config, "", place, problems)
    }

    /// The overrides that the inline configuration of a ClusterExtension holds, and the namespace to watch.
    ///
    /// Adds everything that is wrong with it to `problems`; `place` is where it stands.
    pub fn of_inline(
        mut inline: Map<String, Value>,
        place: &Place,
        problems: &mut Vec<Problem>,
    ) -> Option<(Self, Option<String>)> {
        let mut refuse =
            |message: String| problems.push(Problem::error(RULE, message).at(place.clone()));
        let watched = inline
            .remove("watchNamespace")
            .filter(|value| !value.is_null());
        let inner = inline.remove("deploymentConfig").unwrap_or_default();
        for field in inline.keys() {
            refuse(format!(
                "unknown field `{field}`; beside {} it belongs into `deploymentConfig`",
                INLINE.join(" and "),
            ));
        }
        let watched = watched.map(|value| match value {
            Value::String(namespace) if !namespace.is_empty() => Ok(namespace),
            other => Err(format!(
                "watchNamespace: expected the name of a namespace, found {other}"
            )),
        });
        let watched = watched.transpose().map_err(refuse).ok();
        let inner = match inner {
            Value::Null => Map::new(),
            Value::Object(inner) => inner,
            other => Map::from_iter([("deploymentConfig".to_owned(), other)]),
        };
        let overrides = Self::checked(inner, "deploymentConfig.", place, problems)?;
        Some((overrides, watched?))
    }

    /// The same overrides, and the variables of the cluster's proxy as if they were listed after `env`. Empty ones are
    /// left out, and all of them when `env` names any (operator-lifecycle-manager `overrides/initializer.go`).
    #[must_use]
    pub fn with_proxy(mut self, proxy: &Proxy) -> Self {
        let variables = [
            ("HTTP_PROXY", &proxy.http),
            ("HTTPS_PROXY", &proxy.https),
            ("NO_PROXY", &proxy.no),
        ];
        let is_named = |variable: &Value| {
            let mut names = variables.iter().map(|(name, _)| *name);
            names.any(|known| known == name(variable))
        };
        if !self.list("env").iter().any(is_named) {
            let set = variables
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_deref()?)))
                .filter(|(_, value)| !value.is_empty());
            self.proxy = set
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect();
        }
        self
    }

    fn checked(
        fields: Map<String, Value>,
        path: &str,
        place: &Place,
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
        let mut errors: Vec<_> = wrong.chain(unknown).chain(unnamed(&fields, path)).collect();
        let selector = fields.get("selector").map(LabelSelector::parse);
        let selector = selector.transpose().unwrap_or_else(|wrong| {
            errors.extend(wrong.iter().map(|error| format!("{path}selector.{error}")));
            None
        });
        let is_good = errors.is_empty();
        let errors = errors.into_iter();
        problems.extend(errors.map(|message| Problem::error(RULE, message).at(place.clone())));
        let twice = named_twice(&fields, path);
        problems.extend(twice.map(|message| Problem::warning(RULE, message).at(place.clone())));
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            let part = fields.entry(name).or_insert_with(|| value.clone());
            keep_empty_parts(part, value);
        }
        is_good.then_some(Self {
            fields,
            selector,
            proxy: vec![],
        })
    }

    fn list(&self, field: &str) -> &[Value] {
        self.fields
            .get(field)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
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
        let lacking = items(fields, list)
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
        let mut seen = BTreeSet::new();
        let again = items(fields, list)
            .map(name)
            .filter(move |name| !seen.insert(*name));
        again.map(move |name| format!("{path}{list} holds {name:?} twice; the last one counts"))
    })
}

fn items<'a>(
    fields: &'a Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let items = fields.get(list).and_then(Value::as_array);
    items.into_iter().flatten()
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
