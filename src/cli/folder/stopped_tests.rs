//! Tests of runs for several installs, of which some have stopped.

use std::time::{Duration, SystemTime};

use super::*;

const KUSTOMIZATION: &str = "kustomization.yaml";

/// Files as `(name, owners, text)`; owners with commas between.
type Rendered<'a> = &'a [(&'a str, &'a str, &'a str)];

fn owners(text: &str) -> BTreeSet<String> {
    let owners = text.split(',').filter(|owner| !owner.is_empty());
    owners.map(str::to_owned).collect()
}

fn wanted(layout: Layout, rendered: Rendered<'_>, stopped: &str) -> Wanted {
    let mut wanted = Wanted::new(layout, &owners(stopped));
    for (name, of, text) in rendered {
        wanted.add((*name).to_owned(), &owners(of), (*text).to_owned());
    }
    wanted
}

fn run(folder: &Path, rendered: Rendered<'_>, stopped: &str) -> Summary {
    write(folder, wanted(Layout::Plain, rendered, stopped)).unwrap()
}

fn kustomize(folder: &Path, rendered: Rendered<'_>, stopped: &str) -> String {
    write(folder, wanted(Layout::Kustomize, rendered, stopped)).unwrap();
    read(folder, KUSTOMIZATION)
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The lines of the list that are no comments.
fn listed(folder: &Path) -> Vec<String> {
    let text = read(folder, LIST_FILE);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The text and the modification time of each file, but for the list.
fn files(folder: &Path) -> BTreeMap<String, (String, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let read = |name: String| {
        let modified = fs::metadata(folder.join(&name)).unwrap().modified();
        (name.clone(), (read(folder, &name), modified.unwrap()))
    };
    names.filter(|name| name != LIST_FILE).map(read).collect()
}

/// Gives a file a modification time that no write of a test has.
fn age(folder: &Path, name: &str) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = fs::File::options().write(true).open(folder.join(name));
    file.unwrap().set_modified(past).unwrap();
}

const BOTH: Rendered<'_> = &[
    ("configmap-a_x.yaml", "x/a", "1"),
    ("configmap-b_x.yaml", "x/b", "1"),
    ("namespace-x.yaml", "x/a,x/b", "1"),
];

#[test]
fn what_an_earlier_run_wrote_for_a_stopped_install_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, BOTH, "");
    fs::write(folder.join("configmap-b_x.yaml"), "changed by hand").unwrap();
    BOTH.iter().for_each(|(name, ..)| age(folder, name));
    let (before, list) = (files(folder), listed(folder));

    let a = &[
        ("configmap-a_x.yaml", "x/a", "2"),
        ("namespace-x.yaml", "x/a", "1"),
    ];
    let summary = run(folder, a, "x/b");
    assert_eq!(
        summary.to_string(),
        "1 written, 0 unchanged, 0 removed, 2 kept"
    );
    let mut expected = before;
    let changed = &files(folder)["configmap-a_x.yaml"];
    assert_eq!(changed.0, "2");
    expected.insert("configmap-a_x.yaml".to_owned(), changed.clone());
    assert_eq!(files(folder), expected);
    assert_eq!(
        listed(folder),
        list,
        "the shared file still belongs to both"
    );

    // Once it no longer has stopped, what it does not need any more goes.
    let summary = run(folder, &[("namespace-x.yaml", "x/b", "1")], "");
    assert_eq!(summary.to_string(), "0 written, 1 unchanged, 2 removed");
    assert_eq!(listed(folder), ["namespace-x.yaml x/b"]);
}

#[test]
fn a_shared_file_stays_while_one_of_its_owners_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, BOTH, "");
    let of_a = &[
        ("configmap-a_x.yaml", "x/a", "2"),
        ("namespace-x.yaml", "x/a", "2"),
    ];
    run(folder, of_a, "x/b");
    assert_eq!(read(folder, "configmap-a_x.yaml"), "2");
    assert_eq!(read(folder, "namespace-x.yaml"), "1");
    run(folder, &[("configmap-a_x.yaml", "x/a", "2")], "x/b");
    assert_eq!(read(folder, "namespace-x.yaml"), "1");
    assert_eq!(
        listed(folder),
        [
            "configmap-a_x.yaml x/a",
            "configmap-b_x.yaml x/b",
            "namespace-x.yaml x/a,x/b"
        ]
    );
}

