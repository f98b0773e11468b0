//! Writes inventories: further Secrets first, then the first one, which names them, and only over the state that was
//! read. What further Secrets no inventory names goes when all is done.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{
    answer::{ApiError, RefusalKind},
    connection::Connection,
    inventory::{INVENTORY, InstallName, Inventory, State},
    live::{self, secret_key, secrets},
    metadata,
    request::{Mode, Request},
    stored::Stored,
};
use crate::manifest::ObjectKey;

/// Writes an inventory over the one that was read, or where there was none.
///
/// # Errors
/// When somebody else has written it since, or the server does not take it.
pub(super) fn save(
    connection: &Connection,
    inventory: &Inventory,
    stored: Option<&Stored>,
) -> Result<Stored, ApiError> {
    let mut written = inventory.secrets().into_iter();
    let Some(mut first) = written.next() else {
        return Err(ApiError::Stopped {
            about: "the inventory".to_owned(),
        });
    };
    let mut parts = vec![];
    for part in written {
        let key = live::key_of(&secrets(), &part);
        // A run that was killed may have left one, which nothing names.
        match connection.send(&Request::create(&secrets(), &key, part.clone())) {
            Err(error) if error.kind() == Some(RefusalKind::AlreadyExists) => {
                connection.send(&Request::replace(&secrets(), &key, part))?;
            }
            created => drop(created?),
        }
        parts.push(key.name);
    }
    let key = live::key_of(&secrets(), &first);
    let request = match stored {
        None => Request::create(&secrets(), &key, first.clone()),
        Some(stored) => {
            for field in ["resourceVersion", "uid"] {
                first["metadata"][field] = metadata::text(&stored.first, field).into();
            }
            Request::replace(&secrets(), &key, first.clone())
        }
    };
    let mut bare = match connection.send(&request) {
        Ok(answer) => answer.body,
        Err(error) => is_written(connection, &key, &first)?.ok_or(error)?,
    };
    let old = stored.map_or(&[][..], |stored| &stored.parts);
    remove_parts(connection, &key.namespace, old, &parts)?;
    if !matches!(inventory.state, State::Running { .. }) {
        sweep(connection, &inventory.install, &parts);
    }
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("data");
    }
    Ok(Stored {
        inventory: inventory.clone(),
        first: bare,
        parts,
    })
}

/// The Secret as it is, when it holds what was to be written: an answer was lost, and not the write.
fn is_written(
    connection: &Connection,
    key: &ObjectKey,
    first: &Value,
) -> Result<Option<Value>, ApiError> {
    let live = live::get(connection, &secrets(), key)?;
    Ok(live.filter(|live| live.get("data") == first.get("data")))
}

/// Removes an inventory.
///
/// # Errors
/// When the server does not do it.
pub(super) fn discard(connection: &Connection, stored: &Stored) -> Result<(), ApiError> {
    let key = live::key_of(&secrets(), &stored.first);
    let uid = metadata::uid(&stored.first).unwrap_or_default();
    let mut delete = Request::delete(&secrets(), &key, uid, Mode::Write);
    // Another run that has written it since has taken it over.
    let version = metadata::text(&stored.first, "resourceVersion");
    if let (Some(body), Some(version)) = (delete.body.as_mut(), version) {
        body["preconditions"]["resourceVersion"] = version.into();
    }
    match connection.send(&delete) {
        Err(error) if error.kind() == Some(RefusalKind::NotFound) => {}
        deleted => drop(deleted?),
    }
    remove_parts(connection, &key.namespace, &stored.parts, &[])?;
    sweep(connection, &stored.inventory.install, &[]);
    Ok(())
}

/// Removes the further Secrets of an install that its inventory does not name, as `named` has them: runs that were killed
/// have left them. What cannot be listed or removed now does no harm, and is left to the next run.
pub fn sweep(connection: &Connection, install: &InstallName, named: &[String]) {
    let selector = format!("{INVENTORY}={}", install.applyset_id());
    let list = Request::list_metadata(&secrets(), Some(&install.namespace), &selector);
    // Anybody may put the label on a Secret, and nobody else may call one so.
    let prefix = format!("{}.g", install.secret());
    for part in connection.list_all(&list).unwrap_or_default() {
        let key = live::key_of(&secrets(), &part);
        if key.name.starts_with(&prefix) && !named.contains(&key.name) {
            drop(remove_part(connection, &key, &part));
        }
    }
}

/// Removes further Secrets that nothing names any more.
fn remove_parts(
    connection: &Connection,
    namespace: &str,
    old: &[String],
    new: &[String],
) -> Result<(), ApiError> {
    let new: BTreeSet<_> = new.iter().collect();
    for name in old.iter().filter(|name| !new.contains(name)) {
        let key = secret_key(namespace, name);
        if let Some(live) = live::get(connection, &secrets(), &key)? {
            remove_part(connection, &key, &live)?;
        }
    }
    Ok(())
}

fn remove_part(connection: &Connection, key: &ObjectKey, part: &Value) -> Result<(), ApiError> {
    let uid = metadata::uid(part).unwrap_or_default();
    match connection.send(&Request::delete(&secrets(), key, uid, Mode::Write)) {
        Err(error) if error.kind() == Some(RefusalKind::NotFound) => Ok(()),
        deleted => deleted.map(drop),
    }
}
