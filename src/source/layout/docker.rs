//! Archives as `docker save`, podman and skopeo write them: a `manifest.json`, configurations, and layers as tar files.
//!
//! Such an archive knows no manifest and no digests of its layers, so a manifest is made: a layer that is not compressed
//! has the digest that the configuration tells for it (its diff ID), and nothing has to be read to know that. One that
//! is compressed is read once, to compute its own digest and to compare what is in it with the diff ID.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read},
    path::Path,
};

use serde::Deserialize;
use serde_json::json;

use super::{
    Form, Store, StoreError,
    archive::{ImageArchive, Span},
    cut,
};
use crate::{
    archive::{self, Bound, Packing},
    image::ImageReference,
    limits::Limits,
    oci::{
        digest::{Algorithm, Digest, Hasher},
        manifest::{Delivered, Descriptor, INDEX_ENTRIES, LAYERS},
    },
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image in an archive of `docker save`.
#[derive(Debug)]
pub(super) struct DockerArchive {
    archive: ImageArchive,
    /// What the manifest that was made lists, and where it is.
    blobs: BTreeMap<Digest, Span>,
    top: Delivered,
}

/// An image, as `manifest.json` tells of it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Config {
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Option<Vec<String>>,
}

impl DockerArchive {
    /// An image of an archive.
    pub(super) fn new(
        archive: ImageArchive,
        reference: Option<&str>,
        limits: &Limits,
    ) -> Result<Self, StoreError> {
        let image = chosen(&archive, reference)?;
        let body = document(&archive, &image.config)?;
        let config = Digest::of(&body);
        check_name(&archive, &image.config, &config)?;
        let mut blobs = BTreeMap::new();
        let span = archive.find(&image.config);
        blobs.extend(span.map(|span| (config.clone(), span)));
        let mut layers = vec![];
        for (name, diff_id) in layers_of(&archive, &image, &body)? {
            let span = archive.find(&name).ok_or_else(|| StoreError::Missing {
                path: archive.path().to_owned(),
                file: cut(&name),
                digest: diff_id.clone(),
            })?;
            let (digest, media_type) = digest_of(&archive, &name, span, diff_id, limits)?;
            layers.push(
                json!({"mediaType": media_type, "digest": digest.as_str(), "size": span.size}),
            );
            blobs.insert(digest, span);
        }
        let config = json!({"mediaType": CONFIG, "digest": config.as_str(), "size": body.len()});
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let body = manifest.to_string().into_bytes();
        let top = Delivered {
            digest: Digest::of(&body),
            media_type: Some(MANIFEST.to_owned()),
            body,
        };
        Ok(Self {
            archive,
            blobs,
            top,
        })
    }
}

impl Store for DockerArchive {
    fn top(&self) -> Result<Delivered, StoreError> {
        Ok(self.top.clone())
    }

    fn blob(&self, blob: &Descriptor) -> Result<Box<dyn Read + Send + '_>, StoreError> {
        let span = self.blobs.get(&blob.digest);
        let span = span.ok_or_else(|| StoreError::Missing {
            path: self.archive.path().to_owned(),
            file: "file".to_owned(),
            digest: blob.digest.clone(),
        })?;
        Ok(Box::new(self.archive.read(*span)))
    }
}

fn is_none(path: &Path, reason: impl Into<String>) -> StoreError {
    StoreError::NoneOf {
        path: path.to_owned(),
        form: Form::DockerArchive,
        reason: reason.into(),
    }
}

/// Reads a small file of the archive.
fn document(archive: &ImageArchive, name: &str) -> Result<Vec<u8>, StoreError> {
    let is_none = |reason| is_none(archive.path(), reason);
    let content = super::document(name, archive.open_file(name), is_none)?;
    content.ok_or_else(|| is_none(format!("it has no file {:?}", cut(name))))
}

