//! Which keys of an auth file cover a repository, the closest first.
//!
//! Follows `BasicDockerKeyring` of k8s.io/kubernetes (`pkg/credentialprovider/keyring.go`: `Add`, `Lookup`,
//! `URLsMatch`): the host is compared part by part and may hold `*`, the port must be the same, the path must be the
//! beginning of the repository's. The other patterns that the kubelet's documentation names, as `[a-z]`, are none there
//! either: Go's URLs have not taken such hosts for long.
//!
//! Where a password could go where it was not meant for, less is covered than the kubelet covers:
//! - a path ends where a part of the repository ends, as in containers (go.podman.io/image `pkg/docker/config`):
//!   `quay.io/org` is not for `quay.io/organization/app`;
//! - a key with anything in it that no registry or repository has (a user, an escape, a query, a fragment, a space)
//!   covers nothing, while Go's URLs cut it off or decode it.
//!
//! Of keys that come to the same, as `quay.io` and `https://quay.io`, the kubelet tries either first; here it is always
//! the same one.
//!
//! Nothing is read here, and nothing is known of passwords.

/// The host whose entry stands in for Docker's own registry where nothing else covers it.
const DOCKER_HUB: &str = "index.docker.io";
/// The registry that all of its names stand for.
const DOCKER_IO: &str = "docker.io";

/// What a key of an auth file is for.
///
/// The order is that of the text without scheme and version, so that of two keys that cover a repository the longer
/// one, and the one without a pattern, is the greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// Reads a key: `quay.io`, `quay.io/org`, `*.example.com:5000`, `https://index.docker.io/v1/`.
    ///
    /// Gives nothing for a text that can be for no registry.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bare = ["https://", "http://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .unwrap_or(text);
        let (authority, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
        // Of `/v1/org` the kubelet keeps `/org`.
        let path = ["/v1", "/v2"]
            .iter()
            .filter_map(|version| path.strip_prefix(version))
            .find(|rest| rest.starts_with('/'))
            .unwrap_or(path);
        let path = if path == "/" { "" } else { path };
        let (host, port) = split_port(authority);
        let port_fits = port.bytes().all(|byte| byte.is_ascii_digit());
        let path_fits = path.bytes().all(is_of_path);
        let host_fits = !host.is_empty() && host.bytes().all(is_of_host);
        (host_fits && port_fits && path_fits).then(|| Self(format!("{authority}{path}")))
    }

    /// The key without scheme and version of the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the key is for a repository, say `org/app` of `quay.io`.
    #[must_use]
    pub fn covers(&self, registry: &str, repository: &str) -> bool {
        let (authority, path) = self.0.split_at(self.0.find('/').unwrap_or(self.0.len()));
        covers_host(authority, registry) && covers_path(path, repository)
    }

    /// Whether the key is for the whole of a registry and written without a pattern, as those of helpers are.
    #[must_use]
    pub fn is_registry(&self, registry: &str) -> bool {
        self.0 == registry || (registry == DOCKER_IO && self.0 == DOCKER_HUB)
    }
}

/// The ones of some entries that are for a repository, the closest first; of two with the same key, the earlier first.
#[must_use]
pub fn ranked<'a, T>(
    entries: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&T) -> &Key,
    registry: &str,
    repository: &str,
) -> Vec<&'a T> {
    let entries: Vec<_> = entries.into_iter().collect();
    let covering = |entry: &&&T| key(entry).covers(registry, repository);
    let mut found: Vec<_> = entries.iter().filter(covering).copied().collect();
    if found.is_empty() && registry == DOCKER_IO {
        let is_hub = |entry: &&&T| key(entry).as_str() == DOCKER_HUB;
        found = entries.iter().filter(is_hub).copied().collect();
    }
    found.sort_by(|one, other| key(other).cmp(key(one)));
    found
}

/// A host and its port; no port and an empty one are the same.
fn split_port(authority: &str) -> (&str, &str) {
    authority.rsplit_once(':').unwrap_or((authority, ""))
}

fn covers_host(authority: &str, registry: &str) -> bool {
    let ((host, port), (registry, registry_port)) = (split_port(authority), split_port(registry));
    let (parts, registry_parts) = (host.split('.'), registry.split('.'));
    port == registry_port
        && parts.clone().count() == registry_parts.clone().count()
        && parts
            .zip(registry_parts)
            .all(|(part, text)| fits(part, text))
}

/// A path with a slash in front; an empty one covers everything.
fn covers_path(path: &str, repository: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else {
        return true;
    };
    let rest = repository.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || path.ends_with('/'))
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_*".contains(&byte)
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._-".contains(&byte)
}

/// Whether a part of a host is as a pattern says, in which `*` stands for any characters or none.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<_> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    // What stands between two stars may be found as early as it can: that leaves most for what follows.
    for piece in pieces {
        match text.find(piece) {
            Some(at) => text = text.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    text.ends_with(end)
}
