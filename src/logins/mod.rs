//! Logins for registries as texts hold them: auth files of docker and podman, and Secrets of Kubernetes.
//!
//! Nothing is looked for, opened, run or sent here: texts come in, and what they say comes out. Which of a text's
//! entries are for a repository, and that all of them are tried in turn, is the kubelet's (k8s.io/kubernetes
//! `pkg/credentialprovider`).
//!
//! A password never shows: not in `Debug`, and not in an error, which tells of what is broken by line or key.
//!
//! | File | What it does |
//! | --- | --- |
//! | `matching.rs` | which keys cover a repository |
//! | `file.rs`, `login.rs` | read one auth file, and one entry of it |
//! | `secret.rs` | reads Secrets |

mod file;
mod login;
pub mod matching;
mod secret;

pub use self::{
    file::BadFile,
    secret::{PullSecret, SecretError, SecretKind},
};
pub(crate) use self::{
    file::{AuthFile, Helper, Layout, auth_file, json},
    login::Login,
    secret::secrets,
};

/// A text that does not show when it is printed for debugging, and is wiped when it is dropped.
pub type Secret = secrecy::SecretString;
