//! What an answer that is no success means, in words a person understands. Pure.

use std::time::Duration;

use oci_client::errors::{OciEnvelope, OciErrorCode};
use reqwest::{Response, StatusCode, Url, header::HeaderMap};

use super::{
    address::{cut, host_port, shown},
    error::RegistryError,
    wanted::{Repository, Wanted},
};

/// The most that a message shows of what a server said, in bytes.
const LONGEST_SAID: usize = 200;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where it was asked first, before any redirect.
    pub(super) asked: Url,
    /// Who gave it.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The body, if it was taken whole or is about an error.
    pub(super) body: Vec<u8>,
    /// Where the body comes from, otherwise.
    pub(super) stream: Option<Response>,
    pub(super) tries: u32,
}

/// Who gave an answer: a registry, or the server that it sent to.
pub(super) fn giver(answer: &Answer) -> String {
    let registry = host_port(&answer.asked);
    if answer.url.origin() == answer.asked.origin() {
        registry
    } else {
        format!("{} for {registry}", host_port(&answer.url))
    }
}

/// The error for an answer that nobody waited for.
pub(super) fn answered(answer: &Answer) -> RegistryError {
    RegistryError::Answered {
        address: shown(&answer.url),
        status: answer.status,
        said: said(&answer.body).1,
        tries: answer.tries,
    }
}

/// The error for a server that wants to be left alone for too long.
pub(super) fn busy(answer: &Answer, asked: Duration) -> RegistryError {
    RegistryError::Busy {
        address: shown(&answer.url),
        status: answer.status,
        asked,
        said: said(&answer.body).1,
    }
}

/// The error for a registry that gives nothing to who asks. `tried` is where the credentials come from that it was asked
/// with, in order, `places` where they were looked for, once some were wanted.
pub(super) fn denied(
    answer: &Answer,
    repository: &Repository,
    wanted: &Wanted,
    tried: &[&str],
    places: Option<&str>,
) -> RegistryError {
    let (code, said) = said(&answer.body);
    let name = &repository.name;
    let verdict = match (answer.status, code) {
        (StatusCode::NOT_FOUND, Some(OciErrorCode::NameUnknown)) => {
            format!("has no repository {name}, or hides it")
        }
        (StatusCode::NOT_FOUND, _) => format!("has no {}", wanted.name(name)),
        (StatusCode::FORBIDDEN, _) => format!("does not allow to read {name}"),
        _ if tried.is_empty() => format!("wants credentials for {name}"),
        _ => format!("does not take the credentials for {name}"),
    };
    let tried = match (tried, places) {
        ([], None) => "it was asked without credentials, and wanted none".to_owned(),
        ([], Some("")) => "no credentials are known for it".to_owned(),
        ([], Some(places)) => format!("no credentials matched; looked in {places}"),
        (tried, _) => format!("tried with {}", tried.join(", then with ")),
    };
    RegistryError::Denied {
        registry: repository.registry.clone(),
        verdict,
        status: answer.status,
        tried,
        said,
    }
}

/// What a server said: the code and text of its first error, or its text where that is not a page or binary.
fn said(body: &[u8]) -> (Option<OciErrorCode>, Option<String>) {
    if let Ok(envelope) = serde_json::from_slice::<OciEnvelope>(body) {
        let Some(first) = envelope.errors.into_iter().next() else {
            return (None, None);
        };
        let text = excerpt(&first.message);
        return (Some(first.code), text);
    }
    let text = std::str::from_utf8(body).ok();
    let is_plain = |text: &&str| !text.trim_start().starts_with('<') && !text.contains('\0');
    (None, text.filter(is_plain).and_then(excerpt))
}

/// The first words of a text, on one line.
fn excerpt(text: &str) -> Option<String> {
    let start = cut(text.trim(), LONGEST_SAID);
    let words: Vec<_> = start.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_short_and_readable() {
        let text = |body: &[u8]| said(body).1.unwrap_or_default();
        let envelope = br#"{"errors":[{"code":"DENIED","message":"not\n yours"}]}"#;
        assert_eq!(
            said(envelope),
            (Some(OciErrorCode::Denied), Some("not yours".to_owned()))
        );
        assert_eq!(text(b" upstream\tis gone \n"), "upstream is gone");
        assert_eq!(
            text("\u{e9}".repeat(500).as_bytes()).len(),
            LONGEST_SAID + "…".len()
        );
        for silent in [
            &b""[..],
            b"\xff\xfe\x00<html>",
            b"<html>502</html>",
            b"\0\0",
            b"{\"errors\":[]}",
        ] {
            assert_eq!(text(silent), "", "{silent:?}");
        }
    }
}
