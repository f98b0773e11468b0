//! What was kept of a layer: written as it comes, to the cache or, where there is none, to memory; read by the part,
//! each verified before it is given out.

use std::{
    fs::File,
    io::{self, Read, Write},
    ops::{Deref, Range},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tempfile::NamedTempFile;

use super::{
    folder::{self, Folder},
    form::{self, Checksum, END, HEADER, PIECE, Parts, Table},
};
use crate::{
    limits::{Limits, Over},
    oci::{digest::Digest, layer::LayerEntry},
    source::plain_file::{self, Links},
};

/// What is kept of a layer while it comes in. Nothing stands under its final name before [`NewLayer::finish`].
#[derive(Debug)]
pub struct NewLayer {
    place: Place,
    /// The last piece, which is not whole yet.
    pending: Vec<u8>,
    checksums: Vec<Checksum>,
    length: u64,
    /// Bytes that memory may take.
    limit: u64,
}

/// Where the pieces are.
#[derive(Debug)]
enum Place {
    File(NamedTempFile, Arc<Folder>),
    Memory(Vec<Vec<u8>>),
}

impl NewLayer {
    /// Begins to keep a layer: in the folder, or in memory when there is none or it takes no file.
    pub(super) fn new(folder: Option<Arc<Folder>>, limits: &Limits) -> Self {
        let file = folder.and_then(|folder| {
            let begun = folder.temporary().and_then(|mut file| {
                write_within(&mut file, 0, HEADER)?;
                Ok(file)
            });
            let file = begun.inspect_err(|error| folder.report(error)).ok()?;
            Some(Place::File(file, folder))
        });
        Self {
            place: file.unwrap_or(Place::Memory(vec![])),
            pending: vec![],
            checksums: vec![],
            length: 0,
            limit: limits.catalog_bytes,
        }
    }

    /// Ends the layer and keeps it. Whoever calls this has verified the layer's digest.
    ///
    /// # Errors
    /// When what is left of it can be held neither in the cache nor in memory.
    pub fn finish(
        mut self,
        layer: &Digest,
        wanted: &[String],
        entries: Vec<LayerEntry>,
    ) -> io::Result<KeptLayer> {
        let rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.add(&rest)?;
        }
        let content = match self.place {
            Place::File(file, folder) => {
                let table = Table::new(layer.as_str(), wanted, &entries);
                let path = path_of(&folder, layer, wanted);
                let end = form::tail(&table, self.length, &self.checksums);
                Content::File(keep(&folder, file, self.length, end, path))
            }
            Place::Memory(pieces) => Content::Memory(pieces),
        };
        Ok(KeptLayer(Arc::new(Kept {
            content,
            checksums: self.checksums,
            length: self.length,
            entries,
            last: Mutex::default(),
        })))
    }

    /// Adds whole pieces, or the last one.
    fn add(&mut self, pieces: &[u8]) -> io::Result<()> {
        let position = HEADER.len() as u64 + self.length;
        if let Place::File(file, folder) = &mut self.place {
            match write_within(file, position, pieces) {
                Ok(()) => {
                    let checksums = pieces.chunks(PIECE).map(form::checksum);
                    self.checksums.extend(checksums);
                }
                Err(error) => {
                    folder.report(&error);
                    self.go_on_in_memory(&error)?;
                }
            }
        }
        if let Place::Memory(held) = &mut self.place {
            if self.length.saturating_add(pieces.len() as u64) > self.limit {
                return Err(over(self.limit).into());
            }
            held.extend(pieces.chunks(PIECE).map(<[u8]>::to_vec));
        }
        self.length += pieces.len() as u64;
        Ok(())
    }

    /// Takes what the file has into memory, because it takes no more; its place on the disk is free then.
    fn go_on_in_memory(&mut self, why: &io::Error) -> io::Result<()> {
        let Place::File(file, _) = &self.place else {
            return Ok(());
        };
        let cannot = |reason: &dyn std::fmt::Display| {
            let message = format!("the cache takes no more ({why}), and {reason}");
            io::Error::new(why.kind(), message)
        };
        if self.length > self.limit {
            return Err(cannot(&over(self.limit)));
        }
        let mut pieces = vec![];
        for (index, checksum) in self.checksums.iter().enumerate() {
            let piece = read_piece(file.as_file(), index as u64, self.length, checksum);
            pieces.push(piece.map_err(|error| cannot(&error))?);
        }
        self.place = Place::Memory(pieces);
        Ok(())
    }
}

