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

use super::disk::{create_private_folder, place, second_name, write_new};
use super::{FolderError, failed};
use crate::manifest::file_name::is_secret;

/// The staging folder's name; only one run at a time uses it.
pub(super) const STAGING_FOLDER: &str = ".kubectl-olm-staging";

/// Removes what a killed run left in `folder`. Links in there are removed, not followed.
pub(super) fn remove_leftovers(folder: &Path) -> Result<(), FolderError> {
    let path = folder.join(STAGING_FOLDER);
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
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
}

impl Staging {
    /// Makes the staging folder in `folder`, which must not have one.
    pub(super) fn new(folder: &Path) -> Result<Staging, FolderError> {
        let path = folder.join(STAGING_FOLDER);
        create_private_folder(&path).map_err(failed("create", &path))?;
        Ok(Staging {
            folder: folder.to_owned(),
            steps: Vec::new(),
        })
    }

    /// Prepares a file under a name that is free.
    pub(super) fn create(&mut self, name: &str, content: &str) -> Result<(), FolderError> {
        let staged = self.path("new");
        write_new(&staged, content, is_secret(name))
            .map_err(failed("write", self.folder.join(name)))?;
        self.steps.push(Step::Create {
            name: name.to_owned(),
            staged,
        });
        Ok(())
    }

    /// Prepares new content for a file, which keeps its permissions.
    pub(super) fn replace(&mut self, name: &str, content: &str) -> Result<(), FolderError> {
        let (staged, backup) = (self.path("new"), self.path("old"));
        let old = self.folder.join(name);
        let prepare = || -> io::Result<()> {
            write_new(&staged, content, is_secret(name))?;
            fs::set_permissions(&staged, fs::symlink_metadata(&old)?.permissions())?;
            second_name(&old, &backup)
        };
        prepare().map_err(failed("write", &old))?;
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

    /// Takes all steps. If one fails, those before it are undone, and either way the staging folder is removed.
    ///
    /// Only if a step cannot be undone does the staging folder stay, because it holds the old files.
    pub(super) fn carry_out(self) -> Result<(), FolderError> {
        let error = match self.take(self.steps.len()) {
            Ok(()) => None,
            Err((taken, step, source)) => {
                let (doing, path) = (step.doing(), self.folder.join(step.name()));
                if let Err((left, not_put_back)) = self.undo(taken) {
                    return Err(FolderError::NotPutBack {
                        doing,
                        path,
                        left: self.folder.join(left.name()),
                        not_put_back,
                        source,
                    });
                }
                Some(failed(doing, path)(source))
            }
        };
        // All files are in place, old or new. What is left of the staging folder is removed by the next run.
        let _ = remove_leftovers(&self.folder);
        error.map_or(Ok(()), Err)
    }

    /// Takes the first `count` steps, or says how many were taken before one failed, and which.
    pub(super) fn take(&self, count: usize) -> Result<(), (usize, &Step, io::Error)> {
        for (taken, step) in self.steps.iter().take(count).enumerate() {
            step.take(&self.folder)
                .map_err(|error| (taken, step, error))?;
        }
        Ok(())
    }

    /// Undoes the first `count` steps, the last one first.
    ///
    /// It ends at the first that cannot be undone. Those before it stay, because later steps rely on earlier ones: a
    /// new file that stays must not lose its line in the list.
    fn undo(&self, count: usize) -> Result<(), (&Step, io::Error)> {
        for step in self.steps.iter().take(count).rev() {
            step.undo(&self.folder).map_err(|error| (step, error))?;
        }
        Ok(())
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
        }
    }

    /// What the step does to the file, as a verb.
    fn doing(&self) -> &'static str {
        match self {
            Step::Create { .. } | Step::Replace { .. } => "write",
            Step::Remove { .. } => "remove",
        }
    }

    fn take(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(self.name());
        match self {
            Step::Create { staged, .. } => place(staged, &path),
            Step::Replace { staged, .. } => fs::rename(staged, path),
            Step::Remove { backup, .. } => fs::rename(path, backup),
        }
    }

    fn undo(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(self.name());
        match self {
            Step::Create { .. } => fs::remove_file(path),
            Step::Replace { backup, .. } | Step::Remove { backup, .. } => fs::rename(backup, path),
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

    /// The name of the file that could not be written, and why.
    fn not_written(error: &FolderError) -> (&str, io::ErrorKind) {
        let FolderError::NotWritten { path, source, .. } = error else {
            panic!("{error:?}")
        };
        (path.file_name().unwrap().to_str().unwrap(), source.kind())
    }

    /// A folder with five files, and a change of it that has each kind of step twice.
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
        }
        (folder, staging)
    }

    #[test]
    fn a_failure_at_any_step_puts_every_file_back() {
        for at in 0..=6 {
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
            let error = staging.carry_out().unwrap_err();
            assert_eq!(not_written(&error), ("kept", io::ErrorKind::NotFound));
            assert_eq!(content(folder.path()), before, "failed at step {at}");
            assert!(!folder.path().join(STAGING_FOLDER).exists());
        }
    }

    #[test]
    fn a_file_that_appears_during_the_run_is_not_replaced() {
        let (folder, staging) = staged();
        fs::write(folder.path().join("added-2"), "foreign").unwrap();
        let before = content(folder.path());
        let error = staging.carry_out().unwrap_err();
        assert_eq!(
            not_written(&error),
            ("added-2", io::ErrorKind::AlreadyExists)
        );
        assert_eq!(content(folder.path()), before);
    }

    #[test]
    fn what_cannot_be_put_back_is_named_and_kept() {
        let (folder, mut staging) = staged();
        // The old file of the fifth step is lost, and a later step fails.
        let Step::Replace { backup, .. } = &staging.steps[4] else {
            unreachable!()
        };
        fs::remove_file(backup).unwrap();
        let missing = folder.path().join("missing");
        staging.steps.push(Step::Remove {
            name: "missing".to_owned(),
            backup: missing,
        });
        let error = staging.carry_out().unwrap_err();
        let FolderError::NotPutBack { path, left, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(path.ends_with("missing") && left.ends_with("changed-2"));
        assert!(error.to_string().contains("could not put back"), "{error}");
        // Later steps are undone, those that they may rely on are not, and the old files can still be found.
        let names: Vec<String> = content(folder.path()).into_keys().collect();
        assert_eq!(
            names,
            [
                "added-1",
                "added-2",
                "changed-1",
                "changed-2",
                "gone-2",
                "kept"
            ]
        );
        assert!(folder.path().join(STAGING_FOLDER).exists());
    }

    #[test]
    fn a_kill_at_any_step_leaves_whole_files() {
        for count in 0..=6 {
            let (folder, staging) = staged();
            staging.take(count).unwrap();
            for (name, (text, _)) in content(folder.path()) {
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