/// The image that is meant.
fn chosen(archive: &ImageArchive, reference: Option<&str>) -> Result<Image, StoreError> {
    let path = archive.path();
    let images = document(archive, "manifest.json")?;
    let mut images: Vec<Image> = serde_json::from_slice(&images)
        .map_err(|error| is_none(path, format!("its manifest.json cannot be read ({error})")))?;
    if images.len() > INDEX_ENTRIES {
        let reason = format!(
            "it has {} images, over the limit of {INDEX_ENTRIES}",
            images.len()
        );
        return Err(is_none(path, reason));
    }
    let tags = images
        .iter()
        .flat_map(|image| image.repo_tags.iter().flatten());
    let names: Vec<_> = tags.cloned().collect();
    let Some(reference) = reference else {
        return match (images.pop(), images.is_empty()) {
            (None, _) => Err(is_none(path, "it holds no image")),
            (Some(image), true) => Ok(image),
            (Some(_), false) => Err(StoreError::Several {
                path: path.to_owned(),
                names,
                form: Form::DockerArchive,
            }),
        };
    };
    let has_name = |image: &Image| {
        image
            .repo_tags
            .iter()
            .flatten()
            .any(|tag| same(tag, reference))
    };
    let found = images.into_iter().find(has_name);
    found.ok_or_else(|| StoreError::NoImage {
        path: path.to_owned(),
        reference: cut(reference),
        names,
    })
}

/// Whether two references mean the same image: what is left out of one is what it stands for.
fn same(one: &str, other: &str) -> bool {
    let whole = |text: &str| {
        let mut reference = ImageReference::parse(text).ok()?.normalized();
        if reference.tag.is_none() && reference.digest.is_none() {
            reference.tag = Some("latest".to_owned());
        }
        Some(reference)
    };
    one == other || whole(one).is_some_and(|one| Some(one) == whole(other))
}

/// A configuration's file is named for its digest; one that is not what its name says was changed.
fn check_name(archive: &ImageArchive, name: &str, actual: &Digest) -> Result<(), StoreError> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let hex = file.strip_suffix(".json").unwrap_or(file);
    match Digest::parse(&format!("{}:{hex}", Algorithm::Sha256.name())) {
        Ok(expected) if expected != *actual => Err(StoreError::Digest {
            path: archive.path().to_owned(),
            file: cut(name),
            expected,
            actual: actual.clone(),
        }),
        _ => Ok(()),
    }
}

/// The layers of an image: the name of each file and the digest of what is in it.
fn layers_of(
    archive: &ImageArchive,
    image: &Image,
    config: &[u8],
) -> Result<Vec<(String, Digest)>, StoreError> {
    let refused = |reason: String| is_none(archive.path(), reason);
    let config: Config = serde_json::from_slice(config)
        .map_err(|error| refused(format!("its configuration cannot be read ({error})")))?;
    let names = image.layers.clone().unwrap_or_default();
    let diff_ids = config.rootfs.diff_ids.unwrap_or_default();
    if names.len() != diff_ids.len() {
        let (named, known) = (names.len(), diff_ids.len());
        let reason = format!("it names {named} layers, and its configuration {known}");
        return Err(refused(reason));
    }
    if names.len() > LAYERS {
        let count = names.len();
        return Err(refused(format!(
            "it has {count} layers, over the limit of {LAYERS}"
        )));
    }
    let digests = diff_ids.iter().map(|text| Digest::parse(text));
    let digests: Result<Vec<_>, _> = digests.collect();
    let digests = digests.map_err(|error| refused(error.to_string()))?;
    Ok(names.into_iter().zip(digests).collect())
}

/// The digest and media type of a layer's file. One that is not compressed is taken to be what it should be, which
/// whoever reads it verifies.
fn digest_of(
    archive: &ImageArchive,
    name: &str,
    span: Span,
    diff_id: Digest,
    limits: &Limits,
) -> Result<(Digest, String), StoreError> {
    let failed = |error| StoreError::reading(&archive.path().join(name), error);
    let (packing, _) = archive::packing(archive.read(span)).map_err(failed)?;
    let ending = match packing {
        Some(Packing::Gzip) => "+gzip",
        Some(Packing::Zstd) => "+zstd",
        Some(Packing::Tar) | None => return Ok((diff_id, LAYER.to_owned())),
    };
    let own = hash(archive.read(span), Algorithm::Sha256).map_err(failed)?;
    let bound = Bound {
        bytes: limits.layer_bytes,
        growth: limits.layer_growth,
    };
    let content = archive::decompressed(archive.read(span), bound);
    let actual = content.and_then(|content| hash(content, diff_id.algorithm()));
    let actual = actual.map_err(failed)?;
    if actual == diff_id {
        return Ok((own, format!("{LAYER}{ending}")));
    }
    Err(StoreError::Digest {
        path: archive.path().to_owned(),
        file: cut(name),
        expected: diff_id,
        actual,
    })
}

fn hash(reader: impl Read, algorithm: Algorithm) -> io::Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    io::copy(
        &mut BufReader::with_capacity(256 << 10, reader),
        &mut hasher,
    )?;
    Ok(hasher.finish())
}
