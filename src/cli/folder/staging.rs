//! A change of many files in one folder that happens as a whole or not at all.
//!
//! New content, and a second name for each file that will be replaced, are put into a staging folder beside the files,
//! hence on the same file system. Then only names change. Each step can be undone without needing space on the disk.
//!
//! Staged files are numbered and have no `.yaml` ending, so that tools that pick up manifests pass over what a killed
//! run left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::FolderError;
use super::disk::{create_private_folder, place, second_name, sync_folder, write_new};
use crate::manifest::file_name::is_secret;

/// The staging folder's name; only one run at a time uses it.
pub(super) const STAGING_FOLDER: &str = ".kubectl-olm-staging";

/// What the system refused, on which name in the folder.
#[derive(Debug)]
pub(super) struct Failure {
    doing: &'static str,
    name: String,
    source: io::Error,
    /// Set if the attempt to put things back failed too.
    not_put_back: Option<(String, io::Error)>,
}

impl Failure {
    pub(super) fn new(doing: &'static str, name: &str, source: io::Error) -> Failure {
        Failure {
            doing,
            name: name.to_owned(),
            source,
            not_put_back: None,
        }
    }

    /// The error for a run that was to write `bytes` into the folder that the user calls `folder`.
    pub(super) fn into_error(self, folder: &Path, bytes: u64) -> FolderError {
        let Failure {
            doing,
            name,
            source,
            not_put_back,
        } = self;
        let path = folder.join(name);
        match not_put_back {
            None => FolderError::NotWritten {
                doing,
                path,
                bytes,
                source,
            },
            Some((left, not_put_back)) => FolderError::NotPutBack {
                doing,
                path,
                left: folder.join(left),
                not_put_back,
                source,
            },
        }
    }
}

/// Removes what a killed run left in `folder`. Links in there are removed, not followed.
pub(super) fn remove_leftovers(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder.join(STAGING_FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new("remove", STAGING_FOLDER, error))
        }
        _ => Ok(()),
    }
}

/// Steps that are prepared and not yet taken.
#[derive(Debug)]
pub(super) struct Staging {
    folder: PathBuf,
    pub(super) steps: Vec<Step>,
}

/// One step, with file names in the folder and paths in the staging folder.
#[derive(Debug)]
pub(super) enum Step {
    /// A name that was free gets the staged file.
    Create { name: String, staged: PathBuf },
    /// A file gives way to the staged one; `backup` is a second name of the old file.
    Replace {
        name: String,
        staged: PathBuf,
        backup: PathBuf,
    },
    /// A file moves to `backup`.
    Remove { name: String, backup: PathBuf },
    /// All before this must be on disk before anything after it is done, and stays until all after it is undone.
    Sync,
}

impl Staging {
    /// Makes the staging folder in `folder`, which must not have one.
    pub(super) fn new(folder: &Path) -> Result<Staging, Failure> {
        let made = create_private_folder(&folder.join(STAGING_FOLDER));
        made.map_err(|error| Failure::new("create", STAGING_FOLDER, error))?;
        Ok(Staging {
            folder: folder.to_owned(),
            steps: Vec::new(),
        })
    }

    /// Prepares a file under a name that is free.
    pub(super) fn create(&mut self, name: &str, content: &str) -> Result<(), Failure> {
        let staged = self.path("new");
        write_new(&staged, content, is_secret(name))
            .map_err(|error| Failure::new("write", name, error))?;
        self.steps.push(Step::Create {
            name: name.to_owned(),
            staged,
        });
        Ok(())
    }

    /// Prepares new content for a file, which keeps its permissions.
    pub(super) fn replace(&mut self, name: &str, content: &str) -> Result<(), Failure> {
        let (staged, backup) = (self.path("new"), self.path("old"));
        let prepare = || -> io::Result<()> {
            let old = self.folder.join(name);
            write_new(&staged, content, is_secret(name))?;
            fs::set_permissions(&staged, fs::symlink_metadata(&old)?.permissions())?;
            second_name(&old, &backup)
        };
        prepare().map_err(|error| Failure::new("write", name, error))?;
        self.steps.push(Step::Replace {
            name: name.to_owned(),
            staged,
            backup,
        });
        Ok(())
    }

    /// Prepares the removal of a file.
    pub(super) fn remove(&mut self, name: &str) {
        let backup = self.path("old");
        self.steps.push(Step::Remove {
            name: name.to_owned(),
            backup,
        });
    }

    /// Lets the steps after this point rely on those before it, even if the power fails.
    pub(super) fn sync(&mut self) {
        self.steps.push(Step::Sync);
    }

