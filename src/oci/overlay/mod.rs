//! What layers make together, as a container sees it.
//!
//! Layers are laid over each other entry by entry, as containerd does it (`pkg/archive/tar.go`, `applyNaive`), with which
//! OLM v1 unpacks images; on paths, as nothing is written anywhere. One thing is not as there, but as the OCI image
//! specification says (`layer.md`, "Whiteouts"): a whiteout hides what lower layers have, and never what its own layer
//! has, wherever in the layer it stands.

mod apply;
mod gather;
mod tree;

use std::collections::BTreeMap;

use self::tree::Tree;
use super::{layer::LayerEntry, paths::tidy};

/// Files below some folders, as a container sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The files, by their path from the image's root; what a link leads to stands under the link's path.
    pub files: BTreeMap<String, Place>,
    /// Folders, empty ones among them.
    pub folders: Vec<String>,
    /// Paths, outside of what was read, that links lead to, or that lead to what was read. When there are any, the
    /// layers have to be read again with these wanted as well.
    pub missing: Vec<String>,
    /// What the user should know, such as a path that one layer holds twice.
    pub notes: Vec<String>,
}

/// Where the content of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The layer, by its position among those given.
    pub layer: usize,
    /// Where the content begins in what was kept of the layer.
    pub position: u64,
    /// The size in bytes.
    pub size: u64,
}

/// Lays layers over each other, the lowest first, and gives what is below the `folders`. `wanted` is what the layers
/// were read with: the folders, and what an earlier overlay of them said is missing.
///
/// # Errors
/// A sentence about a path that cannot be had: a link in a circle, a device.
pub fn overlay(
    layers: &[impl AsRef<[LayerEntry]>],
    folders: &[String],
    wanted: &[String],
) -> Result<Overlay, String> {
    let tidied = |paths: &[String]| paths.iter().map(|path| tidy(path)).collect::<Vec<_>>();
    let (folders, wanted) = (tidied(folders), tidied(wanted));
    let mut tree = Tree::default();
    let laid = layers.iter().enumerate().try_for_each(|(layer, entries)| {
        let mut entries = entries.as_ref().iter();
        entries.try_for_each(|entry| apply::entry(&mut tree, layer, entry, &wanted))
    });
    gather::gather(tree, laid, &folders, &wanted)
}

#[cfg(test)]
mod tests;
