//! Entries in the lists of ServiceAccounts.
//!
//! `imagePullSecrets` is one field for the API server (`+listType=atomic`, k8s.io/api `core/v1/types.go`): whoever applies
//! it has all of it. So our entries are added by a merge patch that holds for one state of the account only, and go in the
//! same way, and entries of others stay as they are, in their order. `secrets` could be applied entry by entry, but a
//! controller that mints Secrets for accounts (OpenShift's) replaces it as a whole, so that it is treated alike.

use serde_json::{Map, Value, json};

use super::metadata;

/// An entry that an install puts into a list of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The namespace of the account.
    pub namespace: String,
    /// The account.
    pub account: String,
    /// The list that it is in.
    pub list: List,
    /// The Secret that is named.
    pub secret: String,
}

/// A list of a ServiceAccount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// `imagePullSecrets`: what the kubelet pulls images with.
    ImagePullSecrets,
    /// `secrets`: what pods of the account may mount.
    Secrets,
}

impl List {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::ImagePullSecrets, Self::Secrets];

    /// The field of the ServiceAccount.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::ImagePullSecrets => "imagePullSecrets",
            Self::Secrets => "secrets",
        }
    }
}

/// Those of the entries that are for this account, and that it does not have. Where one with the same Secret is there,
/// whoever put it there, nothing is missing.
pub fn missing<'e>(live: &Value, entries: impl IntoIterator<Item = &'e Entry>) -> Vec<&'e Entry> {
    let is_missing = |entry: &&Entry| {
        is_for(live, entry)
            && !items(live, entry.list)
                .iter()
                .any(|item| secret(item) == Some(&entry.secret))
    };
    entries.into_iter().filter(is_missing).collect()
}

/// The merge patch that adds the entries for a live account that are not there, at the end of its lists; nothing when all
/// are there. It holds for this `uid` and `resourceVersion` only. Entries for other accounts are passed over.
pub fn adding<'e>(live: &Value, entries: impl IntoIterator<Item = &'e Entry>) -> Option<Value> {
    let missing = missing(live, entries);
    let mut lists = Map::new();
    for list in List::ALL {
        let mut after = items(live, list).to_vec();
        for entry in missing.iter().filter(|entry| entry.list == list) {
            let is_it = |item: &Value| secret(item) == Some(&entry.secret);
            if !after.iter().any(is_it) {
                after.push(json!({"name": entry.secret}));
            }
        }
        if after.len() > items(live, list).len() {
            lists.insert(list.field().to_owned(), Value::Array(after));
        }
    }
    guarded(live, lists)
}

/// The merge patch that takes the entries for a live account out, guarded as in [`adding`]; nothing when none is there.
///
/// An entry with more in it than the name is not one that we put there, and stays. A list that becomes empty is taken out
/// as a whole, as the API server stores it.
pub fn removing<'e>(live: &Value, entries: impl IntoIterator<Item = &'e Entry>) -> Option<Value> {
    let ours: Vec<_> = entries
        .into_iter()
        .filter(|entry| is_for(live, entry))
        .collect();
    let mut lists = Map::new();
    for list in List::ALL {
        let is_ours = |item: &Value| {
            let is_bare = item.as_object().is_some_and(|item| item.len() == 1);
            let is_listed =
                |entry: &&Entry| entry.list == list && secret(item) == Some(&entry.secret);
            is_bare && ours.iter().any(is_listed)
        };
        let before = items(live, list);
        let after: Vec<_> = before.iter().filter(|item| !is_ours(item)).collect();
        if after.len() < before.len() {
            let after = if after.is_empty() {
                Value::Null
            } else {
                json!(after)
            };
            lists.insert(list.field().to_owned(), after);
        }
    }
    guarded(live, lists)
}

/// Whether an entry is for this account.
fn is_for(live: &Value, entry: &Entry) -> bool {
    let is = |field: &str, wanted: &str| metadata::text(live, field) == Some(wanted);
    is("namespace", &entry.namespace) && is("name", &entry.account)
}