    /// Takes all steps. If one fails, those before it are undone, and either way the staging folder is removed.
    ///
    /// Only if a step cannot be undone does the staging folder stay, because it holds the old files.
    pub(super) fn carry_out(self) -> Result<(), Failure> {
        let done = sync_folder(&self.folder.join(STAGING_FOLDER))
            .map_err(|error| (0, Failure::new("write", STAGING_FOLDER, error)))
            .and_then(|()| self.take(self.steps.len()));
        if let Err((taken, mut failure)) = done {
            failure.not_put_back = self.undo(taken).err();
            if failure.not_put_back.is_none() {
                let _ = remove_leftovers(&self.folder);
            }
            return Err(failure);
        }
        // All files are in place. Should the power fail now, the list may still name files that are gone, which does no
        // harm, and what is left of the staging folder is removed by the next run.
        let _ = sync_folder(&self.folder);
        let _ = remove_leftovers(&self.folder);
        Ok(())
    }

    /// Takes the first `count` steps, or says how many were taken before one failed.
    pub(super) fn take(&self, count: usize) -> Result<(), (usize, Failure)> {
        for (taken, step) in self.steps.iter().take(count).enumerate() {
            step.take(&self.folder)
                .map_err(|(doing, error)| (taken, Failure::new(doing, step.name(), error)))?;
        }
        Ok(())
    }

    /// Undoes the first `count` steps, the last one first, and gives the first failure.
    ///
    /// A failure does not keep the steps up to the last `Sync` from being undone, but those before it stay: they are
    /// what the later ones rely on.
    fn undo(&self, count: usize) -> Result<(), (String, io::Error)> {
        let mut outcome = Ok(());
        for step in self.steps.iter().take(count).rev() {
            match step.undo(&self.folder) {
                _ if matches!(step, Step::Sync) && outcome.is_err() => break,
                Err(error) if outcome.is_ok() => outcome = Err((step.name().to_owned(), error)),
                _ => {}
            }
        }
        // Not being able to sync does not change what the folder holds.
        let _ = sync_folder(&self.folder);
        outcome
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder
            .join(STAGING_FOLDER)
            .join(format!("{}.{ending}", self.steps.len()))
    }
}

impl Step {
    fn name(&self) -> &str {
        match self {
            Step::Create { name, .. } | Step::Replace { name, .. } | Step::Remove { name, .. } => {
                name
            }
            Step::Sync => "",
        }
    }

    fn take(&self, folder: &Path) -> Result<(), (&'static str, io::Error)> {
        match self {
            Step::Create { name, staged } => {
                place(staged, &folder.join(name)).map_err(|error| ("write", error))
            }
            Step::Replace { name, staged, .. } => {
                fs::rename(staged, folder.join(name)).map_err(|error| ("write", error))
            }
            Step::Remove { name, backup } => {
                fs::rename(folder.join(name), backup).map_err(|error| ("remove", error))
            }
            Step::Sync => sync_folder(folder).map_err(|error| ("write to", error)),
        }
    }

