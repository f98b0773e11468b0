//! Secrets of Kubernetes that hold logins for registries.
//!
//! Takes the two types that the kubelet takes (`pkg/credentialprovider/secrets` of k8s.io/kubernetes). Of what is in
//! them only the logins count: a Secret comes with the input, and must not be able to have a program run by naming a
//! credential helper.

use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::{
    CredentialError, Secret,
    file::{AuthFile, BadFile, Layout, auth_file, json},
};
use crate::{
    limits::Limits,
    manifest::{decode_base64, yaml},
};

/// Characters of a name that are kept.
const LONGEST_NAME: usize = 253;

/// The two ways in which a Secret holds logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// `kubernetes.io/dockerconfigjson`: docker's `config.json` under `.dockerconfigjson`.
    DockerConfigJson,
    /// `kubernetes.io/dockercfg`: the older `.dockercfg` under `.dockercfg`.
    DockerCfg,
}

impl SecretKind {
    /// The kind that a Secret's `type` names, if it is one of the two.
    #[must_use]
    pub fn of_type(text: &str) -> Option<Self> {
        match text {
            "kubernetes.io/dockerconfigjson" => Some(Self::DockerConfigJson),
            "kubernetes.io/dockercfg" => Some(Self::DockerCfg),
            _ => None,
        }
    }

    /// The key of `data` that holds the logins.
    #[must_use]
    pub fn data_key(self) -> &'static str {
        match self {
            Self::DockerConfigJson => ".dockerconfigjson",
            Self::DockerCfg => ".dockercfg",
        }
    }
}

/// A Secret that holds logins. Its `Debug` shows nothing of them.
#[derive(Debug, Clone)]
pub struct PullSecret {
    /// `metadata.name`, or more if that does not say which Secret is meant; for messages.
    pub name: String,
    /// How the logins are written.
    pub kind: SecretKind,
    /// The text under [`SecretKind::data_key`], decoded.
    pub data: Secret,
}

impl PullSecret {
    /// Takes the logins out of a Secret, from `stringData` or, in base64, from `data`.
    ///
    /// # Errors
    /// [`CredentialError::SecretType`] for a Secret of another type, and [`CredentialError::Secret`] when the data is
    /// missing or no base64 of text.
    pub fn from_manifest(mut object: Map<String, Value>) -> Result<Self, CredentialError> {
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text(
            object
                .get("metadata")
                .and_then(|metadata| metadata.get("name")),
        );
        // No object in a cluster has a longer one.
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let kind = text(object.get("type"));
        let Some(kind) = SecretKind::of_type(&kind) else {
            return Err(CredentialError::SecretType { name, kind });
        };
        match take_data(&mut object, kind) {
            Ok(data) => Ok(Self { name, kind, data }),
            Err(reason) => Err(CredentialError::Secret { name, reason }),
        }
    }

    /// What the Secret says, without what would run a program.
    pub(super) fn read(&self) -> Result<AuthFile, CredentialError> {
        let layout = match self.kind {
            SecretKind::DockerConfigJson => Layout::Config,
            SecretKind::DockerCfg => Layout::Legacy,
        };
        json(self.data.expose_secret().as_bytes())
            .and_then(|value| auth_file(value, layout))
            .map(AuthFile::without_helpers)
            .map_err(|reason| CredentialError::Secret {
                name: self.name.clone(),
                reason,
            })
    }
}

fn take_data(object: &mut Map<String, Value>, kind: SecretKind) -> Result<Secret, BadFile> {
    let key = kind.data_key();
    let mut take = |field: &str| match object.get_mut(field) {
        Some(Value::Object(map)) => map.remove(key),
        _ => None,
    };
    // The API server lets `stringData` win as well.
    match (take("stringData"), take("data")) {
        (Some(Value::String(text)), _) => Ok(Secret::from(text)),
        (None | Some(Value::Null), Some(Value::String(text))) => {
            let encoded = Secret::from(text);
            let decoded = decode_base64(encoded.expose_secret());
            let decoded = decoded.map_err(|_| BadFile::key(key, "is no base64"))?;
            let text = String::from_utf8(decoded);
            Ok(Secret::from(text.map_err(|_| {
                BadFile::key(key, "is base64 of something that is not UTF-8")
            })?))
        }
        (None | Some(Value::Null), None | Some(Value::Null)) => {
            Err(BadFile::key(key, "is missing"))
        }
        _ => Err(BadFile::key(key, "is no text")),
    }
}

/// The Secrets of a stream of manifests, also those of a `List`.
///
/// # Errors
/// Where the text is not YAML, and the first object that is no Secret with logins; `bad` wraps the former.
pub(super) fn secrets(
    text: &[u8],
    bad: impl Fn(BadFile) -> CredentialError,
) -> Result<Vec<PullSecret>, CredentialError> {
    let documents = yaml::read(text, &Limits::DEFAULT).map_err(|error| {
        bad(match error.line() {
            Some(line) => BadFile::line(line, "is neither JSON nor YAML"),
            None => BadFile::whole("is neither JSON nor YAML"),
        })
    })?;
    let mut secrets = vec![];
    for document in documents {
        let not_a_secret = || {
            bad(BadFile::line(
                document.line,
                "is neither an auth file nor a Secret",
            ))
        };
        let Value::Object(mut object) = document.value else {
            return Err(not_a_secret());
        };
        let items = match object.remove("items") {
            Some(Value::Array(items)) => items,
            _ => vec![Value::Object(object)],
        };
        for item in items {
            match item {
                Value::Object(secret) if secret.get("kind") == Some(&"Secret".into()) => {
                    secrets.push(PullSecret::from_manifest(secret)?);
                }
                _ => return Err(not_a_secret()),
            }
        }
    }
    if secrets.is_empty() {
        return Err(bad(BadFile::whole("is empty")));
    }
    Ok(secrets)
}
