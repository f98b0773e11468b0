//! Images made by the tests: one value, that can be stored in a registry, as an OCI layout, as an OCI archive and as a
//! docker archive, always the same image.
//!
//! [`Image::of_bundle`] and [`Image::of_catalog`] make what the Dockerfiles make that `operator-sdk generate bundle` and
//! `opm generate dockerfile` write, with the history that `BuildKit` gives them. Nothing is optimised, and nothing is
//! checked: what is made of it is up to the test.

use std::{collections::BTreeMap, fs, io::Write, path::Path};

use flate2::{Compression as Level, write::GzEncoder};
use kubectl_olm::{limits::Limits, manifest::yaml, oci::digest::Digest};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

/// What a catalog image says of itself, and where its catalog is.
const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// When everything was made, so that the same content gives the same digests.
const CREATED: &str = "2024-05-14T08:00:00Z";

/// How a layer is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

/// Whose media types are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Oci,
    Docker,
}

impl Format {
    fn media_type(self, of: &str) -> String {
        let name = match (self, of) {
            (Self::Oci, "index") => "oci.image.index.v1+json",
            (Self::Oci, "manifest") => "oci.image.manifest.v1+json",
            (Self::Oci, "config") => "oci.image.config.v1+json",
            (Self::Oci, "layer") => "oci.image.layer.v1.tar",
            (Self::Oci, "layer+gzip") => "oci.image.layer.v1.tar+gzip",
            (Self::Oci, "layer+zstd") => "oci.image.layer.v1.tar+zstd",
            (Self::Docker, "index") => "docker.distribution.manifest.list.v2+json",
            (Self::Docker, "manifest") => "docker.distribution.manifest.v2+json",
            (Self::Docker, "config") => "docker.container.image.v1+json",
            (Self::Docker, "layer") => "docker.image.rootfs.diff.tar",
            (Self::Docker, "layer+gzip") => "docker.image.rootfs.diff.tar.gzip",
            (Self::Docker, "layer+zstd") => "docker.image.rootfs.diff.tar.zstd",
            _ => panic!("{of} is in no image"),
        };
        format!("application/vnd.{name}")
    }
}

/// A layer, as a tar and as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) tar: Vec<u8>,
    pub(crate) blob: Vec<u8>,
    compression: Compression,
}

impl Layer {
    /// A layer of some files, with the folders that they are in. A path is one from the root, without a leading slash.
    pub(crate) fn of_files(files: &[(String, Vec<u8>)], compression: Compression) -> Self {
        let mut tar = tar::Builder::new(vec![]);
        let mut folders: Vec<&str> = vec![];
        for (path, content) in files {
            for (end, _) in path.match_indices('/') {
                let folder = &path[..=end];
                if !folders.contains(&folder) {
                    folders.push(folder);
                    append(&mut tar, folder, tar::EntryType::Directory, 0o755, &[]);
                }
            }
            append(&mut tar, path, tar::EntryType::Regular, 0o644, content);
        }
        Self::of_tar(tar.into_inner().expect("memory takes a tar"), compression)
    }

    /// A layer of a tar.
    pub(crate) fn of_tar(tar: Vec<u8>, compression: Compression) -> Self {
        let blob = match compression {
            Compression::Plain => tar.clone(),
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(vec![], Level::default());
                encoder.write_all(&tar).expect("memory takes a gzip");
                encoder.finish().expect("memory takes a gzip")
            }
            Compression::Zstd => compress_to_vec(tar.as_slice(), CompressionLevel::Fastest),
        };
        Self {
            tar,
            blob,
            compression,
        }
    }

    pub(crate) fn digest(&self) -> String {
        digest(&self.blob)
    }
}

fn append(
    tar: &mut tar::Builder<Vec<u8>>,
    path: &str,
    kind: tar::EntryType,
    mode: u32,
    content: &[u8],
) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, path, content)
        .expect("memory takes a tar");
}

/// An image for one platform.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    format: Format,
    os: &'static str,
    architecture: &'static str,
    labels: BTreeMap<String, String>,
    layers: Vec<Layer>,
    history: Vec<Value>,
}

impl Image {
    /// An image of nothing, as `FROM scratch` gives it.
    pub(crate) fn scratch(format: Format) -> Self {
        Self {
            format,
            os: "linux",
            architecture: "amd64",
            labels: BTreeMap::new(),
            layers: vec![],
            history: vec![],
        }
    }

    /// The same image, for another platform.
    pub(crate) fn for_platform(mut self, os: &'static str, architecture: &'static str) -> Self {
        (self.os, self.architecture) = (os, architecture);
        self
    }

