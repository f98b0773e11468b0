//! The version of Kubernetes, as people and servers write it.

use semver::Version;

/// How `kubectl version` begins the line that tells the server's version.
const SERVER: &str = "Server Version:";

/// A version of Kubernetes, as much of it as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number, where it was written.
    pub patch: Option<u64>,
}

impl KubeVersion {
    /// The version for comparisons: without a patch, the first of its minor version.
    #[must_use]
    pub fn version(&self) -> Version {
        Version::new(self.major, self.minor, self.patch.unwrap_or_default())
    }
}

/// Reads what a server calls itself (`v1.31.2+k3s1`, `1.31`, `1.31+`, `v1.30.0-eks-1234`), or what `kubectl version`
/// prints: the line `Server Version: v1.31.2`, alone or among the others. What follows the numbers is left out, as OLM
/// does before it compares (`operators/olm/requirements.go`).
///
/// # Errors
/// When the text does not begin with a major and a minor number.
pub fn parse(text: &str) -> Result<KubeVersion, String> {
    let server = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(SERVER));
    let version = server.unwrap_or(text).trim();
    let numbers = version.strip_prefix('v').unwrap_or(version);
    let numbers = numbers.split(['-', '+']).next().unwrap_or_default();
    let mut parts = numbers.split('.').map(str::parse::<u64>);
    let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    let (major, minor, patch) = match parts {
        [Some(Ok(major)), Some(Ok(minor)), None, None] => (major, minor, None),
        [Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None] => (major, minor, Some(patch)),
        _ => {
            return Err(format!(
                "{text:?} is no version of Kubernetes; write it like 1.31 or v1.31.2"
            ));
        }
    };
    Ok(KubeVersion {
        major,
        minor,
        patch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_spelling_is_understood() {
        for (text, expected) in [
            ("v1.31.2+k3s1", (1, 31, Some(2))),
            ("1.31", (1, 31, None)),
            ("1.31+", (1, 31, None)),
            ("v1.30.0-eks-1234", (1, 30, Some(0))),
            ("v1.20.1+bd9e442", (1, 20, Some(1))),
            ("Server Version: v1.31.2", (1, 31, Some(2))),
            (
                "Client Version: v1.33.0\nKustomize Version: v5.6.0\nServer Version: v1.31.2\n",
                (1, 31, Some(2)),
            ),
        ] {
            let parsed = parse(text).map(|version| (version.major, version.minor, version.patch));
            assert_eq!(parsed, Ok(expected), "{text}");
        }
        for text in [
            "",
            "v",
            "1",
            "vv1.31",
            "one.two",
            "1.2.3.4",
            "1.x",
            "Client Version: v1.33.0",
            "99999999999999999999.1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_patch_it_compares_as_the_first_of_its_minor_version() {
        let version = parse("1.31").expect("a version").version();
        assert_eq!(version, Version::new(1, 31, 0));
    }
}
