//! Adds entries to ServiceAccounts and takes them out: read, change, and write only if nobody else has written since.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    super::{
        accounts::{self, Entry},
        answer::{ApiError, RefusalKind},
        live,
        plan::account_key,
        request::{Mode, Request},
    },
    Job, Outcome,
};
use crate::manifest::ObjectKey;

/// How often an account is read again because somebody else has written it.
const TRIES: usize = 50;

/// Adds entries that are not there; each account is told once.
pub(super) fn add(job: &Job<'_>, entries: &BTreeSet<Entry>, outcome: &mut Outcome) {
    change(
        job,
        (entries, "Secrets"),
        &|live, entries| accounts::adding(live, entries.iter().copied()),
        outcome,
    );
}

/// Takes entries out that are there.
pub(super) fn remove(job: &Job<'_>, entries: &BTreeSet<Entry>, outcome: &mut Outcome) {
    change(
        job,
        (entries, "no longer Secrets"),
        &|live, entries| accounts::removing(live, entries.iter().copied()),
        outcome,
    );
}

fn change(
    job: &Job<'_>,
    (entries, what): (&BTreeSet<Entry>, &str),
    patch: &dyn Fn(&Value, &[&Entry]) -> Option<Value>,
    outcome: &mut Outcome,
) {
    let mut accounts: BTreeMap<ObjectKey, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        accounts.entry(account_key(entry)).or_default().push(entry);
    }
    for (key, entries) in accounts {
        match change_one(job, &key, |live| patch(live, &entries)) {
            Ok(0) => {}
            Ok(_) => {
                outcome.done += 1;
                let names: Vec<_> = entries.iter().map(|entry| entry.secret.as_str()).collect();
                job.report
                    .object(&key, "patched", &format!("{what}: {}", names.join(", ")));
            }
            Err(error) => outcome.fail(&key, &error),
        }
    }
}

/// Writes one account; gives how many writes it took, none when nothing was to be changed or the account is gone.
fn change_one(
    job: &Job<'_>,
    key: &ObjectKey,
    patch: impl Fn(&Value) -> Option<Value>,
) -> Result<usize, ApiError> {
    let resource = live::service_accounts();
    let mut last = None;
    for _ in 0..TRIES {
        let Some(account) = live::get(job.connection, &resource, key)? else {
            return Ok(0);
        };
        let Some(patch) = patch(&account) else {
            return Ok(0);
        };
        match job.send(&Request::merge(&resource, key, patch, Mode::Write)) {
            Err(error) if error.kind() == Some(RefusalKind::Changed) => last = Some(error),
            written => return written.map(|_| 1),
        }
    }
    Err(last.unwrap_or(ApiError::Stopped {
        about: key.to_string(),
    }))
}
