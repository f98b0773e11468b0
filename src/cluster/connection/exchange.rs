//! One request and its answer on the wire, with a bound on the answer, and what it means when there is none.

use std::{error::Error, io};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::client::legacy;
use kube::{Client, client::Body};

use super::{super::answer::clean, retry::Trouble};

/// Bytes of an answer, after decompression.
pub(super) const LARGEST_ANSWER: usize = 256 << 20;

/// A whole answer.
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no whole answer.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) trouble: Trouble,
    /// What happened, in a few words.
    pub(super) reason: String,
}

/// Sends a request once and reads the whole answer.
pub(super) async fn exchange(
    client: &Client,
    request: http::Request<Body>,
) -> Result<Reply, Broken> {
    let sent = client.send(request).await;
    let response = sent.map_err(|error| broken(&error))?;
    let (head, body) = Response::into_parts(response);
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => Broken {
            trouble: Trouble::Lasting,
            reason: format!("the answer is larger than {LARGEST_ANSWER} bytes"),
        },
        false => Broken {
            trouble: Trouble::Broken,
            reason: format!("the answer broke off: {}", words(&*error)),
        },
    })?;
    Ok(Reply {
        code: head.status.as_u16(),
        headers: head.headers,
        body: body.to_bytes(),
    })
}

fn broken(error: &(dyn Error + 'static)) -> Broken {
    let reason = words(error);
    let causes = chain(error);
    let is_of_tls = causes.iter().any(|cause| cause.is::<rustls::Error>());
    let legacy = causes
        .iter()
        .find_map(|cause| cause.downcast_ref::<legacy::Error>());
    let trouble = match legacy {
        _ if is_of_tls => Trouble::Lasting,
        Some(error) if error.is_connect() => Trouble::NotConnected,
        _ => Trouble::Broken,
    };
    Broken { trouble, reason }
}

/// The innermost cause of an error, which has no address and no header in it.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    let innermost = chain(error).last().map(ToString::to_string);
    clean(&innermost.unwrap_or_default(), 300)
}

/// An error and its causes. Those in I/O errors are not told as theirs.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e (dyn Error + 'static)> {
    let mut chain = vec![error];
    while let Some(last) = chain.last().copied().filter(|_| chain.len() < 32) {
        let inside = last
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inside = inside.map(|inside| inside as &(dyn Error + 'static));
        match inside.or_else(|| last.source()) {
            Some(cause) => chain.push(cause),
            None => break,
        }
    }
    chain
}
