//! What is told when a login cannot be looked up, and what to do about it.

use std::{io, path::PathBuf, sync::Arc};

use super::helper::{self, HelperError};
use crate::logins::{BadFile, SecretError};

/// Why a login could not be looked up. The exit code is always that of wrong usage or configuration. No message holds
/// anything of a file but its path, lines, and keys that look like registries.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// An auth file that was named is not there.
    #[error("there is no auth file {}", .0.display())]
    Missing(PathBuf),
    /// An auth file cannot be read.
    #[error("cannot read the auth file {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why it was not read.
        source: Arc<io::Error>,
    },
    /// A file is no auth file.
    #[error("{} is not a valid auth file: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: BadFile,
    },
    /// An auth file has nothing to put into a Secret.
    #[error("there is no login in the auth file {}; what a credential helper keeps is not taken out of it", .0.display())]
    NoLogins(PathBuf),
    /// A Secret holds no logins that can be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A credential helper gave no answer.
    #[error("the credential helper{} that {} names for {registry} gives no login", shown_helper(.name), .path.display())]
    Helper {
        /// The helper's name, as the file has it.
        name: String,
        /// The registry that it was to be asked about.
        registry: String,
        /// The file that names it.
        path: PathBuf,
        /// Why there is no answer.
        #[source]
        reason: HelperError,
    },
}

/// A name that cannot be one is not repeated: who knows what it is.
fn shown_helper(name: &str) -> String {
    if helper::is_name(name) {
        format!(" docker-credential-{name}")
    } else {
        String::new()
    }
}

impl CredentialError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing(_) => Some(
                "log in with `podman login --authfile FILE` or `docker login`, or name another file with --authfile"
                    .to_owned(),
            ),
            Self::Read { .. } | Self::Invalid { .. } => Some(
                "repair the file or name another one with --authfile; `podman login` writes a new one".to_owned(),
            ),
            Self::NoLogins(_) => Some(
                "log in to a file of its own with `podman login --authfile FILE REGISTRY`".to_owned(),
            ),
            Self::Secret(_) => Some(SecretError::HINT.to_owned()),
            Self::Helper { name, registry, reason, .. } => Some(match reason {
                HelperError::Name => "correct the name under `credHelpers` or `credsStore`".to_owned(),
                HelperError::Missing => format!(
                    "install docker-credential-{name}, take it out of the file, or name another file with --authfile"
                ),
                _ => format!("see what `echo {registry} | docker-credential-{name} get` says"),
            }),
        }
    }
}
