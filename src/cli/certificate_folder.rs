//! The folder of `--cert-dir`: three files for each certificate, `NAMESPACE_NAME.crt`, `.key` and `.ca`.
//!
//! Everything in it is its owner's alone. One run at a time writes it, and a file is whole or not there; of a run that was
//! stopped between two files, the next one finds texts that do not go together, and makes them anew.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use secrecy::ExposeSecret;

use super::{
    failure::{Class, Failure},
    folder::create_private_folder,
};
use crate::render::certificates::{
    Certificate, Pair, Supply, Text, Unusable, keep_or_make, usable,
};

/// Bytes that are read of a file: more than any certificate has.
const MAX_BYTES: u64 = 1 << 20;
/// Keeps runs apart. No certificate is called so, as namespaces are not empty.
const LOCK: &str = ".lock";
/// Keeps private keys out of Git.
const IGNORED: &str = ".gitignore";

/// The pair that the folder has for a certificate, else a new one, which it has from then on.
///
/// # Errors
/// When the folder or a file cannot be read or written, or no pair can be made.
pub(super) fn supply(
    folder: &Path,
    certificate: &Certificate,
    now: Timestamp,
) -> Result<Supply, Failure> {
    let names = certificate.dns_names();
    // What is there and can be used takes no lock, so that the folder may be one that cannot be written.
    if let Ok(Some(pair)) = read(folder, certificate)?
        && usable(&pair, &names, now).is_ok()
    {
        return Ok(Supply::Kept(pair));
    }
    let lock = open(folder).map_err(|error| failure(folder, &error))?;
    let found = read(folder, certificate)?;
    let supply = keep_or_make(found, &names, now);
    let supply = supply.map_err(|error| Failure::of(Class::Output, &error))?;
    if let Supply::New(pair) | Supply::Renewed(pair, _) = &supply {
        write(folder, certificate, pair)?;
    }
    drop(lock);
    Ok(supply)
}

/// Makes the folder where it is missing, and waits until no other run writes it.
fn open(folder: &Path) -> io::Result<File> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match create_private_folder(folder) {
        Ok(()) => fs::write(folder.join(IGNORED), "*\n")?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

/// What the folder has.
fn read(
    folder: &Path,
    certificate: &Certificate,
) -> Result<Result<Option<Pair>, Unusable>, Failure> {
    let text = |which| {
        let path = path(folder, certificate, which);
        read_file(&path).map_err(|error| failure(&path, &error))
    };
    let certificate = text(Text::Certificate)?;
    let key = text(Text::Key)?;
    Ok(Pair::found(certificate, key, text(Text::Authorities)?))
}

fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = vec![];
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn write(folder: &Path, certificate: &Certificate, pair: &Pair) -> Result<(), Failure> {
    for (which, text) in [
        (Text::Authorities, pair.authorities()),
        (Text::Certificate, pair.certificate()),
        (Text::Key, pair.key().expose_secret()),
    ] {
        let path = path(folder, certificate, which);
        write_file(folder, &path, text).map_err(|error| failure(&path, &error))?;
    }
    Ok(())
}

/// Files of `tempfile` are their owner's alone.
fn write_file(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// No namespace has a `_`, so no two certificates have one file.
fn path(folder: &Path, certificate: &Certificate, text: Text) -> PathBuf {
    let ending = match text {
        Text::Certificate => "crt",
        Text::Key => "key",
        Text::Authorities => "ca",
    };
    let Certificate {
        namespace, name, ..
    } = certificate;
    folder.join(format!("{namespace}_{name}.{ending}"))
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    let reason = match error.raw_os_error() {
        Some(_) => error.kind().to_string(),
        None => error.to_string(),
    };
    let message = format!("cannot use {} of --cert-dir: {reason}", path.display());
    Failure::new(Class::Output, message)
        .with_hint("name a folder that is yours to read and write, or that can be made")
}
