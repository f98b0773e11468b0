//! The names of pull Secrets, put where pods get them from.
//!
//! The pods of a Deployment take the list of their ServiceAccount, but only when their template has none: the API server
//! copies it where `len(pod.Spec.ImagePullSecrets) == 0` (`plugin/pkg/admission/serviceaccount/admission.go`). So a
//! template that has a list gets the names as well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::RULE;
use crate::{
    manifest::{Manifest, ObjectKey, Origin, list_at},
    problem::Problem,
};

/// The field with the list, in ServiceAccounts and in pods.
const LIST: &str = "imagePullSecrets";
/// The ServiceAccount of pods that name none.
const DEFAULT: &str = "default";

/// What accounts are generated from that are made for entries alone.
const FOR_ENTRIES: &str = "the pull Secrets";

/// Whether an object is a ServiceAccount that [`attach`](super::attach) made for its entries: one that is not among the
/// objects of the bundle, and may be in the cluster already.
#[must_use]
pub fn is_for_entries(manifest: &Manifest) -> bool {
    manifest.origin == Origin::Generated(FOR_ENTRIES)
}

/// Adds the names to the lists of all ServiceAccounts that Deployments of the namespace use, and of `also`.
pub(super) fn add_names(
    manifests: &mut Vec<Manifest>,
    namespace: &str,
    names: &[String],
    also: &[String],
    problems: &mut Vec<Problem>,
) {
    let mut accounts: BTreeSet<String> = also.iter().cloned().collect();
    let is = |manifest: &Manifest, group: &str, kind: &str| {
        manifest.group() == group && manifest.kind() == kind && manifest.namespace() == namespace
    };
    let deployments = manifests.iter_mut();
    for deployment in deployments.filter(|manifest| is(manifest, "apps", "Deployment")) {
        accounts.insert(add_to_template(deployment, names, problems));
    }
    let there = manifests.iter_mut();
    for account in there.filter(|manifest| is(manifest, "", "ServiceAccount")) {
        if accounts.remove(account.name()) {
            add_to_account(account, names, problems);
        }
    }
    let missing = accounts.iter();
    manifests.extend(missing.map(|name| account(namespace, name, names)));
}

/// Puts the entries that ServiceAccounts have already, in the cluster, before those of the objects: what is applied
/// replaces the whole list.
pub fn keep_entries(manifests: &mut [Manifest], there: &[Manifest]) {
    for before in there {
        let key = before.key();
        let entries = before.object().get(LIST).and_then(Value::as_array);
        let is_same = |manifest: &&mut Manifest| manifest.key() == key;
        let account = manifests.iter_mut().find(is_same);
        let list = account.and_then(|account| account.object_mut().get_mut(LIST)?.as_array_mut());
        if let (Some(entries), Some(list)) = (entries, list) {
            let added = std::mem::replace(list, entries.clone());
            list.extend(added.into_iter().filter(|entry| !entries.contains(entry)));
        }
    }
}

/// Gives a ServiceAccount that several installs bring the names that each of them puts into it, so that they do not
/// differ in that. Names keep the order of the installs.
pub fn agree(installs: Vec<&mut Vec<Manifest>>) {
    let mut lists: BTreeMap<ObjectKey, Vec<&mut Map<String, Value>>> = BTreeMap::new();
    for manifest in installs.into_iter().flatten() {
        if manifest.kind() == "ServiceAccount" && manifest.group().is_empty() {
            lists
                .entry(manifest.key())
                .or_default()
                .push(manifest.object_mut());
        }
    }
    for mut accounts in lists.into_values().filter(|accounts| accounts.len() > 1) {
        let mut all: Vec<Value> = vec![];
        for entry in accounts
            .iter()
            .filter_map(|account| account.get(LIST)?.as_array())
            .flatten()
        {
            if !all.contains(entry) {
                all.push(entry.clone());
            }
        }
        for account in accounts.iter_mut().filter(|_| !all.is_empty()) {
            account.insert(LIST.to_owned(), Value::Array(all.clone()));
        }
    }
}

/// Adds the names to the list of a pod template that has one, and gives the ServiceAccount of its pods.
fn add_to_template(
    deployment: &mut Manifest,
    names: &[String],
    problems: &mut Vec<Problem>,
) -> String {
    let key = deployment.key();
    let spec = deployment.object_mut().get_mut("spec");
    let pod_spec = spec.and_then(|spec| spec.pointer_mut("/template/spec"));
    let Some(pod_spec) = pod_spec.and_then(Value::as_object_mut) else {
        return DEFAULT.to_owned();
    };
    let account = service_account(pod_spec).to_owned();
    if let Some(Value::Array(list)) = pod_spec.get_mut(LIST)
        && !list.is_empty()
        && append(list, names)
    {
        let message = format!(
            "its pods have {LIST} of their own and take none of ServiceAccount {account}, so the pull Secrets are added \
             to these too"
        );
        let note = Problem::note(RULE, message);
        problems.push(note.at(&deployment.origin).on(key));
    }
    account
}

/// The ServiceAccount of pods; the older field of the same meaning counts where the newer one says nothing.
fn service_account(pod_spec: &Map<String, Value>) -> &str {
    let text = |field: &str| pod_spec.get(field).and_then(Value::as_str);
    ["serviceAccountName", "serviceAccount"]
        .iter()
        .filter_map(|field| text(field))
        .find(|name| !name.is_empty())
        .unwrap_or(DEFAULT)
}

fn add_to_account(account: &mut Manifest, names: &[String], problems: &mut Vec<Problem>) {
    match account.object().get(LIST) {
        None | Some(Value::Null | Value::Array(_)) => {
            append(list_at(account.object_mut(), LIST), names);
        }
        Some(_) => {
            let message = format!("{LIST} is no list; make it one of objects with a name");
            let error = Problem::error(RULE, message);
            problems.push(error.at(&account.origin).on(account.key()));
        }
    }
}

/// A ServiceAccount that is not among the objects, with nothing that another one could want to be different.
fn account(namespace: &str, name: &str, names: &[String]) -> Manifest {
    let mut list = vec![];
    append(&mut list, names);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
        LIST: list,
    });
    Manifest::generated(object, FOR_ENTRIES)
}

/// Adds the names that are not in a list yet to its end, and says whether there were any.
fn append(list: &mut Vec<Value>, names: &[String]) -> bool {
    let before = list.len();
    for name in names {
        let is_it = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(name);
        if !list.iter().any(is_it) {
            list.push(json!({ "name": name }));
        }
    }
    list.len() > before
}
