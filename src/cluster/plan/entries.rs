//! Which entries of ServiceAccounts are added, and which go.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::inventory::Inventory;
use super::{
    super::accounts::{self, Entry},
    Plan,
};
use crate::manifest::ObjectKey;

/// Adds to a plan what becomes of entries: those that are wanted and not there are added, those of the inventory that
/// nobody wants any more go, unless another install of ours put them there as well.
///
/// `live` has each account that is there. An entry that was there before anybody put it there is not ours.
pub fn entries(
    plan: &mut Plan,
    wanted: &[Entry],
    inventory: Option<&Inventory>,
    live: &BTreeMap<(String, String), Value>,
    others: &[Inventory],
) {
    let none = BTreeSet::new();
    let ours = inventory.map_or(&none, |inventory| &inventory.entries);
    let is_there = |entry: &Entry| {
        let account = live.get(&(entry.namespace.clone(), entry.account.clone()));
        account.is_some_and(|account| accounts::missing(account, [entry]).is_empty())
    };
    let is_shared = |entry: &Entry| others.iter().any(|other| other.entries.contains(entry));
    for entry in wanted {
        if !is_there(entry) {
            plan.adding.insert(entry.clone());
        } else if ours.contains(entry) || is_shared(entry) {
            plan.keeping.insert(entry.clone());
        }
    }
    for entry in ours.iter().filter(|entry| !wanted.contains(entry)) {
        if is_there(entry) && !is_shared(entry) {
            plan.removing.insert(entry.clone());
        }
    }
}

/// The key of an entry's account.
#[must_use]
pub fn account_key(entry: &Entry) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "ServiceAccount".to_owned(),
        namespace: entry.namespace.clone(),
        name: entry.account.clone(),
    }
}
