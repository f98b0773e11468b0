//! The objects of an install, as they are sent: labelled, without what belongs to a cluster, and looked at for what the
//! API server would refuse half-way.
//!
//! The lists of a ServiceAccount are not part of what is applied: they are one field each, and other controllers write
//! entries into them. Ours go in by themselves, as `accounts.rs` says. `stringData` of a Secret becomes `data`, as a key
//! that is left out later would otherwise stay (kubernetes/kubernetes#108008).

mod checks;

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    accounts::{Entry, List},
    checksum::sha256,
    inventory::InstallName,
};
use crate::{
    manifest::{Manifest, ObjectKey, list_at, map_at},
    problem::Problem,
};

/// The label that names the install of an object (KEP-3659: `applyset.kubernetes.io/part-of`).
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// What belongs to an object in a cluster and is none of an install's business. Finalizers are among it: who sets one has
/// to be there to take it off again, and an install that goes is not.
const SERVER_OWNED: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What an install wants.
#[derive(Debug, Clone, Default)]
pub struct DesiredSet {
    /// Its objects, in the order in which they are applied.
    pub objects: Vec<Desired>,
    /// The entries that ServiceAccounts get, each once.
    pub entries: Vec<Entry>,
}

/// An object that is wanted.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Its identity.
    pub key: ObjectKey,
    /// The object as it is sent.
    pub manifest: Manifest,
    /// SHA-256 of what is sent, in hexadecimal.
    pub asked: String,
    /// Whose it is when it is there already and not ours.
    pub claim: Claim,
}

/// What an install does with an object that is there and is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is refused: the install's own objects are its own.
    Own,
    /// It is used as it is, and stays whose it is: namespaces, and accounts that only get entries.
    Use,
    /// It is used when it holds the same, and is refused otherwise: copies of Secrets.
    UseIfSame,
}

/// What an object is for, which only those know that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is one of the bundle's, or made for one.
    Install,
    /// An account that is not the bundle's, and only gets entries.
    Entries,
    /// A copy of a Secret of the user's.
    Copy,
}

impl DesiredSet {
    /// What is sent for these objects of an install, in their order; `purpose` says what each is for.
    ///
    /// # Errors
    /// Everything that the API server would refuse and that can be seen without asking it, and what nobody but this
    /// program may bring.
    pub fn of(
        manifests: Vec<Manifest>,
        install: &InstallName,
        purpose: &dyn Fn(&Manifest) -> Purpose,
    ) -> Result<Self, Vec<Problem>> {
        let id = install.applyset_id();
        let mut set = Self::default();
        let mut problems = vec![];
        let mut places: BTreeMap<ObjectKey, String> = BTreeMap::new();
        for mut manifest in manifests {
            let key = manifest.key();
            let origin = manifest.origin.clone();
            let place = origin.to_string();
            if let Some(first) = places.insert(key.clone(), place) {
                let message = format!("stands twice, here and in {first}; take one of them out");
                let problem = Problem::error("duplicate-object", message);
                problems.push(problem.at(&origin).on(&key));
                continue;
            }
            let claim = claim(&key, purpose(&manifest));
            let mut found = checks::reserved(&manifest);
            strip(&mut manifest);
            move_string_data(&mut manifest, &mut found);
            take_entries(&mut manifest, &mut set.entries, &mut found);
            map_at(manifest.metadata_mut(), "labels")
                .insert(PART_OF.to_owned(), id.as_str().into());
            found.extend(checks::unsendable(&manifest));
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| problem.at(&origin).on(&key)),
            );
            set.objects.push(Desired {
                key,
                asked: hash_map(manifest.object()),
                manifest,
                claim,
            });
        }
        if problems.is_empty() {
            return Ok(set);
        }
        problems.sort();
        Err(problems)
    }
}

/// The SHA-256 of a value, in hexadecimal. Maps are sorted by their keys, so that it does not depend on how a value was
/// written.
#[must_use]
pub fn hash(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}

fn hash_map(object: &Map<String, Value>) -> String {
    sha256(serde_json::to_string(object).unwrap_or_default().as_bytes())
}

/// Namespaces may hold what others have in them, and each has an account `default` from its start.
fn claim(key: &ObjectKey, purpose: Purpose) -> Claim {
    match (purpose, key.group.as_str(), key.kind.as_str()) {
        (Purpose::Copy, ..) => Claim::UseIfSame,
        (Purpose::Entries, ..) | (_, "", "Namespace") => Claim::Use,
        (_, "", "ServiceAccount") if key.name == "default" => Claim::Use,
        _ => Claim::Own,
    }
}

fn strip(manifest: &mut Manifest) {
    manifest.object_mut().remove("status");
    let is_aggregated = |manifest: &Manifest| {
        let rule = manifest.object().get("aggregationRule");
        manifest.kind() == "ClusterRole" && rule.is_some_and(|rule| !rule.is_null())
    };
    if is_aggregated(manifest) {
        // A controller adds them up of other roles, and would have set them otherwise the next time.
        manifest.object_mut().remove("rules");
    }
    let metadata = manifest.metadata_mut();
    for field in SERVER_OWNED {
        metadata.remove(field);
    }
}

/// Makes `stringData` of a Secret part of its `data`, where it wins, as in the API server.
fn move_string_data(manifest: &mut Manifest, problems: &mut Vec<Problem>) {
    if !(manifest.kind() == "Secret" && manifest.group().is_empty()) {
        return;
    }
    let object = manifest.object_mut();
    let texts = match object.remove("stringData") {
        None | Some(Value::Null) => return,
        Some(Value::Object(texts)) => texts,
        Some(_) => {
            let message = "stringData is no map; make it one of texts";
            problems.push(Problem::error("secret-data", message));
            return;
        }
    };
    let data = map_at(object, "data");
    for (key, value) in texts {
        match value {
            Value::String(text) => {
                data.insert(key, STANDARD.encode(text).into());
            }
            // What it is instead is not told: it is data of a Secret all the same.
            _ => {
                let message = format!("stringData.{key} is no text; quote it");
                problems.push(Problem::error("secret-data", message));
            }
        }
    }
}

/// Takes the lists off a ServiceAccount, and makes entries of what is in them.
fn take_entries(manifest: &mut Manifest, entries: &mut Vec<Entry>, problems: &mut Vec<Problem>) {
    if !(manifest.kind() == "ServiceAccount" && manifest.group().is_empty()) {
        return;
    }
    let (namespace, account) = (manifest.namespace().to_owned(), manifest.name().to_owned());
    for list in List::ALL {
        let field = list.field();
        let object = manifest.object_mut();
        match object.get(field) {
            None => continue,
            Some(Value::Array(_) | Value::Null) => {}
            Some(_) => {
                let message = format!("{field} is no list; make it one of objects with a name");
                problems.push(Problem::error("account-list", message));
            }
        }
        let items = std::mem::take(list_at(object, field));
        object.remove(field);
        for (index, item) in items.iter().enumerate() {
            let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
            if name.is_empty() {
                let message = format!("{field}[{index}] names no Secret; give it a name");
                problems.push(Problem::error("account-list", message));
                continue;
            }
            let entry = Entry {
                namespace: namespace.clone(),
                account: account.clone(),
                list,
                secret: name.to_owned(),
            };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
}