    /// The image with a label.
    pub(crate) fn with_label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self.with_step(&format!("LABEL {name}={value}"))
    }

    /// The image with one more layer, and the step that made it.
    pub(crate) fn with_layer(mut self, created_by: &str, layer: Layer) -> Self {
        self.layers.push(layer);
        self.history.push(json!({
            "created": CREATED, "created_by": created_by, "comment": "buildkit.dockerfile.v0",
        }));
        self
    }

    /// The image after a step that made no layer.
    pub(crate) fn with_step(mut self, created_by: &str) -> Self {
        self.history.push(json!({
            "created": CREATED, "created_by": created_by, "comment": "buildkit.dockerfile.v0", "empty_layer": true,
        }));
        self
    }

    /// What `bundle.Dockerfile` makes of the folder of a bundle.
    pub(crate) fn of_bundle(folder: &Path, format: Format, compression: Compression) -> Self {
        let mut image = Self::scratch(format);
        for (name, value) in annotations(&folder.join("metadata/annotations.yaml")) {
            image = image.with_label(&name, &value);
        }
        for (part, created_by) in [
            ("manifests", "COPY bundle/manifests /manifests/ # buildkit"),
            ("metadata", "COPY bundle/metadata /metadata/ # buildkit"),
            (
                "tests/scorecard",
                "COPY bundle/tests/scorecard /tests/scorecard/ # buildkit",
            ),
        ] {
            let files = files_below(&folder.join(part), part);
            if !files.is_empty() {
                image = image.with_layer(created_by, Layer::of_files(&files, compression));
            }
        }
        image
    }

    /// What `catalog.Dockerfile` makes of the folder of a catalog. Its layers are, from the bottom: opm, which is some
    /// megabytes that cannot be compressed, the catalog, and the cache of opm.
    pub(crate) fn of_catalog(folder: &Path, compression: Compression) -> Self {
        let catalog = files_below(folder, "configs");
        Self::of_catalog_files(&catalog, compression)
    }

    /// The same, of the files themselves. Their paths begin with `configs/`.
    pub(crate) fn of_catalog_files(
        catalog: &[(String, Vec<u8>)],
        compression: Compression,
    ) -> Self {
        let layer = |path: &str, bytes: usize, seed: u64| {
            let files = [(path.to_owned(), noise(bytes, seed))];
            Layer::of_files(&files, compression)
        };
        Self::scratch(Format::Oci)
            .with_layer("COPY opm /bin/opm # buildkit", layer("bin/opm", 3 << 20, 1))
            .with_step("ENTRYPOINT [\"/bin/opm\"]")
            .with_step("CMD [\"serve\" \"/configs\" \"--cache-dir=/tmp/cache\"]")
            .with_layer(
                "COPY /configs /configs # buildkit",
                Layer::of_files(catalog, compression),
            )
            .with_layer(
                "COPY /tmp/cache /tmp/cache # buildkit",
                layer("tmp/cache/pogreb.v1/db", 1 << 20, 2),
            )
            .with_label(CATALOG_LABEL, "/configs")
    }

    /// The layers, the lowest first.
    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The configuration.
    pub(crate) fn config(&self) -> Vec<u8> {
        let layers = self.layers.iter();
        let diff_ids: Vec<_> = layers.map(|layer| digest(&layer.tar)).collect();
        let config = json!({
            "created": CREATED,
            "os": self.os,
            "architecture": self.architecture,
            "config": {"Labels": self.labels},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": self.history,
        });
        serde_json::to_vec(&config).expect("JSON")
    }

    /// Everything that the image is made of.
    pub(crate) fn parts(&self) -> Parts {
        let config = self.config();
        let layers: Vec<_> = self
            .layers
            .iter()
            .map(|layer| {
                let kind = match layer.compression {
                    Compression::Plain => "layer",
                    Compression::Gzip => "layer+gzip",
                    Compression::Zstd => "layer+zstd",
                };
                descriptor(&self.format.media_type(kind), &layer.blob)
            })
            .collect();
        let media_type = self.format.media_type("manifest");
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": descriptor(&self.format.media_type("config"), &config),
            "layers": layers,
        });
        let mut blobs = vec![config];
        blobs.extend(self.layers.iter().map(|layer| layer.blob.clone()));
        Parts {
            top: Document::new(media_type, &manifest),
            below: vec![],
            blobs,
        }
    }

    /// Writes the image as a docker archive, under a name such as `example.com/name:tag`.
    pub(crate) fn write_docker_archive(&self, path: &Path, name: &str) {
        let hex = |content: &[u8]| digest(content).replace("sha256:", "");
        let config = self.config();
        let layers = self
            .layers
            .iter()
            .map(|layer| (format!("{}.tar", hex(&layer.tar)), layer.tar.as_slice()));
        let layers: Vec<_> = layers.collect();
        let config_name = format!("{}.json", hex(&config));
        let manifest = json!([{
            "Config": config_name,
            "RepoTags": [name],
            "Layers": layers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }]);
        let manifest = serde_json::to_vec(&manifest).expect("JSON");
        let mut files = layers.clone();
        // The same layer twice is one file.
        files.sort();
        files.dedup();
        files.push((config_name, &config));
        files.push(("manifest.json".to_owned(), &manifest));
        write_tar(path, files);
    }
}