impl Write for NewLayer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let whole = bytes.len() - bytes.len() % PIECE;
        if let Some(pieces) = bytes.get(..whole)
            && self.pending.is_empty()
            && whole > 0
        {
            // What comes in whole pieces is not copied.
            self.add(pieces)?;
            return Ok(whole);
        }
        let room = PIECE.saturating_sub(self.pending.len()).min(bytes.len());
        self.pending
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        if self.pending.len() >= PIECE {
            let mut piece = std::mem::take(&mut self.pending);
            self.add(&piece)?;
            piece.clear();
            self.pending = piece;
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the end of a layer's file and gives it its final name. Without either, the content is there all the same.
fn keep(
    folder: &Folder,
    mut temporary: NamedTempFile,
    length: u64,
    end: io::Result<Vec<u8>>,
    path: PathBuf,
) -> KeptFile {
    let position = HEADER.len() as u64 + length;
    let ended = end.and_then(|end| write_within(&mut temporary, position, &end));
    // Another handle of the file, as the first one goes with its temporary name.
    let file = temporary.as_file().try_clone();
    let placed = match (ended, file) {
        (Ok(()), Ok(file)) => match folder.place(temporary, &path) {
            Ok(()) => {
                let path = Some(path);
                return KeptFile { file, path };
            }
            Err(failed) => failed,
        },
        (Err(error), _) | (_, Err(error)) => (error, temporary),
    };
    let (error, temporary) = placed;
    folder.report(&error);
    let file = temporary.into_file();
    KeptFile { file, path: None }
}

/// Writes to a file unless it would become larger than the process may make files, which would end it by a signal.
fn write_within(file: &mut NamedTempFile, position: u64, bytes: &[u8]) -> io::Result<()> {
    if position.saturating_add(bytes.len() as u64) > folder::largest_file() {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.as_file_mut().write_all(bytes)
}

fn over(limit: u64) -> Over {
    let what = "bytes in memory";
    Over { limit, what }
}

/// Where what was kept of a layer for some wanted paths is.
fn path_of(folder: &Folder, layer: &Digest, wanted: &[String]) -> PathBuf {
    let wanted = form::sorted(wanted);
    // JSON tells `["a,b"]` from `["a","b"]`.
    let wanted = serde_json::to_vec(&wanted).unwrap_or_default();
    let name = format!("{}-{}", layer.hex(), Digest::of(&wanted).hex());
    folder.file(folder::LAYERS, &name)
}

/// What was kept of a layer. Clones share it.
#[derive(Debug, Clone)]
pub struct KeptLayer(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    content: Content,
    checksums: Vec<Checksum>,
    length: u64,
    entries: Vec<LayerEntry>,
    /// The piece of a file that was read last: what is asked for next is often in the same one.
    last: Mutex<Option<(u64, Arc<Vec<u8>>)>>,
}

#[derive(Debug)]
enum Content {
    File(KeptFile),
    Memory(Vec<Vec<u8>>),
}

#[derive(Debug)]
struct KeptFile {
    file: File,
    /// Where it is, if it has a name.
    path: Option<PathBuf>,
}

/// Whether anything was found to be damaged after it was opened.
static DAMAGE: AtomicBool = AtomicBool::new(false);

/// Whether anything kept was found to be damaged, and removed, after some of it was used. What failed for it works when
/// it is done again.
#[must_use]
pub fn found_damage() -> bool {
    DAMAGE.swap(false, Ordering::Relaxed)
}

/// Up to this size, a file is verified as a whole before any of it is used, so that damage costs no second run.
const VERIFIED_AT_ONCE: u64 = 16 << 20;

impl KeptLayer {
    /// What was kept of a layer; nothing when there is nothing, or it is damaged.
    pub(super) fn find(folder: &Folder, layer: &Digest, wanted: &[String]) -> Option<Self> {
        let path = path_of(folder, layer, wanted);
        let Ok((file, size)) = plain_file::open(&path, Links::Refuse) else {
            folder::remove_unless_file(&path);
            return None;
        };
        folder::touch_open(&file);
        let found = read_table(&file, size);
        let found = found.filter(|(_, table, _)| {
            table.layer == layer.as_str() && table.wanted == form::sorted(wanted)
        });
        let Some((length, table, checksums)) = found else {
            folder::remove(&path);
            return None;
        };
        let path = Some(path);
        let kept = Self(Arc::new(Kept {
            content: Content::File(KeptFile { file, path }),
            checksums,
            length,
            entries: table.entries,
            last: Mutex::default(),
        }));
        (length > VERIFIED_AT_ONCE || kept.verify().is_ok()).then_some(kept)
    }

    /// The layer's entries, in its order.
    #[must_use]
    pub fn entries(&self) -> &[LayerEntry] {
        &self.0.entries
    }

    /// Reads a part of what the sink took. Every piece of it is verified before it is given out; a small part costs one
    /// piece. Reading fails when the file was changed since it was written, and the next try takes the layer anew.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn open(&self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        if range.start > range.end || range.end > self.0.length {
            let message = format!("it has {} bytes, and no {range:?}", self.0.length);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Box::new(PartReader {
            kept: &self.0,
            position: range.start,
            end: range.end,
            piece: None,
        }))
    }

    /// Verifies all of it.
    fn verify(&self) -> io::Result<()> {
        let pieces = self.0.checksums.len() as u64;
        (0..pieces).try_for_each(|index| self.0.piece(index).map(drop))
    }
}

