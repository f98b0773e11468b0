//! The entries of a tar archive, one after the other, with what stands in front of an entry about it (GNU long names,
//! PAX records) taken together with it, and never more of that in memory than is allowed.
//!
//! Where programs disagree about what an archive holds, it is refused: the list of entries is the one that Go's
//! `archive/tar` gives, with which container runtimes and OLM read layers, or there is none. The `tar` crate reads the
//! fields of a header; its own way through an archive buffers long names of any size, fills in holes, and takes a line
//! break inside of a PAX record for its end.

use std::io::{self, BufRead, BufReader, Read};

use tar::Header;

use super::{
    about::{About, global},
    bad,
    header::{check, kind_of, size_of},
};

use crate::limits::Over;

const BLOCK: usize = 512;

/// As many bytes may stand in front of an entry about it, as in Go's `archive/tar`.
const ABOUT: u64 = 1 << 20;

/// As long as a path may be, as on Linux.
const PATH: usize = 4_096;

/// The largest size that fits into a header as octal digits; only what is larger has its size in a PAX record alone.
const LARGEST_IN_HEADER: u64 = 0o777_7777_7777;

/// Content is taken from the decompressor in pieces of this size.
const PIECE: usize = 256 << 10;

/// An entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path as it stands there, which is not always Unicode.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// The size of its content in bytes; only a file has any.
    pub size: u64,
    /// Where its content begins in the archive.
    pub position: u64,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Another name of a file in the archive, or below it.
    HardLink(Vec<u8>),
    /// A link with its text.
    SymbolicLink(Vec<u8>),
    /// A device or a pipe.
    Special,
}

/// Reads the entries of an archive. Between two of them, what it gives as a reader is the content of the one before.
#[derive(Debug)]
pub struct Members<R> {
    input: BufReader<R>,
    position: u64,
    /// As many bytes of the content are not read yet.
    left: u64,
    /// As many bytes follow the content up to a whole block.
    padding: u64,
    entries: usize,
    limit: usize,
}

impl<R: Read> Members<R> {
    /// Reads an archive that is not compressed, of at most `limit` entries.
    pub fn new(reader: R, limit: usize) -> Self {
        Self {
            input: BufReader::with_capacity(PIECE, reader),
            position: 0,
            left: 0,
            padding: 0,
            entries: 0,
            limit,
        }
    }

    /// The next entry, nothing at the archive's end.
    ///
    /// # Errors
    /// When it cannot be read, or is not the same to every program.
    pub fn next_entry(&mut self) -> io::Result<Option<Found>> {
        let mut about = About::default();
        loop {
            self.skip_rest()?;
            let Some(header) = self.header()? else {
                if about.seen.contains(&true) {
                    return Err(io::Error::other("it ends where an entry should follow"));
                }
                return Ok(None);
            };
            self.entries += 1;
            if self.entries > self.limit {
                let (limit, what) = (self.limit as u64, "entries");
                return Err(Over { limit, what }.into());
            }
            let kind = kind_of(&header);
            if !matches!(kind, b'x' | b'g' | b'L' | b'K') {
                return self.entry(&header, about).map(Some);
            }
            let content = self.about(&header)?;
            match kind {
                b'x' => about.records(&content)?,
                b'g' => global(&content)?,
                b'L' => about.long(1, &content)?,
                _ => about.long(2, &content)?,
            }
        }
    }

