//! How two versions of an install differ: what a person reviews before an upgrade. No cluster is asked.
//!
//! | File | What it does |
//! | --- | --- |
//! | `pairs.rs` | which object became which |
//! | `permissions.rs` | the rights that somebody gains or loses |
//! | `definitions.rs` | what happens to the versions of a definition |

mod definitions;
mod pairs;
mod permissions;

use std::collections::BTreeSet;

use serde_json::Value;

pub use self::{
    definitions::DefinitionChange,
    permissions::{May, Right},
};
use super::rights;
use crate::{images, manifest::Manifest, problem::Problem};

/// As many fields of one object are told.
const MOST_FIELDS: usize = 1_000;

/// How two versions of an install differ. Everything is sorted, and empty where nothing differs.
#[derive(Debug, Default)]
pub struct Comparison<'m> {
    /// The objects that come, go or change.
    pub objects: Vec<Change<'m>>,
    /// The rights that somebody has in the new version only.
    pub gained: Vec<Right>,
    /// The rights that somebody has in the old version only.
    pub lost: Vec<Right>,
    /// What a person should know of the new version that the old one did not have.
    pub dangers: Vec<Problem>,
    /// The images that only the new version names.
    pub images_new: Vec<String>,
    /// The images that only the old version names.
    pub images_gone: Vec<String>,
    /// The definitions that change.
    pub definitions: Vec<DefinitionChange>,
}

/// An object that comes, goes or changes.
#[derive(Debug, Clone)]
pub struct Change<'m> {
    /// The object in the old version; nothing when it comes.
    pub before: Option<&'m Manifest>,
    /// The object in the new version; nothing when it goes.
    pub after: Option<&'m Manifest>,
    /// The fields that differ, as JSON pointers, the first of very many; none for what comes, goes or has only another
    /// name.
    pub fields: Vec<String>,
}

impl Comparison<'_> {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// Compares two versions of an install.
#[must_use]
pub fn compare<'m>(old: &'m [Manifest], new: &'m [Manifest]) -> Comparison<'m> {
    let pairs = pairs::of(old, new);
    let [images_old, images_now] = [old, new].map(images_of);
    let (gained, lost) = permissions::between(old, new);
    let known: BTreeSet<_> = rights::dangers(old).into_iter().collect();
    let dangers = rights::dangers(new).into_iter();
    Comparison {
        objects: pairs.iter().filter_map(pairs::Pair::change).collect(),
        gained,
        lost,
        dangers: dangers.filter(|danger| !known.contains(danger)).collect(),
        images_new: images_now.difference(&images_old).cloned().collect(),
        images_gone: images_old.difference(&images_now).cloned().collect(),
        definitions: pairs
            .iter()
            .filter_map(|pair| definitions::change(pair.before?, pair.after?))
            .collect(),
    }
}

/// Every image that objects name.
fn images_of(manifests: &[Manifest]) -> BTreeSet<String> {
    let found = images::of_all(manifests, &|_| false);
    found.into_iter().map(|image| image.text).collect()
}

/// The JSON pointers at which two values differ, and which lead to no deeper difference; sorted.
fn differing(old: &Value, new: &Value) -> Vec<String> {
    let mut found = vec![];
    let mut pending = vec![(String::new(), old, new)];
    while let Some((at, old, new)) = pending.pop() {
        if old == new || found.len() >= MOST_FIELDS {
            continue;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
                for key in keys {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    match (old.get(key), new.get(key)) {
                        (Some(old), Some(new)) => pending.push((at, old, new)),
                        _ => found.push(at),
                    }
                }
            }
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                let items = old.iter().zip(new).enumerate();
                pending
                    .extend(items.map(|(index, (old, new))| (format!("{at}/{index}"), old, new)));
            }
            _ => found.push(at),
        }
    }
    found.sort();
    found
}
