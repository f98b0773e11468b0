//! What was read of images, kept between runs: manifests and configurations by their digest, what was needed of layers,
//! and which digest a tag had.
//!
//! Everything is verified whenever it is read, so nothing depends on what others do to the files; what is damaged is
//! removed and taken anew. Nothing depends on the cache either: where there is none, or it takes nothing, the answer is
//! the same. What a tag stands for is remembered for `--offline` only.

mod folder;
mod form;
mod layer;
mod list;

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

pub(super) use self::folder::{Folder, INDEXES};
pub use self::{
    folder::{Unusable, default_folder},
    layer::{KeptLayer, NewLayer, found_damage},
    list::{Kept, KeptKind, Listing, Prune, list, prune},
};
use crate::{
    limits::Limits,
    oci::{DOCUMENT_BYTES, digest::Digest},
};

/// Bytes of a file about a tag.
const LARGEST_TAG: u64 = 64 << 10;

/// What is kept between runs; or nothing is. Clones share it.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<Arc<Folder>>,
}

impl Cache {
    /// Opens the cache in a folder, by default [`default_folder`]. When it cannot or must not be used, the cache keeps
    /// nothing, and the text says why and what to do. What killed runs left behind is removed.
    #[must_use]
    pub fn open(folder: Option<PathBuf>) -> (Self, Option<String>) {
        let folder = folder.map_or_else(default_folder, Ok);
        match folder.and_then(|folder| Folder::open(&folder)) {
            Ok(folder) => {
                for leftover in folder.leftovers() {
                    leftover.remove();
                }
                let folder = Some(Arc::new(folder));
                (Self { folder }, None)
            }
            Err(unusable) => (Self::none(), Some(unusable.to_string())),
        }
    }

    /// A cache that keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { folder: None }
    }

    /// What could not be kept since, and why, in one sentence: once, however much it was. Worth a notice at the end.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.folder.as_ref()?.trouble()
    }

    /// The manifest or configuration of a digest.
    #[must_use]
    pub fn blob(&self, digest: &Digest) -> Option<Vec<u8>> {
        let folder = self.folder.as_ref()?;
        let path = blob_path(folder, digest);
        folder.read(&path, DOCUMENT_BYTES, |content| {
            digest.fits(&content).then_some(content)
        })
    }

    /// Keeps a manifest or configuration. One that is not of this digest, or over 4 MiB, is not kept.
    pub fn keep_blob(&self, digest: &Digest, content: &[u8]) {
        if let Some(folder) = &self.folder
            && content.len() as u64 <= DOCUMENT_BYTES
            && digest.fits(content)
        {
            folder.keep(&blob_path(folder, digest), content);
        }
    }

    /// Which digest a reference had when it was last looked up, and the media type of what is there.
    #[must_use]
    pub fn tag(&self, name: &str) -> Option<(Digest, Option<String>)> {
        let folder = self.folder.as_ref()?;
        let tag = folder.read(&tag_path(folder, name), LARGEST_TAG, |content| {
            Tag::decode(&content).filter(|tag| tag.reference == name)
        })?;
        Some((Digest::parse(&tag.digest).ok()?, tag.media_type))
    }

    /// Keeps which digest a reference has.
    pub fn keep_tag(&self, name: &str, digest: &Digest, media_type: Option<&str>) {
        if let Some(folder) = &self.folder {
            let tag = Tag {
                reference: name.to_owned(),
                digest: digest.to_string(),
                media_type: media_type.map(str::to_owned),
            };
            folder.keep(&tag_path(folder, name), &tag.encode());
        }
    }

    /// What was kept of a layer for some wanted paths.
    #[must_use]
    pub fn layer(&self, layer: &Digest, wanted: &[String]) -> Option<KeptLayer> {
        KeptLayer::find(self.folder.as_ref()?, layer, wanted)
    }

    /// Takes what is to be kept of a layer; without a cache, memory takes up to `limits.catalog_bytes`.
    #[must_use]
    pub fn new_layer(&self, limits: &Limits) -> NewLayer {
        NewLayer::new(self.folder.clone(), limits)
    }
}

fn blob_path(folder: &Folder, digest: &Digest) -> PathBuf {
    let algorithm = digest.algorithm().name();
    folder.file(&format!("{}/{algorithm}", folder::BLOBS), digest.hex())
}

fn tag_path(folder: &Folder, name: &str) -> PathBuf {
    folder.file(folder::TAGS, Digest::of(name.as_bytes()).hex())
}

/// Which digest a reference had.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tag {
    reference: String,
    digest: String,
    media_type: Option<String>,
}

/// What a file about a tag begins with, before the digest of the rest.
const TAG_HEADER: &str = "kubectl-olm tag 1 ";

impl Tag {
    fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_string(self).unwrap_or_default();
        format!("{TAG_HEADER}{}\n{body}", Digest::of(body.as_bytes())).into_bytes()
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let (digest, body) = text.strip_prefix(TAG_HEADER)?.split_once('\n')?;
        let digest = Digest::parse(digest).ok()?;
        let tag: Self = serde_json::from_str(digest.fits(body.as_bytes()).then_some(body)?).ok()?;
        Digest::parse(&tag.digest).ok()?;
        Some(tag)
    }
}
