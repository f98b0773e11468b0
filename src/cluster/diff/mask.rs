//! Hides the data of Secrets, so that one sees which keys there are and which of them change, and nothing else.
//!
//! As in kubectl (k8s.io/kubectl `pkg/cmd/diff/diff.go`, `Masker`), a value is `***`, and `*** (before)` and
//! `*** (after)` where it changes. Unlike there, that goes for `stringData`, for copies of the object in annotations,
//! for logins to registries anywhere, for Secrets inside other objects, and for everything in a Secret that is not
//! known to be harmless, whatever its type.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifest::ObjectKey;

const MASK: &str = "***";
const MASK_BEFORE: &str = "*** (before)";
const MASK_AFTER: &str = "*** (after)";

/// What is nested deeper is hidden unseen.
const DEPTH: usize = 1_000;

/// kubectl's copy of what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Hides the data of Secrets on both sides of an object.
pub(super) fn mask(before: Option<&mut Value>, after: Option<&mut Value>, key: &ObjectKey) {
    let sides = Sides { before, after };
    if key.kind == "Secret" {
        mask_secret(sides);
    } else {
        search(sides, 0);
    }
}

/// The two sides of a value.
#[derive(Default)]
struct Sides<'v> {
    before: Option<&'v mut Value>,
    after: Option<&'v mut Value>,
}

/// Where a value stands in the one around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step<'v> {
    Key(&'v str),
    Position(usize),
}

impl<'v> Sides<'v> {
    /// The values in both sides, those at the same place together.
    fn children(self) -> BTreeMap<Step<'v>, Sides<'v>> {
        let mut children: BTreeMap<_, Sides<'_>> = BTreeMap::new();
        for (step, child) in children_of(self.before) {
            children.entry(step).or_default().before = Some(child);
        }
        for (step, child) in children_of(self.after) {
            children.entry(step).or_default().after = Some(child);
        }
        children
    }

    /// Whether all sides that are there are like that.
    fn are(&self, like: impl Fn(&Value) -> bool) -> bool {
        let sides = [self.before.as_deref(), self.after.as_deref()];
        sides.into_iter().flatten().all(like)
    }

    /// Hides both sides, and shows whether they are the same.
    fn hide(self) {
        let (mut before, mut after) = (MASK, MASK);
        if let (Some(old), Some(new)) = (&self.before, &self.after)
            && old != new
        {
            (before, after) = (MASK_BEFORE, MASK_AFTER);
        }
        for (side, mask) in [(self.before, before), (self.after, after)] {
            if let Some(side) = side {
                *side = Value::from(mask);
            }
        }
    }
}

fn children_of(value: Option<&mut Value>) -> Vec<(Step<'_>, &mut Value)> {
    match value {
        Some(Value::Object(map)) => {
            let children = map.iter_mut();
            children
                .map(|(key, child)| (Step::Key(key), child))
                .collect()
        }
        Some(Value::Array(items)) => {
            let children = items.iter_mut().enumerate();
            children
                .map(|(position, child)| (Step::Position(position), child))
                .collect()
        }
        _ => vec![],
    }
}

/// Looks for what is to be hidden in something that is no Secret itself.
fn search(sides: Sides<'_>, depth: usize) {
    if depth > DEPTH {
        sides.hide();
    } else if !sides.are(|side| side.get("kind").is_none_or(|kind| kind != "Secret")) {
        mask_secret(sides);
    } else {
        for (step, sides) in sides.children() {
            match step {
                Step::Key(".dockerconfigjson" | ".dockercfg" | "dockerconfigjson") => sides.hide(),
                _ => search(sides, depth + 1),
            }
        }
    }
}

/// Hides everything in a Secret but what is known to be harmless.
fn mask_secret(sides: Sides<'_>) {
    for (step, sides) in sides.children() {
        match step {
            Step::Key("apiVersion" | "kind" | "type") if sides.are(Value::is_string) => {}
            Step::Key("immutable") if sides.are(Value::is_boolean) => {}
            Step::Key("metadata") if sides.are(Value::is_object) => mask_metadata(sides),
            Step::Key("data" | "stringData") if sides.are(Value::is_object) => {
                for sides in sides.children().into_values() {
                    sides.hide();
                }
            }
            _ if sides.are(Value::is_null) => {}
            _ => sides.hide(),
        }
    }
}

/// Hides what the metadata of a Secret has of its data: other tools keep copies of the object in annotations.
fn mask_metadata(sides: Sides<'_>) {
    for (step, sides) in sides.children() {
        match step {
            Step::Key("annotations" | "labels") if sides.are(Value::is_object) => {
                for (step, sides) in sides.children() {
                    if step == Step::Key(LAST_APPLIED) || !sides.are(is_plain_text) {
                        sides.hide();
                    }
                }
            }
            Step::Key("name" | "namespace" | "generateName" | "deletionTimestamp")
                if sides.are(Value::is_string) => {}
            Step::Key("finalizers" | "ownerReferences") if sides.are(Value::is_array) => {}
            _ if sides.are(Value::is_null) => {}
            _ => sides.hide(),
        }
    }
}

/// Whether a value is text, and none that holds an object or a list.
fn is_plain_text(value: &Value) -> bool {
    let text = value.as_str().map(str::trim_start);
    text.is_some_and(|text| !text.starts_with(['{', '[']))
}
