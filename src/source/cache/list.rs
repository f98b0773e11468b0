//! What is in the cache, and the removal of what was not used for long.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    LARGEST_TAG, Tag,
    folder::{self, Folder, INDEXES, LAYERS, Leftover, TAGS, Unusable},
    layer,
};
use crate::{
    oci::digest::Digest,
    source::plain_file::{self, Links},
};

/// Something that is kept.
#[derive(Debug)]
pub struct Kept {
    /// What kind of thing it is.
    pub kind: KeptKind,
    /// What it is of: a digest, a reference, the name of a file. It may hold any characters.
    pub name: String,
    /// More about it.
    pub about: String,
    /// Its size in bytes; of a folder, which should not be there, nothing.
    pub bytes: u64,
    /// When it was used last, where that is known.
    pub last_used: Option<SystemTime>,
    path: PathBuf,
    leftover: Option<Leftover>,
}

/// What kind of thing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptKind {
    /// Which digest a reference had.
    Tag,
    /// A manifest or a configuration.
    Blob,
    /// What was needed of a layer.
    Layer,
    /// Where the packages of a catalog are in it.
    Index,
    /// A temporary file of a run that was killed.
    Leftover,
    /// Something that is damaged, or that this program did not put there.
    Unknown,
}

impl KeptKind {
    /// Its name, one lower case word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Blob => "blob",
            Self::Layer => "layer",
            Self::Index => "index",
            Self::Leftover => "leftover",
            Self::Unknown => "unknown",
        }
    }
}

/// All that is kept.
#[derive(Debug)]
pub struct Listing {
    /// The folder.
    pub folder: PathBuf,
    /// What is in it, sorted by kind and name.
    pub kept: Vec<Kept>,
}

/// Lists what is in the cache; nothing when there is no folder yet.
///
/// # Errors
/// When the folder must not be used.
pub fn list(path: &Path) -> Result<Listing, Unusable> {
    let mut kept = vec![];
    if fs::symlink_metadata(path).is_ok() {
        let folder = Folder::existing(path)?;
        for (place, describe) in PLACES {
            let files = fs::read_dir(path.join(place));
            for entry in files.into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = entry.path();
                let about = describe(&path, &name).unwrap_or_else(|| {
                    let about = format!("not what belongs in {place}");
                    (KeptKind::Unknown, name, about)
                });
                kept.push(kept_at(path, about));
            }
        }
        kept.extend(folder.leftovers().into_iter().map(|leftover| {
            let name = leftover.path.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            let about = "of a run that was killed".to_owned();
            let path = leftover.path.clone();
            let mut kept = kept_at(path, (KeptKind::Leftover, name, about));
            kept.leftover = Some(leftover);
            kept
        }));
    }
    kept.sort_by(|a, b| (a.kind, &a.name, &a.about).cmp(&(b.kind, &b.name, &b.about)));
    let folder = path.to_owned();
    Ok(Listing { folder, kept })
}

/// What of the cache is to be removed: what was not used for `unused`, or all of it when nothing is given; what killed
/// runs left behind always. Runs that are reading something of it go on.
///
/// # Errors
/// As [`list`].
pub fn prune(path: &Path, unused: Option<Duration>, mode: Prune) -> Result<Listing, Unusable> {
    let mut listing = list(path)?;
    let now = SystemTime::now();
    listing.kept.retain(|kept| {
        // A time in the future is of a clock that was set back; it counts as now.
        let age = kept
            .last_used
            .map(|used| now.duration_since(used).unwrap_or_default());
        let is_old = unused.is_none_or(|unused| age.is_none_or(|age| age >= unused));
        is_old || kept.kind == KeptKind::Leftover
    });
    if mode == Prune::Remove {
        for kept in &mut listing.kept {
            match kept.leftover.take() {
                Some(leftover) => leftover.remove(),
                None => folder::remove(&kept.path),
            }
        }
    }
    Ok(listing)
}

/// Whether anything is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    /// It is.
    Remove,
    /// Only told what would be.
    DryRun,
}

/// What a file in one of the folders is: its kind, what it is of, and more about it.
type Describe = fn(&Path, &str) -> Option<(KeptKind, String, String)>;

const PLACES: [(&str, Describe); 5] = [
    ("blobs/sha256", |_, name| of_blob("sha256", name)),
    ("blobs/sha512", |_, name| of_blob("sha512", name)),
    (LAYERS, |path, _| of_layer(path)),
    (TAGS, |path, _| of_tag(path)),
    (INDEXES, |_, name| {
        let about = "where the packages of a catalog are".to_owned();
        Some((KeptKind::Index, name.to_owned(), about))
    }),
];

fn kept_at(path: PathBuf, (kind, name, about): (KeptKind, String, String)) -> Kept {
    // What is gone by now needs no size.
    let metadata = fs::symlink_metadata(&path).ok();
    let file = metadata.as_ref().filter(|metadata| metadata.is_file());
    Kept {
        kind,
        name,
        about,
        bytes: file.map_or(0, fs::Metadata::len),
        last_used: metadata.and_then(|metadata| metadata.modified().ok()),
        path,
        leftover: None,
    }
}

fn of_blob(algorithm: &str, name: &str) -> Option<(KeptKind, String, String)> {
    let digest = Digest::parse(&format!("{algorithm}:{name}")).ok()?;
    let about = "manifest or configuration".to_owned();
    Some((KeptKind::Blob, digest.to_string(), about))
}

fn of_layer(path: &Path) -> Option<(KeptKind, String, String)> {
    let (file, size) = plain_file::open(path, Links::Refuse).ok()?;
    let (_, table, _) = layer::read_table(&file, size)?;
    let about = format!("for {}", table.wanted.join(", "));
    Some((KeptKind::Layer, table.layer, about))
}

fn of_tag(path: &Path) -> Option<(KeptKind, String, String)> {
    let tag = Tag::decode(&plain_file::read(path, Links::Refuse, LARGEST_TAG).ok()?)?;
    Some((KeptKind::Tag, tag.reference, tag.digest))
}
