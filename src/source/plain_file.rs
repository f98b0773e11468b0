//! Plain files, opened so that nothing else can stand in their place: no pipe is waited for, and a link is followed only
//! where it is the user's own.
//!
//! Says nothing about what is in them; whoever reads them verifies that.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

/// The largest configuration file that is read; the largest real ones have some ten thousand bytes.
const LARGEST_CONFIG: u64 = 1 << 20;

/// What to do about a link in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// It is followed.
    Follow,
    /// It is refused.
    Refuse,
}

/// Opens a plain file to read it, and gives its size in bytes.
///
/// # Errors
/// When it cannot be opened, or is a link that is refused, a folder, a pipe, a socket or a device.
pub(super) fn open(path: &Path, links: Links) -> io::Result<(File, u64)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Without this, opening a pipe waits for whoever writes to it.
        let mut flags = OFlags::NONBLOCK;
        flags.set(OFlags::NOFOLLOW, links == Links::Refuse);
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path).map_err(|error| named(error, links))?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata.len()))
    } else {
        Err(io::Error::other("it is not a plain file"))
    }
}

/// Reads a plain file of at most `limit` bytes.
///
/// # Errors
/// As [`open`], and when it is larger.
pub(super) fn read(path: &Path, links: Links, limit: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open(path, links)?;
    let too_large = || io::Error::other(format!("it is larger than {limit} bytes"));
    if size > limit {
        return Err(too_large());
    }
    // Of the right size at once: growing would leave copies of passwords behind.
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // It may grow while it is read.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(content)
}

/// Reads a configuration file of the user's, which may be a link; nothing when there is none.
///
/// # Errors
/// As [`read`], of at most a megabyte.
pub(super) fn read_config(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path, Links::Follow, LARGEST_CONFIG) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Fills `buffer` with what stands at a position, wherever the file was read before.
///
/// # Errors
/// When it cannot be read, or ends before the buffer is full.
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
    }
    #[cfg(windows)]
    {
        let (mut done, mut position) = (0, position);
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match std::os::windows::fs::FileExt::seek_read(file, rest, position)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    done += read;
                    position += read as u64;
                }
            }
        }
        Ok(())
    }
}

/// What the system says when a link is not followed speaks of many links.
#[cfg_attr(
    not(unix),
    expect(unused_variables, reason = "only Unix tells links apart")
)]
fn named(error: io::Error, links: Links) -> io::Error {
    #[cfg(unix)]
    if links == Links::Refuse
        && error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
    {
        return io::Error::other("it is a link; put a copy of the file in its place");
    }
    error
}
