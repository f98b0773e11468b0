//! The files of an OCI layout in a folder. Nothing is read from outside of it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::StoreError;
use crate::source::plain_file::{self, Links};

/// A folder that files are read from.
#[derive(Debug)]
pub(super) struct LayoutFolder {
    path: PathBuf,
    /// Without links, to see whether a folder in it leads out.
    real: PathBuf,
}

impl LayoutFolder {
    /// A folder that is there.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let real = path.canonicalize();
        let real = real.map_err(|error| StoreError::reading(path, error))?;
        let path = path.to_owned();
        Ok(Self { path, real })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in it; nothing when there is none.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<(fs::File, u64)>, StoreError> {
        let path = self.path.join(name);
        let failed = |error| StoreError::reading(&path, error);
        let Some(parent) = path.parent() else {
            return Ok(None);
        };
        match parent.canonicalize() {
            Ok(parent) if parent.starts_with(&self.real) => {}
            Ok(_) => {
                return Err(failed(io::Error::other(
                    "its folder is a link that leads out",
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        match plain_file::open(&path, Links::Refuse) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}
