//! The folder of the cache: where it is, whether it may be used, and how files get into it.
//!
//! Nobody but its owner may write to it, as what is in it stands for images. A file is written under a name of its own
//! in `tmp/` and gets its final name when it is whole, so that two runs, or one that is killed, never leave half a
//! file. Nothing is synced to the disk: after a crash of the machine a file may be damaged, which is found out when it
//! is read, because every file is verified then. A temporary file is locked as long as its process lives, so that what
//! a killed run left behind can be told from what another run is writing.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use etcetera::BaseStrategy;
use tempfile::NamedTempFile;

use super::super::plain_file::{self, Links};

/// The folders in the cache.
pub(in crate::source) const BLOBS: &str = "blobs";
pub(in crate::source) const LAYERS: &str = "layers";
pub(in crate::source) const TAGS: &str = "tags";
pub(in crate::source) const INDEXES: &str = "indexes";
const TEMPORARY: &str = "tmp";

/// Where a file system has no locks, a temporary file that was not written to for so long is nobody's.
const ABANDONED: Duration = Duration::from_hours(24);

/// So often is a temporary file made anew when another run removes it.
const TRIES: usize = 16;

/// A folder that may be used.
#[derive(Debug)]
pub(in crate::source) struct Folder {
    path: PathBuf,
    /// The first thing that could not be kept, until somebody asks.
    trouble: Mutex<Trouble>,
}

#[derive(Debug)]
enum Trouble {
    None,
    Untold(String),
    Told,
}

/// Why the cache is not used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Nobody knows where it should be.
    #[error(
        "nothing is kept between runs, because there is no folder for it: set XDG_CACHE_HOME or HOME"
    )]
    NoHome,
    /// It must not be used, or cannot be.
    #[error("nothing is kept between runs, because {} {reason}: {fix}, or set XDG_CACHE_HOME to another folder", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        fix: String,
    },
}

/// Where the cache is: `kubectl-olm` in `$XDG_CACHE_HOME`, or in what the system has for that in the user's home.
///
/// # Errors
/// When the user has no home.
pub fn default_folder() -> Result<PathBuf, Unusable> {
    let folders = etcetera::choose_base_strategy().map_err(|_| Unusable::NoHome)?;
    let folder = folders.cache_dir().join("kubectl-olm");
    // Without HOME, the system's list of users names a home that may be anybody's.
    let variables = ["XDG_CACHE_HOME", "HOME"];
    let is_named = !cfg!(unix)
        || variables
            .iter()
            .any(|name| std::env::var_os(name).is_some());
    if is_named && folder.is_absolute() {
        Ok(folder)
    } else {
        Err(Unusable::NoHome)
    }
}

impl Folder {
    /// Makes the folder if it is missing, and sees whether it may be used.
    ///
    /// # Errors
    /// When it cannot be made, is not a folder of this user's, others may write to it, or it cannot be written to.
    pub(in crate::source) fn open(path: &Path) -> Result<Self, Unusable> {
        let made = private().recursive(true).create(path);
        // A link to a folder is one as well, and a file in the way is told of below.
        if let Err(error) = made
            && fs::symlink_metadata(path).is_err()
        {
            let reason = format!("cannot be made ({error})");
            let folder = path.to_owned();
            let fix = "see that its parent can be written to".to_owned();
            return Err(Unusable::Folder {
                folder,
                reason,
                fix,
            });
        }
        Self::existing(path)
    }

    /// A folder that is there, if it may be used.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(in crate::source) fn existing(path: &Path) -> Result<Self, Unusable> {
        match wrong_with(path) {
            None => {
                let (path, trouble) = (path.to_owned(), Mutex::new(Trouble::None));
                Ok(Self { path, trouble })
            }
            Some((reason, fix)) => Err(Unusable::Folder {
                folder: path.to_owned(),
                reason,
                fix,
            }),
        }
    }

    /// Where a file of one of its folders is.
    pub(in crate::source) fn file(&self, folder: &str, name: &str) -> PathBuf {
        self.path.join(folder).join(name)
    }

    /// Reads a file of at most `limit` bytes and notes that it was used. What `check` takes no value from is removed,
    /// whatever it is, so that it gets replaced.
    pub(in crate::source) fn read<T>(
        &self,
        path: &Path,
        limit: u64,
        check: impl FnOnce(Vec<u8>) -> Option<T>,
    ) -> Option<T> {
        let value = match plain_file::read(path, Links::Refuse, limit) {
            Ok(content) => check(content),
            Err(_) => {
                remove_unless_file(path);
                return None;
            }
        };
        match value {
            Some(_) => touch(path),
            None => remove(path),
        }
        value
    }

    /// Keeps a small file; when that does not work, it is done without.
    pub(in crate::source) fn keep(&self, path: &Path, content: &[u8]) {
        let kept = self.temporary().and_then(|mut temporary| {
            if content.len() as u64 > largest_file() {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            temporary.write_all(content)?;
            self.place(temporary, path).map_err(|(error, _)| error)
        });
        if let Err(error) = kept {
            self.report(&error);
        }
    }

    /// A new temporary file, locked.
    ///
    /// # Errors
    /// When there can be none.
    pub(in crate::source) fn temporary(&self) -> io::Result<NamedTempFile> {
        let folder = self.path.join(TEMPORARY);
        folder_at(&folder)?;
        for _ in 0..TRIES {
            let temporary = NamedTempFile::new_in(&folder)?;
            let locked = temporary.as_file().try_lock();
            let is_anothers = matches!(locked, Err(TryLockError::WouldBlock));
            if !is_anothers && temporary.path().symlink_metadata().is_ok() {
                return Ok(temporary);
            }
            // Another run took it for a leftover in the moment before it was locked.
        }
        Err(io::Error::other("other runs remove every file at once"))
    }

    /// Gives a file its final name, in place of whatever is there. When that fails, the file comes back.
    pub(in crate::source) fn place(
        &self,
        temporary: NamedTempFile,
        path: &Path,
    ) -> Result<(), (io::Error, NamedTempFile)> {
        let made = path.parent().map_or(Ok(()), |parent| {
            // A digest's algorithm is a folder in a folder.
            let grandparent = parent.parent().filter(|folder| *folder != self.path);
            grandparent.map_or(Ok(()), folder_at)?;
            folder_at(parent)
        });
        if let Err(error) = made {
            return Err((error, temporary));
        }
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            // Nothing else is in the way of a new name.
            remove(path);
        }
        temporary
            .persist(path)
            .map(drop)
            .map_err(|failed| (failed.error, failed.file))
    }

    /// Notes that something could not be kept. The result is the same without it, so one word about it is enough.
    pub(in crate::source) fn report(&self, error: &io::Error) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if let Trouble::None = *trouble {
            *trouble = Trouble::Untold(format!(
                "not everything could be kept for the next run in {}: {error}",
                self.path.display()
            ));
        }
    }

    /// What could not be kept, the first time that this is asked.
    pub(in crate::source) fn trouble(&self) -> Option<String> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *trouble, Trouble::Told) {
            Trouble::Untold(message) => Some(message),
            Trouble::Told => None,
            Trouble::None => {
                *trouble = Trouble::None;
                None
            }
        }
    }

    /// The temporary files that belong to no run any more.
    pub(in crate::source) fn leftovers(&self) -> Vec<Leftover> {
        let files = fs::read_dir(self.path.join(TEMPORARY));
        let paths = files.into_iter().flatten().flatten();
        paths
            .filter_map(|entry| Leftover::at(entry.path()))
            .collect()
    }
}

