//! References to images: `registry/repository:tag@digest`, as Docker and all of OLM read them.
//!
//! Follows `ParseNormalizedNamed` of go.podman.io/image `docker/reference` (`normalize.go`, `reference.go`,
//! `regexp.go`), which opm judges references with, and the digests of opencontainers/go-digest. The crates that read
//! references (oci-spec, and oci-client on top of it) are not used: they add the tag `latest` where there is none,
//! take upper case in names and digests, letters of other scripts in tags, names that are longer, and 64 hexadecimal
//! digits, all of which opm refuses. Nothing is looked up here, and no default is filled in but by
//! [`ImageReference::normalized`].

use std::fmt;

/// The tag that is meant where there is neither a tag nor a digest.
pub const DEFAULT_TAG: &str = "latest";
/// The registry that is meant where none is written.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Another name of the same registry.
const LEGACY_DEFAULT_REGISTRY: &str = "index.docker.io";
/// The first part of the repository that is meant where only one is written.
const OFFICIAL_REPOSITORIES: &str = "library/";
/// Bytes of registry and repository together, in their normal form.
const LONGEST_NAME: usize = 255;
/// Bytes of a tag.
pub const LONGEST_TAG: usize = 128;
/// The algorithms a digest may have, and as many hexadecimal digits.
const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// A reference to an image, its parts as they were written.
///
/// At most a few hundred bytes, all of them ASCII and none of them white space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    /// The registry's host, and its port if one is written; nothing stands for Docker's own.
    pub registry: Option<String>,
    /// The repository within the registry.
    pub repository: String,
    /// The tag, without its colon.
    pub tag: Option<String>,
    /// The digest, with its algorithm: `sha256:…`.
    pub digest: Option<String>,
}

/// Why a text is no reference to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It does not look like one.
    #[error("invalid reference format")]
    Format,
    /// The repository holds upper case letters.
    #[error("invalid reference format: repository name must be lowercase")]
    UpperCase,
    /// It could be the identifier of an image as well.
    #[error("invalid repository name, cannot specify 64-byte hexadecimal strings")]
    Identifier,
    /// Registry and repository are too long.
    #[error("repository name must not be more than {LONGEST_NAME} characters")]
    TooLong,
    /// The digest's algorithm is unknown.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// The digest has too many or too few digits.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest's digits are not lower case.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

/// What may stand before a reference: Istio takes `oci://`, skopeo `docker://`.
const SCHEMES: [&str; 2] = ["oci://", "docker://"];

/// A text in two: the scheme, `oci://` or `docker://`, if it begins with one, and the rest.
#[must_use]
pub fn split_scheme(text: &str) -> (&str, &str) {
    let schemes = SCHEMES.iter().filter(|scheme| text.starts_with(**scheme));
    text.split_at(schemes.map(|scheme| scheme.len()).next().unwrap_or(0))
}

/// The text that stands for all spellings of one image, that of [`ImageReference::canonical`]. Of a text that is no
/// reference it is that text.
#[must_use]
pub fn canonical(text: &str) -> String {
    match ImageReference::parse(text) {
        Ok(reference) => reference.canonical().to_string(),
        Err(_) => text.to_owned(),
    }
}

