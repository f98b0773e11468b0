//! Which pull Secrets an install has, and what is copied of each: its type and all of its data.

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use super::{PullSecret, RULE};
use crate::{
    logins::{self, Secret, SecretError, SecretKind},
    manifest::{Manifest, ObjectKey, Origin, decode_base64, names},
    problem::Problem,
};

/// What copies are generated from. Nothing that is read from content is generated, so that no bundle can claim it.
const COPY: &str = "a pull Secret";
/// Bytes of a key of a Secret (apimachinery `IsConfigMapKey`).
const LONGEST_KEY: usize = 253;

/// Whether an object is a copy of a Secret that [`attach`](super::attach) made: one whose data came from the user.
#[must_use]
pub fn is_copy(manifest: &Manifest) -> bool {
    manifest.origin == Origin::Generated(COPY)
}

/// A Secret of the type `kubernetes.io/dockerconfigjson`, in no namespace yet, from the text of a docker config.
#[must_use]
pub fn of_logins(name: &str, logins: &Secret, origin: Origin) -> Manifest {
    let kind = SecretKind::DockerConfigJson;
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": kind.type_name(),
        "data": {kind.data_key(): STANDARD.encode(logins.expose_secret())},
    });
    Manifest::new(object, origin)
}

/// A Secret that an install uses.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    named_by: &'a str,
    found: Option<Found<'a>>,
}

/// A Secret that is in the input.
struct Found<'a> {
    copy: Manifest,
    source: &'a Manifest,
    presence: Presence,
}

/// Whether a Secret is in the namespace of the install already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It was taken from there.
    Present,
    /// It has to be created.
    ToBeMade,
}

/// The Secrets, each name once, in the order in which they are named first. Those that cannot be used are told.
pub(super) fn wanted<'a>(
    secrets: &'a [PullSecret],
    namespace: &str,
    problems: &mut Vec<Problem>,
) -> Vec<Wanted<'a>> {
    let mut wanted: Vec<Wanted<'a>> = vec![];
    for secret in secrets {
        let found = match find(secret, namespace) {
            Ok(found) => found,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        match wanted.iter_mut().find(|other| other.name == secret.name) {
            Some(other) => join(other, found, secret, namespace, problems),
            None => wanted.push(Wanted {
                name: &secret.name,
                named_by: &secret.named_by,
                found,
            }),
        }
    }
    wanted
}

/// What there is of a Secret.
fn find<'a>(secret: &'a PullSecret, namespace: &str) -> Result<Option<Found<'a>>, Problem> {
    let named_by = &secret.named_by;
    if let Some(reason) = names::subdomain_error(&secret.name) {
        let message = format!(
            "{named_by} names the pull Secret {:?}, and no Secret can be called that: {reason}",
            secret.name
        );
        return Err(Problem::error(RULE, message));
    }
    let Some(source) = &secret.source else {
        return Ok(None);
    };
    let copy = copy(source, &secret.name, namespace).map_err(|reason| {
        let message = format!(
            "this pull Secret, which {named_by} names, {reason}; {}",
            SecretError::HINT
        );
        Problem::error(RULE, message)
            .at(&source.origin)
            .on(source.key())
    })?;
    let is_there = source.namespace() == namespace && source.metadata("uid").is_some();
    let presence = if is_there {
        Presence::Present
    } else {
        Presence::ToBeMade
    };
    Ok(Some(Found {
        copy,
        source,
        presence,
    }))
}

/// Takes another Secret of the same name for the same one, if it is.
fn join<'a>(
    wanted: &mut Wanted<'a>,
    found: Option<Found<'a>>,
    secret: &'a PullSecret,
    namespace: &str,
    problems: &mut Vec<Problem>,
) {
    match (&mut wanted.found, found) {
        (_, None) => {}
        (before @ None, found) => {
            *before = found;
            wanted.named_by = &secret.named_by;
        }
        (Some(before), Some(found)) if before.copy.object() == found.copy.object() => {
            if found.presence == Presence::Present {
                before.presence = Presence::Present;
            }
        }
        (Some(before), Some(found)) => {
            let message = format!(
                "{} names the one of {}, and {} the one of {}, which holds something else; rename one of them, because \
                 there can be only one in namespace {namespace}",
                wanted.named_by, before.source.origin, secret.named_by, found.source.origin
            );
            problems.push(Problem::error(RULE, message).on(key(wanted.name, namespace)));
        }
    }
}

/// Adds the copies that have to be made, and tells what has to be there.
pub(super) fn add(
    manifests: &mut Vec<Manifest>,
    namespace: &str,
    wanted: Vec<Wanted<'_>>,
    problems: &mut Vec<Problem>,
) {
    for Wanted {
        name,
        named_by,
        found,
    } in wanted
    {
        let key = key(name, namespace);
        let own = manifests.iter().find(|manifest| manifest.key() == key);
        match (own, found) {
            (None, Some(found)) if found.presence == Presence::ToBeMade => {
                manifests.push(found.copy);
            }
            (None, Some(_)) | (Some(_), None) => {}
            (None, None) => {
                let message = format!(
                    "it must be in namespace {namespace} before the operator starts, or be given by -f; {named_by} names it"
                );
                problems.push(Problem::note(RULE, message).on(key));
            }
            (Some(own), Some(found)) if is_copy(own) && own.object() == found.copy.object() => {}
            (Some(own), Some(_)) => {
                let message = format!(
                    "the bundle has a Secret of its own with the name of the pull Secret that {named_by} names; rename \
                     the pull Secret"
                );
                problems.push(Problem::error(RULE, message).at(&own.origin).on(key));
            }
        }
    }
}

fn key(name: &str, namespace: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "Secret".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The Secret as it is in the namespace of the install: nothing but its type and its data.
///
/// # Errors
/// Why it is no pull Secret, to be put behind its name.
fn copy(source: &Manifest, name: &str, namespace: &str) -> Result<Manifest, String> {
    let kind = source.object().get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    if SecretKind::of_type(&kind).is_none() {
        let name = name.to_owned();
        return Err(SecretError::Type { name, kind }.reason());
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "kubectl-olm"},
        },
        "type": kind,
        "data": data(source)?,
    });
    let copy = Manifest::generated(object, COPY);
    // Read from the copy, so that what is judged is what pods get.
    match logins::PullSecret::from_manifest(copy.object().clone()) {
        Ok(_) => Ok(copy),
        Err(error) => Err(error.reason()),
    }
}

/// `data` as the API server keeps it, with `stringData` written over it.
fn data(source: &Manifest) -> Result<Map<String, Value>, String> {
    let mut data = Map::new();
    for field in ["data", "stringData"] {
        let entries = match source.object().get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(entries)) => entries,
            Some(_) => return Err(format!("has a {field} that is no map")),
        };
        for (key, value) in entries {
            if !is_key(key) {
                return Err(format!(
                    "has a key in {field} that is longer than {LONGEST_KEY} bytes or has more in it than letters, \
                     digits, `-`, `_` and `.`"
                ));
            }
            let bytes = match value {
                Value::Null => vec![],
                Value::String(text) if field == "stringData" => text.clone().into_bytes(),
                // What the decoder says names what it stumbled over.
                Value::String(text) => decode_base64(text)
                    .map_err(|_| format!("holds no base64 in {field} under {key}"))?,
                _ => return Err(format!("holds no text in {field} under {key}")),
            };
            data.insert(key.clone(), STANDARD.encode(bytes).into());
        }
    }
    Ok(data)
}

/// Whether it can be a key of a Secret; others are not repeated in messages, because who knows what they are.
fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = key == "." || key.starts_with("..");
    (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(fits) && !is_path
}
