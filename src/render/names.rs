//! The names of generated objects, equal to upstream's.
//!
//! Reproduces operator-controller `rukpak/util/util.go` (`ObjectNameForBaseAndSuffix`) and
//! `internal/shared/util/hash/hash.go` (`DeepHashObject`). Upstream cuts too late by one and can give names of 64
//! characters, which API servers refuse for Services; here 63 is the end.

use serde::Serialize;
use sha2::{Digest, Sha224};

use crate::manifest::go_json;

/// The longest name that every kind takes.
const LONGEST: usize = 63;

/// `base-suffix`, with the base cut so that no more than 63 bytes come out.
pub(super) fn with_suffix(base: &str, suffix: &str) -> String {
    let room = LONGEST.saturating_sub(suffix.len() + 1);
    let cut = (0..=room.min(base.len()))
        .rev()
        .find(|at| base.is_char_boundary(*at));
    format!("{}-{suffix}", &base[..cut.unwrap_or_default()])
}

/// A name that depends on what the object says, so that a change of the content gives a new object.
///
/// # Errors
/// When the content cannot be written as JSON, which no typed value of ours can fail to be.
pub(super) fn unique(base: &str, content: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut json = go_json::text(content)?;
    json.push('\n');
    Ok(with_suffix(base, &base36(&Sha224::digest(json))))
}

/// The Service in front of a Deployment's webhooks (`CertProvisionerFor`; OLM v0 names it alike).
pub(super) fn service(deployment: &str) -> String {
    with_suffix(&deployment.replace('.', "-"), "service")
}

/// The certificate of a Service, and the Secret it is kept in.
pub(super) fn certificate(service: &str) -> String {
    with_suffix(service, "cert")
}

/// The issuer of a certificate, where it has one of its own.
pub(super) fn issuer(certificate: &str) -> String {
    with_suffix(certificate, "selfsigned-issuer")
}

/// A big-endian number to the base 36, lower case, without padding.
fn base36(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![];
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            (*byte, rest) = ((value / 36) as u8, value % 36);
        }
        digits.push(char::from_digit(rest, 36).unwrap_or('0'));
    }
    if digits.is_empty() {
        "0".to_owned()
    } else {
        digits.iter().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_63_where_upstream_reaches_64() {
        let base = "b".repeat(63 - "service".len());
        assert_eq!(with_suffix(&base, "service").len(), 63);
        assert_eq!(with_suffix("short", "cert"), "short-cert");
    }

    /// From Go: `new(big.Int).SetBytes(b).Text(36)`.
    #[test]
    fn base_36_is_that_of_big_int() {
        assert_eq!(base36(&[0, 0]), "0");
        assert_eq!(base36(&[1, 0]), "74");
        assert_eq!(
            base36(&[255; 28]),
            "38ezlg4fculxm7v4vtncnylxb9t1i71i2549cajjsg73"
        );
    }
}
