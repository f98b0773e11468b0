//! Which rule an image has, by what it begins with, and what it is called elsewhere.
//!
//! Follows `refMatchingPrefix`, `refMatchingSubdomainPrefix` and `rewriteReference` of go.podman.io/image
//! (`pkg/sysregistriesv2/system_registries_v2.go`), with these differences:
//! - the prefix `example.com` is not for `example.com:5000`, which is another registry. Upstream takes it and calls that
//!   an error that will be mended; `*.example.com` is for every port, there as here;
//! - a prefix with a tag or digest is for that image, as containers-registries.conf(5) says. podman itself looks for the
//!   name alone, so that such a prefix is never found;
//! - in what stands for `*`, the end of the host counts: `*.example.com` is for `a.example.com.example.com`, too;
//! - what moves to `docker.io` with one part of a name left is that of `library`, where upstream finds a short name and
//!   gives up.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::image::ImageReference;

/// What stands at the longest prefix of a reference, and that prefix; of two as long, the first by name. The reference
/// names its registry, as in [`ImageReference::normalized`]. It takes as many looks as the reference has parts, however
/// many prefixes there are.
#[must_use]
pub fn longest<'t, T>(
    by_prefix: &'t BTreeMap<String, T>,
    reference: &str,
) -> Option<(&'t str, &'t T)> {
    let is_end = |(at, byte): (usize, u8)| matches!(byte, b'/' | b':' | b'@').then_some(at);
    let ends = reference.bytes().enumerate().filter_map(is_end);
    let begins = ends
        .chain([reference.len()])
        .filter_map(|end| reference.get(..end))
        .filter_map(|begin| by_prefix.get_key_value(begin));
    let host = host(reference);
    let domains = host.bytes().enumerate().filter(|(_, byte)| *byte == b'.');
    let wildcards = domains.filter_map(|(at, _)| {
        let wildcard = format!("*{}", host.get(at..)?);
        by_prefix.get_key_value(&wildcard)
    });
    let fits = |(prefix, _): &(&String, &T)| matched(prefix, reference).is_some();
    let found = begins.chain(wildcards).filter(fits);
    let (prefix, value) = found.min_by_key(|(prefix, _)| (Reverse(prefix.len()), *prefix))?;
    Some((prefix, value))
}

/// The length of what a prefix is for at the beginning of a reference, which names its registry; nothing if the prefix
/// is not for it. A prefix ends where a part of the reference ends.
#[must_use]
pub fn matched(prefix: &str, reference: &str) -> Option<usize> {
    if let Some(domain) = prefix.strip_prefix('*') {
        return matched_domain(domain, reference);
    }
    let rest = reference.strip_prefix(prefix)?;
    let ends_there = match rest.bytes().next() {
        None | Some(b'/' | b'@') => true,
        // Behind a host alone stands a port, and behind everything else a tag.
        Some(b':') => prefix.contains('/'),
        Some(_) => false,
    };
    ends_there.then_some(prefix.len())
}

/// As [`matched`], for a prefix that is the end of a host.
fn matched_domain(domain: &str, reference: &str) -> Option<usize> {
    let host = host(reference);
    let is_below = domain.starts_with('.') && host.ends_with(domain);
    is_below.then_some(host.len())
}

/// The host of a reference, without its port.
fn host(reference: &str) -> &str {
    let host = reference.split('/').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// The same image at another location: what the prefix is for gives way, the rest stays. Without a location nothing is
/// replaced. Nothing if that is no reference, or one without a registry.
#[must_use]
pub fn moved(reference: &str, length: usize, location: &str) -> Option<ImageReference> {
    let text = match reference.get(length..) {
        Some(rest) if !location.is_empty() => format!("{location}{rest}"),
        _ => reference.to_owned(),
    };
    let image = ImageReference::parse(&text).ok()?;
    image.registry.is_some().then(|| image.normalized())
}
