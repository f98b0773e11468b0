//! From an image to its files, wherever the image is: the manifest, the configuration, the layers that can hold what is
//! wanted, and what these make together.
//!
//! Everything is compared with its digest before it is used, and nothing is unpacked to disk: what is kept of a layer
//! is one file of the cache, or memory.

mod content;
mod error;
mod origin;

use std::sync::atomic::{AtomicU64, Ordering};

pub use self::error::{ImageError, Unfit};
pub(super) use self::origin::Origin;
use self::{content::ImageFiles, origin::Verified};
use super::{
    cache::{Cache, KeptLayer},
    catalog_files::CatalogSource,
    index_cache::Stamp,
    registry::RegistryError,
};
use crate::{
    concurrent::concurrently,
    files::FileTree,
    limits::{Limits, Over},
    oci::{
        choice,
        config::{Config, Kind},
        digest::Digest,
        layer::{self, LayerEntry},
        manifest::{self, Descriptor, Document, ImageManifest, ManifestError},
        needed,
        overlay::{self, Overlay},
        platform::Platform,
    },
};

/// Layers of one image that are read at the same time.
const LAYERS_AT_ONCE: usize = 4;
/// As often layers are read again because a link leads to what was not wanted before.
const ROUNDS: usize = 8;
/// As many paths may be wanted, as every entry of a layer is compared with each.
const WANTED: usize = 1_000;
/// The folder of a catalog whose image does not say where it is.
const CATALOG_FOLDER: &str = "configs";
/// What is in every bundle.
const BUNDLE_FOLDER: &str = "manifests";

/// What images are read with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'s> {
    pub(super) cache: &'s Cache,
    pub(super) limits: &'s Limits,
    pub(super) platform: Option<&'s Platform>,
}

/// An image whose layers are yet to be read.
pub(super) struct Image<'s> {
    /// The digest of what stands at its top, which is the index if it has one.
    pub(super) digest: Digest,
    /// The digest of the manifest for the platform that was chosen.
    chosen: Digest,
    manifest: ImageManifest,
    config: Config,
    origin: Origin,
    reading: Reading<'s>,
}

/// What was read of an image.
#[derive(Debug)]
pub(super) struct Found<T> {
    pub(super) content: T,
    /// What to tell about it.
    pub(super) notes: Vec<String>,
}

impl<'s> Image<'s> {
    /// Reads the manifest and the configuration of an image.
    ///
    /// # Errors
    /// When one of them cannot be had or is refused.
    pub(super) fn open(origin: Origin, reading: Reading<'s>) -> Result<Self, ImageError> {
        let top = origin.top(reading.cache)?;
        let (chosen, manifest) = match manifest::parse(&top.body, top.media_type.as_deref())? {
            Document::Image(manifest) => (top.digest.clone(), manifest),
            Document::Index(index) => {
                let here = std::env::consts::ARCH;
                let chosen = choice::choose(&index, reading.platform, here);
                let chosen = chosen.map_err(ImageError::Platform)?;
                let body = origin.manifest(chosen, reading.cache)?;
                match manifest::parse(&body, Some(&chosen.media_type))? {
                    Document::Image(manifest) => (chosen.digest.clone(), manifest),
                    Document::Index(_) => {
                        let reason = "an index stands inside an index".to_owned();
                        return Err(ManifestError::Malformed(reason).into());
                    }
                }
            }
        };
        let config = origin.document(&manifest.config, reading.cache)?;
        let config = Config::parse(&config).map_err(ImageError::Config)?;
        Ok(Self {
            digest: top.digest,
            chosen,
            manifest,
            config,
            origin,
            reading,
        })
    }

    /// The files below some folders of a bundle.
    ///
    /// # Errors
    /// When it is no bundle, a layer cannot be had, or a limit is reached.
    pub(super) fn bundle(&self, folders: &[&str]) -> Result<Found<FileTree>, ImageError> {
        match self.config.kind() {
            Some(Kind::Catalog(_)) => return Err(Unfit::Catalog.into()),
            Some(Kind::Database) => return Err(Unfit::Database.into()),
            Some(Kind::Bundle) | None => {}
        }
        let folders: Vec<_> = folders.iter().map(|folder| (*folder).to_owned()).collect();
        let (layers, overlay) = self.files(&folders)?;
        if overlay.files.is_empty() {
            let is_catalog = self.has_files(CATALOG_FOLDER)?;
            return Err(if is_catalog {
                Unfit::Catalog
            } else {
                Unfit::NoBundle
            }
            .into());
        }
        let tree = content::tree(&layers, &overlay, self.reading.limits)?;
        Ok(Found {
            content: tree,
            notes: overlay.notes,
        })
    }

