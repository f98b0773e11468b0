//! Reading and writing the file of `--lock`.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
};

use super::failure::{Class, Failure};
use crate::{
    catalog::Catalog,
    limits::Limits,
    oci::digest::Digest,
    problem::Problem,
    resolve::lock::{Lock, LockedCatalog},
    source,
};

/// Reads a lock.
///
/// # Errors
/// When the file cannot be read or is no lock.
pub(super) fn read(path: &Path, limits: &Limits) -> Result<Lock, Failure> {
    let text = source::read_file(path, limits)?;
    let lock = Lock::parse(&text, limits);
    let lock = lock.map_err(|reason| no_lock(path, &reason))?;
    let images = lock.catalogs.iter().map(|catalog| &catalog.image);
    let images = images.chain(lock.installs.iter().map(|install| &install.image_digest));
    if let Some(bad) = images.flatten().find_map(|text| Digest::parse(text).err()) {
        return Err(no_lock(path, &bad));
    }
    Ok(lock)
}

/// Reads the lock that another one takes the place of; nothing where there is none yet.
///
/// # Errors
/// When what is there is no lock: somebody may need it.
pub(super) fn read_old(path: &Path, limits: &Limits) -> Result<Option<Lock>, Failure> {
    match fs::metadata(path) {
        Ok(there) if there.len() > 0 => {
            let old = read(path, limits).map(Some);
            old.map_err(|failure| failure.with_hint("name another file, or remove this one"))
        }
        _ => Ok(None),
    }
}

fn no_lock(path: &Path, reason: &dyn std::fmt::Display) -> Failure {
    refused(format!("{} is no lock: {reason}", path.display()))
}

/// The failure to install what a lock says.
pub(super) fn refused(message: String) -> Failure {
    Failure::new(Class::Refused, message).with_hint("choose anew without --locked")
}

/// What the tags of catalogs stood for when a lock was made, by the catalog's name.
pub(super) fn pins(lock: &Lock) -> BTreeMap<String, Digest> {
    let catalogs = lock.catalogs.iter();
    let pins = catalogs.filter_map(|catalog| Some((catalog.name.clone(), pin(&catalog.image)?)));
    pins.collect()
}

/// What a tag stood for when a lock was made.
pub(super) fn pin(image: &Option<String>) -> Option<Digest> {
    Digest::parse(image.as_deref()?).ok()
}

/// The catalogs that are no longer what they were.
///
/// # Errors
/// When one cannot be read again.
pub(super) fn changed(
    path: &Path,
    lock: &Lock,
    catalogs: &[Catalog],
) -> Result<Vec<Problem>, Failure> {
    let mut problems = vec![];
    for locked in &lock.catalogs {
        let catalog = catalogs.iter().find(|catalog| catalog.name == locked.name);
        let Some(catalog) = catalog else { continue };
        let is_same_image = locked.image.is_some() && locked.image == catalog.image;
        if !is_same_image && digest(catalog)? != locked.digest {
            let message = format!("catalog {} has changed since", locked.name);
            problems.push(Problem::note("locked", message).at(&*path.to_string_lossy()));
        }
    }
    Ok(problems)
}

/// What a lock says of a catalog.
///
/// # Errors
/// When a catalog cannot be read again.
pub(super) fn catalog(catalog: &Catalog) -> Result<LockedCatalog, Failure> {
    Ok(LockedCatalog {
        name: catalog.name.clone(),
        image: catalog.image.clone(),
        digest: digest(catalog)?,
    })
}

fn digest(catalog: &Catalog) -> Result<String, Failure> {
    catalog.digest().map_err(|problems| {
        let message = format!("catalog {} cannot be read again", catalog.name);
        Failure::refused(problems, message)
    })
}

/// Writes the file.
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

/// Makes a file hold a text, or leaves it as it was. A link to it stays one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
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
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
