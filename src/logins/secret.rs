//! Secrets of Kubernetes that hold logins for registries.
//!
//! Takes the two types that the kubelet takes (`pkg/credentialprovider/secrets` of k8s.io/kubernetes). Of what is in
//! them only the logins count: a Secret comes with the input, and must not be able to have a program run by naming a
//! credential helper.

use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::{
    Secret,
    file::{AuthFile, BadFile, Layout, auth_file, json},
};
use crate::{
    image::ImageReference,
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
        let kinds = [Self::DockerConfigJson, Self::DockerCfg];
        kinds.into_iter().find(|kind| kind.type_name() == text)
    }

    /// The `type` of such a Secret.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::DockerConfigJson => "kubernetes.io/dockerconfigjson",
            Self::DockerCfg => "kubernetes.io/dockercfg",
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

/// Why the logins of a Secret cannot be had. No message holds anything of its data but keys that look like registries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The Secret holds something else than logins.
    #[error("the Secret {name:?} {}", self.reason())]
    Type {
        /// Its name.
        name: String,
        /// Its type; may be empty.
        kind: String,
    },
    /// Its logins cannot be read.
    #[error("the Secret {name:?} {}", self.reason())]
    Logins {
        /// Its name.
        name: String,
        /// Where and why.
        reason: BadFile,
    },
}

impl SecretError {
    /// What to do about it.
    pub const HINT: &str = "make one with `kubectl create secret docker-registry`";

    /// What is wrong, to be put behind the name of the Secret.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Type { kind, .. } => format!(
                "is of the type {}, and logins are in ones of {} or {}",
                shown_type(kind),
                SecretKind::DockerConfigJson.type_name(),
                SecretKind::DockerCfg.type_name()
            ),
            Self::Logins { reason, .. } => format!("holds no valid logins: {reason}"),
        }
    }
}

fn shown_type(kind: &str) -> String {
    let kind: String = kind.chars().take(100).collect();
    if kind.is_empty() {
        "Opaque".to_owned()
    } else {
        kind
    }
}

/// A Secret whose logins were read. Its `Debug` shows nothing of them.
#[derive(Debug, Clone)]
pub struct PullSecret {
    /// `metadata.name`, or more if that does not say which Secret is meant; for messages.
    pub name: String,
    logins: AuthFile,
}

impl PullSecret {
    /// Reads the logins of a Secret, from `stringData` or, in base64, from `data`; without what would run a program.
    ///
    /// # Errors
    /// [`SecretError::Type`] for a Secret of another type, and [`SecretError::Logins`] when the data is missing, no
    /// base64 of text, or no logins can be read in it.
    pub fn from_manifest(mut object: Map<String, Value>) -> Result<Self, SecretError> {
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
            return Err(SecretError::Type { name, kind });
        };
        let layout = match kind {
            SecretKind::DockerConfigJson => Layout::Config,
            SecretKind::DockerCfg => Layout::Legacy,
        };
        let logins = take_data(&mut object, kind)
            .and_then(|data| json(data.expose_secret().as_bytes()))
            .and_then(|value| auth_file(value, layout));
        match logins {
            Ok(logins) => Ok(Self {
                name,
                logins: logins.without_helpers(),
            }),
            Err(reason) => Err(SecretError::Logins { name, reason }),
        }
    }

    /// What the Secret says.
    pub(crate) fn logins(&self) -> &AuthFile {
        &self.logins
    }

    /// Whether a login of it is for an image, as the kubelet finds it.
    #[must_use]
    pub fn covers(&self, image: &ImageReference) -> bool {
        let image = image.normalized();
        let registry = image.registry.as_deref().unwrap_or_default();
        !self.logins.logins(registry, &image.repository).is_empty()
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
pub(crate) fn secrets<E: From<SecretError>>(
    text: &[u8],
    bad: impl Fn(BadFile) -> E,
) -> Result<Vec<PullSecret>, E> {
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
