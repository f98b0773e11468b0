//! Tar archives, plain or compressed by gzip or zstd. Nothing is unpacked to disk.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use tar::{Archive, EntryType};

/// How the bytes of an archive are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// A tar archive.
    Tar,
    /// A tar archive, or something else, compressed by gzip.
    Gzip,
    /// A tar archive, or something else, compressed by zstd.
    Zstd,
}

/// How what a reader gives is packed, nothing when it is no archive; and a reader that gives all of it.
///
/// # Errors
/// When it cannot be read.
pub(super) fn packing<R: Read>(mut reader: R) -> io::Result<(Option<Packing>, impl Read + use<R>)> {
    let mut start = vec![];
    // A pipe gives as little at a time as it likes.
    (&mut reader).take(512).read_to_end(&mut start)?;
    Ok((packing_of(&start), Cursor::new(start).chain(reader)))
}

fn packing_of(start: &[u8]) -> Option<Packing> {
    if start.starts_with(b"\x1f\x8b") {
        Some(Packing::Gzip)
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
        Some(Packing::Zstd)
    } else {
        (start.get(257..262) == Some(b"ustar")).then_some(Packing::Tar)
    }
}

/// What is no archive, and so holds no files.
#[derive(Debug, thiserror::Error)]
#[error("it is not a tar archive")]
pub(super) struct NoArchive;

/// A file in an archive.
pub(super) struct Member<'m> {
    /// Its path, without a leading `./`.
    pub(super) path: String,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Where its content begins in the archive, counted after decompression.
    pub(super) position: u64,
    /// Its content.
    pub(super) content: &'m mut dyn Read,
}

/// Goes through the files of an archive, of which at most `limit` bytes are read, compressed or not.
///
/// # Errors
/// When it cannot be read, is over the limit, or holds something that is no content; and whatever `each` gives.
pub(super) fn each_member(
    reader: impl Read,
    limit: u64,
    mut each: impl FnMut(Member<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let reader = Bounded {
        reader: decompressed(reader)?,
        left: limit,
        limit,
    };
    let (Some(Packing::Tar), reader) = packing(reader)? else {
        return Err(io::Error::other(NoArchive));
    };
    let mut archive = Archive::new(reader);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path_bytes();
        let path = std::str::from_utf8(&name)
            .map_err(|_| bad(&String::from_utf8_lossy(&name), "its name is not Unicode"))?;
        let path = path.trim_start_matches("./").to_owned();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            EntryType::Symlink | EntryType::Link => {
                return Err(bad(
                    &path,
                    "it is a link; put a copy of the file in its place",
                ));
            }
            EntryType::GNUSparse => return Err(bad(&path, "it has holes")),
            _ => return Err(bad(&path, "it is not a plain file")),
        }
        let (size, position) = (entry.size(), entry.raw_file_position());
        if size > limit {
            return Err(over(limit));
        }
        each(Member {
            path,
            size,
            position,
            content: &mut entry,
        })?;
    }
    Ok(())
}

fn bad(path: &str, reason: &str) -> io::Error {
    io::Error::other(format!("{path:?} in the archive is refused: {reason}"))
}

fn decompressed<'r>(reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let (packing, reader) = packing(reader)?;
    let reader = BufReader::with_capacity(1 << 16, reader);
    Ok(match packing {
        Some(Packing::Gzip) => Box::new(MultiGzDecoder::new(reader)),
        Some(Packing::Zstd) => Box::new(ZstdFrames {
            reader,
            decoder: FrameDecoder::new(),
        }),
        _ => Box::new(reader),
    })
}

fn over(limit: u64) -> io::Error {
    io::Error::other(format!(
        "it is over the limit of {limit} bytes (--no-limits lifts it for content you trust)"
    ))
}

/// A reader that refuses to go on behind a limit.
struct Bounded<R> {
    reader: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(over(self.limit));
        }
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self
            .reader
            .read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left -= read as u64;
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
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                if !self.begin()? {
                    return Ok(0);
                }
            } else {
                let some = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.reader, some);
                decoded.map_err(io::Error::other)?;
            }
        }
        self.decoder.read(buffer)
    }
}
