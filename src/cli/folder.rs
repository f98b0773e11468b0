//! Writes rendered files into a folder that the user may keep in Git: `-o dir:DIR` and `-o kustomize:DIR`.
//!
//! The folder's own list, `.kubectl-olm-files`, says which files in it are ours. Those are replaced when their content
//! changes and removed when they are no longer rendered; a file in our way that is not listed stops the run, and all
//! others are left alone.
//!
//! All new content is written, in a staging folder beside the old files, before the first old file is touched. From
//! then on there are only renames, each of which is undone if a later one fails. A run that is killed leaves whole
//! files, some old and some new, and a list of both, so that the next run finishes the work and clears up.
//!
//! The folder itself may be a link, since the user chose it; it is resolved once, at the start, and errors name the
//! place it leads to. Below it nothing but plain files is read or replaced. Folders are never entered: all names are names directly in it.
//!
//! What this does not do: guard against someone who renames the folder's parents while it runs, or keep the signal that
//! comes with a file size limit (`SIGXFSZ`) from ending the run. A program that ignores it gets an error here instead.
//! No code of OLM is reproduced.

mod disk;
mod list;
mod opened;
mod staging;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use self::list::{LIST_FILE, List};
use self::opened::OpenedFolder;
use self::staging::{STAGING_FOLDER, Staging, remove_leftovers};

/// What a run did to the files it was given and to those of earlier runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// Files that are new or whose content changed.
    pub written: usize,
    /// Files that had the wanted content already and were not touched.
    pub unchanged: usize,
    /// Files of an earlier run that are no longer wanted.
    pub removed: usize,
}

/// Why a folder does not hold the files it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    /// Files that we did not write are where ours should be. An input that is refused.
    #[error(
        "{} holds files that kubectl olm did not write: {}; the folder is as it was",
        .folder.display(), .names.join(", ")
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// All such files, sorted, by name in the folder.
        names: Vec<String>,
    },
    /// The list of our files does not hold what we write into it. An input that is refused.
    #[error("{} is not usable: {reason}; the folder is as it was", .folder.join(LIST_FILE).display())]
    List {
        /// The folder.
        folder: PathBuf,
        /// What is wrong, and in which line.
        reason: String,
    },
    /// A file was to be written whose name is not a plain file name.
    #[error("{name:?} cannot be the name of a rendered file; the folder is as it was")]
    Name {
        /// The name that was asked for.
        name: String,
    },
    /// Another run is at work in the folder.
    #[error("another kubectl olm is writing to {}; this one changed nothing", .folder.display())]
    Busy {
        /// The folder as the user gave it.
        folder: PathBuf,
    },
    /// The disk did not do what was asked of it, and nothing is changed.
    #[error("cannot {doing} {}; the folder is as it was", .path.display())]
    NotWritten {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file or folder it was tried on.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The disk failed half-way, and then failed again when the old files were put back.
    #[error(
        "cannot {doing} {}, and then could not put back {} ({not_put_back}); every file is whole, \
         but some are old and some are new", .path.display(), .left.display()
    )]
    NotPutBack {
        /// What was tried first, as a verb.
        doing: &'static str,
        /// The file it was tried on.
        path: PathBuf,
        /// The first file that could not be put back.
        left: PathBuf,
        /// Why it could not.
        not_put_back: io::Error,
        /// Why the first attempt failed.
        source: io::Error,
    },
}

impl FolderError {
    /// What the user can do about it, as a sentence without its full stop.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            FolderError::Foreign { .. } => Some(format!(
                "move these files away or choose another folder; only files named in {LIST_FILE} are replaced"
            )),
            FolderError::List { .. } => Some(format!(
                "restore {LIST_FILE} from version control; after a merge keep the names of both sides and \
                 delete the other lines"
            )),
            FolderError::Name { .. } => None,
            FolderError::Busy { .. } => {
                Some("wait for the other run to end, then run this one again".to_owned())
            }
            FolderError::NotWritten { source, .. } => not_written_hint(source).map(str::to_owned),
            FolderError::NotPutBack { .. } => Some(format!(
                "fix the cause and run the same command again, which finishes the work; \
                 until then the old files are in {STAGING_FOLDER}"
            )),
        }
    }
}

/// Makes `folder` hold `files`, content by name, and none of the files that earlier runs wrote and this one does not.
///
/// A folder that is missing is created with all its parents, as `kubectl cluster-info dump --output-directory` does.
/// Unchanged files keep their modification time, changed ones their permissions. New files that hold a Secret, by
/// [`is_secret`](crate::manifest::file_name::is_secret), can be read by their owner only.
///
/// # Errors
///
/// [`FolderError`]; after all variants but `NotPutBack` the folder holds what it held before, and is gone again if it
/// did not exist.
pub(super) fn write(
    folder: &Path,
    files: &BTreeMap<String, String>,
) -> Result<Summary, FolderError> {
    if let Some(name) = files.keys().find(|name| !list::is_plain_name(name)) {
        return Err(FolderError::Name { name: name.clone() });
    }
    let opened = OpenedFolder::open(folder)?;
    let written = update(opened.path(), files);
    if written.is_err() {
        opened.remove_if_new();
    }
    written
}

