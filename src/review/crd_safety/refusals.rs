//! What an API server itself refuses of a new definition, with the way out of it.
//!
//! k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation`: `ValidateCustomResourceDefinitionUpdate` and
//! `validateCustomResourceDefinitionStoredVersions`.

use serde_json::Value;

use super::definition::Definition;
use crate::problem::Problem;

/// That nothing has to be kept.
const NONE: &str = "there are no custom resources";

/// What a server refuses of a new definition that would replace a live one, given how many custom resources there are where
/// that is known; nothing when it is neither its scope nor a version that goes.
#[must_use]
pub fn refusals(live: &Value, new: &Value, objects: Option<usize>) -> Vec<Problem> {
    let (Some(Ok(live)), Some(Ok(new))) = (Definition::read(live), Definition::read(new)) else {
        return vec![];
    };
    let mut found = vec![];
    if live.scope != new.scope {
        let text = format!(
            "its scope becomes {} and was {}, which cannot be changed",
            new.scope, live.scope
        );
        found.push(format!("{text}; {}", made_anew(&live, objects)));
    }
    let gone = live.stored_and_gone(&new);
    if !gone.is_empty() {
        let text = format!(
            "version {} goes, and status.storedVersions says that custom resources may be stored in it",
            gone.join(", ")
        );
        found.push(format!("{text}; {}", stored_anew(&live, &gone, objects)));
    }
    let problem = |text| Problem::error("refused", text).on(&new.object);
    found.into_iter().map(problem).collect()
}

/// How a definition comes to be another one.
fn made_anew(live: &Definition, objects: Option<usize>) -> String {
    let delete = format!("`kubectl delete customresourcedefinition {}`", live.name);
    let rest = "the next apply makes it anew";
    match objects {
        Some(0) => format!("{NONE}, so that nothing is lost with {delete}, and {rest}"),
        Some(1) => {
            format!("save the custom resource that there is, as it goes with {delete}; then {rest}")
        }
        Some(count) => format!(
            "save the {count} custom resources that there are, as they go with {delete}; then {rest}"
        ),
        None => format!("save the custom resources, which go with {delete}; then {rest}"),
    }
}

/// How versions come to be stored no longer.
fn stored_anew(live: &Definition, gone: &[&str], objects: Option<usize>) -> String {
    let stays = live
        .stored
        .iter()
        .map(String::as_str)
        .filter(|name| !gone.contains(name));
    let stored = live.versions.iter().find(|version| version.is_stored);
    let stored = stored
        .map(|version| version.name.as_str())
        .filter(|name| !gone.contains(name));
    let Some(stored) = stored else {
        return match objects {
            Some(0) => made_anew(live, objects),
            _ => format!(
                "install a version of the operator between the two first, which stores them in another version; if there is none, {}",
                made_anew(live, objects)
            ),
        };
    };
    let mut versions: Vec<_> = stays.collect();
    if !versions.contains(&stored) {
        versions.push(stored);
    }
    let patch = format!(
        r#"`kubectl patch customresourcedefinition {} --subresource=status --type=merge -p '{{"status":{{"storedVersions":{}}}}}'`"#,
        live.name,
        Value::from(versions)
    );
    match objects {
        Some(0) => format!("{NONE}, and {patch} says so"),
        _ => format!(
            "write them anew with `kubectl get {} -A -o json | kubectl replace -f -`, and then say so with {patch}",
            live.name
        ),
    }
}
