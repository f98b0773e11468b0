//! Files that are written whole or not at all.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::failure::{Class, Failure};

/// Writes a file.
///
/// # Errors
/// When that cannot be done; what was there before is whole then.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text).map_err(|error| {
        let message = format!("cannot write {}: {}", path.display(), error.kind());
        Failure::new(Class::Output, message)
            .with_hint("name a file in a folder that is there and yours to write")
    })
}

/// Makes a file hold a text, or leaves it as it was. A link to it stays one, and who may read it stays as it was. What is
/// no file, such as a pipe, is written to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, text);
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    if let Ok(old) = fs::metadata(&path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
