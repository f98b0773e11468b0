//! Tests of whole runs, on real folders.

use super::*;

type Files = BTreeMap<String, String>;

fn files(pairs: &[(&str, &str)]) -> Files {
    pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

/// Writes files that have no owners.
fn write(folder: &Path, files: &Files) -> Result<Summary, FolderError> {
    super::write(folder, wanted(files))
}

fn wanted(files: &Files) -> Wanted {
    let mut wanted = Wanted::new(Layout::Plain, &BTreeSet::new());
    for (name, text) in files {
        wanted.add(name.clone(), &BTreeSet::new(), text.clone());
    }
    wanted
}

fn put(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

/// Everything in a folder: for files the text, for others what they are.
fn content(folder: &Path) -> Files {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(Result::unwrap)
        .map(|entry| {
            let kind = entry.file_type().unwrap();
            let text = if kind.is_file() {
                fs::read_to_string(entry.path()).unwrap()
            } else {
                format!("{kind:?}")
            };
            (entry.file_name().into_string().unwrap(), text)
        });
    entries.collect()
}

/// What the folder should hold: these files, and the list of them.
fn expected(pairs: &[(&str, &str)]) -> Files {
    let mut files = files(pairs);
    let names: String = files.keys().map(|name| format!("{name}\n")).collect();
    let header = "# The files here that kubectl olm wrote: it replaces them, and removes those it no longer needs.\n";
    files.insert(LIST_FILE.to_owned(), format!("{header}{names}"));
    files
}

fn foreign_names(error: FolderError) -> Vec<String> {
    let FolderError::Foreign { names, .. } = error else {
        panic!("{error:?}")
    };
    names
}

#[test]
fn a_missing_folder_is_created_with_its_parents() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    let summary = write(&folder, &files(&[("x.yaml", "x"), ("y.yaml", "y")])).unwrap();
    assert_eq!(
        summary,
        Summary {
            written: 2,
            unchanged: 0,
            removed: 0,
            kept: 0
        }
    );
    assert_eq!(
        content(&folder),
        expected(&[("x.yaml", "x"), ("y.yaml", "y")])
    );
}

#[test]
fn a_second_run_touches_only_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "README.md", "mine");
    write(
        folder,
        &files(&[("a.yaml", "1"), ("b.yaml", "2"), ("c.yaml", "3")]),
    )
    .unwrap();
    // Modification times in the past, so that even a coarse clock shows a write.
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let age = |name: &str| {
        let file = fs::File::options().write(true).open(folder.join(name));
        file.unwrap().set_modified(past).unwrap();
    };
    ["a.yaml", "b.yaml", LIST_FILE].into_iter().for_each(age);
    let is_old = |name: &str| fs::metadata(folder.join(name)).unwrap().modified().unwrap() == past;

    let summary = write(
        folder,
        &files(&[("a.yaml", "1"), ("b.yaml", "X"), ("d.yaml", "4")]),
    )
    .unwrap();
    assert_eq!(
        summary,
        Summary {
            written: 2,
            unchanged: 1,
            removed: 1,
            kept: 0
        }
    );
    let mut wanted = expected(&[("a.yaml", "1"), ("b.yaml", "X"), ("d.yaml", "4")]);
    wanted.insert("README.md".into(), "mine".into());
    assert_eq!(content(folder), wanted);
    assert!(is_old("a.yaml") && !is_old("b.yaml") && !is_old(LIST_FILE));

    age(LIST_FILE);
    let summary = write(
        folder,
        &files(&[("a.yaml", "1"), ("b.yaml", "X"), ("d.yaml", "4")]),
    )
    .unwrap();
    assert_eq!(
        summary,
        Summary {
            written: 0,
            unchanged: 3,
            removed: 0,
            kept: 0
        }
    );
    assert!(is_old("a.yaml") && is_old(LIST_FILE));
}

#[test]
fn a_file_the_user_changed_or_deleted_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = files(&[("a.yaml", "1"), ("b.yaml", "2")]);
    write(folder.path(), &wanted).unwrap();
    put(folder.path(), "a.yaml", "X");
    fs::remove_file(folder.path().join("b.yaml")).unwrap();
    assert_eq!(write(folder.path(), &wanted).unwrap().written, 2);
    assert_eq!(
        content(folder.path()),
        expected(&[("a.yaml", "1"), ("b.yaml", "2")])
    );
    // And one that should go may be gone already.
    fs::remove_file(folder.path().join("b.yaml")).unwrap();
    assert_eq!(
        write(folder.path(), &files(&[("a.yaml", "1")]))
            .unwrap()
            .removed,
        0
    );
    assert_eq!(content(folder.path()), expected(&[("a.yaml", "1")]));
}