    fn undo(&self, folder: &Path) -> io::Result<()> {
        match self {
            Step::Create { name, .. } => fs::remove_file(folder.join(name)),
            Step::Replace { name, backup, .. } | Step::Remove { name, backup } => {
                fs::rename(backup, folder.join(name))
            }
            Step::Sync => {
                // What the folder holds is right even if it is not yet on disk.
                let _ = sync_folder(folder);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    use super::*;

    type Content = BTreeMap<String, (String, SystemTime)>;

    /// The plain files of a folder; panics on anything else but the staging folder.
    fn content(folder: &Path) -> Content {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries
            .filter(|entry| entry.file_name() != STAGING_FOLDER)
            .map(|entry| {
                let modified = entry.metadata().unwrap().modified().unwrap();
                (
                    entry.file_name().into_string().unwrap(),
                    (fs::read_to_string(entry.path()).unwrap(), modified),
                )
            });
        files.collect()
    }

    fn texts(content: Content) -> Vec<(String, String)> {
        content
            .into_iter()
            .map(|(name, (text, _))| (name, text))
            .collect()
    }

    /// A folder with three files, and a change of it that has each kind of step twice.
    fn staged() -> (tempfile::TempDir, Staging) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["changed-1", "changed-2", "gone-1", "gone-2", "kept"] {
            fs::write(folder.path().join(name), format!("old {name}")).unwrap();
        }
        let mut staging = Staging::new(folder.path()).unwrap();
        for number in 1..=2 {
            staging.create(&format!("added-{number}"), "new").unwrap();
            staging
                .replace(&format!("changed-{number}"), "new")
                .unwrap();
            staging.remove(&format!("gone-{number}"));
            staging.sync();
        }
        (folder, staging)
    }

    #[test]
    fn all_steps_give_the_new_files_and_no_others() {
        let (folder, staging) = staged();
        staging.carry_out().unwrap();
        let expected = [
            ("added-1", "new"),
            ("added-2", "new"),
            ("changed-1", "new"),
            ("changed-2", "new"),
            ("kept", "old kept"),
        ];
        assert_eq!(
            texts(content(folder.path())),
            expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        assert!(!folder.path().join(STAGING_FOLDER).exists());
    }

    #[test]
    fn a_failure_at_any_step_puts_every_file_back() {
        for at in 0..=8 {
            let (folder, mut staging) = staged();
            let before = content(folder.path());
            // No step can replace a file by one that does not exist.
            let missing = folder.path().join("missing");
            let failing = Step::Replace {
                name: "kept".to_owned(),
                staged: missing.clone(),
                backup: missing,
            };
            staging.steps.insert(at, failing);
            let failure = staging.carry_out().unwrap_err();
            assert_eq!(
                (failure.name.as_str(), failure.source.kind()),
                ("kept", io::ErrorKind::NotFound)
            );
            assert!(failure.not_put_back.is_none());
            assert_eq!(content(folder.path()), before, "failed at step {at}");
            assert!(!folder.path().join(STAGING_FOLDER).exists());
        }
    }

    #[test]
    fn a_file_that_appears_during_the_run_is_not_replaced() {
        let (folder, staging) = staged();
        fs::write(folder.path().join("added-2"), "foreign").unwrap();
        let before = content(folder.path());
        let failure = staging.carry_out().unwrap_err();
        assert_eq!(
            (failure.name.as_str(), failure.source.kind()),
            ("added-2", io::ErrorKind::AlreadyExists)
        );
        assert_eq!(content(folder.path()), before);
    }

    #[test]
    fn what_cannot_be_put_back_is_named_and_kept() {
        let (folder, mut staging) = staged();
        // The old file of the second step is lost, and a later step fails.
        let Step::Replace { backup, .. } = &staging.steps[1] else {
            unreachable!()
        };
        fs::remove_file(backup).unwrap();
        let missing = folder.path().join("missing");
        staging.steps.push(Step::Remove {
            name: "missing".to_owned(),
            backup: missing,
        });
        let failure = staging.carry_out().unwrap_err();
        assert_eq!(failure.not_put_back.as_ref().unwrap().0, "changed-1");
        // All others are back, and what is left of the old files can still be found.
        let now = content(folder.path());
        assert_eq!(now["gone-1"].0, "old gone-1");
        assert_eq!(now["changed-2"].0, "old changed-2");
        assert!(!now.contains_key("added-1"));
        assert!(folder.path().join(STAGING_FOLDER).exists());
        let error = failure.into_error(folder.path(), 0).to_string();
        assert!(
            error.contains("could not put back") && error.contains("changed-1"),
            "{error}"
        );
    }

    #[test]
    fn steps_that_others_rely_on_stay_when_those_cannot_be_undone() {
        let (folder, mut staging) = staged();
        let Step::Replace { backup, .. } = &staging.steps[5] else {
            unreachable!()
        };
        fs::remove_file(backup).unwrap();
        let missing = folder.path().join("missing");
        staging.steps.push(Step::Remove {
            name: "missing".to_owned(),
            backup: missing,
        });
        let failure = staging.carry_out().unwrap_err();
        assert_eq!(failure.not_put_back.unwrap().0, "changed-2");
        let names: Vec<String> = content(folder.path()).into_keys().collect();
        // The steps of `changed-2` are undone as far as they go, those before the first sync are not.
        assert_eq!(
            names,
            ["added-1", "changed-1", "changed-2", "gone-2", "kept"]
        );
    }

    #[test]
    fn a_kill_at_any_step_leaves_whole_files() {
        for count in 0..=8 {
            let (folder, staging) = staged();
            staging.take(count).unwrap();
            for (name, text) in texts(content(folder.path())) {
                assert!(
                    text == "new" || text == format!("old {name}"),
                    "{name} holds {text}"
                );
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_and_secrets_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, mut staging) = staged();
        let mode = |name: &str| {
            fs::metadata(folder.path().join(name))
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        fs::set_permissions(
            folder.path().join("kept"),
            fs::Permissions::from_mode(0o640),
        )
        .unwrap();
        staging.replace("kept", "new").unwrap();
        staging.create("secret-a_b.yaml", "new").unwrap();
        assert_eq!(mode(STAGING_FOLDER), 0o700);
        staging.carry_out().unwrap();
        assert_eq!((mode("kept"), mode("secret-a_b.yaml")), (0o640, 0o600));
    }

    #[cfg(unix)]
    #[test]
    fn leftovers_are_removed_without_following_links() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("precious"), "x").unwrap();
        fs::create_dir(folder.path().join(STAGING_FOLDER)).unwrap();
        std::os::unix::fs::symlink(
            other.path(),
            folder.path().join(STAGING_FOLDER).join("0.old"),
        )
        .unwrap();
        remove_leftovers(folder.path()).unwrap();
        remove_leftovers(folder.path()).unwrap();
        assert!(
            !folder.path().join(STAGING_FOLDER).exists() && other.path().join("precious").exists()
        );
    }
}
