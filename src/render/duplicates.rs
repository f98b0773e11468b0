//! The same object twice: merged where the two mean the same, refused where they don't.
//!
//! 144 of 7,018 real bundles bring an object that is also generated, nearly always a ServiceAccount. No validator of
//! OLM v1 sees it; one of its appliers refuses the install, the other lets one of the two win.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    manifest::{Manifest, ObjectKey, Origin},
    problem::Problem,
};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The kinds whose names the checks of a bundle hold unique already, so that the same fault is told once.
const CHECKED: [&str; 4] = [
    "CustomResourceDefinition",
    "Deployment",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const RULE: &str = "duplicate-object";

/// One object for each identity, in the order in which they first stand.
pub(super) fn merge(manifests: Vec<Manifest>, problems: &mut Vec<Problem>) -> Vec<Manifest> {
    let mut at: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    let mut merged: Vec<Manifest> = Vec::with_capacity(manifests.len());
    for manifest in manifests {
        match at.get(&manifest.key()) {
            Some(&index) => unite(&mut merged[index], manifest, problems),
            None => {
                at.insert(manifest.key(), merged.len());
                merged.push(manifest);
            }
        }
    }
    merged
}

/// Makes one of two, or refuses them. Two that the operator cannot tell apart have labels and annotations of both.
fn unite(first: &mut Manifest, second: Manifest, problems: &mut Vec<Problem>) {
    let key = first.key();
    if CHECKED.contains(&key.kind.as_str()) {
        return;
    }
    let is_warning = !(is_generated(first) && is_generated(&second));
    let places = format!("{} and {}", first.origin, second.origin);
    if first.object() != second.object() && !can_unite(&key, first, &second) {
        let message = format!(
            "stands twice and differs: {places}; a cluster holds one, so take one of them out"
        );
        problems.push(Problem::error(RULE, message).on(key));
        return;
    }
    if is_warning {
        let message = format!("stands twice: {places}; merged");
        problems.push(Problem::warning(RULE, message).on(key));
    }
    if is_generated(first) {
        first.origin = second.origin.clone();
    }
    unite_maps(first.object_mut(), second.into_object());
}

fn is_generated(manifest: &Manifest) -> bool {
    matches!(manifest.origin, Origin::Generated(_))
}

/// Whether the operator cannot tell the two apart: nothing in one contradicts the other, and what decides is equal.
fn can_unite(key: &ObjectKey, one: &Manifest, other: &Manifest) -> bool {
    // What these say has to be the same; the rest only has to agree where both say something.
    let decisive: &[&str] = match (key.group.as_str(), key.kind.as_str()) {
        ("", "ServiceAccount") => &[],
        (RBAC, "Role" | "ClusterRole") => &["rules", "aggregationRule"],
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => &["roleRef", "subjects"],
        _ => return false,
    };
    let same = |field: &&str| one.object().get(*field) == other.object().get(*field);
    decisive.iter().all(same) && agree(one.object(), other.object())
}

fn agree(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    other
        .iter()
        .all(|(field, value)| match (one.get(field), value) {
            (Some(Value::Object(one)), Value::Object(other)) => agree(one, other),
            (Some(one), other) => one == other,
            (None, _) => true,
        })
}

fn unite_maps(one: &mut Map<String, Value>, other: Map<String, Value>) {
    for (field, value) in other {
        match (one.get_mut(&field), value) {
            (Some(Value::Object(one)), Value::Object(other)) => unite_maps(one, other),
            (Some(_), _) => {}
            (None, value) => {
                one.insert(field, value);
            }
        }
    }
}
