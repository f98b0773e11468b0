//! The text of a registries.conf becomes registries and their mirrors.
//!
//! Takes version 2 of the format, containers-registries.conf(5), and holds it to the rules of `postProcessRegistries` of
//! go.podman.io/image (`pkg/sysregistriesv2/system_registries_v2.go`). Other fields are passed over, as there. So are
//! `unqualified-search-registries` and the aliases of short names: an image without a registry is Docker's to OLM and to
//! the kubelet, and nothing is searched for here. So are `credential-helpers`: logins are looked up where
//! [`credentials`](crate::source::credentials) says.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde::Deserialize;

use super::MirrorError;

/// A registry, or a part of one, and where else its images are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registry {
    /// What the images begin with.
    pub(super) prefix: String,
    /// Where they really are; empty if they are where they say.
    pub(super) location: String,
    pub(super) insecure: bool,
    pub(super) blocked: bool,
    /// Whether a mirror rule says so, as no file does.
    pub(super) never_contacted: bool,
    pub(super) mirrors: Vec<Mirror>,
    /// The file that says so.
    pub(super) path: Arc<Path>,
}

/// Another place for the images of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) location: String,
    pub(super) insecure: bool,
    pub(super) pulls: Pulls,
}

/// Which images are taken from a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pulls {
    All,
    DigestOnly,
    TagOnly,
}

/// Version 2, and as much of version 1 as is needed to know it.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    registry: Vec<RegistryTable>,
    registries: Option<VersionOne>,
}

#[derive(Deserialize)]
struct VersionOne {
    search: Option<toml::Value>,
    insecure: Option<toml::Value>,
    block: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RegistryTable {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<MirrorTable>,
    pull_from_mirror: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MirrorTable {
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    pull_from_mirror: Option<Pulls>,
}

/// Reads the registries of a file, by their prefixes.
///
/// # Errors
/// When the text is no TOML, of version 1, or against a rule.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<BTreeMap<String, Registry>, MirrorError> {
    let file: File = deserialize(path, text)?;
    if let Some(VersionOne {
        search,
        insecure,
        block,
    }) = file.registries
        && (search.is_some() || insecure.is_some() || block.is_some())
    {
        return Err(MirrorError::VersionOne(path.to_owned()));
    }
    let shared: Arc<Path> = path.into();
    let registries = file.registry.into_iter().map(|table| {
        let name = table.name();
        table.check(&shared).map_err(|rule| MirrorError::Rule {
            path: path.to_owned(),
            name,
            rule,
        })
    });
    let registries: Vec<_> = registries.collect::<Result<_, _>>()?;
    check_agreement(path, &registries)?;
    let mut by_prefix = BTreeMap::new();
    for registry in registries {
        // The first of several counts, within one file.
        by_prefix.entry(registry.prefix.clone()).or_insert(registry);
    }
    Ok(by_prefix)
}

fn deserialize(path: &Path, text: &[u8]) -> Result<File, MirrorError> {
    let invalid = |at: usize, message: String| {
        let before = text.get(..at).unwrap_or(text);
        let line_starts = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        MirrorError::Invalid {
            path: path.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + before.len() - line_starts,
            message,
        }
    };
    let text = std::str::from_utf8(text)
        .map_err(|error| invalid(error.valid_up_to(), "it is not UTF-8".to_owned()))?;
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // One line, of a length that fits a message.
        let message = error.message().lines().next().unwrap_or_default();
        invalid(at, message.chars().take(200).collect())
    })
}

impl RegistryTable {
    /// What the table is about, for messages.
    fn name(&self) -> String {
        let name = if self.prefix.is_empty() {
            &self.location
        } else {
            &self.prefix
        };
        name.clone()
    }

    fn check(self, path: &Arc<Path>) -> Result<Registry, &'static str> {
        let location = place(&self.location)?;
        let prefix = match place(&self.prefix)? {
            prefix if self.prefix.is_empty() && prefix.is_empty() => location.clone(),
            prefix => prefix,
        };
        let is_domain = prefix.starts_with("*.");
        if prefix.is_empty() {
            return Err("neither `location` nor `prefix` is set");
        }
        if location.is_empty() && !is_domain {
            return Err(
                "`location` is not set, which only a `prefix` like *.example.com may leave out",
            );
        }
        if is_domain && prefix.contains(['/', '@', ':']) {
            return Err("a `prefix` with `*.` is a host alone, like *.example.com");
        }
        if self.pull_from_mirror.is_some() {
            return Err("`pull-from-mirror` is for a mirror, not for the registry itself");
        }
        let digests_only = self.mirror_by_digest_only;
        let mirrors = self
            .mirror
            .into_iter()
            .map(|mirror| mirror.check(digests_only));
        Ok(Registry {
            mirrors: mirrors.collect::<Result<_, _>>()?,
            prefix,
            location,
            insecure: self.insecure,
            blocked: self.blocked,
            never_contacted: false,
            path: Arc::clone(path),
        })
    }
}

impl MirrorTable {
    fn check(self, digests_only: bool) -> Result<Mirror, &'static str> {
        let location = place(&self.location)?;
        if location.is_empty() {
            return Err("a mirror has no `location`");
        }
        let pulls = match (digests_only, self.pull_from_mirror) {
            (true, Some(_)) => {
                return Err(
                    "`mirror-by-digest-only` and `pull-from-mirror` cannot be set together",
                );
            }
            (true, None) => Pulls::DigestOnly,
            (false, pulls) => pulls.unwrap_or(Pulls::All),
        };
        Ok(Mirror {
            location,
            insecure: self.insecure,
            pulls,
        })
    }
}

/// A location or prefix, without the slashes at its end.
fn place(text: &str) -> Result<String, &'static str> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err("`https://` and `http://` have no place in it; `insecure = true` allows http");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A location may stand in several tables, for several prefixes, but has to be as safe in all of them.
fn check_agreement(path: &Path, registries: &[Registry]) -> Result<(), MirrorError> {
    let mut seen: BTreeMap<&str, &Registry> = BTreeMap::new();
    for registry in registries {
        let place = match registry.location.as_str() {
            "" => registry.prefix.as_str(),
            location => location,
        };
        let first = seen.entry(place).or_insert(registry);
        let rule = if first.insecure != registry.insecure {
            "it stands there several times, with `insecure` and without"
        } else if first.blocked != registry.blocked {
            "it stands there several times, with `blocked` and without"
        } else {
            continue;
        };
        return Err(MirrorError::Rule {
            path: path.to_owned(),
            name: place.to_owned(),
            rule,
        });
    }
    Ok(())
}
