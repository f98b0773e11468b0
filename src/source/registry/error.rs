//! Why something could not be had of a registry. Addresses in here carry neither users nor queries; what servers said
//! is cut, and made fit for a terminal by whoever prints it.

use std::time::Duration;

use reqwest::StatusCode;

use super::retry::BUDGET;
use crate::{
    image::ImageReference,
    oci::digest::Digest,
    source::{credentials::CredentialError, mirrors::MirrorError},
};

/// What kind of failure it is. The number of each is the exit code that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// What the user set makes no sense.
    Usage = 2,
    /// What the registry gave is not what it should be.
    Refused = 3,
    /// The registry or the network does not give it.
    Network = 4,
}

/// Why something could not be had of a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file of certificates is none.
    #[error("cannot take the certificates of {name}: {reason}")]
    CaFile {
        /// The file.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A host that a setting names is none.
    #[error("{0:?} is no host: use HOST or HOST:PORT")]
    Host(String),
    /// A variable of the environment is to name a proxy, and does not. What it holds may be a password.
    #[error("{0} names no proxy: it is no URL")]
    Proxy(&'static str),
    /// Nothing can be asked at all.
    #[error("cannot prepare for connections: {0}")]
    Setup(String),
    /// The credentials of a repository cannot be found out.
    #[error("cannot find the credentials for {name}")]
    Credentials {
        /// Registry and repository.
        name: String,
        /// Why not.
        source: CredentialError,
    },
    /// Where to ask cannot be found out.
    #[error("cannot tell where to ask for {image}")]
    Mirrors {
        /// The image.
        image: Box<ImageReference>,
        /// Why not.
        source: MirrorError,
    },
    /// A reference from which no request can be made.
    #[error("{image} cannot be asked for: {reason}")]
    Reference {
        /// The image.
        image: Box<ImageReference>,
        /// Why not.
        reason: String,
    },
    /// There is no connection, or it breaks.
    #[error("cannot reach {address}: {reason}{}", after(*tries))]
    Unreachable {
        /// Scheme, host and port.
        address: String,
        /// Why not.
        reason: String,
        /// How often it was tried.
        tries: u32,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A server answered with a status that is no success.
    #[error("{address} answered {status}{}{}", after(*tries), remark(.said))]
    Answered {
        /// What was asked for.
        address: String,
        /// The status.
        status: StatusCode,
        /// What the server said about it.
        said: Option<String>,
        /// How often it was tried.
        tries: u32,
    },
    /// A server wants to be left alone for longer than is waited.
    #[error("{address} answered {status} and asks to wait {} s, more than the {} s that are waited{}", .asked.as_secs(), BUDGET.as_secs(), remark(.said))]
    Busy {
        /// What was asked for.
        address: String,
        /// The status.
        status: StatusCode,
        /// For how long.
        asked: Duration,
        /// What the server said about it.
        said: Option<String>,
    },
    /// A server sends to where nothing is asked for.
    #[error("{from} redirects to {to}: {reason}")]
    Redirect {
        /// What was asked for.
        from: String,
        /// Where it sends to.
        to: String,
        /// Why that is not followed.
        reason: &'static str,
    },
    /// The password would go to another host.
    #[error("registry {registry} asks to send the password to {to}")]
    ForeignRealm {
        /// The registry.
        registry: String,
        /// That host.
        to: String,
    },
    /// The token server is one that is not asked.
    #[error("registry {registry} names {realm:?} as its token server: {reason}")]
    Realm {
        /// The registry.
        registry: String,
        /// What it names, without what may be secret.
        realm: String,
        /// The rule.
        reason: &'static str,
    },
    /// What a token server gives is no token.
    #[error("token server {address} gave no token that can be used: {reason}")]
    Token {
        /// Its address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A registry gives nothing to who asked.
    #[error("registry {registry} {verdict} ({status}); {tried}{}", remark(.said))]
    Denied {
        /// The registry.
        registry: String,
        /// What it does, as the rest of a sentence.
        verdict: String,
        /// The status.
        status: StatusCode,
        /// With which credentials it was asked.
        tried: String,
        /// What it said about it.
        said: Option<String>,
    },
    /// Content is not what its digest says.
    #[error("digest mismatch: {what} from {host} should be {expected} but is {actual}")]
    Digest {
        /// What it is.
        what: String,
        /// Who gave it.
        host: String,
        /// What it should be.
        expected: Digest,
        /// What it is.
        actual: Digest,
    },
    /// A registry says of content that it has a digest which is none.
    #[error("{host} gave {what} with a digest that is none: {header:?}; it is {actual}")]
    Header {
        /// What it is.
        what: String,
        /// Who gave it.
        host: String,
        /// What the registry says.
        header: String,
        /// What it is.
        actual: Digest,
    },
    /// Content is larger than what stands in the manifest, or than what is allowed.
    #[error("size mismatch: {what} from {host} should have {expected} bytes but has {}", .actual.map_or("more".to_owned(), |bytes| bytes.to_string()))]
    Size {
        /// What it is.
        what: String,
        /// Who gave it.
        host: String,
        /// The bytes it should have.
        expected: u64,
        /// The bytes it has, as far as that is known.
        actual: Option<u64>,
    },
    /// A page for people came in place of a manifest.
    #[error("{address} answered with a web page, not with a manifest")]
    WebPage {
        /// What was asked for.
        address: String,
    },
    /// An answer is larger than anything of its kind.
    #[error("{address} answered with more than the limit of {limit} bytes")]
    TooLarge {
        /// What was asked for.
        address: String,
        /// The limit.
        limit: usize,
    },
    /// A download came to nothing.
    #[error("{what} from {host} broke off at {done} of {size} bytes: {reason}")]
    Incomplete {
        /// What it is.
        what: String,
        /// Who gave it.
        host: String,
        /// The bytes that came.
        done: u64,
        /// The bytes it has.
        size: u64,
        /// Why no more came.
        reason: String,
    },
    /// None of several places has it.
    #[error("no place gives {image}: {}", places(.reasons))]
    Places {
        /// The image.
        image: Box<ImageReference>,
        /// Each place, and why not.
        reasons: Vec<(String, RegistryError)>,
    },
}

impl RegistryError {
    /// Notes why a place does not give something, where another one may.
    ///
    /// # Errors
    /// This one, where what the place gives is not what it should be: no other is asked then.
    pub(super) fn pass_over(
        self,
        place: String,
        reasons: &mut Vec<(String, Self)>,
    ) -> Result<(), Self> {
        if self.class() != ErrorClass::Network {
            return Err(self);
        }
        reasons.push((place, self));
        Ok(())
    }

    /// One error for all places that were passed over; of a single one, its own.
    pub(super) fn of_places(image: &ImageReference, mut reasons: Vec<(String, Self)>) -> Self {
        match reasons.pop() {
            Some((_, error)) if reasons.is_empty() => error,
            last => {
                reasons.extend(last);
                let image = Box::new(image.clone());
                Self::Places { image, reasons }
            }
        }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::CaFile { .. }
            | Self::Host(_)
            | Self::Proxy(_)
            | Self::Setup(_)
            | Self::Credentials { .. }
            | Self::Mirrors { .. } => ErrorClass::Usage,
            Self::Reference { .. }
            | Self::Digest { .. }
            | Self::Header { .. }
            | Self::Size { .. }
            | Self::TooLarge { .. } => ErrorClass::Refused,
            _ => ErrorClass::Network,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::ForeignRealm { to, .. } => Some(format!(
                "if that is where its passwords belong, allow it with --auth-host {to}"
            )),
            Self::Unreachable { hint, .. } => hint.clone(),
            Self::Credentials { source, .. } => source.hint(),
            Self::Mirrors { source, .. } => source.hint(),
            Self::Places { reasons, .. } => {
                reasons.iter().rev().find_map(|(_, error)| error.hint())
            }
            Self::WebPage { .. } => Some(
                "see whether a proxy or the login page of a network stands in between".to_owned(),
            ),
            Self::CaFile { .. } => {
                Some("name a file of certificates in PEM with --ca-file".to_owned())
            }
            Self::Denied {
                status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN,
                ..
            } => Some(
                "give credentials for it with --authfile, or log in with podman or docker"
                    .to_owned(),
            ),
            Self::Busy { .. } => {
                Some("try again later; with credentials most registries allow more".to_owned())
            }
            Self::Answered { status, .. } if status.is_server_error() => {
                Some("try again later".to_owned())
            }
            Self::Incomplete { .. } => Some("try again later".to_owned()),
            Self::Digest { .. } | Self::Header { .. } | Self::Size { .. } => Some(
                "nothing of it is used; a mirror or a proxy may have damaged it, else tell who runs the registry"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

fn after(tries: u32) -> String {
    match tries {
        0 | 1 => String::new(),
        tries => format!(" after {tries} tries"),
    }
}

fn remark(said: &Option<String>) -> String {
    let said = said.as_ref();
    said.map_or_else(String::new, |said| format!(": {said}"))
}

/// All places with what went wrong there, down to the innermost cause.
fn places(reasons: &[(String, RegistryError)]) -> String {
    let reasons = reasons.iter().map(|(place, error)| {
        let first: &dyn std::error::Error = error;
        let causes = std::iter::successors(Some(first), |error| error.source());
        causes.fold(place.clone(), |text, error| format!("{text}: {error}"))
    });
    reasons.collect::<Vec<_>>().join("; ")
}
