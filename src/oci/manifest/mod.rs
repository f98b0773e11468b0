//! Manifests and indexes of images. `oci-client` has the types of the JSON; here is decided what of it is taken.
//!
//! The rules are those of containers/image (`internal/manifest/common.go`, `ValidateUnambiguousManifestFormat`): what
//! one program reads as an image and another as an index is refused, and so is what content never needs.

use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE, IMAGE_DOCKER_CONFIG_MEDIA_TYPE, IMAGE_DOCKER_LAYER_GZIP_MEDIA_TYPE,
    IMAGE_DOCKER_LAYER_TAR_MEDIA_TYPE, IMAGE_LAYER_GZIP_MEDIA_TYPE, IMAGE_LAYER_MEDIA_TYPE,
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, ImageIndexEntry,
    OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageIndex,
    OciImageManifest,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    DOCUMENT_BYTES, checked_json,
    digest::{BadDigest, Digest},
    platform::Platform,
};

/// As many layers an image may have, as on Linux.
pub const LAYERS: usize = 128;

/// As many images an index may list.
pub const INDEX_ENTRIES: usize = 1_000;

/// A manifest or an index as it came, from wherever that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Its bytes, which have this digest.
    pub body: Vec<u8>,
    /// What it was delivered as, where that was told.
    pub media_type: Option<String>,
    /// The digest of the bytes.
    pub digest: Digest,
}

/// What it says, read by [`parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Image(ImageManifest),
    /// The same image for several platforms.
    Index(ImageIndex),
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageManifest {
    /// Where its configuration is.
    pub config: Descriptor,
    /// Its layers, the lowest first.
    pub layers: Vec<Descriptor>,
}

/// One image for several platforms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageIndex {
    /// One for each platform, in the order of the index. What is no image, such as an attestation, is left out.
    pub images: Vec<IndexEntry>,
}

/// The image for a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where its manifest is.
    pub manifest: Descriptor,
    /// For which platform it is.
    pub platform: Option<Platform>,
}

/// Content, by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What kind of content it is.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// Why a text is no manifest that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no JSON, or lacks something.
    #[error("it is no manifest of an image: {0}")]
    Malformed(String),
    /// It is too large.
    #[error("the manifest is over the limit of {DOCUMENT_BYTES} bytes")]
    TooLarge,
    /// It can be read as an image and as an index, or its fields as others.
    #[error("the manifest is ambiguous: {0}")]
    Ambiguous(String),
    /// It says that it is something else than what it was delivered as.
    #[error("the manifest was delivered as {delivered:?} and says that it is {body:?}")]
    OtherType {
        /// The media type of the answer.
        delivered: String,
        /// The media type that the body tells or has the form of.
        body: String,
    },
    /// A manifest of the first version, which has no digests of what it lists.
    #[error("the manifest is one of schema 1, which no tool has written for years")]
    Schema1,
    /// The schema is none that is known.
    #[error("the manifest has the schema version {0}, and only 2 is known")]
    SchemaVersion(String),
    /// The media type is none of an image or index.
    #[error("it is no image but {0:?}")]
    UnknownType(String),
    /// The configuration is none of an image, as in a Helm chart.
    #[error("it is no image but an artifact of type {0:?}")]
    Artifact(String),
    /// A digest is none.
    #[error("the manifest names {what} by a bad digest")]
    Digest {
        /// What it names.
        what: String,
        /// What is wrong with the digest.
        source: BadDigest,
    },
    /// The size of something is no size, or too large for what it is.
    #[error("{what} is said to have {size} bytes")]
    Size {
        /// What it is.
        what: String,
        /// The size.
        size: i64,
    },
    /// A layer that is to be fetched from elsewhere.
    #[error(
        "{0} is foreign: it is not in the image but elsewhere, and content has no need of that"
    )]
    ForeignLayer(String),
    /// A layer of an unknown type.
    #[error(
        "{layer} has the media type {media_type:?}; known are tar archives, plain or compressed by gzip or zstd"
    )]
    LayerType {
        /// The layer.
        layer: String,
        /// Its media type.
        media_type: String,
    },
    /// Too many layers or entries.
    #[error("the manifest has {count} {what}, over the limit of {limit}")]
    TooMany {
        /// As many there are.
        count: usize,
        /// What they are.
        what: &'static str,
        /// As many there may be.
        limit: usize,
    },
    /// An index inside of an index.
    #[error("the index lists another index, {0}")]
    NestedIndex(Digest),
}

impl ManifestError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Schema1 => Some(
                "push the image again with a current tool, such as `skopeo copy --format oci`"
                    .to_owned(),
            ),
            Self::Artifact(_) | Self::UnknownType(_) => {
                Some("name the image of a bundle or of a catalog".to_owned())
            }
            Self::NestedIndex(digest) => Some(format!(
                "name the image of one platform by its digest, out of {digest}"
            )),
            _ => None,
        }
    }
}

/// The two forms that a manifest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Image,
    Index,
}