#[test]
fn files_of_installs_that_are_in_no_input_any_more_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(
        folder,
        &[
            ("a-a.yaml", "a", "1"),
            ("b-b.yaml", "b", "1"),
            ("c-c.yaml", "c", "1"),
        ],
        "",
    );
    let summary = run(folder, &[("a-a.yaml", "a", "1")], "b");
    assert_eq!(
        summary.to_string(),
        "0 written, 1 unchanged, 1 removed, 1 kept"
    );
    assert_eq!(listed(folder), ["a-a.yaml a", "b-b.yaml b"]);
}

#[test]
fn a_first_run_with_a_stopped_install_writes_the_others() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    let summary = write(&folder, wanted(Layout::Kustomize, &[], "a,b")).unwrap();
    assert_eq!(summary, Summary::default());
    assert!(!folder.exists(), "there is nothing to write");
    fs::create_dir(&folder).unwrap();
    write(&folder, wanted(Layout::Kustomize, &[], "a,b")).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let summary = run(&folder, &[("b-b.yaml", "b", "1")], "a");
    assert_eq!(summary.to_string(), "1 written, 0 unchanged, 0 removed");
    assert_eq!(listed(&folder), ["b-b.yaml b"]);
}

#[test]
fn files_without_owners_stay_until_nothing_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // As a run for one install wrote them.
    kustomize(folder, &[("a-a.yaml", "", "1"), ("b-b.yaml", "", "1")], "");
    assert_eq!(listed(folder), ["a-a.yaml", "b-b.yaml", KUSTOMIZATION]);
    let a = &[("a-a.yaml", "a", "2")];
    let summary = run(folder, a, "b");
    assert_eq!(
        summary.to_string(),
        "1 written, 0 unchanged, 1 removed, 1 kept"
    );
    assert_eq!(listed(folder), ["a-a.yaml a", "b-b.yaml"]);
    assert_eq!(run(folder, a, "").removed, 1);
    assert_eq!(listed(folder), ["a-a.yaml a"]);
}

#[test]
fn a_kustomization_lists_what_stays_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all: Rendered<'_> = &[
        ("deployment.apps-a_x.yaml", "a", "1"),
        ("serviceaccount-a_x.yaml", "a", "1"),
        (
            "customresourcedefinition.apiextensions.k8s.io-b.yaml",
            "b",
            "1",
        ),
        ("deployment.apps-b_x.yaml", "b", "1"),
        ("gone-b_x.yaml", "b", "1"),
        ("namespace-x.yaml", "a,b", "1"),
    ];
    let before = kustomize(folder, all, "");
    let order = [
        "namespace-x.yaml",
        "customresourcedefinition.apiextensions.k8s.io-b.yaml",
        "serviceaccount-a_x.yaml",
        "deployment.apps-a_x.yaml",
        "deployment.apps-b_x.yaml",
        "gone-b_x.yaml",
    ];
    let lines = before.lines().filter_map(|line| line.strip_prefix("- "));
    assert_eq!(lines.collect::<Vec<_>>(), order);
    age(folder, KUSTOMIZATION);
    let at = files(folder)[KUSTOMIZATION].1;
    kustomize(folder, &all[..2], "b");
    assert_eq!(files(folder)[KUSTOMIZATION], (before.clone(), at));
    // What the user has deleted cannot be listed, and comes back with its install.
    fs::remove_file(folder.join("gone-b_x.yaml")).unwrap();
    let without = before.replace("- gone-b_x.yaml\n", "");
    assert_eq!(kustomize(folder, &all[..2], "b"), without);
    assert_eq!(kustomize(folder, all, ""), before);
}

