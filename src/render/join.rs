//! Several installs that go into one cluster together: what two of them bring stands in the first only.

use std::collections::BTreeMap;

use crate::{
    manifest::{Manifest, ObjectKey},
    problem::Problem,
};

/// The rule that two installs break which do not agree on an object.
const RULE: &str = "install-conflict";

/// Leaves an object that several installs bring to the first of them.
///
/// # Errors
/// When two installs, which are given with their names, want an object to be different; all such objects are told.
pub fn join(
    installs: Vec<(String, Vec<Manifest>)>,
) -> Result<Vec<(String, Vec<Manifest>)>, Vec<Problem>> {
    let mut joined: Vec<(String, Vec<Manifest>)> = vec![];
    let mut places: BTreeMap<ObjectKey, (usize, usize)> = BTreeMap::new();
    let mut problems = vec![];
    for (at, (name, manifests)) in installs.into_iter().enumerate() {
        let mut kept: Vec<Manifest> = vec![];
        for manifest in manifests {
            let key = manifest.key();
            let before = places.get(&key).and_then(|(install, position)| {
                let (name, manifests) = joined.get(*install)?;
                Some((name, manifests.get(*position)?))
            });
            match before {
                None => {
                    places.insert(key, (at, kept.len()));
                    kept.push(manifest);
                }
                Some((_, before)) if before.object() == manifest.object() => {}
                Some((other, _)) => {
                    let message = format!(
                        "{other} and {name} both bring it, and not the same; they cannot be installed into one namespace"
                    );
                    problems.push(Problem::error(RULE, message).on(key.to_string()));
                }
            }
        }
        joined.push((name, kept));
    }
    if problems.is_empty() {
        Ok(joined)
    } else {
        Err(problems)
    }
}
