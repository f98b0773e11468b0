//! What happens to the versions of a definition, and what its new form breaks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    manifest::{Manifest, ObjectKey, served::Defined},
    problem::Problem,
    review::crd_safety,
};

/// A definition that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The definition.
    pub key: ObjectKey,
    /// What happens to its versions, a line each.
    pub versions: Vec<String>,
    /// What its new form breaks, as OLM v1 checks it before an upgrade.
    pub problems: Vec<Problem>,
}

/// What happens to a definition; nothing when neither its versions change nor anything breaks, and for other objects.
pub(super) fn change(old: &Manifest, new: &Manifest) -> Option<DefinitionChange> {
    Defined::read(new)?;
    let (before, after) = (Versions::of(old), Versions::of(new));
    let mut live = Value::Object(old.object().clone());
    // What is in a cluster is taken to be stored in the version that the old form stores.
    live["status"] = json!({"storedVersions": before.stored()});
    let problems = crd_safety::check(&live, &Value::Object(new.object().clone()));
    let versions = before.to(&after);
    (!versions.is_empty() || !problems.is_empty()).then(|| DefinitionChange {
        key: new.key(),
        versions,
        problems,
    })
}

/// The versions of a definition by name: whether each is served, and whether objects are stored in it.
struct Versions<'m> {
    by_name: BTreeMap<&'m str, (bool, bool)>,
}

impl<'m> Versions<'m> {
    fn of(definition: &'m Manifest) -> Self {
        let versions = definition
            .object()
            .get("spec")
            .and_then(|spec| spec.get("versions"));
        let versions = versions.and_then(Value::as_array).into_iter().flatten();
        let by_name = versions.filter_map(|version| {
            let is = |field: &str| version.get(field) == Some(&Value::Bool(true));
            Some((
                version.get("name")?.as_str()?,
                (is("served"), is("storage")),
            ))
        });
        let by_name = by_name.collect();
        Self { by_name }
    }

    fn stored(&self) -> Vec<&'m str> {
        let stored = self.by_name.iter().filter(|(_, (_, is_stored))| *is_stored);
        stored.map(|(name, _)| *name).collect()
    }

    /// What happens to the versions, a line each.
    fn to(&self, new: &Self) -> Vec<String> {
        let mut lines = vec![];
        for (name, (was_served, was_stored)) in &self.by_name {
            let Some((is_served, is_stored)) = new.by_name.get(name) else {
                lines.push(format!("version {name} goes"));
                continue;
            };
            match (was_served, is_served) {
                (true, false) => lines.push(format!("version {name} is not served any more")),
                (false, true) => lines.push(format!("version {name} is served from now on")),
                _ => {}
            }
            if !was_stored && *is_stored {
                lines.push(format!("objects are stored in version {name} from now on"));
            }
        }
        for (name, (is_served, is_stored)) in &new.by_name {
            if self.by_name.contains_key(name) {
                continue;
            }
            let served = if *is_served {
                ""
            } else {
                ", and is not served"
            };
            lines.push(format!("version {name} comes{served}"));
            if *is_stored {
                lines.push(format!("objects are stored in version {name} from now on"));
            }
        }
        lines
    }
}
