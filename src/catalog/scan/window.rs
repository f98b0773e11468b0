//! A file that is read by the piece: the part of it that is at hand, and where that part stands.

use std::io::{self, Read};

use memchr::memchr_iter;

/// As many bytes are read at a time, unless a document is larger.
const PIECE: usize = 1 << 20;

/// The part of a file that is at hand.
pub(super) struct Window<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// As many bytes of the buffer are done with.
    done: usize,
    /// The position in the file of the first byte that is not done with.
    pub(super) position: u64,
    /// Its line, counted from 1 at the start.
    pub(super) line: usize,
    /// Whether the rest is all that the file has left.
    pub(super) is_last: bool,
    limit: u64,
}

impl<'r> Window<'r> {
    /// What a reader gives from `position` of the file on, of which at most `limit` bytes are held at once.
    pub(super) fn new(reader: Box<dyn Read + 'r>, position: u64, limit: u64) -> Self {
        Self {
            reader,
            buffer: vec![],
            done: 0,
            position,
            line: 1,
            is_last: false,
            limit,
        }
    }

    /// What is at hand and not done with.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.done..).unwrap_or_default()
    }

    /// Is done with some bytes of the rest.
    pub(super) fn advance(&mut self, bytes: usize) {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        self.line += memchr_iter(b'\n', passed).count();
        self.position += bytes as u64;
        self.done += bytes;
    }

    /// Reads on: as much again as is left over, so that a large document is not looked at over and over.
    ///
    /// # Errors
    /// When the file cannot be read, or what is left over has reached the limit.
    pub(super) fn read_on(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.done);
        self.done = 0;
        let have = self.buffer.len();
        if have as u64 >= self.limit {
            let limit = self.limit;
            let message = format!(
                "the document on line {} is larger than the limit of {limit} bytes (--no-limits lifts it for content you trust)",
                self.line
            );
            return Err(io::Error::other(message));
        }
        let want = have.max(PIECE);
        let read = (&mut self.reader)
            .take(want as u64)
            .read_to_end(&mut self.buffer)?;
        self.is_last = read < want;
        Ok(())
    }
}
