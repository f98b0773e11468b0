//! The manifest that a reference names, with its digest computed here. What the registry says of the digest has to
//! agree with it, and what was asked for too. What is in the manifest is [`crate::oci`]'s business.

use reqwest::header::{self, HeaderMap};

use super::{
    Delivered, access,
    answer::giver,
    error::RegistryError,
    wanted::{Repository, Wanted},
    world::World,
};
use crate::oci::digest::{Digest, Hasher};

/// What a registry says of the digest.
const DIGEST_HEADER: &str = "docker-content-digest";
/// The longest header that is shown.
const LONGEST_HEADER: usize = 200;

/// Asks for a manifest. When it is not what its digest says, once more: it may have been damaged on the way.
///
/// # Errors
/// When it is not given, or still is not what its digest says.
pub(super) async fn fetch(
    world: &World,
    repository: &Repository,
    wanted: &Wanted,
) -> Result<Delivered, RegistryError> {
    let mut is_second = false;
    loop {
        let answer = access::get(world, repository, wanted, 0).await?;
        let what = wanted.name(&repository.name);
        let host = giver(&answer);
        // Some that stand in between answer every request with a page, and call that a success.
        if media_type(&answer.headers).as_deref() == Some("text/html") {
            return Err(RegistryError::WebPage { address: host });
        }
        match checked(answer.body, &answer.headers, wanted, &what, &host) {
            Err(RegistryError::Digest { .. }) if !is_second => is_second = true,
            other => return other,
        }
    }
}

fn checked(
    body: Vec<u8>,
    headers: &HeaderMap,
    wanted: &Wanted,
    what: &str,
    host: &str,
) -> Result<Delivered, RegistryError> {
    let asked = match wanted {
        Wanted::Manifest(digest) | Wanted::Blob(digest) => Some(digest.clone()),
        Wanted::Tag(_) => None,
    };
    let told = headers.get(DIGEST_HEADER).map(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        Digest::parse(&text).map_err(|_| RegistryError::Header {
            what: what.to_owned(),
            host: host.to_owned(),
            header: text.chars().take(LONGEST_HEADER).collect(),
            actual: Digest::of(&body),
        })
    });
    let told = told.transpose()?;
    for expected in [&asked, &told].into_iter().flatten() {
        let mut hasher = Hasher::new(expected.algorithm());
        hasher.update(&body);
        let actual = hasher.finish();
        if actual != *expected {
            return Err(RegistryError::Digest {
                what: what.to_owned(),
                host: host.to_owned(),
                expected: expected.clone(),
                actual,
            });
        }
    }
    let digest = asked.unwrap_or_else(|| Digest::of(&body));
    Ok(Delivered {
        media_type: media_type(headers),
        body,
        digest,
    })
}

/// What a manifest was delivered as, without parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = text.split(';').next()?.trim().to_ascii_lowercase();
    (!kind.is_empty() && kind.len() <= LONGEST_HEADER).then_some(kind)
}
