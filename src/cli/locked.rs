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
    resolve::lock::{Asked, Lock, LockedCatalog, LockedInstall},
    source,
};

/// How the flags ask for a package.
pub(super) fn asked(choice: &ChoiceArgs) -> Asked {
    Asked {
        channels: choice.channel.clone(),
        version: choice.version.as_ref().map(ToString::to_string),
        starting_csv: choice.starting_csv.clone(),
    }
}

/// Reads what is locked for a package.
///
/// # Errors
/// When the file cannot be read, is no lock, or was made for something else.
pub(super) fn read(
    path: &Path,
    package: &str,
    choice: &ChoiceArgs,
    limits: &Limits,
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
    if install.asked != Some(asked(choice)) {
        let message = format!(
            "{} was made for another --channel, --version or --starting-csv of {package}",
            path.display()
        );
        return Err(refuse(message));
    }
    Ok(lock.installs)
}

/// Writes down what was chosen.
///
/// # Errors
/// When a catalog cannot be read again, or the file not written; what was there before is whole then.
pub(super) fn write(
    path: &Path,
    catalogs: &[Catalog],
    installs: Vec<LockedInstall>,
) -> Result<(), Failure> {
    let locked = catalogs.iter().map(|catalog| {
        let digest = catalog.digest().map_err(|problems| {
            let message = format!("catalog {} cannot be read again", catalog.name);
            Failure::refused(problems, message)
        })?;
        let name = catalog.name.clone();
        Ok(LockedCatalog { name, digest })
    });
    let locked = locked.collect::<Result<_, Failure>>()?;
    let text = Lock::new(locked, installs).to_text();
    replace(path, &text).map_err(|error| {
        let mut failure = Failure::of(Class::Output, &error);
        failure.prefix(format!("cannot write {}", path.display()));
        failure
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