/// Reads a manifest or an index. `media_type` is what it was delivered as, where that is known.
///
/// # Errors
/// When it is neither, or can be read as both.
pub fn parse(body: &[u8], media_type: Option<&str>) -> Result<Document, ManifestError> {
    if body.len() as u64 > DOCUMENT_BYTES {
        return Err(ManifestError::TooLarge);
    }
    let malformed = |error: serde_json::Error| ManifestError::Malformed(error.to_string());
    let value = checked_json::parse(body).map_err(malformed)?;
    let Value::Object(mut top) = value else {
        return Err(ManifestError::Malformed("it is no JSON object".to_owned()));
    };
    check_names(&top).map_err(ManifestError::Ambiguous)?;
    // Go writes a list of nothing as null.
    top.retain(|_, value| !value.is_null());
    match form(&top, media_type)? {
        Form::Image => {
            top.entry("layers").or_insert_with(|| Value::Array(vec![]));
            image(typed(top)?).map(Document::Image)
        }
        Form::Index => {
            top.entry("manifests")
                .or_insert_with(|| Value::Array(vec![]));
            index(typed(top)?).map(Document::Index)
        }
    }
}

fn typed<T: DeserializeOwned>(top: Map<String, Value>) -> Result<T, ManifestError> {
    serde_json::from_value(Value::Object(top))
        .map_err(|error| ManifestError::Malformed(cut(&error.to_string())))
}

/// The names that objects of a manifest have.
const NAMES: [&str; 20] = [
    "schemaVersion",
    "mediaType",
    "artifactType",
    "config",
    "layers",
    "manifests",
    "subject",
    "annotations",
    "digest",
    "size",
    "urls",
    "data",
    "platform",
    "architecture",
    "os",
    "variant",
    "os.version",
    "os.features",
    "fsLayers",
    "history",
];

