//! The version of Kubernetes, as people and servers write it.

use semver::Version;

/// Reads what `kubectl version` prints or what a server calls itself: `v1.31.2+k3s1`, `1.31`, `1.31+`,
/// `v1.30.0-eks-1234`. What follows the numbers is left out, as OLM does before it compares
/// (`operators/olm/requirements.go`).
///
/// # Errors
/// When the text does not begin with a major and a minor number.
pub fn parse(text: &str) -> Result<Version, String> {
    let numbers = text.trim().trim_start_matches('v');
    let end = numbers.find(['-', '+']).unwrap_or(numbers.len());
    let mut parts = numbers[..end].split('.');
    let mut number = || parts.next().map(str::parse::<u64>);
    match (number(), number(), number(), number()) {
        (Some(Ok(major)), Some(Ok(minor)), None, None) => Ok(Version::new(major, minor, 0)),
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
            Ok(Version::new(major, minor, patch))
        }
        _ => Err(format!(
            "{text:?} is no version of Kubernetes; write it like 1.31 or v1.31.2"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_spelling_is_understood() {
        for (text, expected) in [
            ("v1.31.2+k3s1", "1.31.2"),
            ("1.31", "1.31.0"),
            ("1.31+", "1.31.0"),
            ("v1.30.0-eks-a1b2", "1.30.0"),
        ] {
            assert_eq!(
                parse(text).map(|version| version.to_string()).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
        for text in ["", "v", "1", "one.two", "1.2.3.4", "1.x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
