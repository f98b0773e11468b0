//! The files of a catalog on disk, read by the piece: those of a folder, one alone, or those inside an archive that is
//! not compressed.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use super::{SourceError, index_cache::Stamp};
use crate::{
    archive::{self, Member, Packing},
    catalog::Content,
    files::FileTree,
    limits::{Limits, Over},
};

/// When a file was changed last, whatever times it was given since.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds + 1))
}

/// When a file was changed last.
#[cfg(not(unix))]
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

/// What changes with every change of a file.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> [i128; 7] {
    use std::os::unix::fs::MetadataExt;
    [
        metadata.dev().into(),
        metadata.ino().into(),
        metadata.len().into(),
        metadata.mtime().into(),
        metadata.mtime_nsec().into(),
        metadata.ctime().into(),
        metadata.ctime_nsec().into(),
    ]
}

/// What changes with every change of a file.
#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> (u64, Option<SystemTime>, Option<SystemTime>) {
    let (modified, created) = (metadata.modified().ok(), metadata.created().ok());
    (metadata.len(), modified, created)
}

/// The catalog that one file on disk holds, or an archive there.
pub(super) fn of_file(
    source: &Path,
    reader: Box<dyn Read>,
    limits: &Limits,
) -> Result<CatalogSource, SourceError> {
    let failed = |error| SourceError::reading(source, error);
    let (packing, reader) = archive::packing(reader).map_err(failed)?;
    match packing {
        Some(Packing::Tar) => inside(source, reader, limits),
        Some(_) => of_stream(source, Box::new(reader), limits),
        None => {
            let metadata = source.metadata().map_err(failed)?;
            let name = source.file_name().unwrap_or(source.as_os_str());
            let mut files = CatalogFiles::default();
            files.note(source, &metadata);
            let (file, size) = (source.to_owned(), metadata.len());
            files.insert(
                name.to_string_lossy().into_owned(),
                Part {
                    file,
                    start: 0,
                    size,
                },
            );
            Ok(files.below(source))
        }
    }
}

/// The files inside an archive on disk that is not compressed; they stay there.
fn inside(source: &Path, reader: impl Read, limits: &Limits) -> Result<CatalogSource, SourceError> {
    let mut files = CatalogFiles::default();
    let metadata = source
        .metadata()
        .map_err(|error| SourceError::reading(source, error))?;
    files.note(source, &metadata);
    let each = |member: Member<'_>| {
        let part = Part {
            file: source.to_owned(),
            start: member.position,
            size: member.size,
        };
        files.insert(member.path, part);
        within(files.len(), limits)
    };
    let read = archive::each_member(reader, u64::MAX, each);
    read.map_err(|error| SourceError::reading(source, error))?;
    Ok(files.below(source))
}

/// The catalog that a stream holds: an archive or the text itself. It is held in memory.
pub(super) fn of_stream(
    source: &Path,
    reader: Box<dyn Read + '_>,
    limits: &Limits,
) -> Result<CatalogSource, SourceError> {
    let failed = |error| SourceError::reading(source, error);
    let mut tree = FileTree::default();
    let (packing, reader) = archive::packing(reader).map_err(failed)?;
    if packing.is_none() {
        let limit = limits.catalog_bytes;
        let mut text = vec![];
        let mut reader = reader.take(limit.saturating_add(1));
        reader.read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > limit {
            let path = source.to_owned();
            return Err(SourceError::Limit {
                path,
                limit,
                what: "bytes a catalog",
            });
        }
        // Whatever the name, it is an acceptable one.
        let _ = tree.insert("stdin", text);
        return Ok(CatalogSource {
            content: Box::new(tree),
            stamp: None,
        });
    }
    let mut count = 0;
    let each = |member: Member<'_>| {
        count += 1;
        let mut text = Vec::with_capacity(
            usize::try_from(member.size.min(limits.catalog_bytes)).unwrap_or_default(),
        );
        member.content.read_to_end(&mut text)?;
        tree.insert(member.path, text).map_err(io::Error::other)?;
        within(count, limits)
    };
    archive::each_member(reader, limits.catalog_bytes, each).map_err(failed)?;
    Ok(CatalogSource {
        content: Box::new(tree),
        stamp: None,
    })
}

fn within(files: usize, limits: &Limits) -> io::Result<()> {
    if files <= limits.catalog_files {
        return Ok(());
    }
    let (limit, what) = (limits.catalog_files as u64, "files a catalog");
    Err(Over { limit, what }.into())
}

/// Where the files of a catalog are on disk, by their path in the catalog.
#[derive(Debug, Default)]
pub(super) struct CatalogFiles {
    parts: BTreeMap<String, Part>,
    state: Sha256,
    size: u64,
    newest: Option<SystemTime>,
}

/// A catalog's files, and what tells them from any others without reading them, where something does.
#[derive(Debug)]
pub struct CatalogSource {
    /// The files.
    pub content: Box<dyn Content>,
    /// What tells them from others.
    pub stamp: Option<Stamp>,
}

/// A file that changed so recently may change again without its times telling.
const SETTLED: Duration = Duration::from_secs(1);

/// A part of a file on disk that is a file of the catalog.
#[derive(Debug)]
pub(super) struct Part {
    /// The file on disk.
    pub(super) file: PathBuf,
    /// Where the part starts.
    pub(super) start: u64,
    /// Its size in bytes.
    pub(super) size: u64,
}

impl CatalogFiles {
    /// Adds a file; one that was there under the same path is replaced.
    pub(super) fn insert(&mut self, path: String, part: Part) {
        self.parts.insert(path, part);
    }

    /// Notes the state of a file on disk that the catalog is made of.
    pub(super) fn note(&mut self, path: &Path, metadata: &Metadata) {
        self.state.update(path.as_os_str().as_encoded_bytes());
        self.state.update(format!("{:?}", identity(metadata)));
        self.size += metadata.len();
        self.newest = self.newest.max(changed(metadata));
    }

    /// What tells this state of the catalog below `root` from all others; nothing when it may have changed unnoticed.
    pub(super) fn stamp(&self, root: &Path) -> Option<Stamp> {
        let age = SystemTime::now().duration_since(self.newest?).ok()?;
        let place = Sha256::digest(root.canonicalize().ok()?.as_os_str().as_encoded_bytes());
        let name = |digest: &[u8]| {
            digest
                .iter()
                .take(16)
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        let (place, state) = (name(&place), name(&self.state.clone().finalize()));
        let size = self.size;
        (age > SETTLED).then_some(Stamp { place, state, size })
    }

    /// The catalog of these files, which are below `root`.
    pub(super) fn below(self, root: &Path) -> CatalogSource {
        let stamp = self.stamp(root);
        let content = Box::new(self);
        CatalogSource { content, stamp }
    }

    /// As many files there are.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}

impl Content for CatalogFiles {
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.parts.iter();
        files
            .map(|(path, part)| (path.clone(), part.size))
            .collect()
    }

    fn open(&self, path: &str, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        let part = self.parts.get(path).ok_or(io::ErrorKind::NotFound)?;
        let mut file = File::open(&part.file)?;
        let start = part.start.saturating_add(range.start);
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
        }
        let end = range.end.min(part.size);
        Ok(Box::new(file.take(end.saturating_sub(range.start))))
    }
}
