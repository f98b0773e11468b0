//! What an archive is compressed by, and its bytes without that, as many as are allowed.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Cursor, Read},
    rc::Rc,
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::limits::Over;

/// How the bytes of an archive are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// A tar archive.
    Tar,
    /// A tar archive, or something else, compressed by gzip.
    Gzip,
    /// A tar archive, or something else, compressed by zstd.
    Zstd,
}

/// How much of a stream is read before it is refused.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// As many bytes, after decompression.
    pub bytes: u64,
    /// As many bytes after decompression for each one before; the first 256 MiB are free.
    pub growth: Option<u64>,
}

/// What may come out of a compressed stream, in bytes, however little went in: tables of zeros are no attack.
const FREE_GROWTH: u64 = 256 << 20;

/// How what a reader gives is packed, nothing when it is no archive; and a reader that gives all of it.
///
/// # Errors
/// When it cannot be read.
pub fn packing<R: Read>(mut reader: R) -> io::Result<(Option<Packing>, impl Read + use<R>)> {
    let mut start = vec![];
    // A pipe gives as little at a time as it likes.
    (&mut reader).take(512).read_to_end(&mut start)?;
    Ok((packing_of(&start), Cursor::new(start).chain(reader)))
}

fn packing_of(start: &[u8]) -> Option<Packing> {
    if start.starts_with(b"\x1f\x8b") {
        Some(Packing::Gzip)
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") || is_skippable_frame(start) {
        Some(Packing::Zstd)
    } else {
        (start.get(257..262) == Some(b"ustar")).then_some(Packing::Tar)
    }
}

/// Whether a zstd stream begins with a frame that holds nothing, as those do that can be read in pieces.
fn is_skippable_frame(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The name of a compression that is known and not read.
fn foreign_compression(start: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 3] = [
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    let found = known.iter().find(|(magic, _)| start.starts_with(magic));
    found.map(|(_, name)| *name)
}

/// What a reader gives without its compression, if it has one; at its end the whole of it has been read and whatever
/// checksums the compression has were right.
///
/// # Errors
/// When it cannot be read, or is compressed by something else. Reading fails beyond the bound, when the compressed
/// stream is cut off, and when something else follows it.
pub fn decompressed<'r>(reader: impl Read + 'r, bound: Bound) -> io::Result<Box<dyn Read + 'r>> {
    let taken = Rc::new(Cell::new(0));
    let counted = Counted {
        reader,
        taken: Rc::clone(&taken),
    };
    let mut reader = BufReader::with_capacity(1 << 16, counted);
    let mut start = vec![];
    (&mut reader).take(512).read_to_end(&mut start)?;
    let packing = packing_of(&start);
    if packing.is_none()
        && let Some(name) = foreign_compression(&start)
    {
        let message = format!("it is compressed by {name}; only gzip and zstd are read");
        return Err(io::Error::other(message));
    }
    let reader = Cursor::new(start).chain(reader);
    let plain: Box<dyn Read + 'r> = match packing {
        Some(Packing::Gzip) => Box::new(MultiGzDecoder::new(reader)),
        Some(Packing::Zstd) => Box::new(ZstdFrames {
            reader,
            decoder: FrameDecoder::new(),
        }),
        _ => Box::new(reader),
    };
    Ok(Box::new(Bounded {
        reader: plain,
        given: 0,
        taken,
        bound,
    }))
}

/// A reader that counts what it gives.
struct Counted<R> {
    reader: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.taken.set(self.taken.get().saturating_add(read as u64));
        Ok(read)
    }
}

/// A reader that refuses to go on behind a bound.
struct Bounded<R> {
    reader: R,
    given: u64,
    taken: Rc<Cell<u64>>,
    bound: Bound,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bound.bytes.saturating_sub(self.given);
        if left == 0 && !buffer.is_empty() {
            // What ends right here is not over the limit.
            let more = self.reader.read(&mut [0])?;
            return if more == 0 {
                Ok(0)
            } else {
                let (limit, what) = (self.bound.bytes, "bytes");
                Err(Over { limit, what }.into())
            };
        }
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self
            .reader
            .read(buffer.get_mut(..most).unwrap_or_default())?;
        self.given = self.given.saturating_add(read as u64);
        if let Some(times) = self.bound.growth
            && self.given > FREE_GROWTH
            && self.given / times > self.taken.get()
        {
            let (limit, what) = (times, "times its compressed size");
            return Err(Over { limit, what }.into());
        }
        Ok(read)
    }
}

/// Every frame of a zstd stream, one after the other, as `zstd -d` reads it.
struct ZstdFrames<R> {
    reader: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> ZstdFrames<R> {
    /// Begins the next frame that holds something; says whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.reader.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.reader) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.reader).take(length.into());
                    if io::copy(&mut skipped, &mut io::sink())? < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(_) => return Err(damaged()),
            }
        }
        Ok(false)
    }

    /// Whether the frame that just ended is what was compressed, as far as it says so.
    fn check(&self) -> io::Result<()> {
        let told = self.decoder.get_checksum_from_data();
        if told.is_some() && told != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("its zstd checksum is wrong"));
        }
        Ok(())
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "its zstd stream is damaged or cut off",
    )
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                self.check()?;
                if !self.begin()? {
                    return Ok(0);
                }
            } else {
                let some = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.reader, some);
                decoded.map_err(|_| damaged())?;
            }
        }
        self.decoder.read(buffer)
    }
}
