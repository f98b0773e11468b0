//! What may be a source or a mirror.
//!
//! Holds names to the patterns of openshift/api (`config/v1/types_image_digest_mirror_set.go`), which the Machine Config
//! Operator checks once more before it writes registries.conf (`validateRegistriesConfScopes` in
//! `pkg/controller/container-runtime-config/helpers.go`). One thing more is asked: that the host can be told from a
//! repository, without which no image has the source, and what the mirror makes is refused when it is pulled.

use serde_json::Value;

use crate::image::{ImageReference, ReferenceError};

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// What images begin with.
    Source,
    /// Where they are asked for.
    Mirror,
}

/// What is wrong with a name, to be put behind it, and what to do; nothing if it may be used so.
pub(super) fn fault(name: &str, purpose: Use) -> Option<String> {
    if name.is_empty() {
        return Some("is empty, it must be a registry or a repository".to_owned());
    }
    // What may hold a password is not shown.
    if name.contains("://") {
        return Some(
            "begins with a scheme, which nodes do not take; write the registry alone, as in quay.io/team"
                .to_owned(),
        );
    }
    if name.contains('@') {
        return Some(
            "holds an `@`, and a rule is about a whole repository or more; leave out the digest"
                .to_owned(),
        );
    }
    if purpose == Use::Mirror && name.contains('*') {
        return Some(format!(
            "is {}, and only a source may be a wildcard",
            said(name)
        ));
    }
    let whole = match name.strip_prefix("*.") {
        Some(domain) if !domain.contains(['*', '/', ':']) => format!("any.{domain}"),
        _ if name.contains('*') => {
            return Some(format!(
                "is {}, and nodes know wildcards only as *.example.com, without port or path",
                said(name)
            ));
        }
        _ => name.to_owned(),
    };
    // With one part more, a host alone reads as one, and a tag cannot be at the end.
    let reason = match ImageReference::parse(&format!("{whole}/any")) {
        Ok(reference) if reference.registry.is_none() => {
            "it must begin with a registry, whose name has a dot or a port"
        }
        Ok(_) => return None,
        Err(_) if is_tagged(&whole) => {
            "a rule is about a whole repository or more; leave out the tag"
        }
        Err(ReferenceError::UpperCase) => "repositories are in lower case",
        Err(ReferenceError::TooLong) => "it is too long",
        Err(_) => "it is no registry or repository, as in quay.io/team",
    };
    Some(format!("is {}: {reason}", said(name)))
}

fn is_tagged(name: &str) -> bool {
    let reference = ImageReference::parse(name);
    reference.is_ok_and(|reference| reference.registry.is_some() && reference.tag.is_some())
}

/// A text in quotes, cut if it is long.
pub(super) fn said(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    Value::from(short).to_string()
}
