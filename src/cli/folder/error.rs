//! Why a folder does not hold the files it should, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::list::LIST_FILE;
use super::staging::STAGING_FOLDER;

/// Why a folder does not hold the files it should.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum FolderError {
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
    pub(in crate::cli) fn hint(&self) -> Option<String> {
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

/// The error for something that could not be done to `path`.
pub(super) fn failed(
    doing: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> FolderError {
    move |source| FolderError::NotWritten {
        doing,
        path: path.into(),
        source,
    }
}
