//! Which object of the old version became which of the new one.
//!
//! Objects are paired by their identity. Roles and bindings that were made from a ClusterServiceVersion are named after its
//! name, which holds the version, and end in a hash of what they say (operator-controller `rukpak/util/util.go`), so that
//! hardly any keeps its name; these are paired by the rest of their names, by the accounts that they are for, and then by
//! what they have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Change, differing};
use crate::manifest::{Manifest, ObjectKey};

/// Characters that a hash in a name has: SHA-224 to the base 36 has 44 but for leading zeros.
const HASH: std::ops::RangeInclusive<usize> = 38..=44;
/// Of a group of roles that may be each other, as many are looked at.
const MOST_ALIKE: usize = 200;

/// An object in both versions, or in one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'m> {
    pub(super) before: Option<&'m Manifest>,
    pub(super) after: Option<&'m Manifest>,
}

impl<'m> Pair<'m> {
    /// What happens to the object; nothing when it stays as it is.
    pub(super) fn change(&self) -> Option<Change<'m>> {
        let Self { before, after } = *self;
        let mut fields = vec![];
        if let (Some(before), Some(after)) = (before, after) {
            if before.object() == after.object() {
                return None;
            }
            let sides = [before, after].map(|side| Value::Object(side.object().clone()));
            fields = differing(&sides[0], &sides[1]);
            if before.key() != after.key() {
                // The names of roles that are each other.
                fields.retain(|field| field != "/metadata/name" && field != "/roleRef/name");
            }
        }
        Some(Change {
            before,
            after,
            fields,
        })
    }
}

/// Every object of both versions, sorted by its identity in the new version, or the old one where it goes.
pub(super) fn of<'m>(old: &'m [Manifest], new: &'m [Manifest]) -> Vec<Pair<'m>> {
    let by_key = |manifests: &'m [Manifest]| -> BTreeMap<ObjectKey, &'m Manifest> {
        manifests
            .iter()
            .map(|manifest| (manifest.key(), manifest))
            .collect()
    };
    let (mut olds, mut news) = (by_key(old), by_key(new));
    let mut pairs: BTreeMap<ObjectKey, Pair<'m>> = BTreeMap::new();
    let same: Vec<_> = olds
        .keys()
        .filter(|key| news.contains_key(key))
        .cloned()
        .collect();
    for key in same {
        let pair = Pair {
            before: olds.remove(&key),
            after: news.remove(&key),
        };
        pairs.insert(key, pair);
    }
    for (before, after) in renamed((old, &olds), (new, &news)) {
        let pair = Pair {
            before: olds.remove(&before),
            after: news.remove(&after),
        };
        pairs.insert(after, pair);
    }
    let gone = olds.into_iter().map(|(key, before)| {
        let before = Some(before);
        (
            key,
            Pair {
                before,
                after: None,
            },
        )
    });
    pairs.extend(gone);
    let come = news.into_iter().map(|(key, after)| {
        let after = Some(after);
        (
            key,
            Pair {
                before: None,
                after,
            },
        )
    });
    pairs.extend(come);
    pairs.into_values().collect()
}

/// What roles and bindings that may be each other have in common: kind, namespace, the name without version and hash, and
/// the accounts.
type Likeness = (String, String, String, BTreeSet<String>);

/// Objects with other names that are each other.
fn renamed(
    (old, olds): (&[Manifest], &BTreeMap<ObjectKey, &Manifest>),
    (new, news): (&[Manifest], &BTreeMap<ObjectKey, &Manifest>),
) -> Vec<(ObjectKey, ObjectKey)> {
    let before = alike(old, olds);
    let mut after = alike(new, news);
    let mut found = vec![];
    for (likeness, olds) in before {
        let Some(news) = after.get_mut(&likeness) else {
            continue;
        };
        for (key, old) in olds.into_iter().take(MOST_ALIKE) {
            let candidates = news.iter().take(MOST_ALIKE).enumerate();
            // The first of those that have the most in common.
            let best = candidates.min_by_key(|(_, (_, new))| usize::MAX - in_common(old, new));
            if let Some((index, _)) = best {
                found.push((key, news.remove(index).0));
            }
        }
    }
    found
}

/// Roles and bindings whose names end in a hash, by what they have in common with others.
fn alike<'m>(
    all: &[Manifest],
    left: &BTreeMap<ObjectKey, &'m Manifest>,
) -> BTreeMap<Likeness, Vec<(ObjectKey, &'m Manifest)>> {
    let accounts = accounts(all);
    let mut alike: BTreeMap<Likeness, Vec<_>> = BTreeMap::new();
    for (key, manifest) in left {
        let Some(stem) = stem(&key.name).filter(|_| key.group == "rbac.authorization.k8s.io")
        else {
            continue;
        };
        let kind = key.kind.trim_end_matches("Binding");
        let role = (kind.to_owned(), key.namespace.clone(), key.name.clone());
        let accounts = accounts.get(&role).cloned().unwrap_or_default();
        let likeness = (
            key.kind.clone(),
            key.namespace.clone(),
            stem.to_owned(),
            accounts,
        );
        alike
            .entry(likeness)
            .or_default()
            .push((key.clone(), *manifest));
    }
    alike
}

/// The accounts of each role, by kind, namespace and name; a binding that was made with a role has its name.
fn accounts(manifests: &[Manifest]) -> BTreeMap<(String, String, String), BTreeSet<String>> {
    let mut accounts: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for binding in manifests {
        let (Some(kind), Some(Value::Array(subjects))) = (
            binding.kind().strip_suffix("Binding"),
            binding.object().get("subjects"),
        ) else {
            continue;
        };
        let role = (
            kind.to_owned(),
            binding.namespace().to_owned(),
            binding.name().to_owned(),
        );
        let names = subjects
            .iter()
            .filter_map(|subject| subject.get("name")?.as_str());
        accounts
            .entry(role)
            .or_default()
            .extend(names.map(str::to_owned));
    }
    accounts
}

/// A name without the hash that it ends in and the version in it; nothing for a name without a hash.
fn stem(name: &str) -> Option<&str> {
    let (stem, hash) = name.rsplit_once('-')?;
    let is_hash = HASH.contains(&hash.len())
        && hash
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    // The name is cut to make room for the hash, and often in its version.
    let package = stem.split_once(".v").map_or(stem, |(package, _)| package);
    is_hash.then_some(package)
}

/// How many rules two roles have in common.
fn in_common(old: &Manifest, new: &Manifest) -> usize {
    let rules = |object: &Map<String, Value>| -> BTreeSet<String> {
        let rules = object.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Value::to_string).collect()
    };
    let (old, new) = (rules(old.object()), rules(new.object()));
    old.intersection(&new).count()
}
