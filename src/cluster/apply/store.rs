//! Writes inventories: further Secrets first, then the first one, which names them, and only over the state that was
//! read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{
    answer::{ApiError, RefusalKind},
    connection::Connection,
    inventory::Inventory,
    live::{self, Stored, secret_key, secrets},
    request::{Mode, Request},
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
        let key = key(&part);
        // A run that was killed may have left one, which nothing names.
        match connection.send(&Request::create(&secrets(), &key, part.clone())) {
            Err(error) if error.kind() == Some(RefusalKind::AlreadyExists) => {
                connection.send(&Request::replace(&secrets(), &key, part))?;
            }
            created => drop(created?),
        }
        parts.push(key.name);
    }
    let key = key(&first);
    let request = match stored {
        None => Request::create(&secrets(), &key, first.clone()),
        Some(stored) => {
            for field in ["resourceVersion", "uid"] {
                let known = stored.first.pointer(&format!("/metadata/{field}"));
                first["metadata"][field] = known.cloned().unwrap_or_default();
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
    let key = key(&stored.first);
    let uid = stored
        .first
        .pointer("/metadata/uid")
        .and_then(Value::as_str);
    let mut delete = Request::delete(&secrets(), &key, uid.unwrap_or_default(), Mode::Write);
    // Another run that has written it since has taken it over.
    let version = stored.first.pointer("/metadata/resourceVersion");
    if let (Some(body), Some(version)) = (delete.body.as_mut(), version) {
        body["preconditions"]["resourceVersion"] = version.clone();
    }
    match connection.send(&delete) {
        Err(error) if error.kind() == Some(RefusalKind::NotFound) => {}
        deleted => drop(deleted?),
    }
    remove_parts(connection, &key.namespace, &stored.parts, &[])
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
        let Some(live) = live::get(connection, &secrets(), &key)? else {
            continue;
        };
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
        let delete = Request::delete(&secrets(), &key, uid.unwrap_or_default(), Mode::Write);
        match connection.send(&delete) {
            Err(error) if error.kind() == Some(RefusalKind::NotFound) => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

fn key(secret: &Value) -> ObjectKey {
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str);
    secret_key(
        text("/metadata/namespace").unwrap_or_default(),
        text("/metadata/name").unwrap_or_default(),
    )
}
