//! How a user proves who they are: what goes into the `Authorization` header, and the client certificate.

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::AuthInfo;
use secrecy::{ExposeSecret, SecretString};

use super::{ConnectionError, chosen::Chosen, kubeconfig::read_file, plugin::Plugin};

/// For how long the content of a token file is used; whoever keeps it up to date does so long before it ends.
const TOKEN_FILE_AGE: SignedDuration = SignedDuration::from_secs(60);

/// What proves who a user is.
#[derive(Debug, Default)]
pub(super) struct Login {
    /// The `Authorization` header, marked as secret.
    pub(super) authorization: Option<HeaderValue>,
    /// A private key and its certificates, as PEM.
    pub(super) identity: Option<SecretString>,
    /// Until when it is good.
    pub(super) expires: Option<Timestamp>,
}

impl Login {
    /// The header for a token; nothing when it cannot be sent.
    pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
        header(&format!("Bearer {token}"))
    }
}

fn header(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Where logins come from.
#[derive(Debug)]
pub(super) enum Logins {
    /// The kubeconfig has it, for good.
    Fixed {
        authorization: Option<HeaderValue>,
        identity: Option<SecretString>,
    },
    /// A file has the token.
    File {
        path: PathBuf,
        identity: Option<SecretString>,
    },
    /// A program gives it.
    Plugin(Box<Plugin>),
}

impl Logins {
    /// Those of the user that was chosen. `identity` are the key and certificates that the kubeconfig has.
    ///
    /// # Errors
    /// When it is not said well enough how they prove who they are.
    pub(super) fn of(
        chosen: &Chosen,
        authority: Option<&[u8]>,
        identity: Option<SecretString>,
        plugin_timeout: std::time::Duration,
    ) -> Result<Self, ConnectionError> {
        let user = &chosen.user;
        if let Some(authorization) = written(user)? {
            let authorization = Some(authorization);
            return Ok(Self::Fixed {
                authorization,
                identity,
            });
        }
        if let Some(path) = user.token_file.as_ref().filter(|path| !path.is_empty()) {
            let path = path.into();
            return Ok(Self::File { path, identity });
        }
        match &user.exec {
            // Whoever has a certificate needs no plugin, as in client-go.
            Some(exec) if identity.is_none() => {
                let plugin = Plugin::new(exec.clone(), &chosen.cluster, authority, plugin_timeout)?;
                Ok(Self::Plugin(Box::new(plugin)))
            }
            _ => Ok(Self::Fixed {
                authorization: None,
                identity,
            }),
        }
    }

    /// Gets a login now.
    ///
    /// # Errors
    /// When a file or a plugin does not give one.
    pub(super) fn get(&self, now: Timestamp) -> Result<Login, ConnectionError> {
        match self {
            Self::Fixed {
                authorization,
                identity,
            } => Ok(Login {
                authorization: authorization.clone(),
                identity: identity.clone(),
                expires: None,
            }),
            Self::File { path, identity } => {
                let content = read_file(path).map_err(|source| ConnectionError::Unreadable {
                    path: path.clone(),
                    source,
                })?;
                let token = String::from_utf8(content).ok();
                let token = token.as_deref().map(str::trim).and_then(Login::bearer);
                let bad =
                    || ConnectionError::Config(format!("{}: it holds no token", path.display()));
                Ok(Login {
                    authorization: Some(token.ok_or_else(bad)?),
                    identity: identity.clone(),
                    expires: now.checked_add(TOKEN_FILE_AGE).ok(),
                })
            }
            Self::Plugin(plugin) => plugin.run(),
        }
    }

    /// Whether another one can be had when one is not accepted any more.
    pub(super) fn can_change(&self) -> bool {
        !matches!(self, Self::Fixed { .. })
    }
}

/// The `Authorization` header that stands in the kubeconfig.
fn written(user: &AuthInfo) -> Result<Option<HeaderValue>, ConnectionError> {
    let bad = |what: &str| {
        ConnectionError::Config(format!(
            "the {what} of the user has a character that cannot be sent"
        ))
    };
    if let Some(provider) = &user.auth_provider {
        // The others are gone from kubectl too (client-go v0.26).
        if provider.name != "oidc" {
            return Err(ConnectionError::Config(format!(
                "the user has the auth-provider {:?}, which kubectl does not know any more: use its credential plugin (exec)",
                provider.name
            )));
        }
        if let Some(token) = provider.config.get("id-token") {
            return Login::bearer(token)
                .map(Some)
                .ok_or_else(|| bad("id-token"));
        }
    }
    if let Some(token) = &user.token
        && !token.expose_secret().is_empty()
    {
        let token = Login::bearer(token.expose_secret());
        return token.map(Some).ok_or_else(|| bad("token"));
    }
    match (&user.username, &user.password) {
        (Some(name), Some(password)) => {
            let both = format!("{name}:{}", password.expose_secret());
            let basic = header(&format!("Basic {}", STANDARD.encode(both)));
            basic.map(Some).ok_or_else(|| bad("password"))
        }
        _ => Ok(None),
    }
}