impl ImageReference {
    /// Reads a reference.
    ///
    /// # Errors
    /// When `text` is none, by the grammar that opm uses.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.len() == 64 && text.bytes().all(is_lower_hex) {
            return Err(ReferenceError::Identifier);
        }
        let (registry, rest) = split_registry(text);
        let name_ends = rest.find([':', '@']).unwrap_or(rest.len());
        let (repository, rest) = rest.split_at(name_ends);
        let (tag, digest) = split_tag_and_digest(rest)?;
        if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(ReferenceError::UpperCase);
        }
        let names_fit = registry.is_none_or(is_registry) && repository.split('/').all(is_component);
        if !names_fit || !tag.is_none_or(is_tag) || !digest.is_none_or(is_digest) {
            return Err(ReferenceError::Format);
        }
        let owned = |part: Option<&str>| part.map(str::to_owned);
        let reference = Self {
            registry: owned(registry),
            repository: repository.to_owned(),
            tag: owned(tag),
            digest: owned(digest),
        };
        let (registry, repository) = reference.normal_name();
        if registry.len() + 1 + repository.len() > LONGEST_NAME {
            return Err(ReferenceError::TooLong);
        }
        digest.map_or(Ok(()), check_digest)?;
        Ok(reference)
    }

    /// The same image with nothing left out: `nginx` is `docker.io/library/nginx`. No tag is added.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let (registry, repository) = self.normal_name();
        Self {
            registry: Some(registry.to_owned()),
            repository,
            tag: self.tag.clone(),
            digest: self.digest.clone(),
        }
    }

    /// The one that stands for all spellings of it: in its normal form, with either a digest or a tag. Beside a digest
    /// nobody asks for the tag, and where there is neither, one is meant.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let mut reference = self.normalized();
        if reference.digest.is_some() {
            reference.tag = None;
        } else if reference.tag.is_none() {
            reference.tag = Some(DEFAULT_TAG.to_owned());
        }
        reference
    }

    /// Registry and repository, as they were written.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.registry {
            Some(registry) => format!("{registry}/{}", self.repository),
            None => self.repository.clone(),
        }
    }

    fn normal_name(&self) -> (&str, String) {
        let registry = match self.registry.as_deref() {
            None | Some(LEGACY_DEFAULT_REGISTRY) => DEFAULT_REGISTRY,
            Some(registry) => registry,
        };
        let official = registry == DEFAULT_REGISTRY && !self.repository.contains('/');
        let folder = if official { OFFICIAL_REPOSITORIES } else { "" };
        (registry, format!("{folder}{}", self.repository))
    }
}

/// As it was written.
impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// What stands before the first slash is a registry if it has a dot or a port, or is `localhost`.
fn split_registry(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
            (Some(first), rest)
        }
        _ => (None, text),
    }
}

/// What follows the name: nothing, or `:tag`, or `@digest`, or both.
fn split_tag_and_digest(text: &str) -> Result<(Option<&str>, Option<&str>), ReferenceError> {
    let (tag, digest) = match text.split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (text, None),
    };
    if tag.is_empty() {
        return Ok((None, digest));
    }
    let tag = tag.strip_prefix(':').ok_or(ReferenceError::Format)?;
    Ok((Some(tag), digest))
}

/// A host with or without a port. What is no host passes as well if it could be the first part of a repository
/// (`my_host.example`): Go's grammar takes it for that, with the same text in the end.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (host.split('.').all(is_host_part) && port.is_none_or(is_port)) || is_component(text)
}

/// Letters and digits, with dashes between them.
fn is_host_part(text: &str) -> bool {
    let characters = text.bytes();
    let mut fit = characters.map(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fit.all(|fits| fits) && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

/// A part of a repository: lower case letters and digits, with one dot, one or two underscores, or dashes between.
fn is_component(text: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let is_separator =
        |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    text.starts_with(is_letter)
        && text.ends_with(is_letter)
        && text.split(is_letter).all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fits = |byte| is_word(byte) || matches!(byte, b'.' | b'-');
    text.len() <= LONGEST_TAG && text.bytes().next().is_some_and(is_word) && text.bytes().all(fits)
}

/// Words between separators, a colon, and at least 32 hexadecimal digits.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_word)
        && digits.len() >= 32
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn check_digest(text: &str) -> Result<(), ReferenceError> {
    let (algorithm, digits) = text.split_once(':').unwrap_or((text, ""));
    let known = DIGESTS.iter().find(|(name, _)| *name == algorithm);
    let (_, length) = known.ok_or(ReferenceError::DigestAlgorithm)?;
    if digits.len() != *length {
        return Err(ReferenceError::DigestLength);
    }
    if !digits.bytes().all(is_lower_hex) {
        return Err(ReferenceError::DigestFormat);
    }
    Ok(())
}

fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}
