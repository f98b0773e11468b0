//! Reading the file of `--lock`.

use std::{collections::BTreeMap, fs, path::Path};

use super::failure::{Class, Failure};
use crate::{
    catalog::Catalog,
    images::pin::Pins,
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
    parse(&text, limits)
        .map_err(|reason| refused(format!("{} is no lock: {reason}", path.display())))
}

/// The lock that a text is, held to what is done with it: digests are digests, and images have them.
///
/// # Errors
/// Why it is none.
pub(super) fn parse(text: &[u8], limits: &Limits) -> Result<Lock, String> {
    let lock = Lock::parse(text, limits)?;
    let digests = lock.catalogs.iter().map(|catalog| &catalog.image);
    let digests = digests.chain(lock.installs.iter().map(|install| &install.image_digest));
    if let Some(bad) = digests.flatten().find_map(|text| Digest::parse(text).err()) {
        return Err(bad.to_string());
    }
    for install in &lock.installs {
        let images = install.images.iter();
        let images = images.map(|(image, pinned)| (image.clone(), pinned.as_str().into()));
        Pins::of_entries(images).map_err(|bad| bad.to_string())?;
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
