//! Writes rendered files into a folder that the user may keep in Git: `-o dir:DIR` and `-o kustomize:DIR`.
//!
//! The folder's own list, `.kubectl-olm-files`, says which files in it are ours. Those are replaced when their content
//! changes and removed when they are no longer rendered; a file in our way that is not listed stops the run, and all
//! others are left alone. The list also says whom a file was rendered for, so that the files of an install that has
//! stopped can stay as they are.
//!
//! All new content is written, in a staging folder beside the old files, before the first old file is touched. From
//! then on there are only renames, each of which is undone if a later one fails. A run that is killed leaves whole
//! files, some old and some new, and a list of both, so that the next run finishes the work and clears up.
//!
//! The folder itself may be a link, since the user chose it; it is resolved once, at the start, and errors name the
//! place it leads to. Below it nothing but plain files is read or replaced. Folders are never entered: all names are
//! names directly in it.
//!
//! What this does not do: guard against someone who renames the folder's parents while it runs, or keep the signal that
//! comes with a file size limit (`SIGXFSZ`) from ending the run. A program that ignores it gets an error here instead.
//! No code of OLM is reproduced.

mod disk;
mod error;
mod list;
mod opened;
mod staging;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

pub(super) use self::disk::create_private_folder;
pub(super) use self::error::FolderError;
use self::error::failed;
use self::list::{LIST_FILE, List};
use self::opened::OpenedFolder;
use self::staging::{STAGING_FOLDER, Staging, remove_leftovers};
pub(super) use self::wanted::{Layout, Wanted};

/// What a run did to the files it was given and to those of earlier runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// Files that are new or whose content changed.
    pub written: usize,
    /// Files that had the wanted content already and were not touched.
    pub unchanged: usize,
    /// Files of an earlier run that are no longer wanted.
    pub removed: usize,
    /// Files of installs that have stopped, which were not touched.
    pub kept: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary {
            written,
            unchanged,
            removed,
            kept,
        } = self;
        write!(
            f,
            "{written} written, {unchanged} unchanged, {removed} removed"
        )?;
        if *kept > 0 {
            write!(f, ", {kept} kept")?;
        }
        Ok(())
    }
}

/// Makes `folder` hold what is wanted, and none of the files that earlier runs wrote and this one does not, but for those
/// of installs that have stopped.
///
/// A folder that is missing is created with all its parents, as `kubectl cluster-info dump --output-directory` does.
/// Where everything has stopped and no run has written anything yet, this one does not either.
/// Unchanged files keep their modification time, changed ones their permissions. New files that hold a Secret, by
/// [`is_secret`](crate::manifest::file_name::is_secret), can be read by their owner only.
///
/// # Errors
///
/// [`FolderError`]; after all variants but `NotPutBack` the folder holds what it held before, and is gone again if it
/// did not exist.
pub(super) fn write(folder: &Path, wanted: Wanted) -> Result<Summary, FolderError> {
    if let Some(name) = wanted.names().find(|name| !list::is_plain_name(name)) {
        let name = name.to_owned();
        return Err(FolderError::Name { name });
    }
    if wanted.is_nothing() && matches!(folder.join(LIST_FILE).try_exists(), Ok(false)) {
        return Ok(Summary::default());
    }
    let opened = OpenedFolder::open(folder)?;
    let written = update(opened.path(), wanted);
    if written.is_err() {
        opened.remove_if_new();
    }
    written
}

/// What has to happen to which file. The texts may be Secrets, so there is no `Debug`.
#[derive(Default)]
struct Changes<'a> {
    create: Vec<(&'a str, &'a str)>,
    replace: Vec<(&'a str, &'a str)>,
    remove: Vec<&'a str>,
    unchanged: usize,
    kept: usize,
}

fn update(folder: &Path, mut wanted: Wanted) -> Result<Summary, FolderError> {
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
    let wanted_list = wanted.list(&ours);
    let kept = present(folder, wanted.kept(&ours), &mut foreign)?;
    wanted.leave_out(&kept);
    let files = wanted.into_files(kept.iter().copied());
    let mut changes = compare(folder, &files, &ours, &wanted_list, &mut foreign)?;
    changes.kept = kept.len();
    if !foreign.is_empty() {
        return Err(FolderError::Foreign {
            folder: folder.to_owned(),
            names: foreign.into_iter().map(str::to_owned).collect(),
        });
    }
    remove_leftovers(folder)?;
    if listed.as_ref() != Some(&wanted_list) || !changes.is_empty() {
        let staging = stage(folder, &changes, listed.as_ref(), &wanted_list).inspect_err(|_| {
            // What failed first matters more than leftovers, and the next run removes them.
            let _ = remove_leftovers(folder);
        })?;
        staging.carry_out()?;
    }
    Ok(changes.summary())
}

/// The files of stopped installs that are there; what else is under their names is added to `foreign`. One that the
/// user has deleted stays on the list, so that it may come back.
fn present<'a>(
    folder: &Path,
    kept: BTreeSet<&'a str>,
    foreign: &mut BTreeSet<&'a str>,
) -> Result<BTreeSet<&'a str>, FolderError> {
    let mut present = BTreeSet::new();
    for name in kept {
        match found(folder, name)? {
            Found::Nothing => {}
            Found::File => drop(present.insert(name)),
            Found::Folder | Found::Other => drop(foreign.insert(name)),
        }
    }
    Ok(present)
}

/// Sorts all names, to be written and listed, into what is to be done, and adds to `foreign` what is in the way.
/// Listed files that are still `wanted` but not among `files` are left alone.
fn compare<'a>(
    folder: &Path,
    files: &'a BTreeMap<String, String>,
    ours: &'a List,
    wanted: &List,
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
    for name in ours.names().filter(|name| !wanted.contains(name)) {
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
            kept: self.kept,
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

#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