#[test]
fn owners_of_a_forged_list_lead_nowhere() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    run(&folder, &[("a-a.yaml", "a", "1")], "");
    fs::write(parent.path().join("precious"), "x").unwrap();
    fs::write(folder.join("1e5.yaml"), "x").unwrap();
    let list = "a-a.yaml a,../../precious,/etc/passwd\n1e5.yaml b\n";
    fs::write(folder.join(LIST_FILE), list).unwrap();
    let text = kustomize(&folder, &[("c-c.yaml", "c", "1")], "../../precious,b");
    assert!(
        text.ends_with("resources:\n- a-a.yaml\n- c-c.yaml\n"),
        "{text}"
    );
    assert!(parent.path().join("precious").exists() && folder.join("1e5.yaml").exists());

    for line in ["../precious b", "a-a.yaml ../a b", "a-a.yaml b,"] {
        fs::write(folder.join(LIST_FILE), format!("{line}\n")).unwrap();
        let before = files(&folder);
        let error = write(&folder, wanted(Layout::Plain, &[], "b")).unwrap_err();
        assert!(matches!(error, FolderError::List { .. }), "{error:?}");
        assert_eq!(files(&folder), before);
    }
}

#[test]
fn a_folder_in_place_of_a_file_that_stays_is_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &[("b-b.yaml", "b", "1")], "");
    fs::remove_file(folder.join("b-b.yaml")).unwrap();
    fs::create_dir(folder.join("b-b.yaml")).unwrap();
    let error = write(folder, wanted(Layout::Kustomize, &[], "b")).unwrap_err();
    assert!(matches!(error, FolderError::Foreign { .. }), "{error:?}");
}

/// Kills a run after each of its steps; the install that has stopped in it stays stopped in the next one.
#[test]
fn a_killed_run_forgets_no_owner() {
    let old: Rendered<'_> = &[
        ("a-a.yaml", "a", "1"),
        ("b-b.yaml", "b", "1"),
        ("s-s.yaml", "a,b", "1"),
    ];
    let new: Rendered<'_> = &[("a-a.yaml", "a", "2"), ("n-n.yaml", "a", "1")];
    for steps in 0..=4 {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        run(folder, old, "");
        let ours = List::read(folder).unwrap();
        let wanted = wanted(Layout::Plain, new, "b");
        let list = wanted.list(&ours);
        let texts = wanted.into_files(std::iter::empty());
        let changes = compare(folder, &texts, &ours, &list, &mut BTreeSet::new()).unwrap();
        let staging = stage(folder, &changes, Some(&ours), &list).unwrap();
        assert_eq!(
            staging.steps.len(),
            3,
            "the list, a new file and a changed one"
        );
        staging.take(steps).unwrap();
        drop(staging);

        run(folder, &[("a-a.yaml", "a", "3")], "b");
        let texts: Vec<_> = files(folder)
            .into_iter()
            .map(|(name, (text, _))| (name, text))
            .collect();
        let expected = [("a-a.yaml", "3"), ("b-b.yaml", "1"), ("s-s.yaml", "1")];
        assert_eq!(
            texts,
            expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        assert_eq!(
            listed(folder),
            ["a-a.yaml a", "b-b.yaml b", "s-s.yaml a,b"],
            "{steps}"
        );
    }
}

#[cfg(unix)]
#[test]
fn permissions_of_what_stays_are_those_that_it_had() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mode = |name: &str| {
        fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    let chmod = |name: &str, mode| {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap()
    };
    let (a, b) = ("secret-a_x.yaml", "secret-b_x.yaml");
    run(folder, &[(a, "a", "1"), (b, "b", "1")], "");
    assert_eq!((mode(a), mode(b)), (0o600, 0o600));
    chmod(a, 0o640);
    chmod(b, 0o444);
    run(folder, &[(a, "a", "2")], "b");
    assert_eq!((mode(a), mode(b)), (0o640, 0o444));
}