/// The images for several platforms as one.
pub(crate) fn index(format: Format, images: &[Image]) -> Parts {
    let parts: Vec<_> = images.iter().map(Image::parts).collect();
    let manifests: Vec<_> = images
        .iter()
        .zip(&parts)
        .map(|(image, parts)| {
            let mut descriptor = descriptor(&parts.top.media_type, &parts.top.content);
            descriptor["platform"] = json!({"os": image.os, "architecture": image.architecture});
            descriptor
        })
        .collect();
    let media_type = format.media_type("index");
    let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests});
    let mut all = Parts {
        top: Document::new(media_type, &index),
        below: vec![],
        blobs: vec![],
    };
    for parts in parts {
        all.below.push(parts.top);
        all.blobs.extend(parts.blobs);
    }
    all
}

/// A manifest or an index.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) media_type: String,
    pub(crate) content: Vec<u8>,
}

impl Document {
    fn new(media_type: String, document: &Value) -> Self {
        let content = serde_json::to_vec(document).expect("JSON");
        Self {
            media_type,
            content,
        }
    }

    pub(crate) fn digest(&self) -> String {
        digest(&self.content)
    }
}

/// Everything that an image is made of, as a registry and a layout hold it.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The manifest or index that the image is known by.
    pub(crate) top: Document,
    /// The manifests of an index.
    pub(crate) below: Vec<Document>,
    /// Configurations and layers.
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Parts {
    /// Writes the image as an OCI layout, with a reference.
    pub(crate) fn write_oci_layout(&self, folder: &Path, reference: &str) {
        fs::create_dir_all(folder.join("blobs/sha256")).expect("a folder");
        for (path, content) in self.layout(reference) {
            fs::write(folder.join(path), content).expect("a file");
        }
    }

    /// Writes the image as a tar of an OCI layout, with a reference.
    pub(crate) fn write_oci_archive(&self, path: &Path, reference: &str) {
        let layout = self.layout(reference);
        let files = layout
            .iter()
            .map(|(path, content)| (path.clone(), content.as_slice()));
        write_tar(path, files);
    }

    /// The files of an OCI layout.
    pub(crate) fn layout(&self, reference: &str) -> BTreeMap<String, Vec<u8>> {
        let mut top = descriptor(&self.top.media_type, &self.top.content);
        top["annotations"] = json!({"org.opencontainers.image.ref.name": reference});
        let index = json!({
            "schemaVersion": 2,
            "mediaType": Format::Oci.media_type("index"),
            "manifests": [top],
        });
        let documents = [&self.top].into_iter().chain(&self.below);
        let blobs = documents
            .map(|document| &document.content)
            .chain(&self.blobs);
        let blob = |content: &Vec<u8>| {
            let path = format!("blobs/{}", digest(content).replace(':', "/"));
            (path, content.clone())
        };
        let mut files: BTreeMap<_, _> = blobs.map(blob).collect();
        let index = serde_json::to_vec(&index).expect("JSON");
        files.insert("index.json".to_owned(), index);
        let version = br#"{"imageLayoutVersion":"1.0.0"}"#;
        files.insert("oci-layout".to_owned(), version.to_vec());
        files
    }
}

/// The files below a folder, in order, each with its path below another.
pub(crate) fn files_below(folder: &Path, under: &str) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name();
    let files = entries.into_iter().flatten();
    let files = files.filter(|entry| entry.file_type().is_file());
    let read = |entry: walkdir::DirEntry| {
        let path = entry.path().strip_prefix(folder).expect("it is below");
        let path = format!("{under}/{}", path.to_str().expect("a path"));
        (path, fs::read(entry.path()).expect("readable"))
    };
    files.map(read).collect()
}

pub(crate) fn digest(content: &[u8]) -> String {
    Digest::of(content).to_string()
}

fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(content), "size": content.len()})
}

/// The annotations of a bundle, which become the labels of its image.
fn annotations(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read(path).expect("a bundle has annotations");
    let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
    let document = documents.into_iter().next().expect("a document").value;
    let annotations = document["annotations"].as_object().expect("annotations");
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let labels = annotations
        .iter()
        .map(|(name, value)| (name.clone(), text(value)));
    labels.collect()
}

/// Bytes that cannot be compressed, the same each time.
fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut noise = vec![0; bytes];
    random.fill(&mut noise);
    noise
}

fn write_tar<'c>(path: &Path, files: impl IntoIterator<Item = (String, &'c [u8])>) {
    let mut tar = tar::Builder::new(vec![]);
    for (name, content) in files {
        append(&mut tar, &name, tar::EntryType::Regular, 0o644, content);
    }
    let tar = tar.into_inner().expect("memory takes a tar");
    fs::write(path, tar).expect("a file");
}
