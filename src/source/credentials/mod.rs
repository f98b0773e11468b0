//! What may open a registry: from auth files of docker and podman, credential helpers and Secrets of Kubernetes.
//!
//! Nothing is sent anywhere here, and nothing is written. What a file or Secret says is read by [`crate::logins`].
//! Which files there are and in which order they are asked is that of containers (go.podman.io/image
//! `pkg/docker/config/config.go`); who is asked besides a file, and when, is docker's (docker/cli
//! `cli/config/configfile/file.go`).
//!
//! What stays true:
//! - a password never shows: not in `Debug`, not in an error, not in an argument of a program. Errors tell of files
//!   that are broken by line or key;
//! - a file that nobody named may be missing, and is read when a registry is about to be asked, not before;
//! - a helper, which may well ask a person for a password, runs only where no stored login was found before it.
//!
//! | File | What it does |
//! | --- | --- |
//! | `environment.rs` | the variables of the process, as values |
//! | `error.rs` | what is told when a login cannot be looked up |
//! | `helper.rs` | runs a credential helper |

mod environment;
mod error;
mod helper;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use secrecy::{ExposeSecret, SecretSlice};
use serde_json::Value;

pub use self::{environment::Environment, error::CredentialError, helper::HelperError};
use super::plain_file;
use crate::logins::{self, AuthFile, Helper, Layout, Login, auth_file, json};
pub use crate::logins::{BadFile, PullSecret, Secret, SecretError, SecretKind, matching};

/// How long a credential helper may take; some ask a person.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);

/// What opens a repository. Its `Debug` shows nothing but where it is from.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The user; empty where there is only a token.
    pub user: Secret,
    /// The password; empty where there is only a token.
    pub password: Secret,
    /// A token that a token server takes in exchange for one of its own, instead of user and password.
    pub identity_token: Option<Secret>,
    /// Where it is from, for messages: `quay.io/org in /root/.docker/config.json`.
    pub origin: String,
}

/// Where logins are looked up. Can be used by several threads at once.
#[derive(Debug, Default)]
pub struct Credentials {
    secrets: Vec<(String, AuthFile)>,
    files: Vec<LazyFile>,
    path: OsString,
    /// What helpers have answered, by name and registry, so that each is asked once.
    answers: Mutex<BTreeMap<(String, String), Answer>>,
}

/// What a helper has answered: a login, or that it keeps none, or nothing of use.
type Answer = Result<Option<Login>, HelperError>;

/// An auth file that is read when it is first needed.
#[derive(Debug)]
struct LazyFile {
    path: PathBuf,
    layout: Layout,
    presence: Presence,
    contents: OnceLock<Result<AuthFile, CredentialError>>,
}

/// Whether a file may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It was named.
    Required,
    /// It is where people have one.
    Optional,
}

impl Credentials {
    /// None at all: every registry is asked without a name.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Finds out where to look. Secrets come first. With `authfile`, an auth file or manifests of Secrets, no other file
    /// is asked; without, it is the one that `REGISTRY_AUTH_FILE` names or else all that people have, which are read
    /// when a registry is about to be asked.
    ///
    /// # Errors
    /// When `authfile` cannot be read.
    pub fn read(
        authfile: Option<&Path>,
        secrets: &[PullSecret],
        environment: &Environment,
    ) -> Result<Self, CredentialError> {
        let named_secret = |secret: &PullSecret| format!("the Secret {}", secret.name);
        let mut credentials = Self {
            secrets: secrets
                .iter()
                .map(|secret| (named_secret(secret), secret.logins().clone()))
                .collect(),
            files: vec![],
            path: environment.path.clone(),
            answers: Mutex::default(),
        };
        let Some(authfile) = authfile else {
            credentials.files = files(environment);
            return Ok(credentials);
        };
        match named_file(authfile)? {
            Named::AuthFile(contents) => {
                let file = LazyFile::new(authfile.to_owned(), Layout::Either, Presence::Required);
                let _ = file.contents.set(Ok(contents));
                credentials.files.push(file);
            }
            Named::Secrets(found) => {
                for secret in &found {
                    let origin = format!("{} in {}", named_secret(secret), authfile.display());
                    credentials.secrets.push((origin, secret.logins().clone()));
                }
            }
        }
        Ok(credentials)
    }

    /// What may open a repository, the best match first, each to be tried in turn. `registry` is a host with or without
    /// a port as in [`normalized`](crate::image::ImageReference::normalized), so that Docker's is `docker.io`;
    /// `repository` is without it. May run a credential helper.
    ///
    /// # Errors
    /// When a file cannot be read, or a helper that has to be asked gives no answer.
    pub fn of(&self, registry: &str, repository: &str) -> Result<Vec<Credential>, CredentialError> {
        let mut found = vec![];
        for (origin, secret) in &self.secrets {
            found.extend(stored(secret, registry, repository, origin));
        }
        for file in &self.files {
            let contents = file.contents()?;
            let helper = contents.helper(registry);
            if let Helper::Own(name) = helper
                && found.is_empty()
            {
                found.extend(self.ask(name, registry, &file.path)?);
            }
            let origin = file.path.display().to_string();
            found.extend(stored(contents, registry, repository, &origin));
            if let Helper::Store(name) = helper
                && found.is_empty()
            {
                found.extend(self.ask(name, registry, &file.path)?);
            }
        }
        Ok(found)
    }

    /// Where logins are looked up, for messages: `the Secret a, /run/user/1000/containers/auth.json`.
    #[must_use]
    pub fn places(&self) -> String {
        let secrets = self.secrets.iter().map(|(origin, _)| origin.clone());
        let files = self
            .files
            .iter()
            .map(|file| file.path.display().to_string());
        let places: Vec<_> = secrets.chain(files).collect();
        places.join(", ")
    }

