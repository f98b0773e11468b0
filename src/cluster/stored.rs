//! Reads the inventories of installs, which are Secrets.

use serde_json::Value;

use super::{
    answer::{ApiError, RefusalKind},
    connection::Connection,
    inventory::{self, InstallName, Inventory, InventoryError},
    live::{get, key_of, secret_key, secrets},
    metadata,
    plan::Others,
    request::Request,
};
use crate::manifest::ObjectKey;

/// Times that an inventory is read that changes while it is read.
const READINGS: usize = 5;

/// An inventory, as it is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// What it says.
    pub inventory: Inventory,
    /// Its first Secret, without what it holds: `metadata` is enough to replace or delete it.
    pub first: Value,
    /// The names of its further Secrets.
    pub parts: Vec<String>,
}

/// An inventory that cannot be understood.
#[derive(Debug)]
pub struct Unreadable {
    /// The install that it is of: objects have this id as their label.
    pub applyset_id: String,
    /// What is wrong with it.
    pub error: InventoryError,
}

/// Why an inventory was not read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The server did not give it.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// It cannot be understood.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

/// The inventory of an install; nothing when it has none.
///
/// # Errors
/// When it cannot be read or understood.
pub fn inventory(
    connection: &Connection,
    install: &InstallName,
) -> Result<Option<Stored>, StoredError> {
    let key = secret_key(&install.namespace, &install.secret());
    match get(connection, &secrets(), &key)? {
        Some(first) => whole(connection, first).map(Some),
        None => Ok(None),
    }
}

/// An inventory with its further Secrets.
fn whole(connection: &Connection, first: Value) -> Result<Stored, StoredError> {
    let namespace = metadata::text(&first, "namespace")
        .unwrap_or_default()
        .to_owned();
    let parts = Inventory::parts(&first)?;
    let mut others = vec![];
    for name in &parts {
        let part = get(connection, &secrets(), &secret_key(&namespace, name))?;
        others.extend(part);
    }
    let inventory = Inventory::read(&first, &others)?;
    let mut bare = first;
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("data");
    }
    Ok(Stored {
        inventory,
        first: bare,
        parts,
    })
}

/// The inventories of all installs in a namespace, or in all, with those that cannot be understood.
///
/// # Errors
/// When the server does not list them.
pub fn inventories(
    connection: &Connection,
    namespace: Option<&str>,
) -> Result<(Vec<Stored>, Vec<Unreadable>), ApiError> {
    let list = Request::list(&secrets(), namespace, inventory::PARENTS);
    let (mut read, mut broken) = (vec![], vec![]);
    for first in connection.list_all(&list)? {
        let key = key_of(&secrets(), &first);
        match settled(connection, &key, first) {
            Ok(stored) => read.extend(stored),
            Err(StoredError::Api(error)) => return Err(error),
            Err(StoredError::Inventory(error)) => broken.push(Unreadable {
                applyset_id: inventory::applyset_id(&key.namespace, &key.name),
                error,
            }),
        }
    }
    Ok((read, broken))
}

/// A listed inventory; nothing when it is gone by now. Its parts are read one after the other while its own run may replace
/// them, so that what cannot be understood is read again when it has changed.
fn settled(
    connection: &Connection,
    key: &ObjectKey,
    mut first: Value,
) -> Result<Option<Stored>, StoredError> {
    let mut readings = 0;
    loop {
        let version = first.pointer("/metadata/resourceVersion").cloned();
        let error = match whole(connection, first) {
            Err(StoredError::Inventory(error)) => error,
            read => return read.map(Some),
        };
        readings += 1;
        match get(connection, &secrets(), key)? {
            None => return Ok(None),
            Some(now)
                if readings < READINGS
                    && now.pointer("/metadata/resourceVersion") != version.as_ref() =>
            {
                first = now;
            }
            Some(_) => return Err(error.into()),
        }
    }
}

/// The inventories of all other installs that the user may see.
///
/// # Errors
/// When the server lists not even those of the install's own namespace.
pub fn others(connection: &Connection, install: &InstallName) -> Result<Others, ApiError> {
    let everywhere = inventories(connection, None);
    let is_forbidden =
        matches!(&everywhere, Err(error) if error.kind() == Some(RefusalKind::Forbidden));
    let (found, broken) = if is_forbidden {
        inventories(connection, Some(&install.namespace))?
    } else {
        everywhere?
    };
    let found = found.into_iter().map(|stored| stored.inventory);
    Ok(Others {
        inventories: found.filter(|other| other.install != *install).collect(),
        unreadable: broken
            .into_iter()
            .map(|broken| broken.applyset_id)
            .collect(),
        are_all: !is_forbidden,
    })
}
