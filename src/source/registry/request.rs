//! One request, to its end: redirects, tries and the size of the answer are bounded, and nothing is sent to whom it
//! does not belong.
//!
//! Redirects are followed here and not by the HTTP client, because three rules of ours are none of its: at most
//! [`REDIRECTS`] of them, never from https to http, and the `Authorization` header stays at the registry's own scheme,
//! host and port. Nor may a registry elsewhere lead to this machine itself.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use memchr::memmem;
use reqwest::{
    Method, Request, Response, Url,
    header::{self, HeaderMap, HeaderValue},
};
use tokio::time::{sleep, timeout};

use super::{
    address::{self, Reach},
    answer::{self, Answer},
    broken::Broken,
    client::Clients,
    error::RegistryError,
    retry::{self, Next, Patience, Trouble},
    wanted::{Checked, Repository},
};

/// How many redirects a request follows.
const REDIRECTS: usize = 5;
/// The most that is read of an answer that is no success.
const ERROR_BYTES: usize = 64 << 10;

/// What is asked for. It cannot be printed, as there may be a password in it.
pub(super) struct Ask<'a> {
    /// The address.
    pub(super) target: Target<'a>,
    /// What may be answered.
    pub(super) accept: &'static str,
    /// Who asks.
    pub(super) authorization: Option<HeaderValue>,
    /// The first byte that is wanted.
    pub(super) from: u64,
    /// The most bytes of an answer that is read whole; nothing for one that is handed on as it comes.
    pub(super) limit: Option<usize>,
}

/// Where something is asked for.
pub(super) enum Target<'a> {
    /// A path of a repository's registry.
    Registry(&'a Repository, String),
    /// The address of a token server, which is never left, and a form to send there, if any.
    TokenServer(Url, Checked, Option<String>),
}

/// Why one try came to nothing, and whether another could help.
struct Failed {
    trouble: Trouble,
    error: Box<RegistryError>,
}

impl From<RegistryError> for Failed {
    fn from(error: RegistryError) -> Self {
        Self {
            trouble: Trouble::Lasting,
            error: Box::new(error),
        }
    }
}

impl Failed {
    fn connection(broken: Broken, url: &Url) -> Self {
        Self {
            trouble: broken.trouble,
            error: Box::new(broken.error(url)),
        }
    }

    fn after(mut self, count: u32) -> RegistryError {
        if let RegistryError::Unreachable { tries, .. } = self.error.as_mut() {
            *tries = count;
        }
        *self.error
    }
}

/// Asks until there is an answer that another try would not change.
///
/// # Errors
/// When there is none: no connection, too many redirects or one that is not followed, an answer that is too large, or
/// one of the kind that passes and did not.
pub(super) async fn answer(clients: &Clients, ask: &Ask<'_>) -> Result<Answer, RegistryError> {
    let mut patience = Patience::default();
    loop {
        let tried = try_once(clients, ask).await;
        let trouble = match &tried {
            Ok(answer) => Trouble::Status(answer.status.as_u16(), pause(&answer.headers)),
            Err(failed) => failed.trouble,
        };
        let next = patience.after(trouble, fastrand::f64());
        let tries = patience.tries();
        match (next, tried) {
            (Next::Again(wait), _) => sleep(wait).await,
            (Next::TooLong(asked), Ok(answer)) => return Err(answer::busy(&answer, asked)),
            (_, Ok(answer)) => return Ok(Answer { tries, ..answer }),
            (_, Err(failed)) => return Err(failed.after(tries)),
        }
    }
}

/// What a server asks for in its headers.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let date = text(header::DATE);
    retry::retry_after(text(header::RETRY_AFTER)?, date, Timestamp::now())
}

