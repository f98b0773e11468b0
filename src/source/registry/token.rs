//! Asks a token server for a token: by GET with user and password, or by POST with an identity token, as the
//! distribution project specifies (`docs/content/spec/auth/token.md`, `oauth.md`). That POST is the only one there is.
//!
//! The scope is always ours: reading one repository, whatever the registry proposes. The server's clock is not used,
//! its `issued_at` neither: a token counts from when it was asked for.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{StatusCode, Url, header::HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    access::Pass,
    address::shown,
    answer,
    error::RegistryError,
    realm::{self, Carrying, RealmError},
    request::{self, Ask, Target},
    wanted::Repository,
    world::World,
};
use crate::source::credentials::Credential;

/// The most that is read of a token server's answer.
const ANSWER_BYTES: usize = 1 << 20;
/// For how long a token is good when its server does not say, and at least: less is of no use (containers/image,
/// `docker/docker_client.go`, `minimumTokenLifetimeSeconds`).
const SHORTEST_LIFE: u64 = 60;
/// The longest that a token is kept.
const LONGEST_LIFE: u64 = 24 * 60 * 60;
/// So much earlier than it ends, a token is renewed.
const MARGIN: Duration = Duration::from_secs(10);

/// Asks for a token that lets a repository be read, with credentials or without; gives nothing when they are refused.
/// `registry` is the address of the registry that wants the token, `realm` and `service` are what it says about who
/// gives it.
///
/// # Errors
/// When nothing may be sent to the token server, or it gives nothing that can be used.
pub(super) async fn fetch(
    world: &World,
    repository: &Repository,
    registry: &Url,
    realm: &str,
    service: Option<&str>,
    credential: Option<&Credential>,
) -> Result<Option<Pass>, RegistryError> {
    let carrying = credential.map_or(Carrying::Nothing, |_| Carrying::Password);
    let mut server = realm::token_server(realm, registry, &world.auth_hosts, carrying)
        .map_err(|error| refused(&repository.registry, realm, error))?;
    let checked = if server.origin() == registry.origin() {
        repository.checked
    } else {
        world.clients.checked(&server)
    };
    let scope = format!("repository:{}:pull", repository.name);
    let mut parameters = vec![("scope", scope.as_str())];
    parameters.extend(service.map(|service| ("service", service)));
    let identity = credential.and_then(|credential| credential.identity_token.as_ref());
    let form = identity.map(|token| form(&parameters, token));
    if form.is_none() {
        server.query_pairs_mut().extend_pairs(parameters);
    }
    let with_password = credential.filter(|credential| credential.identity_token.is_none());
    let ask = Ask {
        target: Target::TokenServer(server, checked, form),
        accept: "application/json",
        authorization: with_password.and_then(basic),
        from: 0,
        limit: Some(ANSWER_BYTES),
    };
    let begun = Instant::now();
    let answer = request::answer(&world.clients, &ask).await.map_err(blame)?;
    match answer.status {
        status if status.is_success() => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Ok(None),
        _ => return Err(blame(answer::answered(&answer))),
    }
    let (header, life) = token(&answer.body).map_err(|reason| RegistryError::Token {
        address: shown(&answer.url),
        reason: reason.to_owned(),
    })?;
    Ok(Some(Pass {
        header,
        renewal: Some(begun + life.saturating_sub(MARGIN)),
    }))
}

/// The header that shows user and password.
pub(super) fn basic(credential: &Credential) -> Option<HeaderValue> {
    let user = credential.user.expose_secret();
    let plain = format!("{user}:{}", credential.password.expose_secret());
    secret_header("Basic", &STANDARD.encode(plain))
}

fn secret_header(scheme: &str, secret: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{scheme} {secret}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A form is written as the query of an address is.
fn form(parameters: &[(&str, &str)], identity: &SecretString) -> String {
    let mut pairs = vec![
        ("grant_type", "refresh_token"),
        ("client_id", "kubectl-olm"),
        ("refresh_token", identity.expose_secret()),
    ];
    pairs.extend(parameters);
    let base = Url::parse_with_params("https://form.invalid", pairs);
    base.ok()
        .and_then(|url| url.query().map(str::to_owned))
        .unwrap_or_default()
}

fn refused(registry: &str, realm: &str, error: RealmError) -> RegistryError {
    let registry = registry.to_owned();
    match error {
        RealmError::Foreign(to) => RegistryError::ForeignRealm { registry, to },
        RealmError::Refused(reason) => {
            let realm = Url::parse(realm).map(|url| shown(&url));
            RegistryError::Realm {
                registry,
                realm: realm.unwrap_or_default(),
                reason,
            }
        }
    }
}

/// Says that it was the token server, in errors that speak of any server.
fn blame(mut error: RegistryError) -> RegistryError {
    match &mut error {
        RegistryError::Unreachable { address, .. }
        | RegistryError::Answered { address, .. }
        | RegistryError::Busy { address, .. } => *address = format!("token server {address}"),
        RegistryError::TooLarge { address, limit } => {
            return RegistryError::Token {
                address: std::mem::take(address),
                reason: format!("its answer is over the limit of {limit} bytes"),
            };
        }
        _ => {}
    }
    error
}

/// What is used of an answer. Servers give the token under either name, or under both.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<serde_json::Value>,
}

/// The token in an answer as the header it is sent in, and for how long it is good.
fn token(body: &[u8]) -> Result<(HeaderValue, Duration), &'static str> {
    let answer: TokenAnswer =
        serde_json::from_slice(body).map_err(|_| "its answer is not the JSON of one")?;
    let mut tokens = [answer.token, answer.access_token].into_iter().flatten();
    let token = tokens.find(|token| !token.is_empty());
    let token = token.ok_or("there is neither a `token` nor an `access_token` in its answer")?;
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("there are other characters in it than visible ASCII");
    }
    let header = secret_header("Bearer", &token).ok_or("it does not fit into a header")?;
    let life = answer
        .expires_in
        .as_ref()
        .and_then(serde_json::Value::as_u64);
    let life = life
        .unwrap_or(SHORTEST_LIFE)
        .clamp(SHORTEST_LIFE, LONGEST_LIFE);
    Ok((header, Duration::from_secs(life)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer, the token in it, and for how many seconds it is good.
    const ANSWERS: &str = r#"
        {"token":"a"}                                             a  60
        {"access_token":"b","expires_in":300}                     b  300
        {"token":"","access_token":"c","expires_in":1}            c  60
        {"token":"d","expires_in":-5,"issued_at":"1970-01-01"}    d  60
        {"token":"e","expires_in":1e300}                          e  60
        {"token":"f","expires_in":18446744073709551615}           f  86400
        {"token":"g","expires_in":"soon"}                         g  60
    "#;

    #[test]
    fn a_token_is_taken_under_either_name() {
        for case in ANSWERS.trim().lines() {
            let words: Vec<_> = case.split_whitespace().collect();
            let [body, expected, life] = words[..] else {
                panic!("{case}");
            };
            let (header, given) = token(body.as_bytes()).expect(case);
            assert_eq!(header, format!("Bearer {expected}"));
            assert_eq!(given.as_secs().to_string(), life, "{case}");
            assert!(header.is_sensitive());
        }
    }
}
