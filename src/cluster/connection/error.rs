//! Why there is no connection.

use std::{io, path::PathBuf};

/// Why there is no connection. No text repeats a value of a kubeconfig or what a plugin answered.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// What the kubeconfig or the flags say cannot be used.
    #[error("{0}")]
    Config(String),
    /// A kubeconfig is damaged.
    #[error("kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that the kubeconfig or the flags name cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Nothing says which cluster is meant.
    #[error("no cluster is known: the kubeconfig ({places}) has no current context")]
    NoCluster {
        /// Where it was looked for.
        places: String,
    },
    /// A credential plugin gave no credentials.
    #[error("credential plugin {command:?}: {reason}")]
    Plugin {
        /// The program.
        command: String,
        /// What is wrong.
        reason: String,
    },
}

impl ConnectionError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoCluster { .. } => Some(
                "name a kubeconfig with --kubeconfig or KUBECONFIG, or a context in it with --context",
            ),
            Self::Plugin { .. } => {
                Some("run the program by itself, or log in again with the tool that it belongs to")
            }
            _ => None,
        }
    }
}