/// One try. A registry that needs no TLS is asked with it first, as containers/image does (`docker/docker_client.go`,
/// `detectPropertiesHelper`); how it answered is remembered, and it is never asked without TLS after it had any.
async fn try_once(clients: &Clients, ask: &Ask<'_>) -> Result<Answer, Failed> {
    let (repository, path) = match &ask.target {
        Target::TokenServer(url, ..) => return follow(clients, ask, url.clone()).await,
        Target::Registry(repository, path) => (*repository, path),
    };
    let address = |scheme: &str| {
        let host = address::endpoint(&repository.registry);
        let url = Url::parse(&format!("{scheme}://{host}{path}"));
        url.map_err(|_| RegistryError::Host(repository.registry.clone()))
    };
    if let Some(scheme) = clients.scheme(repository) {
        return follow(clients, ask, address(&scheme)?).await;
    }
    let with_tls = follow(clients, ask, address("https")?).await;
    let is_unreachable = with_tls
        .as_ref()
        .is_err_and(|failed| matches!(*failed.error, RegistryError::Unreachable { .. }));
    if !is_unreachable || clients.scheme(repository).as_deref() == Some("https") {
        return with_tls;
    }
    let without = follow(clients, ask, address("http")?).await;
    match clients.scheme(repository) {
        Some(_) => without,
        None => with_tls,
    }
}

/// Asks, and goes on to where the answer points.
async fn follow(clients: &Clients, ask: &Ask<'_>, first: Url) -> Result<Answer, Failed> {
    let mut url = first.clone();
    let stays = matches!(ask.target, Target::TokenServer(..));
    for _ in 0..=REDIRECTS {
        let response = exchange(clients, ask, &first, &url).await?;
        match response.headers().get(header::LOCATION) {
            Some(location) if response.status().is_redirection() && !stays => {
                url = redirected(&first, &url, location)?;
            }
            _ => return take(clients, ask, first, url, response).await,
        }
    }
    Err(Failed::from(RegistryError::Redirect {
        from: address::shown(&first),
        to: address::shown(&url),
        reason: "that is one redirect too many",
    }))
}

/// Where a redirect leads, if it may be followed.
fn redirected(first: &Url, from: &Url, location: &HeaderValue) -> Result<Url, RegistryError> {
    let text = location.to_str().unwrap_or_default();
    let refused = |to: String, reason| RegistryError::Redirect {
        from: address::shown(from),
        to,
        reason,
    };
    let target = from.join(text).ok().filter(|_| !text.is_empty());
    let Some(mut to) = target else {
        return Err(refused("nowhere".to_owned(), "that is no address"));
    };
    to.set_fragment(None);
    let shown = address::shown(&to);
    match (from.scheme(), to.scheme()) {
        ("http", "http") | (_, "https") => {}
        ("https", "http") => return Err(refused(shown, "https is never left for http")),
        _ => return Err(refused(shown, "only https and http are followed")),
    }
    // A user in an address would become an `Authorization` header.
    if !to.username().is_empty() || to.password().is_some() {
        return Err(refused(shown, "an address with a user in it is not used"));
    }
    if Reach::of(&to) == Reach::Local && Reach::of(first) != Reach::Local {
        return Err(refused(shown, "a registry may not point into this machine"));
    }
    Ok(to)
}

/// Sends one request, and waits for the head of the answer.
async fn exchange(
    clients: &Clients,
    ask: &Ask<'_>,
    first: &Url,
    url: &Url,
) -> Result<Response, Failed> {
    let is_own = url.origin() == first.origin();
    let checked = match &ask.target {
        Target::Registry(repository, _) if is_own => repository.checked,
        Target::Registry(..) => clients.checked(url),
        Target::TokenServer(_, checked, _) => *checked,
    };
    let client = clients.of(url, checked)?;
    let mut request = Request::new(Method::GET, url.clone());
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static(ask.accept));
    if let (true, Some(authorization)) = (is_own, &ask.authorization) {
        headers.insert(header::AUTHORIZATION, authorization.clone());
    }
    if ask.from > 0
        && let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", ask.from))
    {
        headers.insert(header::RANGE, range);
    }
    if let Target::TokenServer(_, _, Some(form)) = &ask.target {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        *request.body_mut() = Some(form.clone().into());
        *request.method_mut() = Method::POST;
    }
    let broken = match timeout(clients.timeout, client.execute(request)).await {
        Ok(Ok(response)) => {
            if let (true, Target::Registry(repository, _)) = (is_own, &ask.target) {
                clients.learn_scheme(repository, url);
            }
            return Ok(response);
        }
        Ok(Err(error)) if !error.is_timeout() => Broken::of(&error),
        _ => Broken::silent(clients.timeout),
    };
    Err(Failed::connection(broken, url))
}