    /// Reads on to the end of the archive and of what it is packed in, so that no damage there goes unnoticed. What
    /// follows the end of an archive is nothing to any program.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn drain(mut self) -> io::Result<()> {
        loop {
            let length = self.input.fill_buf()?.len();
            if length == 0 {
                return Ok(());
            }
            self.input.consume(length);
        }
    }

    /// The next header, nothing at the archive's end: two blocks of zeros, or no more blocks.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        if !self.block(header.as_mut_bytes())? {
            return Ok(None);
        }
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            let mut second = [0; BLOCK];
            if self.block(&mut second)? && second.iter().any(|byte| *byte != 0) {
                return Err(io::Error::other("it goes on behind a mark of its end"));
            }
            return Ok(None);
        }
        check(&header)?;
        Ok(Some(header))
    }

    /// Reads a block; says whether there was one.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        self.input.read_exact(block).map_err(cut_off)?;
        self.position += BLOCK as u64;
        Ok(true)
    }

    /// The content of an entry that is about the next one.
    fn about(&mut self, header: &Header) -> io::Result<Vec<u8>> {
        let size = size_of(header)?;
        if size > ABOUT {
            let message = format!(
                "an entry has {size} bytes of names and attributes, over the limit of {ABOUT}"
            );
            return Err(io::Error::other(message));
        }
        self.content_follows(size);
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        self.read_to_end(&mut content)?;
        Ok(content)
    }

    /// From here on, content of a size follows.
    fn content_follows(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// Goes to the end of the content, and of its last block.
    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let length = self.fill_buf()?.len();
            if length == 0 {
                break;
            }
            self.consume(length);
        }
        self.left = std::mem::take(&mut self.padding);
        while self.left > 0 {
            // Some programs write no more than the content of the last file; Go takes that for the archive's end.
            if self.input.fill_buf()?.is_empty() {
                self.left = 0;
                break;
            }
            let length = self.fill_buf()?.len();
            self.consume(length);
        }
        Ok(())
    }

    fn entry(&mut self, header: &Header, about: About) -> io::Result<Found> {
        let path = about
            .path
            .unwrap_or_else(|| header.path_bytes().into_owned());
        if path.len() > PATH {
            return Err(bad(&path, "its path is longer than 4096 bytes"));
        }
        if path.contains(&0) {
            return Err(bad(&path, "its path holds a zero byte"));
        }
        let size = match (size_of(header)?, about.size) {
            (size, None) => size,
            (size, Some(same)) if same == size => size,
            (0, Some(large)) if large > LARGEST_IN_HEADER => large,
            _ => return Err(bad(&path, "its size is told twice and differently")),
        };
        let link = || {
            let link = about.link.clone();
            link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned))
                .filter(|link| link.len() <= PATH && !link.contains(&0))
                .ok_or_else(|| bad(&path, "it leads to no path that can be"))
        };
        let kind = match kind_of(header) {
            // Before there were folders, their paths ended in a slash.
            0 if path.ends_with(b"/") => Kind::Folder,
            0 | b'0' => Kind::File,
            b'1' => Kind::HardLink(link()?),
            b'2' => Kind::SymbolicLink(link()?),
            b'3' | b'4' | b'6' => Kind::Special,
            b'5' => Kind::Folder,
            b'S' => return Err(bad(&path, "it has holes")),
            other => {
                let kind = char::from(other).escape_default();
                return Err(bad(&path, &format!("its kind {kind} is not known")));
            }
        };
        // Some programs skip as many bytes, others do not.
        if kind != Kind::File && size > 0 {
            return Err(bad(&path, "it has a size and is not a file"));
        }
        self.content_follows(size);
        let position = self.position;
        Ok(Found {
            path,
            kind,
            size,
            position,
        })
    }
}

/// The content of the entry that was found last.
impl<R: Read> BufRead for Members<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let piece = self.input.fill_buf()?;
        if piece.is_empty() {
            return Err(cut_off(io::ErrorKind::UnexpectedEof.into()));
        }
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(piece.len());
        Ok(piece.get(..most).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        let amount = amount.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.input.consume(amount);
        self.left -= amount as u64;
        self.position = self.position.saturating_add(amount as u64);
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let length = piece.len().min(buffer.len());
        if let (Some(into), Some(from)) = (buffer.get_mut(..length), piece.get(..length)) {
            into.copy_from_slice(from);
        }
        self.consume(length);
        Ok(length)
    }
}

fn cut_off(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off");
    }
    error
}
