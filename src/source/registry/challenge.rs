//! What a registry asks for when it answers 401: the `WWW-Authenticate` header. Pure.
//!
//! The first challenge that can be answered counts, as in containers/image (`docker/docker_client.go`,
//! `setupRequestAuth`). Reading the header is http-auth's work.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// How a registry wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// With a user and a password.
    Basic,
    /// With a token from a server that it names.
    Bearer {
        /// The address of that server, not checked yet.
        realm: String,
        /// What that server knows the registry by.
        service: Option<String>,
    },
}

/// The first challenge that can be answered; nothing when there is none.
pub(super) fn parse(headers: &HeaderMap) -> Option<Challenge> {
    challenges(headers).find_map(|challenge| of(&challenge))
}

/// Whether a registry says that the token itself is no good, rather than that it opens too little (RFC 6750, 3.1): it
/// has ended, by the registry's clock.
pub(super) fn refuses_token(headers: &HeaderMap) -> bool {
    challenges(headers)
        .any(|challenge| parameter(&challenge, "error").as_deref() == Some("invalid_token"))
}

fn challenges(headers: &HeaderMap) -> impl Iterator<Item = http_auth::ChallengeRef<'_>> {
    let values = headers.get_all(WWW_AUTHENTICATE).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .filter_map(|value| http_auth::parse_challenges(value).ok())
        .flatten()
}

fn parameter(challenge: &http_auth::ChallengeRef<'_>, wanted: &str) -> Option<String> {
    let mut all = challenge.params.iter();
    let found = all.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    found.map(|(_, value)| value.to_unescaped())
}

fn of(challenge: &http_auth::ChallengeRef<'_>) -> Option<Challenge> {
    let parameter = |wanted: &str| parameter(challenge, wanted);
    if challenge.scheme.eq_ignore_ascii_case("basic") {
        Some(Challenge::Basic)
    } else if challenge.scheme.eq_ignore_ascii_case("bearer") {
        parameter("realm").map(|realm| Challenge::Bearer {
            realm,
            service: parameter("service"),
        })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(values: &[&[u8]]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = reqwest::header::HeaderValue::from_bytes(value).expect("a header value");
            headers.append(WWW_AUTHENTICATE, value);
        }
        parse(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
        })
    }

    #[test]
    fn the_first_that_can_be_answered_counts() {
        assert_eq!(parsed(&[b"Basic realm=\"x\""]), Some(Challenge::Basic));
        assert_eq!(
            parsed(&[b"bearer REALM=\"https://a.example/t\",service=\"s, \\\"t\\\"\""]),
            bearer("https://a.example/t", Some("s, \"t\""))
        );
        let negotiate: &[u8] = b"Negotiate";
        assert_eq!(
            parsed(&[negotiate, b"Bearer realm=\"https://a.example\""]),
            bearer("https://a.example", None)
        );
        assert_eq!(
            parsed(&[b"Digest realm=\"a\", nonce=\"b\", Basic realm=\"c\""]),
            Some(Challenge::Basic)
        );
    }

    #[test]
    fn what_cannot_be_read_is_no_challenge() {
        for value in [
            &b""[..],
            b"Bearer",
            b"Bearer service=\"s\"",
            b"Bearer realm=\"open",
            b"\xff\xfe",
            b"Bearer realm=,",
            b"=,=,=",
            b"Bearer realm=\"\\",
        ] {
            assert_eq!(parsed(&[value]), None, "{value:?}");
        }
    }
}