    fn ask(
        &self,
        name: &str,
        registry: &str,
        file: &Path,
    ) -> Result<Option<Credential>, CredentialError> {
        let key = (name.to_owned(), registry.to_owned());
        // Held while the helper runs: two at once would ask a person twice.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers
            .entry(key)
            .or_insert_with(|| helper::ask(name, registry, &self.path, HELPER_TIMEOUT));
        match answer {
            Ok(login) => Ok(login.as_ref().map(|login| {
                let origin = format!(
                    "{registry} from docker-credential-{name}, named in {}",
                    file.display()
                );
                credential(login, origin)
            })),
            Err(reason) => Err(CredentialError::Helper {
                name: name.to_owned(),
                registry: registry.to_owned(),
                path: file.to_owned(),
                reason: reason.clone(),
            }),
        }
    }
}

/// Reads a docker config for a Secret: its logins and nothing else, as text of the same kind. No helper is asked.
///
/// # Errors
/// When the file cannot be read, is none, or holds no login.
pub fn docker_config(path: &Path) -> Result<Secret, CredentialError> {
    let text = text(path)?.ok_or_else(|| CredentialError::Missing(path.to_owned()))?;
    let read = |value: Value| {
        if value.get("kind").is_some_and(Value::is_string) {
            return Err(BadFile::whole("is a manifest, which is given by -f"));
        }
        auth_file(value, Layout::Either)
    };
    let contents = json(text.expose_secret()).and_then(read);
    let contents = contents.map_err(|reason| invalid(path, reason))?;
    let config = contents.docker_config();
    config.ok_or_else(|| CredentialError::NoLogins(path.to_owned()))
}

/// The logins that a file has for a repository.
fn stored(file: &AuthFile, registry: &str, repository: &str, origin: &str) -> Vec<Credential> {
    let entries = file.logins(registry, repository).into_iter();
    entries
        .map(|entry| credential(&entry.login, format!("{} in {origin}", entry.key.as_str())))
        .collect()
}

fn credential(login: &Login, origin: String) -> Credential {
    Credential {
        user: login.user.clone(),
        password: login.password.clone(),
        identity_token: login.identity_token.clone(),
        origin,
    }
}

/// The auth files to ask when none is named on the command line, in order.
fn files(environment: &Environment) -> Vec<LazyFile> {
    if let Some(path) = environment.registry_auth_file.clone() {
        return vec![LazyFile::new(path, Layout::Config, Presence::Required)];
    }
    let legacy = environment
        .home
        .as_ref()
        .map(|home| home.join(".dockercfg"));
    let files = [
        (environment.runtime_auth_file(), Layout::Config),
        (
            environment
                .user_folder()
                .map(|folder| folder.join("auth.json")),
            Layout::Config,
        ),
        (environment.docker_auth_file(), Layout::Config),
        (legacy, Layout::Legacy),
    ];
    let files = files
        .into_iter()
        .filter_map(|(path, layout)| Some((path?, layout)));
    files
        .map(|(path, layout)| LazyFile::new(path, layout, Presence::Optional))
        .collect()
}

impl LazyFile {
    fn new(path: PathBuf, layout: Layout, presence: Presence) -> Self {
        let contents = OnceLock::new();
        Self {
            path,
            layout,
            presence,
            contents,
        }
    }

    fn contents(&self) -> Result<&AuthFile, CredentialError> {
        let contents = self.contents.get_or_init(|| {
            let Some(text) = text(&self.path)? else {
                return match self.presence {
                    Presence::Required => Err(CredentialError::Missing(self.path.clone())),
                    Presence::Optional => Ok(AuthFile::default()),
                };
            };
            json(text.expose_secret())
                .and_then(|value| auth_file(value, self.layout))
                .map_err(|reason| invalid(&self.path, reason))
        });
        contents.as_ref().map_err(Clone::clone)
    }
}

/// What the file is that was named on the command line.
enum Named {
    AuthFile(AuthFile),
    Secrets(Vec<PullSecret>),
}

fn named_file(path: &Path) -> Result<Named, CredentialError> {
    let text = text(path)?.ok_or_else(|| CredentialError::Missing(path.to_owned()))?;
    let text = text.expose_secret();
    let secrets = || logins::secrets(text, |reason| invalid(path, reason)).map(Named::Secrets);
    match json(text) {
        Ok(value) if value.get("kind").is_some_and(Value::is_string) => secrets(),
        Ok(value) => auth_file(value, Layout::Either)
            .map(Named::AuthFile)
            .map_err(|reason| invalid(path, reason)),
        // What begins as JSON is told of as JSON, unless it is several manifests.
        Err(reason)
            if text
                .trim_ascii_start()
                .first()
                .is_none_or(|first| *first == b'{') =>
        {
            match secrets() {
                Err(CredentialError::Invalid { .. }) => Err(invalid(path, reason)),
                other => other,
            }
        }
        Err(_) => secrets(),
    }
}

fn text(path: &Path) -> Result<Option<SecretSlice<u8>>, CredentialError> {
    let bytes = plain_file::read_config(path).map_err(|error| CredentialError::Read {
        path: path.to_owned(),
        source: Arc::new(error),
    })?;
    Ok(bytes.map(SecretSlice::from))
}

fn invalid(path: &Path, reason: BadFile) -> CredentialError {
    let path = path.to_owned();
    CredentialError::Invalid { path, reason }
}
