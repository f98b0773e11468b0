//! The folder for the time of a run: made if missing, resolved, and locked against other runs.
//!
//! The lock belongs to an open file, so it ends with the process however that ends. On Unix it is on the folder itself
//! and leaves nothing behind. Windows cannot lock a folder; there it is on a file that Windows deletes when it is
//! closed. A file system without locks is used without one, because refusing it would help nobody.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{FolderError, failed};

/// A folder that only this run writes to.
#[derive(Debug)]
pub(super) struct OpenedFolder {
    path: PathBuf,
    new: Vec<PathBuf>,
    lock: Lock,
}

impl OpenedFolder {
    /// Creates what is missing of `folder`, resolves links in it, and locks it.
    pub(super) fn open(folder: &Path) -> Result<OpenedFolder, FolderError> {
        let new = missing(folder);
        match open_and_lock(folder) {
            Ok((path, lock)) => Ok(OpenedFolder { path, new, lock }),
            Err(error) => {
                remove_empty(&new);
                Err(error)
            }
        }
    }

    /// Where the folder really is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes back the creation of the folder and its parents, as far as they are empty.
    pub(super) fn remove_if_new(self) {
        // On Windows the lock is a file in the folder, so it has to go first.
        drop(self.lock);
        remove_empty(&self.new);
    }
}

/// Holds the lock as long as it lives.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    /// Closing alone is not enough: a process that another thread is just starting has a copy of each open file for a
    /// moment, and would keep the lock that long.
    fn drop(&mut self) {
        // Where this fails, closing the file is all that can be done.
        let _ = self.0.unlock();
    }
}

fn open_and_lock(folder: &Path) -> Result<(PathBuf, Lock), FolderError> {
    // Said here, because what the system says of a file in the way ("file exists") misleads.
    if fs::metadata(folder).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(failed("write to", folder)(
            io::ErrorKind::NotADirectory.into(),
        ));
    }
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    let path = fs::canonicalize(folder).map_err(failed("open", folder))?;
    match lock(&path).map_err(failed("lock", folder))? {
        Some(lock) => Ok((path, Lock(lock))),
        None => Err(FolderError::Busy {
            folder: folder.to_owned(),
        }),
    }
}

/// The open file that is the lock, or nothing if another run has it.
#[cfg(not(windows))]
fn lock(folder: &Path) -> io::Result<Option<File>> {
    use std::fs::TryLockError;
    let opened = File::open(folder)?;
    match opened.try_lock() {
        Ok(()) => Ok(Some(opened)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
            Ok(Some(opened))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A file that cannot be opened twice is the lock, so that it can be deleted without another run holding it too.
#[cfg(windows)]
fn lock(folder: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = File::options();
    options
        .write(true)
        .create(true)
        .share_mode(0)
        .custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    match options.open(folder.join(".kubectl-olm-lock")) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder and those of its parents that do not exist, the innermost first.
fn missing(folder: &Path) -> Vec<PathBuf> {
    let ancestors = folder
        .ancestors()
        .filter(|path| !path.as_os_str().is_empty());
    ancestors
        .take_while(|path| matches!(path.try_exists(), Ok(false)))
        .map(Path::to_owned)
        .collect()
}

fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        // A folder that is not empty now has another user, and one that never came to be cannot be removed.
        let _ = fs::remove_dir(folder);
    }
}
