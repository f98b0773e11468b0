//! Versions and ranges of versions, as OLM reads them: v0 with blang/semver, v1 with Masterminds/semver.
//!
//! The two write ranges differently, so there are two types: [`Range`] is what catalogs and bundles hold for both
//! generations (`skipRange`, `versionRange`), [`Constraint`] is what a user of OLM v1 asks for. Neither is what the
//! semver crate's `VersionReq` reads. The table at the head of `constraint.rs` shows where the two differ.
//!
//! Nothing here knows of packages, channels or releases. Reproduces blang/semver v4.0.0 (`semver.go`, `range.go`) and
//! Masterminds/semver v3.5.0 (`constraints.go`, `version.go`).

mod comparator;
mod constraint;
mod loose;
mod range;

use std::cmp::Ordering;

pub use constraint::Constraint;
pub use range::Range;
pub use semver::Version;

/// The characters of a refused text that an error repeats.
const SHOWN: usize = 100;

/// Reads a semantic version with all of its three numbers, as blang's `Parse` does.
///
/// # Errors
/// When it is none, or when a number in it, also one in its pre-release, is above 2^64 - 1.
pub fn parse(text: &str) -> Result<Version, String> {
    let refused = |reason: String| format!("{} is not a semantic version: {reason}", quoted(text));
    let version = Version::parse(text).map_err(|error| refused(error.to_string()))?;
    // The semver crate takes numbers of any length here; Go holds them in a uint64.
    match version.pre.split('.').find(|part| is_too_large(part)) {
        Some(number) => Err(refused(format!(
            "the number {} in its pre-release is too large",
            quoted(number)
        ))),
        None => Ok(version),
    }
}

/// Reads a version as people write it, as blang's `ParseTolerant` does: with space around it, a leading `v`, zeros
/// before its numbers, or only one or two numbers.
///
/// # Errors
/// When it is no version even so, or when a short one has a pre-release or build metadata.
pub fn parse_tolerant(text: &str) -> Result<Version, String> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let mut numbers: Vec<String> = trimmed.splitn(3, '.').map(without_zeros).collect();
    if numbers.len() < 3 && trimmed.contains(['+', '-']) {
        return Err(format!(
            "{} is not a semantic version: a short version cannot have a pre-release or build metadata; \
             write all three numbers",
            quoted(text)
        ));
    }
    numbers.resize(3, "0".to_owned());
    parse(&numbers.join("."))
}

/// Which of two versions comes first, as blang's `Compare` tells: build metadata makes no difference.
pub fn compare(a: &Version, b: &Version) -> Ordering {
    a.cmp_precedence(b)
}

/// The order from the newest version to the oldest; what has none comes last.
pub fn newest_first(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(b, a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// Whether it is a number that Go's `uint64` cannot hold.
fn is_too_large(identifier: &str) -> bool {
    let is_number = identifier.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !identifier.is_empty() && identifier.parse::<u64>().is_err()
}

/// A number of a version, or its last number with all that follows, without the zeros that it must not begin with.
fn without_zeros(number: &str) -> String {
    let bare = number.trim_start_matches('0');
    match bare.bytes().next() {
        _ if number.len() < 2 => number.to_owned(),
        Some(first) if first.is_ascii_digit() => bare.to_owned(),
        _ => format!("0{bare}"),
    }
}

/// A text in quotes, for an error; cut if it is long, since content may be hostile.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerant_version_is_put_right() {
        for (text, expected) in [
            ("v1.2", "1.2.0"),
            (" 01.002.00-rc.1 ", "1.2.0-rc.1"),
            ("0", "0.0.0"),
        ] {
            let version = parse_tolerant(text).map(|version| version.to_string());
            assert_eq!(version.as_deref(), Ok(expected), "{text:?}");
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_version_and_the_reason() {
        for (text, expected) in [
            (
                "v1.2.3",
                "\"v1.2.3\" is not a semantic version: unexpected character 'v' while parsing major version number",
            ),
            (
                "1.2.3-18446744073709551616",
                "\"1.2.3-18446744073709551616\" is not a semantic version: the number \"18446744073709551616\" in its \
                 pre-release is too large",
            ),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()));
        }
        let long = parse(&"1".repeat(1 << 16)).unwrap_err();
        assert!(long.len() < 200, "{long}");
    }
}
