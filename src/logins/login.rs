//! One entry of an auth file: what opens a registry.
//!
//! Follows `decodeDockerConfigFieldAuth` of k8s.io/kubernetes (`pkg/credentialprovider/config.go`) and `decodeAuth` of
//! docker/cli (`cli/config/configfile/file.go`). Unlike both, what cannot stand in an HTTP header is refused here: a
//! password that was encoded together with its line break is a common mistake, and no registry ever answers it kindly.
//! Docker's `registrytoken` is passed over, as by the kubelet and by podman.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use secrecy::{ExposeSecret, SecretSlice};
use serde_json::{Map, Value};

use super::Secret;

/// Base64 with or without padding; bits that are left at the end are passed over, as Go does.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is used to log in. Its `Debug` shows nothing of it.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) user: Secret,
    pub(crate) password: Secret,
    pub(crate) identity_token: Option<Secret>,
}

/// What is wrong with an entry: the field, empty for the entry itself, and the rule. Neither holds any content.
pub(crate) struct BadLogin {
    pub(crate) field: &'static str,
    pub(crate) problem: &'static str,
}

impl Login {
    /// Takes the login out of an entry. Nothing if there is none in it, as where a helper keeps the password.
    pub(crate) fn take(mut entry: Map<String, Value>) -> Result<Option<Self>, BadLogin> {
        let mut field = |field: &'static str| take_text(&mut entry, field);
        let auth = field("auth")?;
        let (user, password) = (field("username")?, field("password")?);
        let identity_token = field("identitytoken")?;
        let (user, password) = match auth {
            Some(auth) => decode(&auth).map_err(|problem| BadLogin {
                field: "auth",
                problem,
            })?,
            None => (user.unwrap_or_default(), password.unwrap_or_default()),
        };
        let login = Self {
            user,
            password,
            identity_token,
        };
        login.check()?;
        Ok((!login.is_empty()).then_some(login))
    }

    /// The entry of an auth file that says the same.
    pub(super) fn entry(&self) -> Value {
        let (user, password) = (self.user.expose_secret(), self.password.expose_secret());
        let mut entry = Map::new();
        let mut add = |field: &str, text: String| entry.insert(field.to_owned(), text.into());
        if user.contains(':') {
            // In one text with the password, nobody could tell where it ends.
            add("username", user.to_owned());
            add("password", password.to_owned());
        } else if !user.is_empty() || !password.is_empty() {
            add("auth", BASE64.encode(format!("{user}:{password}")));
        }
        if let Some(token) = &self.identity_token {
            add("identitytoken", token.expose_secret().to_owned());
        }
        entry.into()
    }

    fn is_empty(&self) -> bool {
        let none = |secret: &Secret| secret.expose_secret().is_empty();
        none(&self.user) && none(&self.password) && self.identity_token.is_none()
    }

    /// Nothing but text may reach a header.
    pub(crate) fn check(&self) -> Result<(), BadLogin> {
        let fields = [
            (Some(&self.user), "username"),
            (Some(&self.password), "password"),
            (self.identity_token.as_ref(), "identitytoken"),
        ];
        for (secret, field) in fields {
            let text = secret.map_or("", |secret| secret.expose_secret());
            let problem = if text.ends_with('\n') {
                "ends with a line break, which was encoded with it"
            } else if text.contains(char::is_control) {
                "has a control character in it"
            } else {
                continue;
            };
            return Err(BadLogin { field, problem });
        }
        Ok(())
    }
}

/// A field that holds text; nothing if it is missing, null or empty.
fn take_text(
    entry: &mut Map<String, Value>,
    field: &'static str,
) -> Result<Option<Secret>, BadLogin> {
    match entry.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(Secret::from(text))),
        Some(_) => Err(BadLogin {
            field,
            problem: "is no text",
        }),
    }
}

/// User and password out of base64.
fn decode(auth: &Secret) -> Result<(Secret, Secret), &'static str> {
    let without_breaks = Secret::from(auth.expose_secret().replace(['\r', '\n'], ""));
    let decoded = BASE64.decode(without_breaks.expose_secret());
    let decoded = SecretSlice::from(decoded.map_err(|_| "is no base64")?);
    let text = std::str::from_utf8(decoded.expose_secret())
        .map_err(|_| "is base64 of something that is not UTF-8")?;
    let (user, password) = text
        .split_once(':')
        .ok_or("is base64 of something without a colon between user and password")?;
    // Docker writes these behind passwords.
    Ok((user.into(), password.trim_end_matches('\0').into()))
}
