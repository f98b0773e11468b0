//! The files of manifests that the user names, as `kubectl apply -f` takes them: files, folders, and `-` for standard
//! input. They are read whole: they are what somebody wrote by hand, or a dump of a cluster.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use walkdir::WalkDir;

use super::{
    SourceError, dir,
    place::{STDIN, STDIN_NAME},
};
use crate::limits::Limits;

/// The endings of files that count in a folder, those of kubectl.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Whether folders in folders are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only the files right in a folder.
    Flat,
    /// Those of all folders below it as well.
    Recursive,
}

/// The files that a path stands for, with what messages call each, sorted by path.
///
/// # Errors
/// When something cannot be read, or there is more than a bundle may have.
pub fn manifest_files(
    path: &Path,
    depth: Depth,
    limits: &Limits,
) -> Result<Vec<(String, Vec<u8>)>, SourceError> {
    if path == Path::new(STDIN) {
        let text = stream(io::stdin().lock(), Path::new(STDIN_NAME), limits)?;
        return Ok(vec![(STDIN_NAME.to_owned(), text)]);
    }
    // What a shell makes of `<(command)`, and standard input by another name.
    if path.starts_with("/dev") {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| SourceError::reading(path, error))?;
        return Ok(vec![(name, stream(file, path, limits)?)]);
    }
    if !path.is_dir() {
        return Ok(vec![named(path, limits)?]);
    }
    let deepest = match depth {
        Depth::Flat => 1,
        Depth::Recursive => usize::MAX,
    };
    let walk = WalkDir::new(path).follow_links(true).max_depth(deepest);
    let mut files = vec![];
    let mut bytes = 0;
    for entry in walk.sort_by_file_name() {
        let entry = entry.map_err(|error| {
            let at = error.path().unwrap_or(path).to_owned();
            SourceError::reading(&at, dir::cause(error))
        })?;
        let ending = entry.path().extension().and_then(|ending| ending.to_str());
        if entry.file_type().is_dir() || !ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            continue;
        }
        let (name, text) = named(entry.path(), limits)?;
        bytes += text.len() as u64;
        files.push((name, text));
        let over = |limit, what| SourceError::Limit {
            path: path.to_owned(),
            limit,
            what,
        };
        if bytes > limits.bundle_bytes {
            return Err(over(limits.bundle_bytes, "bytes of manifests"));
        }
        if files.len() > limits.bundle_files {
            return Err(over(limits.bundle_files as u64, "files of manifests"));
        }
    }
    Ok(files)
}

fn named(path: &Path, limits: &Limits) -> Result<(String, Vec<u8>), SourceError> {
    let text = dir::read_file(path, limits)?;
    Ok((path.display().to_string(), text))
}

fn stream(from: impl Read, name: &Path, limits: &Limits) -> Result<Vec<u8>, SourceError> {
    let mut text = vec![];
    let read = from
        .take(limits.bundle_bytes.saturating_add(1))
        .read_to_end(&mut text);
    read.map_err(|error| SourceError::reading(name, error))?;
    if text.len() as u64 > limits.bundle_bytes {
        return Err(SourceError::Limit {
            path: name.to_owned(),
            limit: limits.bundle_bytes,
            what: "bytes of manifests",
        });
    }
    Ok(text)
}
