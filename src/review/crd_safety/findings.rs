//! Which schemas are compared: each version with itself, and the served versions with each other.
//!
//! Reproduces crdify `pkg/validators/version/same/same.go` and `served/served.go`, and its checks of whole definitions
//! (`pkg/validations/crd`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    definition::{Definition, Version},
    paths::{Fields, Schemas},
    rules::{self, Change},
};

/// What crdify calls the checks that an API server makes too.
pub const OF_SERVERS: [&str; 2] = [SCOPE, STORED_VERSION_REMOVAL];
const SCOPE: &str = "scope";
const STORED_VERSION_REMOVAL: &str = "storedVersionRemoval";

/// What is wrong with a new version of a definition, as programs compare it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The version that it is in; two, as `v1alpha1 -> v1`, when they do not go together; empty for the whole definition.
    pub version: String,
    /// Where in the schema, as crdify writes it: `^.spec.size`; empty for the whole definition.
    pub path: String,
    /// What crdify calls the check.
    pub check: &'static str,
    /// What changes, and what that breaks.
    pub text: String,
}

/// What is wrong with a new version of a definition. Nothing for what is no `apiextensions.k8s.io/v1` definition, or is too
/// large to be compared, of which [`check`](super::check) tells.
#[must_use]
pub fn findings(live: &Value, new: &Value) -> Vec<Finding> {
    match (Definition::read(live), Definition::read(new)) {
        (Some(Ok(live)), Some(Ok(new))) => between(&live, &new),
        _ => vec![],
    }
}

/// What is wrong, sorted.
pub(super) fn between(live: &Definition, new: &Definition) -> Vec<Finding> {
    let mut found = whole(live, new);
    for old in &live.versions {
        if let Some(new) = new.version(&old.name) {
            same_version(old, new, &mut found);
        }
    }
    served_versions(live, new, &mut found);
    found.sort();
    found.dedup();
    found
}

/// The checks of whole definitions.
fn whole(live: &Definition, new: &Definition) -> Vec<Finding> {
    let finding = |check, text| Finding {
        version: String::new(),
        path: String::new(),
        check,
        text,
    };
    let mut found = vec![];
    if live.scope != new.scope {
        let text = format!(
            "its scope becomes {} and was {}; Kubernetes refuses that, and objects would have to be made again",
            new.scope, live.scope
        );
        found.push(finding(SCOPE, text));
    }
    let gone = live.stored_and_gone(new);
    if !gone.is_empty() {
        let text = format!(
            "version {} goes, and objects may be stored in it; store them in another version, then take it out of \
             status.storedVersions",
            gone.join(", ")
        );
        found.push(finding(STORED_VERSION_REMOVAL, text));
    }
    found
}

/// A version before and after.
fn same_version(old: &Version, new: &Version, found: &mut Vec<Finding>) {
    if old.schema == new.schema {
        return;
    }
    let (old_schemas, new_schemas) = (Schemas::of(&old.schema), Schemas::of(&new.schema));
    for (path, _) in old_schemas.iter() {
        if new_schemas.get(path).is_none() {
            found.push(Finding {
                version: old.name.clone(),
                path: path.to_owned(),
                check: "existingFieldRemoval",
                text: "it goes; what objects hold there is lost when they are written next"
                    .to_owned(),
            });
        }
    }
    for (path, changes) in compare(&old_schemas, &new_schemas) {
        found.extend(
            changes
                .into_iter()
                .map(|change| of(&old.name, &path, change)),
        );
    }
}

/// The served versions with each other, leaving out what was wrong with them before.
fn served_versions(live: &Definition, new: &Definition, found: &mut Vec<Finding>) {
    if new.has_webhook {
        return;
    }
    let known: BTreeMap<_, _> = pairs(&live.served()).into_iter().collect();
    for (pair, differing) in pairs(&new.served()) {
        let known = known.get(&pair);
        for (path, changes) in differing {
            let known = known.and_then(|known| known.get(&path));
            let is_new = |change: &Change| known.is_none_or(|known| !known.contains(change));
            let changes = changes.into_iter().filter(is_new);
            found.extend(changes.map(|change| of(&pair, &path, change)));
        }
    }
}

/// Paths, and what is wrong at them.
type Differing = BTreeMap<String, Vec<Change>>;

/// Each pair of versions, from the less stable to the more stable, and in what they differ.
fn pairs(served: &[&Version]) -> Vec<(String, Differing)> {
    if served.len() < 2 {
        return vec![];
    }
    let schemas: Vec<_> = served
        .iter()
        .map(|version| (version.name.as_str(), Schemas::of(&version.schema)))
        .collect();
    let mut pairs = vec![];
    for (index, (from, old)) in schemas.iter().enumerate() {
        for (to, new) in schemas.iter().skip(index + 1) {
            pairs.push((format!("{from} -> {to}"), compare(old, new)));
        }
    }
    pairs
}

/// What is wrong at each path of the old schemas. Schemas that are new are free.
fn compare(old: &Schemas<'_>, new: &Schemas<'_>) -> Differing {
    let nothing = Fields::new();
    let compared = old.iter().map(|(path, fields)| {
        let changes = rules::changes(fields, new.get(path).unwrap_or(&nothing));
        (path.to_owned(), changes)
    });
    compared
        .filter(|(_, changes)| !changes.is_empty())
        .collect()
}

fn of(version: &str, path: &str, Change { check, text }: Change) -> Finding {
    Finding {
        version: version.to_owned(),
        path: path.to_owned(),
        check,
        text,
    }
}
