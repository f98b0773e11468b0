//! Why a connection does not come about or breaks, in words, and whether another try could help. Nothing of the address
//! or of a proxy is taken from the errors of the HTTP client: they may hold passwords.

use std::{error::Error, io, time::Duration};

use rustls::CertificateError;

use super::{
    address::{base, cut, host_port},
    error::RegistryError,
    retry::Trouble,
};

/// The longest reason that is taken over from below, in bytes.
const LONGEST_REASON: usize = 200;
/// A server hung up in the middle of what it said.
const CLOSED: &str = "the connection was closed too early";

/// What went wrong with a connection.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    /// Whether another try could help.
    pub(super) trouble: Trouble,
    /// What happened, as the rest of a sentence.
    pub(super) reason: String,
    /// What it is about, where there is something to do about it.
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Other,
    Network,
    Authority,
    Dates,
    NoTls,
    Proxy,
}

impl Broken {
    /// Nothing came for this time.
    pub(super) fn silent(time: Duration) -> Self {
        Self::new(
            Trouble::Silence,
            format!("nothing came for {} s", time.as_secs_f64()),
        )
    }

    /// An answer was not there to its end after this time.
    pub(super) fn late(time: Duration) -> Self {
        let reason = format!("its answer was not whole after {} s", time.as_secs_f64());
        Self::new(Trouble::Silence, reason)
    }

    /// Less came than is worth waiting for.
    pub(super) fn slow(least: u64) -> Self {
        let reason = format!("less than {least} bytes came in a second");
        Self::new(Trouble::Silence, reason)
    }

    /// An answer ended as if it were whole, and was not.
    pub(super) fn early() -> Self {
        Self::new(Trouble::Connection, "the answer ended too early")
    }

    /// What an error of the HTTP client means.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let mut words = String::new();
        let mut cause: Option<&(dyn Error + 'static)> = error.source();
        while let Some(error) = cause {
            if let Some(broken) = of_cause(error) {
                return broken;
            }
            words = error.to_string();
            cause = error.source();
        }
        // The client's own sentence names the address, and so is not used.
        match words.as_str() {
            "" => Self::new(Trouble::Connection, "the connection broke"),
            words => Self::new(Trouble::Connection, cut(words, LONGEST_REASON)),
        }
    }

    fn new(trouble: Trouble, reason: impl Into<String>) -> Self {
        Self {
            trouble,
            reason: reason.into(),
            cause: Cause::Network,
        }
    }

    fn lasting(cause: Cause, reason: impl Into<String>) -> Self {
        Self {
            trouble: Trouble::Lasting,
            reason: reason.into(),
            cause,
        }
    }

    /// The error, for what was asked for.
    pub(super) fn error(self, url: &reqwest::Url) -> RegistryError {
        RegistryError::Unreachable {
            address: base(url),
            hint: self.cause.hint(&host_port(url)),
            reason: self.reason,
            tries: 1,
        }
    }
}

impl Cause {
    /// What to do about it at a host.
    fn hint(self, host: &str) -> Option<String> {
        let hint = match self {
            Self::Other => return None,
            Self::Network => {
                "see that its name is right, and whether a proxy is needed (HTTPS_PROXY); --offline takes what an earlier run kept"
            }
            Self::Authority => {
                return Some(format!(
                    "give the certificate of its authority with --ca-file, or skip the check with --insecure-registry {host}"
                ));
            }
            Self::NoTls => {
                return Some(format!(
                    "if it is meant to be asked without TLS, allow it with --insecure-registry {host}"
                ));
            }
            Self::Dates => "compare this machine's clock with the certificate's dates",
            Self::Proxy => {
                "put the proxy's user and password into HTTPS_PROXY, or the host into NO_PROXY"
            }
        };
        Some(hint.to_owned())
    }
}

/// What one error in the chain of causes means; nothing when it takes another one to tell.
fn of_cause(error: &(dyn Error + 'static)) -> Option<Broken> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(error));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // What such an error wraps is not among its causes, and it may wrap another of its kind.
        return match error.get_ref() {
            Some(inner) => of_cause(inner),
            None => of_io(error.kind()),
        };
    }
    of_words(&error.to_string())
}

/// The types of these errors are private to the HTTP client.
fn of_words(words: &str) -> Option<Broken> {
    let words = match words {
        "tunnel error: proxy authorization required" => {
            let words = "the proxy answered 407: it wants a user and a password";
            return Some(Broken::lasting(Cause::Proxy, words));
        }
        "tunnel error: unsuccessful" => "the proxy does not connect to it",
        "tunnel error: failed to create underlying connection" => "the proxy cannot be reached",
        "end of file before message length reached"
        | "connection closed before message completed" => CLOSED,
        _ => return None,
    };
    Some(Broken::new(Trouble::Connection, words))
}

fn of_io(kind: io::ErrorKind) -> Option<Broken> {
    let words = match kind {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "the connection was reset",
        io::ErrorKind::UnexpectedEof => CLOSED,
        _ => return None,
    };
    Some(Broken::new(Trouble::Connection, words))
}

fn of_tls(error: &rustls::Error) -> Broken {
    match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::InvalidMessage(_) => Broken::lasting(Cause::NoTls, "it does not speak TLS"),
        // Broken on the way, perhaps.
        rustls::Error::DecryptError => Broken::new(Trouble::Connection, "the TLS connection broke"),
        other => Broken::lasting(
            Cause::Other,
            cut(&format!("TLS does not come about: {other}"), LONGEST_REASON),
        ),
    }
}

fn of_certificate(error: &CertificateError) -> Broken {
    let (cause, reason) = match error {
        CertificateError::UnknownIssuer => (
            Cause::Authority,
            "its certificate is of an authority that is not known here",
        ),
        // Its name is known, but the key is another: the authority was made anew.
        CertificateError::BadSignature => (
            Cause::Authority,
            "its certificate is not signed by the authority that is known here by that name",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            (Cause::Dates, "its certificate has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (Cause::Dates, "its certificate is not valid yet")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            (Cause::Other, "its certificate is for another name")
        }
        other => {
            let reason = format!("its certificate is no good: {other}");
            return Broken::lasting(Cause::Other, cut(&reason, LONGEST_REASON));
        }
    };
    Broken::lasting(cause, reason)
}