/// Takes as much of the body as is wanted. What is taken whole is small, and so has no more time than silence has.
async fn take(
    clients: &Clients,
    ask: &Ask<'_>,
    asked: Url,
    url: Url,
    mut response: Response,
) -> Result<Answer, Failed> {
    let mut answer = Answer {
        asked,
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        body: vec![],
        stream: None,
        tries: 1,
        url,
    };
    let is_success = answer.status.is_success();
    let limit = match ask.limit {
        None if is_success => {
            answer.stream = Some(response);
            return Ok(answer);
        }
        Some(limit) if is_success => limit,
        _ => ERROR_BYTES,
    };
    let reading = read(&mut response, limit, &mut answer.body);
    let broken = match timeout(clients.timeout, reading).await {
        // The status is what counts of an error, whatever becomes of its body.
        _ if !is_success => {
            if repeats_secret(ask, &answer.body) {
                answer.body.clear();
            }
            return Ok(answer);
        }
        Ok(Ok(())) if answer.body.len() > limit => {
            let address = address::shown(&answer.url);
            return Err(Failed::from(RegistryError::TooLarge { address, limit }));
        }
        Ok(Ok(())) => return Ok(answer),
        Ok(Err(error)) => Broken::of(&error),
        Err(_) => Broken::late(clients.timeout),
    };
    Err(Failed::connection(broken, &answer.url))
}

/// Reads until the end, or until there is more than the limit.
async fn read(
    response: &mut Response,
    limit: usize,
    body: &mut Vec<u8>,
) -> Result<(), reqwest::Error> {
    while body.len() <= limit
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(())
}

/// Whether a server says what only it should know, and what no message may show: who asked it, in the words of the
/// header or decoded. Whatever answers a form with a token in it is taken for that.
fn repeats_secret(ask: &Ask<'_>, body: &[u8]) -> bool {
    if matches!(ask.target, Target::TokenServer(_, _, Some(_))) {
        return true;
    }
    let header = ask.authorization.as_ref().map(HeaderValue::as_bytes);
    let Some(at) = header.and_then(|header| memchr::memchr(b' ', header)) else {
        return false;
    };
    let secret = header
        .and_then(|header| header.get(at + 1..))
        .unwrap_or_default();
    let login = STANDARD.decode(secret).unwrap_or_default();
    let password = memchr::memchr(b':', &login).and_then(|at| login.get(at + 1..));
    let mut secrets = [Some(secret), password].into_iter().flatten();
    secrets.any(|secret| !secret.is_empty() && memmem::find(body, secret).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_elsewhere_leads_nowhere_near() {
        let lead = |from: &str, to: &str| {
            let from = Url::parse(from).expect("an address");
            let location = HeaderValue::from_str(to).expect("a header");
            redirected(&from, &from, &location).map_err(|error| error.to_string())
        };
        for near in [
            "127.0.0.1:8443",
            "localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "2852039166",
        ] {
            let error = lead(
                "https://quay.io/v2/",
                &format!("https://{near}/meta-data?token=canary"),
            );
            let error = error.expect_err("it is refused");
            assert!(
                error.ends_with("a registry may not point into this machine"),
                "{error}"
            );
            assert!(!error.contains("canary"), "{error}");
        }
        for (from, to) in [
            ("https://quay.io/v2/", "https://cdn.example/blob"),
            ("https://registry.lan/v2/", "https://10.0.0.7/blob"),
            ("http://127.0.0.1:5000/v2/", "http://127.0.0.1:9000/blob"),
        ] {
            assert_eq!(lead(from, to).as_ref().map(Url::as_str), Ok(to));
        }
    }
}