fn items(live: &Value, list: List) -> &[Value] {
    let items = live.get(list.field()).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

fn secret(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// The patch of these lists, for the account as it is now.
fn guarded(live: &Value, lists: Map<String, Value>) -> Option<Value> {
    if lists.is_empty() {
        return None;
    }
    // Without a version a patch would hold for any; one that there cannot be makes the server refuse it.
    let guard = |field: &str| {
        metadata::text(live, field)
            .filter(|text| !text.is_empty())
            .unwrap_or("unknown")
    };
    let mut patch = lists;
    let metadata = json!({"uid": guard("uid"), "resourceVersion": guard("resourceVersion")});
    patch.insert("metadata".to_owned(), metadata);
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(list: List, secret: &str) -> Entry {
        Entry {
            namespace: "ops".to_owned(),
            account: "manager".to_owned(),
            list,
            secret: secret.to_owned(),
        }
    }

    fn account(version: u32, pulls: &[&str]) -> Value {
        let names = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect();
        let pulls: Value = names(pulls);
        json!({
            "metadata": {"name": "manager", "namespace": "ops", "uid": "u1", "resourceVersion": version.to_string()},
            "secrets": [{"name": "manager-dockercfg-x7x2p"}],
            "imagePullSecrets": pulls,
        })
    }

    /// What a server makes of a merge patch (RFC 7386), as far as these go; and whether its guard holds.
    fn patched(live: &Value, patch: &Value) -> Value {
        let mut after = live.clone();
        let metadata = &patch["metadata"];
        assert_eq!(
            metadata["resourceVersion"],
            live["metadata"]["resourceVersion"]
        );
        assert_eq!(metadata["uid"], live["metadata"]["uid"]);
        for (field, value) in patch
            .as_object()
            .expect("a map")
            .iter()
            .filter(|(field, _)| *field != "metadata")
        {
            if value.is_null() {
                after.as_object_mut().expect("a map").remove(field);
            } else {
                after[field] = value.clone();
            }
        }
        let version: u32 = live["metadata"]["resourceVersion"]
            .as_str()
            .expect("a text")
            .parse()
            .expect("a number");
        after["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        after
    }

    #[test]
    fn fifty_runs_change_an_account_once() {
        let ours = [entry(List::ImagePullSecrets, "ours")];
        let mut live = account(1, &["b", "a"]);
        for _ in 0..50 {
            if let Some(patch) = adding(&live, &ours) {
                assert!(patch.get("secrets").is_none(), "{patch}");
                live = patched(&live, &patch);
            }
        }
        assert_eq!(live, account(2, &["b", "a", "ours"]));
    }

    #[test]
    fn what_was_added_goes_again_and_nothing_else_does() {
        let ours = [
            entry(List::ImagePullSecrets, "ours"),
            entry(List::Secrets, "token"),
        ];
        let before = account(1, &["b", "a"]);
        let added = patched(&before, &adding(&before, &ours).expect("a patch"));
        let removed = patched(&added, &removing(&added, &ours).expect("a patch"));
        assert_eq!(removed, account(3, &["b", "a"]));
        assert_eq!(removing(&removed, &ours), None);
    }

    #[test]
    fn a_list_that_was_not_there_is_not_there_afterwards() {
        let ours = [entry(List::ImagePullSecrets, "ours")];
        let mut before = account(1, &[]);
        before
            .as_object_mut()
            .expect("a map")
            .remove("imagePullSecrets");
        let added = patched(&before, &adding(&before, &ours).expect("a patch"));
        let removed = patched(&added, &removing(&added, &ours).expect("a patch"));
        assert!(removed.get("imagePullSecrets").is_none());
    }

    #[test]
    fn entries_of_others_are_not_missing_and_not_removed() {
        let named = [entry(List::Secrets, "theirs")];
        let mut live = account(1, &[]);
        live["secrets"] = json!([{"name": "theirs", "kind": "Secret"}]);
        assert_eq!(adding(&live, &named), None);
        assert_eq!(removing(&live, &named), None);
        let other = [Entry {
            account: "other".to_owned(),
            ..entry(List::Secrets, "x")
        }];
        assert_eq!(adding(&live, &other), None);
    }

    #[test]
    fn without_a_version_no_patch_holds() {
        let live = json!({"metadata": {"name": "manager", "namespace": "ops"}, "imagePullSecrets": {"x": 1}});
        let patch = adding(&live, &[entry(List::ImagePullSecrets, "ours")]).expect("a patch");
        assert_eq!(patch["metadata"]["resourceVersion"], "unknown");
    }
}