/// What has to happen to which file.
#[derive(Debug, Default)]
struct Changes<'a> {
    create: Vec<(&'a str, &'a str)>,
    replace: Vec<(&'a str, &'a str)>,
    remove: Vec<&'a str>,
    unchanged: usize,
}

fn update(folder: &Path, files: &BTreeMap<String, String>) -> Result<Summary, FolderError> {
    let mut foreign = BTreeSet::new();
    if matches!(found(folder, STAGING_FOLDER)?, Found::File | Found::Other) {
        foreign.insert(STAGING_FOLDER);
    }
    let listed = match found(folder, LIST_FILE)? {
        Found::Nothing => None,
        Found::File => Some(List::read(folder)?),
        Found::Folder | Found::Other => {
            foreign.insert(LIST_FILE);
            None
        }
    };
    let ours = listed.clone().unwrap_or_default();
    let changes = compare(folder, files, &ours, &mut foreign)?;
    if !foreign.is_empty() {
        return Err(FolderError::Foreign {
            folder: folder.to_owned(),
            names: foreign.into_iter().map(str::to_owned).collect(),
        });
    }
    remove_leftovers(folder)?;
    let wanted = List::new(files.keys().cloned());
    if listed.as_ref() != Some(&wanted) || !changes.is_empty() {
        let staging = stage(folder, &changes, listed.as_ref(), &wanted).inspect_err(|_| {
            // What failed first matters more than leftovers, and the next run removes them.
            let _ = remove_leftovers(folder);
        })?;
        staging.carry_out()?;
    }
    Ok(changes.summary())
}

/// Sorts all names, wanted and listed, into what is to be done, and adds to `foreign` what is in the way.
fn compare<'a>(
    folder: &Path,
    files: &'a BTreeMap<String, String>,
    ours: &'a List,
    foreign: &mut BTreeSet<&'a str>,
) -> Result<Changes<'a>, FolderError> {
    let mut changes = Changes::default();
    for (name, content) in files {
        match found(folder, name)? {
            Found::Nothing => changes.create.push((name, content)),
            Found::File if !ours.contains(name) => {
                foreign.insert(name);
            }
            Found::File if holds(folder, name, content)? => changes.unchanged += 1,
            Found::File => changes.replace.push((name, content)),
            Found::Folder | Found::Other => {
                foreign.insert(name);
            }
        }
    }
    for name in ours.names().filter(|name| !files.contains_key(*name)) {
        match found(folder, name)? {
            Found::Nothing => {}
            Found::File => changes.remove.push(name),
            Found::Folder | Found::Other => {
                foreign.insert(name);
            }
        }
    }
    Ok(changes)
}

/// Prepares all changes.
///
/// The list names old and new files before the first of them is touched, and only the new ones once all are done. So
/// wherever the run is killed, or gives up putting things back, each of our files in the folder is on the list.
fn stage(
    folder: &Path,
    changes: &Changes<'_>,
    listed: Option<&List>,
    wanted: &List,
) -> Result<Staging, FolderError> {
    let mut staging = Staging::new(folder)?;
    let both = listed.map_or_else(|| wanted.clone(), |listed| listed.union(wanted));
    match listed {
        None => staging.create(LIST_FILE, &both.to_text())?,
        Some(listed) if *listed != both => staging.replace(LIST_FILE, &both.to_text())?,
        Some(_) => {}
    }
    for (name, content) in &changes.create {
        staging.create(name, content)?;
    }
    for (name, content) in &changes.replace {
        staging.replace(name, content)?;
    }
    for name in &changes.remove {
        staging.remove(name);
    }
    if both != *wanted {
        staging.replace(LIST_FILE, &wanted.to_text())?;
    }
    Ok(staging)
}

impl Changes<'_> {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.replace.is_empty() && self.remove.is_empty()
    }

    fn summary(&self) -> Summary {
        Summary {
            written: self.create.len() + self.replace.len(),
            unchanged: self.unchanged,
            removed: self.remove.len(),
        }
    }
}

/// What a name in the folder stands for, links not followed.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    File,
    Folder,
    Other,
}

fn found(folder: &Path, name: &str) -> Result<Found, FolderError> {
    let path = folder.join(name);
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(Found::File),
        Ok(metadata) if metadata.is_dir() => Ok(Found::Folder),
        Ok(_) => Ok(Found::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Compares sizes first, so that a huge file under one of our names is not read.
fn holds(folder: &Path, name: &str, content: &str) -> Result<bool, FolderError> {
    let path = folder.join(name);
    let compare = || -> io::Result<bool> {
        let same_size = fs::symlink_metadata(&path)?.len() == content.len() as u64;
        Ok(same_size && fs::read(&path)? == content.as_bytes())
    };
    compare().map_err(failed("read", &path))
}

/// The error for something that could not be done to `path`.
fn failed(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> FolderError {
    move |source| FolderError::NotWritten {
        doing,
        path: path.into(),
        source,
    }
}

fn not_written_hint(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space there or choose another folder, then run the command again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("make the folder writable or choose another one, then run the command again")
        }
        io::ErrorKind::FileTooLarge => {
            Some("raise the file size limit (`ulimit -f`) and run the command again")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
