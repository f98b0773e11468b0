//! The files of a catalog, wherever they are: catalogs are too large to be read whole, so they are read by the piece.

use std::{
    io::{self, Cursor, Read},
    ops::Range,
};

use crate::files::FileTree;

/// As many bytes are reserved at most before they are read.
const RESERVED: u64 = 64 << 20;

/// The files of one catalog. A [`FileTree`] is one; so are files on disk.
pub trait Content: std::fmt::Debug + Send + Sync {
    /// The paths of all files below the catalog's root, in byte order, with their sizes in bytes.
    fn files(&self) -> Vec<(String, u64)>;

    /// Opens a part of a file, which ends where the file does if that is earlier.
    ///
    /// # Errors
    /// When there is no such file or it cannot be read.
    fn open(&self, path: &str, part: Range<u64>) -> io::Result<Box<dyn Read + '_>>;

    /// Reads a part of a file.
    ///
    /// # Errors
    /// When there is no such file, or it ends before the part does, or it cannot be read.
    fn read(&self, path: &str, part: Range<u64>) -> io::Result<Vec<u8>> {
        let size = part.end.saturating_sub(part.start);
        // Whoever asks for more than there is does not get to reserve it all.
        let mut text = Vec::with_capacity(usize::try_from(size.min(RESERVED)).unwrap_or_default());
        self.open(path, part)?.read_to_end(&mut text)?;
        if text.len() as u64 == size {
            Ok(text)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

impl Content for FileTree {
    fn files(&self) -> Vec<(String, u64)> {
        let size = |path: &str| self.get(path).map_or(0, <[u8]>::len) as u64;
        self.paths()
            .map(|path| (path.to_owned(), size(path)))
            .collect()
    }

    fn open(&self, path: &str, part: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        let content = self.get(path).ok_or(io::ErrorKind::NotFound)?;
        let at = |position: u64| {
            usize::try_from(position)
                .unwrap_or(usize::MAX)
                .min(content.len())
        };
        let part = content.get(at(part.start)..at(part.end));
        Ok(Box::new(Cursor::new(part.unwrap_or_default())))
    }
}