#[test]
fn all_foreign_files_are_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &files(&[("a.yaml", "1"), ("old.yaml", "1")])).unwrap();
    put(folder, "b.yaml", "mine");
    // Even a file that holds what we would write is not ours.
    put(folder, "c.yaml", "3");
    let before = content(folder);
    let wanted = files(&[
        ("a.yaml", "2"),
        ("b.yaml", "2"),
        ("c.yaml", "3"),
        ("d.yaml", "4"),
    ]);
    let error = write(folder, &wanted).unwrap_err();
    assert!(error.to_string().ends_with(
        " holds files that kubectl olm did not write: b.yaml, c.yaml; the folder is as it was"
    ));
    assert_eq!(foreign_names(error), ["b.yaml", "c.yaml"]);
    assert_eq!(content(folder), before);
}

#[test]
fn folders_in_place_of_our_files_are_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &files(&[("kept.yaml", "1"), ("gone.yaml", "1")])).unwrap();
    for name in ["kept.yaml", "gone.yaml"] {
        fs::remove_file(folder.join(name)).unwrap();
        fs::create_dir(folder.join(name)).unwrap();
    }
    let before = content(folder);
    let error = write(folder, &files(&[("kept.yaml", "2")])).unwrap_err();
    assert_eq!(foreign_names(error), ["gone.yaml", "kept.yaml"]);
    assert_eq!(content(folder), before);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_under_our_names_are_neither_followed_nor_replaced() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    put(outside.path(), "target", "1");
    write(
        folder,
        &files(&[
            ("link.yaml", "1"),
            ("dangling.yaml", "1"),
            ("pipe.yaml", "1"),
        ]),
    )
    .unwrap();
    for name in ["link.yaml", "dangling.yaml", "pipe.yaml"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(outside.path().join("target"), folder.join("link.yaml")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("nothing"), folder.join("dangling.yaml"))
        .unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(folder.join("pipe.yaml"))
            .status()
            .unwrap()
            .success()
    );
    let wanted = files(&[
        ("link.yaml", "2"),
        ("dangling.yaml", "2"),
        ("pipe.yaml", "2"),
    ]);
    let error = write(folder, &wanted).unwrap_err();
    assert_eq!(
        foreign_names(error),
        ["dangling.yaml", "link.yaml", "pipe.yaml"]
    );
    assert_eq!(content(outside.path()), files(&[("target", "1")]));

    // The same for the names that are ours alone.
    fs::remove_file(folder.join(LIST_FILE)).unwrap();
    std::os::unix::fs::symlink(outside.path().join("target"), folder.join(LIST_FILE)).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join(STAGING_FOLDER)).unwrap();
    let error = write(folder, &files(&[("new.yaml", "2")])).unwrap_err();
    assert_eq!(foreign_names(error), [LIST_FILE, STAGING_FOLDER]);
    assert_eq!(content(outside.path()), files(&[("target", "1")]));
}

#[cfg(unix)]
#[test]
fn the_folder_itself_may_be_a_link() {
    let parent = tempfile::tempdir().unwrap();
    let (real, link) = (parent.path().join("real"), parent.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, &files(&[("a.yaml", "1")])).unwrap();
    assert_eq!(content(&real), expected(&[("a.yaml", "1")]));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_forged_list_deletes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    write(&folder, &files(&[("a.yaml", "1")])).unwrap();
    put(parent.path(), "precious", "x");
    for line in [
        "../precious",
        "..",
        &parent.path().join("precious").display().to_string(),
        "<<<<<<< HEAD",
    ] {
        put(&folder, LIST_FILE, &format!("a.yaml\n{line}\n"));
        let before = content(&folder);
        let error = write(&folder, &files(&[("b.yaml", "1")])).unwrap_err();
        assert!(matches!(error, FolderError::List { .. }), "{error:?}");
        assert!(
            error.to_string().contains("line 2 is not a file name"),
            "{error}"
        );
        assert_eq!(content(&folder), before);
        assert!(parent.path().join("precious").exists());
    }
}

#[test]
fn wanted_names_must_be_plain() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    for name in [
        "../a.yaml",
        "a/b.yaml",
        "",
        "..",
        ".hidden",
        LIST_FILE,
        "a:b",
        "a.",
    ] {
        let error = write(&folder, &files(&[(name, "1")])).unwrap_err();
        assert!(matches!(error, FolderError::Name { .. }), "{error:?}");
    }
    assert!(!folder.exists());
}

#[test]
fn a_file_in_place_of_the_folder_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    put(parent.path(), "out", "mine");
    for folder in ["out", "out/below"] {
        let error = write(&parent.path().join(folder), &files(&[("a.yaml", "1")])).unwrap_err();
        assert!(matches!(error, FolderError::NotWritten { .. }), "{error:?}");
        assert!(
            error.to_string().ends_with("; the folder is as it was"),
            "{error}"
        );
    }
    assert_eq!(content(parent.path()), files(&[("out", "mine")]));
}

