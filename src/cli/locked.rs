//! Reading and writing the file of `--lock`.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use super::{
    choice_args::ChoiceArgs,
    failure::{Class, Failure},
};
use crate::{
    catalog::Catalog,
    limits::Limits,
    problem::Problem,
    resolve::lock::{Lock, LockedCatalog, LockedInstall},
    source,
};

/// Reads what is locked for a package. That a catalog is no longer what it was is added to `problems`.
///
/// # Errors
/// When the file cannot be read, is no lock, or was made for something else.
pub(super) fn read(
    path: &Path,
    package: &str,
    choice: &ChoiceArgs,
    (catalogs, limits): (&[Catalog], &Limits),
    problems: &mut Vec<Problem>,
) -> Result<Vec<LockedInstall>, Failure> {
    let refuse = |message: String| {
        let hint = "choose anew without --locked";
        Failure::new(Class::Refused, message).with_hint(hint)
    };
    let text = source::read_file(path, limits)?;
    let lock = Lock::parse(&text, limits);
    let lock = lock.map_err(|reason| refuse(format!("{} is no lock: {reason}", path.display())))?;
    let Some(install) = lock.asked_for(package) else {
        let message = format!("{} was not made for {package}", path.display());
        return Err(refuse(message));
    };
    if install.asked != Some(choice.asked()) {
        let message = format!(
            "{} was made for {package} with other flags that choose",
            path.display()
        );
        return Err(refuse(message));
    }
    for locked in &lock.catalogs {
        let catalog = catalogs.iter().find(|catalog| catalog.name == locked.name);
        if let Some(catalog) = catalog
            && digest(catalog)? != locked.digest
        {
            let message = format!("catalog {} has changed since", locked.name);
            problems.push(Problem::note("locked", message).at(&*path.to_string_lossy()));
        }
    }
    Ok(lock.installs)
}

/// The text of a lock of what was chosen.
///
/// # Errors
/// When a catalog cannot be read again.
pub(super) fn text(catalogs: &[Catalog], installs: Vec<LockedInstall>) -> Result<String, Failure> {
    let locked = catalogs.iter().map(|catalog| {
        let (name, digest) = (catalog.name.clone(), digest(catalog)?);
        Ok(LockedCatalog { name, digest })
    });
    let locked = locked.collect::<Result<_, Failure>>()?;
    Ok(Lock::new(locked, installs).to_text())
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
