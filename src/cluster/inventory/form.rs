//! The text of an inventory, form 1: JSON, compressed. What is read has been checked against the rules that names have, as
//! requests will be made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};

use super::{Content, Hold, InstallName, Inventory, InventoryError, Member, State, name};
use crate::{
    cluster::accounts::{Entry, List},
    manifest::{ObjectKey, names},
};

/// The form that is written, and the last that can be read.
const FORM: u64 = 1;
/// Bytes of the text. An object takes about 400, so that this is far above any install.
const MOST_BYTES: u64 = 64 << 20;
/// Objects, entries, and installs that need this one.
const MOST_ITEMS: usize = 100_000;
/// Bytes of a text that is shown.
const LONGEST_TEXT: usize = 1_024;

#[derive(Deserialize)]
struct Numbered {
    form: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    form: u64,
    namespace: String,
    name: String,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<FormRun>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
    content: FormContent,
    objects: Vec<FormMember>,
    entries: Vec<FormEntry>,
    required_by: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormRun {
    what: String,
    who: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormContent {
    package: String,
    bundle: String,
    version: String,
    image: String,
    catalog: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormMember {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespace: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    asked: String,
    managed: String,
    hold: FormHold,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormHold {
    Owned,
    Shared,
    Used,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormEntry {
    namespace: String,
    account: String,
    list: FormList,
    secret: String,
}

#[derive(Serialize, Deserialize)]
enum FormList {
    #[serde(rename = "imagePullSecrets")]
    ImagePullSecrets,
    #[serde(rename = "secrets")]
    Secrets,
}

/// The compressed text of an inventory; the same for the same inventory.
pub(super) fn pack(inventory: &Inventory) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    // Writing into memory does not fail, and the form has no maps whose keys could be something else than texts.
    let text = serde_json::to_vec(&form_of(inventory)).unwrap_or_default();
    let _ = encoder.write_all(&text);
    encoder.finish().unwrap_or_default()
}

/// The inventory in compressed text; `secret` is the Secret that it is from, for errors.
pub(super) fn unpack(bytes: &[u8], secret: &str) -> Result<Inventory, InventoryError> {
    let broken = |reason: String| InventoryError::Broken {
        name: secret.to_owned(),
        reason,
    };
    let mut text = vec![];
    GzDecoder::new(bytes)
        .take(MOST_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|_| broken("its contents cannot be decompressed".to_owned()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(broken(format!(
            "its contents are over the limit of {MOST_BYTES} bytes"
        )));
    }
    // Parts of the text may be anything, and would be repeated by a message of the parser.
    let unlike = |error: serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        broken(format!(
            "its contents are not as they are written (line {line}, column {column})"
        ))
    };
    let Numbered { form } = serde_json::from_slice(&text).map_err(unlike)?;
    if form > FORM {
        let name = secret.to_owned();
        return Err(InventoryError::Newer { name, form });
    }
    let form: Form = serde_json::from_slice(&text).map_err(unlike)?;
    inventory_of(form).map_err(broken)
}

fn form_of(inventory: &Inventory) -> Form {
    let Content {
        package,
        bundle,
        version,
        image,
        catalog,
    } = inventory.content.clone();
    let running = match &inventory.state {
        State::Done | State::Removed => None,
        State::Running { what, who } => Some(FormRun {
            what: what.clone(),
            who: who.clone(),
        }),
    };
    Form {
        form: FORM,
        namespace: inventory.install.namespace.clone(),
        name: inventory.install.name.clone(),
        generation: inventory.generation,
        running,
        removed: inventory.state == State::Removed,
        content: FormContent {
            package,
            bundle,
            version,
            image,
            catalog,
        },
        objects: inventory.objects.iter().map(form_of_member).collect(),
        entries: inventory.entries.iter().map(form_of_entry).collect(),
        required_by: inventory
            .required_by
            .iter()
            .map(InstallName::path)
            .collect(),
    }
}

fn form_of_member((key, member): (&ObjectKey, &Member)) -> FormMember {
    let key = key.clone();
    let member = member.clone();
    FormMember {
        group: key.group,
        version: member.version,
        kind: key.kind,
        plural: member.plural,
        namespace: key.namespace,
        name: key.name,
        uid: member.uid,
        asked: member.asked,
        managed: member.managed,
        hold: match member.hold {
            Hold::Owned => FormHold::Owned,
            Hold::Shared => FormHold::Shared,
            Hold::Used => FormHold::Used,
        },
    }
}

fn form_of_entry(entry: &Entry) -> FormEntry {
    let entry = entry.clone();
    FormEntry {
        namespace: entry.namespace,
        account: entry.account,
        list: match entry.list {
            List::ImagePullSecrets => FormList::ImagePullSecrets,
            List::Secrets => FormList::Secrets,
        },
        secret: entry.secret,
    }
}

fn inventory_of(form: Form) -> Result<Inventory, String> {
    let counts = [
        form.objects.len(),
        form.entries.len(),
        form.required_by.len(),
    ];
    if counts.iter().any(|count| *count > MOST_ITEMS) {
        return Err(format!("it lists more than {MOST_ITEMS} things"));
    }
    let install = InstallName::new(&form.namespace, &form.name)?;
    let FormContent {
        package,
        bundle,
        version,
        image,
        catalog,
    } = form.content;
    let content = Content {
        package: shown(package)?,
        bundle: shown(bundle)?,
        version: shown(version)?,
        image: shown(image)?,
        catalog: shown(catalog)?,
    };
    let state = match form.running {
        None if form.removed => State::Removed,
        None => State::Done,
        Some(run) => State::Running {
            what: shown(run.what)?,
            who: shown(run.who)?,
        },
    };
    let mut objects = BTreeMap::new();
    for member in form.objects {
        let (key, member) = member_of(member)?;
        let message = format!("it lists {key} twice");
        if objects.insert(key, member).is_some() {
            return Err(message);
        }
    }
    let entries = form.entries.into_iter().map(entry_of);
    let required_by = form.required_by.iter();
    let required_by = required_by.map(|path| InstallName::of_path(path));
    Ok(Inventory {
        install,
        generation: form.generation,
        state,
        content,
        objects,
        entries: entries.collect::<Result<_, _>>()?,
        required_by: required_by.collect::<Result<BTreeSet<_>, _>>()?,
    })
}

fn member_of(form: FormMember) -> Result<(ObjectKey, Member), String> {
    let key = ObjectKey {
        group: form.group,
        kind: form.kind,
        namespace: form.namespace,
        name: form.name,
    };
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_hash =
        |text: &str| text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uid = |text: &String| names::label_error(text).is_none();
    let is_good = (key.group.is_empty() || names::subdomain_error(&key.group).is_none())
        && (key.namespace.is_empty() || names::label_error(&key.namespace).is_none())
        && is_word(&key.kind)
        && key.kind.len() <= 63
        && key.name.len() <= 253
        && names::path_segment_error(&key.name).is_none()
        && names::label_error(&form.version).is_none()
        && names::label_error(&form.plural).is_none()
        && form.uid.as_ref().is_none_or(is_uid)
        && is_hash(&form.asked)
        && is_hash(&form.managed);
    if !is_good {
        return Err(format!(
            "it lists an object that there cannot be: kind {:?}, namespace {:?}, name {:?}",
            key.kind, key.namespace, key.name
        ));
    }
    if name::is_ours(&key) {
        return Err(format!("it lists {key}, which is no part of an install"));
    }
    let member = Member {
        version: form.version,
        plural: form.plural,
        uid: form.uid,
        asked: form.asked,
        managed: form.managed,
        hold: match form.hold {
            FormHold::Owned => Hold::Owned,
            FormHold::Shared => Hold::Shared,
            FormHold::Used => Hold::Used,
        },
    };
    Ok((key, member))
}

fn entry_of(form: FormEntry) -> Result<Entry, String> {
    let is_good = names::label_error(&form.namespace).is_none()
        && names::subdomain_error(&form.account).is_none()
        && names::subdomain_error(&form.secret).is_none();
    if !is_good {
        return Err(format!(
            "it lists an entry that there cannot be: {:?} in ServiceAccount {:?} in {:?}",
            form.secret, form.account, form.namespace
        ));
    }
    Ok(Entry {
        namespace: form.namespace,
        account: form.account,
        list: match form.list {
            FormList::ImagePullSecrets => List::ImagePullSecrets,
            FormList::Secrets => List::Secrets,
        },
        secret: form.secret,
    })
}

/// A text that can be shown as it is.
fn shown(text: String) -> Result<String, String> {
    if text.len() > LONGEST_TEXT || text.chars().any(char::is_control) {
        return Err("it has a text that is too long, or has control characters".to_owned());
    }
    Ok(text)
}
