//! What content may cost before it is refused: one table, so that every limit is named in one place.
//!
//! The defaults stand well above everything real (nesting 58, 30,021 nodes in a document, 2.5 MB in a file,
//! 6.8 MB in a bundle) and well below what would hurt the machine.

use std::io;

/// The bounds that readers keep; each error about one names its number and `--no-limits`.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Nesting of one YAML or JSON document.
    pub depth: usize,
    /// Scalars, lists and maps of one document. What an alias stands for counts as often as it is used, and long text
    /// counts for more than one, so that a short document cannot become a large one.
    pub document_nodes: usize,
    /// Documents of one file, and items of the lists in them.
    pub file_objects: usize,
    /// Deployments of one bundle: each takes a copy of all annotations.
    pub deployments: usize,
    /// Bytes of one file; in a catalog, whose files may be large, of one document.
    pub file_bytes: u64,
    /// Files of one bundle.
    pub bundle_files: usize,
    /// Bytes of all files of one bundle.
    pub bundle_bytes: u64,
    /// Files of one catalog.
    pub catalog_files: usize,
    /// Bytes of one catalog that has to be held in memory: from standard input or a compressed archive.
    pub catalog_bytes: u64,
    /// Entries of one layer of an image.
    pub layer_entries: usize,
    /// Bytes of one layer of an image, after decompression.
    pub layer_bytes: u64,
    /// Bytes of one layer of an image after decompression, for each one before. JSON that repeats itself comes to 40.
    pub layer_growth: Option<u64>,
    /// Bytes of the names that are kept of one layer of an image.
    pub layer_names: usize,
}

impl Limits {
    /// For content of unknown origin.
    pub const DEFAULT: Self = Self {
        depth: 128,
        document_nodes: 1_000_000,
        file_objects: 10_000,
        deployments: 100,
        file_bytes: 64 << 20,
        bundle_files: 10_000,
        bundle_bytes: 256 << 20,
        catalog_files: 100_000,
        catalog_bytes: 1 << 30,
        layer_entries: 1_000_000,
        layer_bytes: 16 << 30,
        layer_growth: Some(100),
        layer_names: 64 << 20,
    };

    /// For content one trusts. Only nesting stays bounded, at the 10,000 where Go's own readers stop.
    pub const NONE: Self = Self {
        depth: 10_000,
        document_nodes: usize::MAX,
        file_objects: usize::MAX,
        deployments: usize::MAX,
        file_bytes: u64::MAX,
        bundle_files: usize::MAX,
        bundle_bytes: u64::MAX,
        catalog_files: usize::MAX,
        catalog_bytes: u64::MAX,
        layer_entries: usize::MAX,
        layer_bytes: u64::MAX,
        layer_growth: None,
        layer_names: usize::MAX,
    };
}

/// Content is over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is over the limit of {limit} {what} (--no-limits lifts it for content you trust)")]
pub struct Over {
    /// The limit.
    pub limit: u64,
    /// What it counts, as in "10 files".
    pub what: &'static str,
}

impl From<Over> for io::Error {
    fn from(over: Over) -> Self {
        Self::other(over)
    }
}

/// What the files of one bundle come to.
#[derive(Debug, Clone, Copy, Default)]
pub struct BundleSize {
    files: usize,
    bytes: u64,
}

impl BundleSize {
    /// Counts one more file.
    ///
    /// # Errors
    /// When it, or all of them, are over a limit.
    pub fn add(&mut self, bytes: u64, limits: &Limits) -> Result<(), Over> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let bounds = [
            (bytes, limits.file_bytes, "bytes a file"),
            (
                self.files as u64,
                limits.bundle_files as u64,
                "files a bundle",
            ),
            (self.bytes, limits.bundle_bytes, "bytes a bundle"),
        ];
        let over = bounds.into_iter().find(|(count, limit, _)| count > limit);
        over.map_or(Ok(()), |(_, limit, what)| Err(Over { limit, what }))
    }
}