/// Checks the names in a manifest, but for those of annotations, which are anyone's.
fn check_names(top: &Map<String, Value>) -> Result<(), String> {
    let mut todo = vec![top];
    while let Some(object) = todo.pop() {
        checked_json::names(object, &NAMES)?;
        for (name, value) in object {
            match value {
                Value::Object(inner) if name != "annotations" => todo.push(inner),
                Value::Array(items) => todo.extend(items.iter().filter_map(Value::as_object)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether it is an image or an index, by what it says, how it was delivered, and what is in it.
fn form(top: &Map<String, Value>, delivered: Option<&str>) -> Result<Form, ManifestError> {
    let body = match top.get("mediaType") {
        None => None,
        Some(Value::String(body)) => Some(cut(body)),
        Some(_) => {
            return Err(ManifestError::Malformed(
                "its media type is no text".to_owned(),
            ));
        }
    };
    let delivered = delivered.and_then(meaning);
    check_schema(top, body.as_deref().or(delivered.as_deref()))?;
    if let (Some(body), Some(delivered)) = (&body, &delivered)
        && body != delivered
    {
        let (delivered, body) = (delivered.clone(), body.clone());
        return Err(ManifestError::OtherType { delivered, body });
    }
    let has = |name: &str| top.contains_key(name);
    if has("manifests") && (has("config") || has("layers")) {
        let both =
            "it has layers or a configuration as an image does, and manifests as an index does";
        return Err(ManifestError::Ambiguous(both.to_owned()));
    }
    let content = if has("manifests") {
        Form::Index
    } else {
        Form::Image
    };
    let told = match body.or(delivered) {
        None => return Ok(content),
        Some(told) => told,
    };
    let form = match told.as_str() {
        OCI_IMAGE_MEDIA_TYPE | IMAGE_MANIFEST_MEDIA_TYPE => Form::Image,
        OCI_IMAGE_INDEX_MEDIA_TYPE | IMAGE_MANIFEST_LIST_MEDIA_TYPE => Form::Index,
        _ => return Err(ManifestError::UnknownType(told)),
    };
    let is_other = match form {
        Form::Image => has("manifests"),
        Form::Index => has("config") || has("layers"),
    };
    if is_other {
        let body = match content {
            Form::Image => "an image",
            Form::Index => "an index",
        };
        let body = body.to_owned();
        return Err(ManifestError::OtherType {
            delivered: told,
            body,
        });
    }
    Ok(form)
}

/// What a delivered media type says; nothing when it says no more than that it is text or data.
fn meaning(delivered: &str) -> Option<String> {
    let name = delivered.split(';').next().unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    let says_nothing = [
        "",
        "text/plain",
        "application/json",
        "application/octet-stream",
    ];
    (!says_nothing.contains(&name.as_str())).then(|| cut(&name))
}

fn check_schema(top: &Map<String, Value>, told: Option<&str>) -> Result<(), ManifestError> {
    let version = top.get("schemaVersion");
    let is_first = told
        .is_some_and(|told| told.starts_with("application/vnd.docker.distribution.manifest.v1+"));
    if is_first || version.and_then(Value::as_u64) == Some(1) {
        return Err(ManifestError::Schema1);
    }
    match version {
        Some(version) if version.as_u64() == Some(2) => {}
        Some(other) => return Err(ManifestError::SchemaVersion(cut(&other.to_string()))),
        None => {
            return Err(ManifestError::Malformed(
                "it has no schemaVersion".to_owned(),
            ));
        }
    }
    if top.contains_key("fsLayers") || top.contains_key("history") {
        let both = "it has the fields of two schemas";
        return Err(ManifestError::Ambiguous(both.to_owned()));
    }
    Ok(())
}

fn image(manifest: OciImageManifest) -> Result<ImageManifest, ManifestError> {
    let config = descriptor(&manifest.config, "its configuration")?;
    if ![IMAGE_CONFIG_MEDIA_TYPE, IMAGE_DOCKER_CONFIG_MEDIA_TYPE]
        .contains(&config.media_type.as_str())
    {
        let named = manifest.artifact_type.filter(|named| !named.is_empty());
        return Err(ManifestError::Artifact(cut(
            &named.unwrap_or(config.media_type)
        )));
    }
    if config.size > DOCUMENT_BYTES {
        let what = "the configuration".to_owned();
        return Err(ManifestError::Size {
            what,
            size: manifest.config.size,
        });
    }
    let count = manifest.layers.len();
    if count > LAYERS {
        return Err(ManifestError::TooMany {
            count,
            what: "layers",
            limit: LAYERS,
        });
    }
    let layers = manifest.layers.iter().enumerate();
    let layers = layers.map(|(number, layer)| self::layer(layer, number + 1));
    let layers = layers.collect::<Result<_, _>>()?;
    Ok(ImageManifest { config, layers })
}

/// The media types of layers that are read.
const LAYER_TYPES: [&str; 6] = [
    IMAGE_LAYER_MEDIA_TYPE,
    IMAGE_LAYER_GZIP_MEDIA_TYPE,
    "application/vnd.oci.image.layer.v1.tar+zstd",
    IMAGE_DOCKER_LAYER_TAR_MEDIA_TYPE,
    IMAGE_DOCKER_LAYER_GZIP_MEDIA_TYPE,
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
];

fn layer(layer: &OciDescriptor, number: usize) -> Result<Descriptor, ManifestError> {
    let read = descriptor(layer, &format!("layer {number}"))?;
    let name = format!("layer {number}, {}", read.digest);
    let is_foreign = |name: &str| read.media_type.contains(name);
    let has_places = layer.urls.as_ref().is_some_and(|urls| !urls.is_empty());
    if has_places || is_foreign(".nondistributable.") || is_foreign(".foreign.") {
        return Err(ManifestError::ForeignLayer(name));
    }
    if !LAYER_TYPES.contains(&read.media_type.as_str()) {
        let media_type = cut(&read.media_type);
        return Err(ManifestError::LayerType {
            layer: name,
            media_type,
        });
    }
    Ok(read)
}

fn index(index: OciImageIndex) -> Result<ImageIndex, ManifestError> {
    let count = index.manifests.len();
    if count > INDEX_ENTRIES {
        return Err(ManifestError::TooMany {
            count,
            what: "entries",
            limit: INDEX_ENTRIES,
        });
    }
    let mut images = vec![];
    for entry in &index.manifests {
        let manifest = described(&entry.media_type, &entry.digest, entry.size, "an image")?;
        match entry.media_type.as_str() {
            OCI_IMAGE_INDEX_MEDIA_TYPE | IMAGE_MANIFEST_LIST_MEDIA_TYPE => {
                return Err(ManifestError::NestedIndex(manifest.digest));
            }
            OCI_IMAGE_MEDIA_TYPE | IMAGE_MANIFEST_MEDIA_TYPE if !is_attestation(entry) => {}
            _ => continue,
        }
        if manifest.size > DOCUMENT_BYTES {
            return Err(ManifestError::TooLarge);
        }
        let platform = entry.platform.as_ref().map(|platform| Platform {
            os: platform.os.to_string(),
            architecture: platform.architecture.to_string(),
            variant: platform
                .variant
                .clone()
                .filter(|variant| !variant.is_empty()),
        });
        images.push(IndexEntry { manifest, platform });
    }
    Ok(ImageIndex { images })
}

/// Whether an entry is about an image and none itself, as BuildKit writes them.
fn is_attestation(entry: &ImageIndexEntry) -> bool {
    let annotations = entry.annotations.iter().flatten();
    let is_for_nothing = entry.platform.as_ref().is_some_and(|platform| {
        platform.os.to_string() == "unknown" && platform.architecture.to_string() == "unknown"
    });
    is_for_nothing
        || annotations
            .into_iter()
            .any(|(name, _)| name == "vnd.docker.reference.type")
}

fn descriptor(read: &OciDescriptor, what: &str) -> Result<Descriptor, ManifestError> {
    described(&read.media_type, &read.digest, read.size, what)
}

fn described(
    media_type: &str,
    digest: &str,
    size: i64,
    what: &str,
) -> Result<Descriptor, ManifestError> {
    let what = || what.to_owned();
    let digest = Digest::parse(digest).map_err(|source| ManifestError::Digest {
        what: what(),
        source,
    })?;
    let length = u64::try_from(size).map_err(|_| ManifestError::Size { what: what(), size })?;
    Ok(Descriptor {
        media_type: media_type.to_owned(),
        digest,
        size: length,
    })
}

/// The start of a text that may be as long as a manifest.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
