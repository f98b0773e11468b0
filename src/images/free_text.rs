//! References to images in text of any kind: sentences, JSON and YAML in annotations, values of variables.
//!
//! Reproduces operator-manifest (Python) `operator_manifest/operator.py` (`PullspecRegex`, `default_pullspec_heuristic`):
//! only what has a registry with a dot, and a tag or digest, is taken for one. What is found may still be no reference by
//! the grammar of registries (its repository may be in upper case), and may be arithmetic (`0.5/2:2`).

use std::ops::Range;

/// The bytes of what looks like references to images in a text, first to last; they never overlap.
pub fn references(text: &str) -> impl Iterator<Item = Range<usize>> {
    candidates(text)
        .map(|candidate| without_edges(text, candidate))
        .filter(|span| text.get(span.clone()).is_some_and(is_reference))
}

/// Whether the whole text looks like a reference to an image.
#[must_use]
pub fn is_reference(text: &str) -> bool {
    let Some((registry, path)) = text.split_once('/') else {
        return false;
    };
    let (namespaces, repository) = match path.rsplit_once('/') {
        Some((namespaces, repository)) => (Some(namespaces), repository),
        None => (None, path),
    };
    is_registry(registry)
        && namespaces.is_none_or(|names| names.split('/').all(is_name))
        && is_tagged_or_digested(repository)
}

/// The longest runs of characters that references are made of.
fn candidates(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes().get(start..)?;
        let begin = start + bytes.iter().position(|byte| is_part(*byte))?;
        let run = text.as_bytes().get(begin..)?;
        let length = run.iter().position(|byte| !is_part(*byte));
        let end = length.map_or(text.len(), |length| begin + length);
        start = end;
        Some(begin..end)
    })
}

/// What is left of a run without everything but letters and digits at its ends.
fn without_edges(text: &str, run: Range<usize>) -> Range<usize> {
    let candidate = text.get(run.clone()).unwrap_or_default();
    let is_edge = |character: char| !character.is_ascii_alphanumeric();
    let without_start = candidate.trim_start_matches(is_edge);
    let start = run.start + candidate.len() - without_start.len();
    start..start + without_start.trim_end_matches(is_edge).len()
}

/// A name with a dot, and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    name.contains('.') && is_name(name) && port.is_none_or(is_port)
}

/// A name with a tag, or with a digest.
fn is_tagged_or_digested(text: &str) -> bool {
    if let Some((name, digest)) = text.split_once('@') {
        let digits = digest.strip_prefix("sha256:").unwrap_or_default();
        let is_digest = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        return is_name(name) && is_digest;
    }
    let tagged = text.split_once(':');
    tagged.is_some_and(|(name, tag)| is_name(name) && is_name(tag))
}

/// Letters, digits, dashes, dots and underscores, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let is_end = |end: Option<u8>| end.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = text.bytes();
    is_end(text.bytes().next())
        && is_end(text.bytes().next_back())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Whether references are made of such characters.
pub(super) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'@' | b':')
}
