//! What was found in large catalogs, kept between runs below the user's cache folder, so that the next run need not
//! look again. Nothing depends on it: what cannot be read or written is done without.

use std::{fs, path::PathBuf};

use super::cache::{self, Folder, INDEXES};
use crate::{catalog::Index, oci::digest::Digest};

/// Catalogs of fewer bytes are not worth it: looking again takes no longer.
const WORTH_KEEPING: u64 = 8 << 20;

/// Bytes of what was found: a file that is larger is damaged.
const LARGEST: u64 = 1 << 30;

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

impl Stamp {
    /// Of the catalog in a folder of an image, by the digest of the image's manifest; it never changes.
    pub(super) fn of_image(manifest: &Digest, folder: &str, size: u64) -> Self {
        let name = Digest::of(format!("{manifest} {folder}").as_bytes());
        Self {
            place: name.hex().chars().take(32).collect(),
            state: "image".to_owned(),
            size,
        }
    }
}

/// What was found in a catalog before; nothing when it was not kept, or is damaged.
#[must_use]
pub fn kept_index(stamp: &Stamp) -> Option<Index> {
    kept_in(&folder()?, stamp)
}

/// Keeps what was found in a catalog, where that is worth it; what was kept of older states of it is removed.
pub fn keep_index(stamp: &Stamp, index: &Index) {
    if stamp.size >= WORTH_KEEPING
        && let Some(folder) = folder()
    {
        keep_in(&folder, stamp, index);
    }
}

fn folder() -> Option<Folder> {
    Folder::open(&cache::default_folder().ok()?).ok()
}

fn path_of(folder: &Folder, stamp: &Stamp) -> PathBuf {
    folder.file(INDEXES, &format!("{}-{}", stamp.place, stamp.state))
}

fn kept_in(folder: &Folder, stamp: &Stamp) -> Option<Index> {
    folder.read(&path_of(folder, stamp), LARGEST, Index::decode)
}

fn keep_in(folder: &Folder, stamp: &Stamp, index: &Index) {
    let path = path_of(folder, stamp);
    folder.keep(&path, &index.encode());
    let others = path.parent().map(fs::read_dir);
    for entry in others.into_iter().flatten().flatten().flatten() {
        let is_older = entry
            .file_name()
            .to_string_lossy()
            .starts_with(&stamp.place);
        if is_older && entry.path() != path {
            // Another run may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{os::unix::fs::symlink, path::Path, process::Command};

    use super::*;
    use crate::{files::FileTree, limits::Limits};

    fn stamp(state: &str) -> Stamp {
        let (place, state) = ("place".to_owned(), state.to_owned());
        Stamp {
            place,
            state,
            size: WORTH_KEEPING,
        }
    }

    #[test]
    fn an_index_is_read_as_it_was_kept_or_not_at_all() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::open(&parent.path().join("kubectl-olm")).expect("a folder");
        let mut files = FileTree::default();
        let text = b"{\"schema\": \"olm.package\", \"name\": \"a\"}".to_vec();
        files.insert("catalog.json", text).expect("a path");
        let index = || Index::build(&files, &Limits::DEFAULT).expect("a catalog");
        keep_in(&folder, &stamp("older"), &index());
        let path = path_of(&folder, &stamp("new"));
        let damages: [fn(&Path); 4] = [
            |path| fs::write(path, "").expect("a file"),
            |path| fs::create_dir(path).expect("a folder"),
            |path| symlink("/etc/passwd", path).expect("a link"),
            |path| {
                assert!(
                    Command::new("mkfifo")
                        .arg(path)
                        .status()
                        .expect("mkfifo")
                        .success()
                )
            },
        ];
        for damage in damages {
            keep_in(&folder, &stamp("new"), &index());
            let kept = kept_in(&folder, &stamp("new")).expect("an index");
            assert_eq!(kept.encode(), index().encode());
            fs::remove_file(&path).expect("a file");
            damage(&path);
            assert_eq!(kept_in(&folder, &stamp("new")), None);
        }
        assert_eq!(
            kept_in(&folder, &stamp("older")),
            None,
            "there is a newer one"
        );
    }
}