/// A temporary file of a run that is over. As long as this lives, no other run takes it for its own.
#[derive(Debug)]
pub(in crate::source) struct Leftover {
    /// Where it is.
    pub(in crate::source) path: PathBuf,
    lock: Option<File>,
}

impl Leftover {
    /// The file at a path, if it is one.
    fn at(path: PathBuf) -> Option<Self> {
        let Ok((file, _)) = plain_file::open(&path, Links::Refuse) else {
            // What is no plain file is nobody's; what is not there any more is none.
            let metadata = fs::symlink_metadata(&path).ok()?;
            return (!metadata.is_file()).then_some(Self { path, lock: None });
        };
        let is_nobodys = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => {
                let modified = file.metadata().and_then(|metadata| metadata.modified());
                let age = modified.ok().and_then(|time| time.elapsed().ok());
                age.is_some_and(|age| age > ABANDONED)
            }
        };
        let lock = Some(file);
        is_nobodys.then_some(Self { path, lock })
    }

    /// Removes it.
    pub(in crate::source) fn remove(self) {
        remove(&self.path);
        drop(self.lock);
    }
}

/// What is wrong with a folder, and what to do about it.
fn wrong_with(path: &Path) -> Option<(String, String)> {
    let wrong = |reason: &str, fix: &str| Some((reason.to_owned(), fix.to_owned()));
    let shown = path.display();
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Some((format!("cannot be read ({error})"), "see why".to_owned())),
    };
    if metadata.is_symlink() {
        return wrong("is a link", "put a folder in its place");
    }
    if !metadata.is_dir() {
        return wrong("is not a folder", "put a folder in its place");
    }
    #[cfg(unix)]
    {
        use rustix::fs::Access;
        use std::os::unix::fs::MetadataExt;
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if owner != user {
            let reason = format!("belongs to another user (its owner is {owner}, you are {user})");
            return Some((reason, format!("chown {user} {shown}")));
        }
        let mode = metadata.mode() & 0o7777;
        if mode & 0o022 != 0 {
            let reason = format!("can be written to by others (its mode is {mode:03o})");
            return Some((reason, format!("empty it and chmod 700 {shown}")));
        }
        // Where nothing can be written, what is there can still be used.
        if let Err(error) = rustix::fs::access(path, Access::READ_OK | Access::EXEC_OK) {
            let reason = format!("cannot be read ({})", io::Error::from(error));
            return Some((reason, format!("chmod 700 {shown}")));
        }
    }
    None
}

/// Makes a folder if there is none; what else stands in its place is removed.
fn folder_at(path: &Path) -> io::Result<()> {
    match private().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
                return Ok(());
            }
            fs::remove_file(path)?;
            private().create(path)
        }
        made => made,
    }
}

/// Makes folders that only their owner may enter, where the system has modes.
fn private() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes to set"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Removes what is at a path in the cache, whatever it is. Another run may have done so.
pub(in crate::source) fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let _ = if is_folder {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

/// Removes what is at a path and is no plain file. A plain file that cannot be opened may be a good one, when this
/// process has too many open; if it is not, its successor takes its place.
pub(in crate::source) fn remove_unless_file(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        remove(path);
    }
}

/// Notes that a file was used now. Where that cannot be noted, it is taken for older than it is.
pub(in crate::source) fn touch(path: &Path) {
    if let Ok((file, _)) = plain_file::open(path, Links::Refuse) {
        touch_open(&file);
    }
}

/// The same for an open file.
pub(in crate::source) fn touch_open(file: &File) {
    let _ = file.set_modified(SystemTime::now());
}

/// The size in bytes that no file may be over. Going over it would end the process by a signal.
pub(in crate::source) fn largest_file() -> u64 {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
    }
    #[cfg(not(unix))]
    {
        u64::MAX
    }
}