/// Kills a run after each of its steps, and then renders what it rendered, what was there before, or a third thing.
#[test]
fn the_next_run_finishes_what_a_killed_one_began() {
    let old = [("a.yaml", "1"), ("b.yaml", "2"), ("c.yaml", "3")];
    let new = [
        ("b.yaml", "2"),
        ("c.yaml", "X"),
        ("d.yaml", "4"),
        ("e.yaml", "5"),
    ];
    let third = [("a.yaml", "1"), ("e.yaml", "Y")];
    for next in [&old[..], &new[..], &third[..]] {
        for steps in 0..=6 {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            write(folder, &files(&old)).unwrap();
            put(folder, "mine.yaml", "mine");
            let listed = List::read(folder).unwrap();
            let wanted_list = wanted(&files(&new)).list(&listed);
            let files_of_it = files(&new);
            let mut foreign = BTreeSet::new();
            let changes =
                compare(folder, &files_of_it, &listed, &wanted_list, &mut foreign).unwrap();
            let staging = stage(folder, &changes, Some(&listed), &wanted_list).unwrap();
            assert_eq!(
                staging.steps.len(),
                6,
                "the last kill is after the last step"
            );
            staging.take(steps).unwrap();
            drop(staging);

            write(folder, &files(next)).unwrap();
            let mut after = expected(next);
            after.insert("mine.yaml".into(), "mine".into());
            assert_eq!(content(folder), after, "killed after {steps} steps");
        }
    }
}

#[test]
fn two_runs_at_once_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = OpenedFolder::open(folder.path()).unwrap();
    let error = write(folder.path(), &files(&[("a.yaml", "1")])).unwrap_err();
    assert!(matches!(error, FolderError::Busy { .. }), "{error:?}");
    drop(first);
    write(folder.path(), &files(&[("a.yaml", "1")])).unwrap();
    assert_eq!(content(folder.path()), expected(&[("a.yaml", "1")]));
}

/// Tests that need a process of their own run this test binary again with this variable set to the folder.
#[cfg(unix)]
const IN_CHILD: &str = "KUBECTL_OLM_TEST_FOLDER";

/// The command, given to `sh`, that runs only the test `name` of this file, in `folder`.
#[cfg(unix)]
fn child(name: &str, folder: &Path, before: &str) -> std::process::Command {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!(
        "{before} exec \"$0\" --exact --nocapture {module}::{name}"
    ));
    command
        .arg(std::env::current_exe().unwrap())
        .env(IN_CHILD, folder);
    command
}

#[cfg(unix)]
#[test]
fn a_file_size_limit_leaves_the_folder_as_it_was() {
    let large = "x".repeat(100_000);
    let wanted = files(&[("a.yaml", "2"), ("b.yaml", &large), ("c.yaml", "3")]);
    if let Some(folder) = std::env::var_os(IN_CHILD) {
        let folder = Path::new(&folder);
        let error = write(folder, &wanted).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("b.yaml; the folder is as it was"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("ulimit -f"));
        let error = write(&folder.join("new/deep"), &wanted).unwrap_err();
        assert!(matches!(error, FolderError::NotWritten { .. }), "{error:?}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &files(&[("a.yaml", "1"), ("old.yaml", "1")])).unwrap();
    let before = content(folder.path());
    let name = "a_file_size_limit_leaves_the_folder_as_it_was";
    let output = child(name, folder.path(), "trap '' XFSZ; ulimit -f 8;")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(content(folder.path()), before);
    // Where the signal is not ignored, the run is killed, and the next one clears up.
    let output = child(name, folder.path(), "ulimit -c 0; ulimit -f 8;")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(folder.path().join(STAGING_FOLDER).exists());
    write(folder.path(), &files(&[("a.yaml", "1"), ("old.yaml", "1")])).unwrap();
    assert_eq!(content(folder.path()), before);
}

#[cfg(unix)]
#[test]
fn a_killed_run_leaves_no_lock() {
    use std::io::BufRead;
    if let Some(folder) = std::env::var_os(IN_CHILD) {
        let _opened = OpenedFolder::open(Path::new(&folder)).unwrap();
        fs::write(Path::new(&folder).join("locked"), "").unwrap();
        std::io::stdin().lock().lines().for_each(drop);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = child("a_killed_run_leaves_no_lock", folder.path(), "");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    let mut other = command.spawn().unwrap();
    while !folder.path().join("locked").exists() {
        assert!(
            other.try_wait().unwrap().is_none(),
            "the other run ended early"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let error = write(folder.path(), &files(&[("a.yaml", "1")])).unwrap_err();
    assert!(matches!(error, FolderError::Busy { .. }), "{error:?}");
    other.kill().unwrap();
    other.wait().unwrap();
    write(folder.path(), &files(&[("a.yaml", "1")])).unwrap();
    fs::remove_file(folder.path().join("locked")).unwrap();
    assert_eq!(content(folder.path()), expected(&[("a.yaml", "1")]));
}
