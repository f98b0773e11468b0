//! The namespaces that an OperatorGroup selects.
//!
//! Reproduces operator-lifecycle-manager `operators/olm/operatorgroup.go` (`getOperatorGroupTargets`,
//! `updateNamespaceList`), with the Namespaces of the input in place of the cluster's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Objects, Stopped, field, fits, texts};
use crate::{
    manifest::{Manifest, label_selector::LabelSelector},
    problem::Problem,
};

const RULE: &str = "operator-group";

/// Keeps the catalogs of the global namespace from a namespace.
const EXCLUDES_GLOBAL: &str = "olm.operatorframework.io/exclude-global-namespace-resolution";

/// The label by which a namespace can be selected by its name; the API server sets it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What counts of the OperatorGroup of a namespace.
#[derive(Debug, Default)]
pub(super) struct OperatorGroup {
    /// The namespaces to watch, sorted; none when the group says that all are.
    pub(super) watched: Vec<String>,
    /// Whether catalogs of other namespaces do not count.
    pub(super) excludes_global: bool,
    /// What there is to say about it.
    pub(super) notes: Vec<Problem>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "texts")]
    target_namespaces: Vec<String>,
    selector: Option<Value>,
    service_account_name: Option<String>,
}

impl OperatorGroup {
    /// The only OperatorGroup of a namespace; nothing when it has none. `watched` is what the user wants to be watched
    /// instead of what the group selects.
    ///
    /// # Errors
    /// When there are several, or the group selects nothing.
    pub(super) fn of(
        objects: &Objects,
        namespace: Option<&str>,
        watched: &[String],
    ) -> Result<Option<Self>, Stopped> {
        let groups = objects.operator_groups.iter();
        let mut groups: Vec<_> = groups
            .filter(|group| fits(group.namespace(), namespace))
            .collect();
        // Of one name, the one that says its namespace is meant.
        groups.sort_by_key(|group| (group.name(), group.namespace().is_empty()));
        groups.dedup_by_key(|group| group.name());
        match groups.as_slice() {
            [] => Ok(None),
            [group] => Self::read(group, objects, watched).map(Some),
            several => {
                let names: Vec<_> = several.iter().map(|group| group.name()).collect();
                let shown = namespace.map_or_else(String::new, |name| format!(" {name}"));
                let message = format!(
                    "expected 1 OperatorGroup in the namespace{shown}, found {}: {}",
                    names.len(),
                    names.join(", ")
                );
                let hint = "leave one of them in the input";
                Err(Stopped::because(Problem::error(RULE, message), hint))
            }
        }
    }

    fn read(group: &Manifest, objects: &Objects, watched: &[String]) -> Result<Self, Stopped> {
        let spec: Spec = field(group.object().get("spec"));
        let annotations = group.metadata("annotations");
        let excludes = annotations.and_then(|annotations| annotations.get(EXCLUDES_GLOBAL));
        let mut notes = vec![];
        let problem = |problem: Problem| problem.at(&group.origin).on(group.key());
        if let Some(account) = spec.service_account_name.filter(|name| !name.is_empty()) {
            let message = format!(
                "serviceAccountName {account} does not count: what is rendered is applied with the rights of who applies it"
            );
            notes.push(problem(Problem::note(RULE, message)));
        }
        let targets = spec.target_namespaces;
        let watched = if !watched.is_empty() {
            watched.to_vec()
        } else if !targets.is_empty() {
            named(targets).map_err(|message| problem(Problem::error(RULE, message)))?
        } else {
            let selector = spec.selector.as_ref().map(LabelSelector::parse);
            match selector.transpose() {
                Err(reasons) => {
                    let message = format!("its selector is invalid: {}", reasons.join(", "));
                    return Err(problem(Problem::error(RULE, message)).into());
                }
                Ok(Some(selector)) if !selector.is_empty() => {
                    selected(&selector, &objects.namespaces).map_err(|(message, hint)| {
                        Stopped::because(problem(Problem::error(RULE, message)), hint)
                    })?
                }
                // An empty name stands for all.
                Ok(_) => vec![String::new()],
            }
        };
        Ok(Self {
            watched,
            excludes_global: excludes.and_then(Value::as_str) == Some("true"),
            notes,
        })
    }
}

fn named(mut targets: Vec<String>) -> Result<Vec<String>, String> {
    targets.sort();
    targets.dedup();
    if targets.iter().any(String::is_empty) {
        return Err(format!(
            "TargetNamespaces cannot contain NamespaceAll: {targets:?}"
        ));
    }
    Ok(targets)
}

fn selected(
    selector: &LabelSelector,
    namespaces: &[Manifest],
) -> Result<Vec<String>, (String, &'static str)> {
    const HINT: &str =
        "add the Namespace objects to -f, or name what is watched with --watch-namespace";
    if namespaces.is_empty() {
        let message = "selects namespaces by their labels, and no Namespace is in the input";
        return Err((message.to_owned(), HINT));
    }
    let matching = namespaces.iter().filter(|namespace| {
        let mut labels: BTreeMap<String, String> = field(namespace.metadata("labels"));
        labels.insert(NAME_LABEL.to_owned(), namespace.name().to_owned());
        selector.matches(&labels)
    });
    let mut matching: Vec<_> = matching
        .map(|namespace| namespace.name().to_owned())
        .collect();
    matching.sort();
    matching.dedup();
    if matching.is_empty() {
        let message = "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces: \
                       its selector matches none of the input";
        return Err((message.to_owned(), HINT));
    }
    Ok(matching)
}
