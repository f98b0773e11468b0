//! What is asked of a registry: something in a repository. Pure.

use crate::{image::ImageReference, oci::digest::Digest, source::registry::error::RegistryError};

/// The tag that is meant where there is neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";
/// The most bytes of a manifest, as in containers/image (`internal/iolimits`).
const MANIFEST_BYTES: usize = 4 << 20;
/// What a manifest or an index may be.
const MANIFEST_KINDS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// A repository of a registry.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The registry, as references name it.
    pub(super) registry: String,
    /// Whether the registry's certificate is checked; where not, it may also be asked without TLS.
    pub(super) checked: Checked,
    /// The repository in it.
    pub(super) name: String,
}

impl Repository {
    /// Registry and repository.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.registry, self.name)
    }
}

/// Whether the certificate of a host is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Checked {
    /// As it should be.
    Yes,
    /// The user wants it not to be.
    No,
}

/// What is wanted of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The manifest by a tag.
    Tag(String),
    /// The manifest by its digest.
    Manifest(Digest),
    /// Other content.
    Blob(Digest),
}

impl Wanted {
    /// The manifest that a reference names: by its digest if it has one, else by its tag.
    ///
    /// # Errors
    /// When the digest is none.
    pub(super) fn manifest(image: &ImageReference) -> Result<Self, RegistryError> {
        let Some(digest) = &image.digest else {
            let tag = image.tag.as_deref().unwrap_or(DEFAULT_TAG);
            return Ok(Self::Tag(tag.to_owned()));
        };
        let digest = Digest::parse(digest).map_err(|error| RegistryError::Reference {
            image: Box::new(image.clone()),
            reason: error.to_string(),
        })?;
        Ok(Self::Manifest(digest))
    }

    /// How messages name it.
    pub(super) fn name(&self, repository: &str) -> String {
        match self {
            Self::Tag(tag) => format!("manifest {repository}:{tag}"),
            Self::Manifest(digest) => format!("manifest {repository}@{digest}"),
            Self::Blob(digest) => format!("blob {digest} of {repository}"),
        }
    }

    /// Where a registry has it.
    pub(super) fn path(&self, repository: &str) -> String {
        match self {
            Self::Tag(tag) => format!("/v2/{repository}/manifests/{tag}"),
            Self::Manifest(digest) => format!("/v2/{repository}/manifests/{digest}"),
            Self::Blob(digest) => format!("/v2/{repository}/blobs/{digest}"),
        }
    }

    /// What it may be delivered as.
    pub(super) fn accept(&self) -> &'static str {
        match self {
            Self::Tag(_) | Self::Manifest(_) => MANIFEST_KINDS,
            Self::Blob(_) => "*/*",
        }
    }

    /// The most bytes of what is read whole; nothing for what is handed on as it comes.
    pub(super) fn limit(&self) -> Option<usize> {
        match self {
            Self::Tag(_) | Self::Manifest(_) => Some(MANIFEST_BYTES),
            Self::Blob(_) => None,
        }
    }
}
