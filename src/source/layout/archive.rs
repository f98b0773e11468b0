//! The files of a tar archive that holds an image, read where they are. Where a path is there twice, the last one is
//! meant, as for whoever unpacks it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{Opened, StoreError};
use crate::{
    archive::{self, Bound, Kind, Members, NoArchive, Packing},
    limits::Limits,
    source::{
        STDIN,
        place::STDIN_NAME,
        plain_file::{self, Links},
    },
};

/// Content over this size is gone past, rather than read to come to what follows.
const WORTH_A_JUMP: u64 = 1 << 20;
/// So many links may lead to each other.
const LINKS: usize = 8;
const BLOCK: u64 = 512;

/// An archive and where the files in it are.
#[derive(Debug)]
pub(super) struct ImageArchive {
    path: PathBuf,
    bytes: Bytes,
    files: BTreeMap<String, Stored>,
}

/// The bytes of an archive that is not compressed, or not any more.
#[derive(Debug)]
enum Bytes {
    Disk(File, u64),
    Memory(Vec<u8>),
}

#[derive(Debug, Clone)]
enum Stored {
    File(Span),
    /// The same as what another path from the archive's root has.
    Link(String),
}

/// Where a file is in the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    position: u64,
    /// Its size in bytes.
    pub(super) size: u64,
}

impl ImageArchive {
    /// Opens an archive, or takes it from standard input, and lists its files.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, StoreError> {
        let shown = if path == Path::new(STDIN) {
            Path::new(STDIN_NAME)
        } else {
            path
        };
        let failed = |error: io::Error| StoreError::reading(shown, error);
        let bytes = bytes_of(path, limits).map_err(failed)?;
        let files = list(&bytes, limits.layer_entries).map_err(failed)?;
        let path = shown.to_owned();
        Ok(Self { path, bytes, files })
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file is in it. Links are followed, within the archive.
    pub(super) fn find(&self, name: &str) -> Option<Span> {
        let mut name = normal("", name)?;
        for _ in 0..LINKS {
            match self.files.get(&name)? {
                Stored::File(span) => return Some(*span),
                Stored::Link(target) => name.clone_from(target),
            }
        }
        None
    }

    /// Whether some path in it fits.
    pub(super) fn has(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.files.keys().any(|name| fits(name))
    }

    /// Opens a file of it; nothing when there is none.
    pub(super) fn open_file(&self, name: &str) -> Option<Opened<'_>> {
        let span = self.find(name)?;
        Some((span.size, Box::new(self.read(span))))
    }

    /// Reads a file of it.
    pub(super) fn read(&self, span: Span) -> impl Read + Send + '_ {
        let end = span.position.saturating_add(span.size);
        BytesReader {
            bytes: &self.bytes,
            position: span.position,
            end,
        }
    }
}

fn bytes_of(path: &Path, limits: &Limits) -> io::Result<Bytes> {
    if path == Path::new(STDIN) {
        return memory(io::stdin().lock(), limits);
    }
    // Links are the user's own here.
    let (file, size) = plain_file::open(path, Links::Follow)?;
    let (packing, reader) = archive::packing(&file)?;
    match packing {
        Some(Packing::Tar) => {
            drop(reader);
            Ok(Bytes::Disk(file, size))
        }
        _ => memory(reader, limits),
    }
}

fn memory(reader: impl Read, limits: &Limits) -> io::Result<Bytes> {
    let bound = Bound {
        bytes: limits.catalog_bytes,
        growth: None,
    };
    let (packing, mut reader) = archive::packing(archive::decompressed(reader, bound)?)?;
    if packing != Some(Packing::Tar) {
        return Err(io::Error::other(NoArchive));
    }
    let mut bytes = vec![];
    reader.read_to_end(&mut bytes)?;
    Ok(Bytes::Memory(bytes))
}

/// Where the files of an archive are, of at most so many entries.
fn list(bytes: &Bytes, most: usize) -> io::Result<BTreeMap<String, Stored>> {
    let mut files = BTreeMap::new();
    let (mut start, mut entries) = (0, 0);
    'jumps: loop {
        let reader = BytesReader {
            bytes,
            position: start,
            end: bytes.len(),
        };
        let mut members = Members::new(reader, most.saturating_sub(entries));
        while let Some(found) = members.next_entry()? {
            entries += 1;
            let position = start.saturating_add(found.position);
            let Ok(path) = str::from_utf8(&found.path) else {
                continue;
            };
            let (size, path) = (found.size, normal("", path));
            let end = position.saturating_add(size);
            if end > bytes.len() {
                return Err(io::Error::other("it is cut off"));
            }
            let stored = match found.kind {
                Kind::File => Some(Stored::File(Span { position, size })),
                Kind::HardLink(target) => link("", &target),
                Kind::SymbolicLink(target) => {
                    let folder = path.as_deref().and_then(|path| path.rsplit_once('/'));
                    link(folder.map_or("", |(folder, _)| folder), &target)
                }
                Kind::Folder | Kind::Special => None,
            };
            if let (Some(path), Some(stored)) = (path, stored) {
                files.insert(path, stored);
            }
            if size > WORTH_A_JUMP {
                start = end.next_multiple_of(BLOCK);
                continue 'jumps;
            }
        }
        return Ok(files);
    }
}

fn link(folder: &str, target: &[u8]) -> Option<Stored> {
    normal(folder, str::from_utf8(target).ok()?).map(Stored::Link)
}

/// A path from the archive's root, when `path` is meant from a folder; nothing when it leads out.
fn normal(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = vec![];
    let from = if path.starts_with('/') { "" } else { folder };
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

impl Bytes {
    fn len(&self) -> u64 {
        match self {
            Self::Disk(_, size) => *size,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

/// Reads a part of an archive.
struct BytesReader<'b> {
    bytes: &'b Bytes,
    position: u64,
    end: u64,
}

impl Read for BytesReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        let buffer = buffer.get_mut(..count).unwrap_or_default();
        match self.bytes {
            Bytes::Disk(file, _) => plain_file::read_exact_at(file, buffer, self.position)?,
            Bytes::Memory(bytes) => {
                let start = usize::try_from(self.position).unwrap_or(usize::MAX);
                let from = bytes.get(start..).and_then(|rest| rest.get(..count));
                buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            }
        }
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_in_the_archive() {
        let cases = [
            ("a", "../b/layer.tar", Some("b/layer.tar")),
            ("a", "./layer.tar", Some("a/layer.tar")),
            ("a/b", "/c", Some("c")),
            ("", "../c", None),
            ("a", "../../etc/passwd", None),
        ];
        for (folder, path, expected) in cases {
            assert_eq!(normal(folder, path).as_deref(), expected, "{folder} {path}");
        }
    }
}