/// What the end of a layer's file says of it: bytes of content, the table and the checksums.
pub(super) fn read_table(file: &File, size: u64) -> Option<(u64, Table, Vec<Checksum>)> {
    let read = |buffer: &mut [u8], position| plain_file::read_exact_at(file, buffer, position).ok();
    let mut header = [0; HEADER.len()];
    read(&mut header, 0)?;
    if header != HEADER {
        return None;
    }
    let mut end = [0; END];
    read(&mut end, size.checked_sub(END as u64)?)?;
    let parts = Parts::read(size, &end)?;
    let (position, bytes) = parts.tail();
    let mut tail = vec![0; usize::try_from(bytes).ok()?];
    read(&mut tail, position)?;
    let (table, checksums) = parts.decode(&tail)?;
    Some((parts.length, table, checksums))
}

/// Reads a piece of a file with `length` bytes of content, and compares it with its checksum.
fn read_piece(file: &File, index: u64, length: u64, checksum: &Checksum) -> io::Result<Vec<u8>> {
    let start = index.saturating_mul(PIECE as u64);
    let size = length.saturating_sub(start).min(PIECE as u64);
    let mut piece = vec![0; usize::try_from(size).unwrap_or_default()];
    plain_file::read_exact_at(file, &mut piece, HEADER.len() as u64 + start)?;
    if form::checksum(&piece) == *checksum {
        Ok(piece)
    } else {
        Err(io::Error::other("what was written is not what is read"))
    }
}

/// A piece of content.
enum Piece<'k> {
    Held(&'k [u8]),
    Read(Arc<Vec<u8>>),
}

impl Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Held(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

impl Kept {
    /// A piece, verified.
    fn piece(&self, index: u64) -> io::Result<Piece<'_>> {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let kept = match &self.content {
            Content::File(kept) => kept,
            Content::Memory(pieces) => {
                let piece = pieces.get(at).ok_or(io::ErrorKind::UnexpectedEof)?;
                return Ok(Piece::Held(piece));
            }
        };
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, piece)) = &*last()
            && *known == index
        {
            return Ok(Piece::Read(Arc::clone(piece)));
        }
        let checksum = self.checksums.get(at).ok_or(io::ErrorKind::UnexpectedEof)?;
        let piece = read_piece(&kept.file, index, self.length, checksum)
            .map_err(|error| damaged(kept.path.as_deref(), error))?;
        let piece = Arc::new(piece);
        *last() = Some((index, Arc::clone(&piece)));
        Ok(Piece::Read(piece))
    }
}

/// Removes what was changed and says so; what has no name never gets to another run.
fn damaged(path: Option<&Path>, error: io::Error) -> io::Error {
    match path {
        Some(path) => {
            folder::remove(path);
            DAMAGE.store(true, Ordering::Relaxed);
            io::Error::other(format!("{} was damaged, and is removed", path.display()))
        }
        None => error,
    }
}

/// Reads a part, piece by piece.
struct PartReader<'k> {
    kept: &'k Kept,
    position: u64,
    end: u64,
    piece: Option<(u64, Piece<'k>)>,
}

impl Read for PartReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end - self.position;
        if left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let size = PIECE as u64;
        let (index, start) = (self.position / size, self.position % size);
        let piece = match &self.piece {
            Some((known, piece)) if *known == index => piece,
            _ => &self.piece.insert((index, self.kept.piece(index)?)).1,
        };
        let rest = piece.get(usize::try_from(start).unwrap_or(usize::MAX)..);
        let rest = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let count = rest.len().min(most).min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count as u64;
        Ok(count)
    }
}