    /// The files of a catalog, which stay where the cache has them.
    ///
    /// # Errors
    /// As [`Image::bundle`].
    pub(super) fn catalog(&self) -> Result<Found<CatalogSource>, ImageError> {
        let folder = match self.config.kind() {
            Some(Kind::Catalog(folder)) => folder,
            Some(Kind::Database) => return Err(Unfit::Database.into()),
            Some(Kind::Bundle) => return Err(Unfit::Bundle.into()),
            None => CATALOG_FOLDER.to_owned(),
        };
        let (layers, overlay) = self.files(std::slice::from_ref(&folder))?;
        if overlay.files.is_empty() {
            let is_bundle = self.has_files(BUNDLE_FOLDER)?;
            return Err(if is_bundle {
                Unfit::Bundle
            } else {
                Unfit::NoCatalog(folder)
            }
            .into());
        }
        let limit = self.reading.limits.catalog_files;
        if overlay.files.len() > limit {
            let (limit, what) = (limit as u64, "files a catalog");
            return Err(Over { limit, what }.into());
        }
        let size = overlay.files.values().map(|place| place.size).sum();
        let files = ImageFiles::new(&layers, &overlay, &folder);
        let content = CatalogSource {
            content: Box::new(files),
            stamp: Some(Stamp::of_image(&self.chosen, &folder, size)),
        };
        Ok(Found {
            content,
            notes: overlay.notes,
        })
    }

    /// Whether there is anything in a folder.
    fn has_files(&self, folder: &str) -> Result<bool, ImageError> {
        let (_, overlay) = self.files(&[folder.to_owned()])?;
        Ok(!overlay.files.is_empty())
    }

    /// The layers that can hold anything of some folders, and what they make together.
    fn files(&self, folders: &[String]) -> Result<(Vec<KeptLayer>, Overlay), ImageError> {
        let all = self.manifest.layers.len();
        let mut wanted = folders.to_vec();
        let mut needed = needed::layers_with(&self.config, all, &wanted);
        for _ in 0..ROUNDS {
            let layers = self.layers(&needed, &wanted)?;
            let entries: Vec<_> = layers.iter().map(KeptLayer::entries).collect();
            match overlay::overlay(&entries, folders, &wanted) {
                // When nothing is found, what the history says was not the whole story.
                Ok(found) if !found.files.is_empty() || needed.len() == all => {
                    if found.missing.is_empty() {
                        return Ok((layers, found));
                    }
                    wanted.extend(found.missing);
                    if wanted.len() > WANTED {
                        let reason = format!("its links lead to over {WANTED} places elsewhere");
                        return Err(ImageError::Files(reason));
                    }
                }
                Err(reason) if needed.len() == all => return Err(ImageError::Files(reason)),
                _ => {}
            }
            needed = (0..all).collect();
        }
        let reason = format!("its links lead on after {ROUNDS} of them were followed");
        Err(ImageError::Files(reason))
    }

    fn layers(&self, needed: &[usize], wanted: &[String]) -> Result<Vec<KeptLayer>, ImageError> {
        let all = &self.manifest.layers;
        let layers = needed.iter().filter_map(|position| all.get(*position));
        let layers: Vec<_> = layers.collect();
        let names = AtomicU64::new(0);
        let limit = (self.reading.limits.layer_names as u64).saturating_mul(LAYERS_AT_ONCE as u64);
        let read = concurrently(&layers, LAYERS_AT_ONCE, |layer| {
            let kept = self.layer(layer, wanted)?;
            let size = kept.entries().iter().map(LayerEntry::name_bytes).sum();
            if names.fetch_add(size, Ordering::Relaxed) > limit {
                let what = "bytes of names in all layers";
                return Err(Over { limit, what }.into());
            }
            Ok(kept)
        });
        read.into_iter().collect()
    }

    /// What is wanted of a layer: from the cache, else from the image, and then kept.
    fn layer(&self, layer: &Descriptor, wanted: &[String]) -> Result<KeptLayer, ImageError> {
        if let Some(kept) = self.reading.cache.layer(&layer.digest, wanted) {
            return Ok(kept);
        }
        match self.fetch(layer, wanted) {
            // It may have been damaged on the way.
            Err(ImageError::Registry(RegistryError::Digest { .. })) => self.fetch(layer, wanted),
            fetched => fetched,
        }
    }

    fn fetch(&self, layer: &Descriptor, wanted: &[String]) -> Result<KeptLayer, ImageError> {
        let Reading { cache, limits, .. } = self.reading;
        let mut verified = Verified::new(self.origin.blob(layer)?, layer);
        let mut kept = cache.new_layer(limits);
        let read = layer::read(&mut verified, wanted, limits, &mut kept);
        // A layer that is not what it should be may be refused for any reason; this one is the true one.
        verified.finish()?;
        let failed = |source| ImageError::Layer {
            layer: layer.digest.clone(),
            source,
        };
        let entries = read.map_err(failed)?;
        kept.finish(&layer.digest, wanted, entries).map_err(failed)
    }
}
