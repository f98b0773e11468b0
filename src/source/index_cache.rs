//! What was found in large catalogs, kept between runs below the user's cache folder, so that the next run need not
//! look again. Nothing depends on it: what cannot be read or written is done without.

use std::{fs, io::Write, path::PathBuf};

use etcetera::BaseStrategy;
use tempfile::NamedTempFile;

use crate::catalog::Index;

/// Catalogs of fewer bytes are not worth it: looking again takes no longer.
const WORTH_KEEPING: u64 = 8 << 20;

/// What tells a state of a catalog from all others, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Which catalog it is; a newer state of it replaces the older one. Fit to be a part of a file name.
    pub(super) place: String,
    /// Which state. Fit to be a part of a file name.
    pub(super) state: String,
    /// The size of the catalog in bytes.
    pub(super) size: u64,
}

/// What was found in a catalog before; nothing when it was not kept, or is damaged.
#[must_use]
pub fn kept_index(stamp: &Stamp) -> Option<Index> {
    let path = folder()?.join(format!("{}-{}", stamp.place, stamp.state));
    Index::decode(fs::read(path).ok()?)
}

/// Keeps what was found in a catalog, where that is worth it; what was kept of older states of it is removed.
pub fn keep_index(stamp: &Stamp, index: &Index) {
    if stamp.size < WORTH_KEEPING {
        return;
    }
    let Some(folder) = folder() else { return };
    let name = format!("{}-{}", stamp.place, stamp.state);
    let kept = fs::create_dir_all(&folder).and_then(|()| {
        let mut file = NamedTempFile::new_in(&folder)?;
        file.write_all(&index.encode())?;
        file.persist(folder.join(&name))?;
        fs::read_dir(&folder)
    });
    let older = kept.into_iter().flatten().flatten().filter(|entry| {
        let other = entry.file_name();
        let other = other.to_string_lossy();
        other.starts_with(&stamp.place) && other != name
    });
    for entry in older {
        // Another run may have removed it.
        let _ = fs::remove_file(entry.path());
    }
}

fn folder() -> Option<PathBuf> {
    let folders = etcetera::choose_base_strategy().ok()?;
    Some(folders.cache_dir().join("kubectl-olm").join("indexes"))
}
