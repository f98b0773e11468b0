//! The files that the layers of an image make together: in memory for a bundle, by the piece for a catalog.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    ops::Range,
};

use super::{super::cache::KeptLayer, ImageError};
use crate::{
    catalog::Content,
    files::FileTree,
    limits::{BundleSize, Limits},
    oci::overlay::{Overlay, Place},
};

/// Reads all files into memory.
pub(super) fn tree(
    layers: &[KeptLayer],
    overlay: &Overlay,
    limits: &Limits,
) -> Result<FileTree, ImageError> {
    let mut sum = BundleSize::default();
    let mut tree = FileTree::default();
    for (path, place) in &overlay.files {
        sum.add(place.size, limits)?;
        let content = read(layers, *place);
        let content = content.map_err(|error| ImageError::Files(format!("{path}: {error}")))?;
        let added = tree.insert(path.clone(), content);
        added.map_err(|error| ImageError::Files(error.to_string()))?;
    }
    for folder in &overlay.folders {
        let added = tree.insert_folder(folder.clone());
        added.map_err(|error| ImageError::Files(error.to_string()))?;
    }
    Ok(tree)
}

fn read(layers: &[KeptLayer], place: Place) -> io::Result<Vec<u8>> {
    let layer = layers.get(place.layer).ok_or(io::ErrorKind::NotFound)?;
    let mut content = Vec::with_capacity(usize::try_from(place.size).unwrap_or_default());
    let range = place.position..place.position.saturating_add(place.size);
    layer.open(range)?.read_to_end(&mut content)?;
    Ok(content)
}

/// The files of a catalog, which stay where the layers were kept.
#[derive(Debug)]
pub(super) struct ImageFiles {
    layers: Vec<KeptLayer>,
    files: BTreeMap<String, Place>,
}

impl ImageFiles {
    /// Those below a folder, by their paths in it.
    pub(super) fn new(layers: &[KeptLayer], overlay: &Overlay, folder: &str) -> Self {
        let below = |path: &str| match folder {
            "" => Some(path.to_owned()),
            _ => Some(path.strip_prefix(folder)?.strip_prefix('/')?.to_owned()),
        };
        let files = overlay.files.iter();
        Self {
            layers: layers.to_vec(),
            files: files
                .filter_map(|(path, place)| Some((below(path)?, *place)))
                .collect(),
        }
    }
}

impl Content for ImageFiles {
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.files.iter();
        files
            .map(|(path, place)| (path.clone(), place.size))
            .collect()
    }

    fn open(&self, path: &str, part: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        let place = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let layer = self.layers.get(place.layer);
        let layer = layer.ok_or(io::ErrorKind::NotFound)?;
        let end = part.end.min(place.size);
        let start = part.start.min(end);
        layer.open(place.position + start..place.position + end)
    }
}
