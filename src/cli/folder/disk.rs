//! Single operations on files where systems and file systems differ.
//!
//! None of them follows a link under the name it is given to create, and none replaces a file that it did not expect.
//! What is written is synced, because a network file system may tell only then that the disk is full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Gives the staged file the name `target`, unless something has taken that name meanwhile.
///
/// A rename would replace such a file; a link does not. File systems without links get the rename.
pub(super) fn place(staged: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(staged, target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(target) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => fs::rename(staged, target),
            }
        }
        linked => linked,
    }
}

/// Keeps `old` under the name `backup` as well; as a copy where the file system knows no links.
pub(super) fn second_name(old: &Path, backup: &Path) -> io::Result<()> {
    if fs::hard_link(old, backup).is_ok() {
        return Ok(());
    }
    let mut from = File::open(old)?;
    let metadata = from.metadata()?;
    let mut copy = File::create_new(backup)?;
    io::copy(&mut from, &mut copy)?;
    copy.set_modified(metadata.modified()?)?;
    copy.sync_all()?;
    fs::set_permissions(backup, metadata.permissions())
}

/// Writes a file that must not exist yet. A private one is readable by its owner only.
pub(super) fn write_new(path: &Path, content: &str, is_private: bool) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    let mut file = options.open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

/// Makes a folder that only its owner may enter, where the system has modes.
pub(in super::super) fn create_private_folder(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
