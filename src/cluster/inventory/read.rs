//! An inventory from its Secrets. Whoever may write Secrets in a namespace may have changed them, so nothing in them is
//! believed that can be checked, and what they list is only a proposal: [`plan::fate`](crate::cluster::plan::fate) says of a live object whether
//! it is the one that is meant.

use serde::Deserialize;
use serde_json::Value;

use super::{
    super::checksum,
    InstallName, Inventory, InventoryError, form,
    name::PREFIX,
    secrets::{CONTENTS, ID, PART_BYTES, PARTS, TOOL, TOOLING, TYPE},
};
use crate::manifest::decode_base64;

/// Parts of an inventory. All of them hold 300,000 objects and more.
const MOST_PARTS: usize = 32;

/// A part, as the first Secret names it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    sha256: String,
}

impl Inventory {
    /// The names of the other Secrets that are to be read with the first one; none when it holds everything.
    ///
    /// # Errors
    /// When the first Secret is damaged, or of another install or tool.
    pub fn parts(first: &Value) -> Result<Vec<String>, InventoryError> {
        let (install, name) = identify(first)?;
        let parts = parts(first, &install).map_err(|reason| broken(&name, reason))?;
        Ok(parts.into_iter().map(|part| part.name).collect())
    }

    /// Reads it from its first Secret and the others that this one names, in any order.
    ///
    /// # Errors
    /// When it is damaged, of a later form, or of another install or tool.
    pub fn read(first: &Value, others: &[Value]) -> Result<Self, InventoryError> {
        let (install, name) = identify(first)?;
        let contents = contents(first, others, &install).map_err(|reason| broken(&name, reason))?;
        let inventory = form::unpack(&contents, &name)?;
        if inventory.install != install {
            let InstallName {
                namespace,
                name: of,
            } = inventory.install;
            let reason = format!("its contents are those of install {of} in {namespace}");
            return Err(broken(&name, reason));
        }
        Ok(inventory)
    }
}

/// The install that the first Secret of an inventory says it is of, and what to call that Secret.
pub(super) fn identify(first: &Value) -> Result<(InstallName, String), InventoryError> {
    let metadata = |path: &str| {
        let found = first
            .get("metadata")
            .and_then(|metadata| metadata.pointer(path));
        found.and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, name) = (metadata("/namespace"), metadata("/name"));
    let secret = format!(
        "secret/{} in {}",
        name.escape_debug(),
        namespace.escape_debug()
    );
    let install = match name.strip_prefix(PREFIX) {
        Some(rest) => InstallName::new(namespace, rest),
        None => Err(format!("its name does not begin with {PREFIX}")),
    };
    let install = install.map_err(|reason| broken(&secret, reason))?;
    let annotation = |key: &str| {
        let found = first
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations")?.get(key));
        found.and_then(Value::as_str).unwrap_or_default()
    };
    let tool = annotation(TOOLING).split('/').next().unwrap_or_default();
    if tool != TOOL {
        let reason = format!(
            "its annotation {TOOLING} does not name {TOOL}, so it is none of its inventories"
        );
        return Err(broken(&secret, reason));
    }
    let label = first
        .get("metadata")
        .and_then(|metadata| metadata.get("labels")?.get(ID));
    if label.and_then(Value::as_str) != Some(&install.applyset_id()) {
        let reason =
            format!("its label {ID} is not the id of its name, so it was copied or renamed");
        return Err(broken(&secret, reason));
    }
    Ok((install, secret))
}

/// The compressed text, from one Secret or several.
fn contents(first: &Value, others: &[Value], install: &InstallName) -> Result<Vec<u8>, String> {
    if first.get("type").and_then(Value::as_str) != Some(TYPE) {
        return Err(format!("its type is not {TYPE}"));
    }
    let parts = parts(first, install)?;
    if parts.is_empty() {
        return data(first, CONTENTS)?
            .ok_or_else(|| format!("it has neither data.{CONTENTS} nor data.{PARTS}"));
    }
    let mut contents = vec![];
    for Part { name, sha256 } in parts {
        let is_it = |other: &&Value| {
            let is = |path: &str, wanted: &str| {
                other.pointer(path).and_then(Value::as_str) == Some(wanted)
            };
            is("/metadata/name", &name) && is("/metadata/namespace", &install.namespace)
        };
        let part = others.iter().find(is_it);
        let part = part.ok_or_else(|| format!("its part {name} is missing"))?;
        let bytes = data(part, CONTENTS)?
            .ok_or_else(|| format!("its part {name} has no data.{CONTENTS}"))?;
        if checksum::sha256(&bytes) != sha256 {
            return Err(format!(
                "its part {name} has another checksum than it is listed with"
            ));
        }
        contents.extend(bytes);
    }
    Ok(contents)
}

fn parts(first: &Value, install: &InstallName) -> Result<Vec<Part>, String> {
    let Some(list) = data(first, PARTS)? else {
        return Ok(vec![]);
    };
    let list: Result<Vec<Part>, _> = serde_json::from_slice(&list);
    let list = list.map_err(|_| format!("data.{PARTS} is no list of parts"))?;
    let prefix = format!("{}.g", install.secret());
    let is_good = |part: &Part| {
        let rest = part.name.strip_prefix(&prefix).unwrap_or_default();
        !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    };
    if list.is_empty() || list.len() > MOST_PARTS || !list.iter().all(is_good) {
        return Err(format!(
            "data.{PARTS} lists other things than parts of it, or too many"
        ));
    }
    Ok(list)
}

/// The bytes under a key of a Secret.
fn data(secret: &Value, key: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(found) = secret.get("data").and_then(|data| data.get(key)) else {
        return Ok(None);
    };
    let text = found.as_str().filter(|text| text.len() <= PART_BYTES * 2);
    let bytes = text.and_then(|text| decode_base64(text).ok());
    bytes
        .map(Some)
        .ok_or_else(|| format!("data.{key} is no base64 text, or too large"))
}

fn broken(name: &str, reason: String) -> InventoryError {
    InventoryError::Broken {
        name: name.to_owned(),
        reason,
    }
}
