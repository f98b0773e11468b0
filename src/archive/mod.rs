//! Tar archives, plain or compressed by gzip or zstd. Nothing is unpacked to disk.

mod about;
mod header;
mod members;
mod packing;

use std::io::{self, Read};

pub use self::members::{Found, Kind, Members};
pub use self::packing::{Bound, Packing, decompressed, packing};

use crate::limits::Over;

/// What is no archive, and so holds no files.
#[derive(Debug, thiserror::Error)]
#[error("it is not a tar archive")]
pub struct NoArchive;

/// A file in an archive.
pub struct Member<'m> {
    /// Its path, without a leading `./`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Where its content begins in the archive, counted after decompression.
    pub position: u64,
    /// Its content.
    pub content: &'m mut dyn Read,
}

/// As many entries an archive may have whose bytes are limited; folders are among them, which no caller sees.
const ENTRIES: usize = 1_000_000;

/// Goes through the files of an archive, of which at most `limit` bytes are read, compressed or not.
///
/// # Errors
/// When it cannot be read, is over the limit, or holds something that is no content; and whatever `each` gives.
pub fn each_member(
    reader: impl Read,
    limit: u64,
    mut each: impl FnMut(Member<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let bound = Bound {
        bytes: limit,
        growth: None,
    };
    let (Some(Packing::Tar), reader) = packing(decompressed(reader, bound)?)? else {
        return Err(io::Error::other(NoArchive));
    };
    let entries = if limit == u64::MAX {
        usize::MAX
    } else {
        ENTRIES
    };
    let mut members = Members::new(reader, entries);
    while let Some(found) = members.next_entry()? {
        let path =
            str::from_utf8(&found.path).map_err(|_| bad(&found.path, "its name is not Unicode"))?;
        let path = path.trim_start_matches("./").to_owned();
        match found.kind {
            Kind::File => {}
            Kind::Folder => continue,
            Kind::HardLink(_) | Kind::SymbolicLink(_) => {
                let reason = "it is a link; put a copy of the file in its place";
                return Err(bad(&found.path, reason));
            }
            Kind::Special => return Err(bad(&found.path, "it is not a plain file")),
        }
        if found.size > limit {
            return Err(Over {
                limit,
                what: "bytes",
            }
            .into());
        }
        each(Member {
            path,
            size: found.size,
            position: found.position,
            content: &mut members,
        })?;
    }
    members.drain()
}

/// Why something in an archive is not taken. The path may be as long as the archive likes.
pub(crate) fn bad(path: &[u8], reason: &str) -> io::Error {
    let shown: String = String::from_utf8_lossy(path).chars().take(200).collect();
    io::Error::other(format!("{shown:?} in the archive is refused: {reason}"))
}
