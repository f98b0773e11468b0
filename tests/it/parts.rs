//! Which of the rendered objects are output, and what a folder remembers of whom it holds them for.

use std::{collections::BTreeMap, fs, path::Path};

use super::program::{Run, run};

const BUNDLE: &str = "testdata/bundles/queue-operator";
const LIST: &str = ".kubectl-olm-files";

fn names(parts: &str) -> Vec<String> {
    let run = run(["render", BUNDLE, "-o", "name", "--parts", parts]);
    assert_eq!((run.code, run.stderr.contains("note[secrets]")), (0, false));
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn parts_together_are_the_whole_in_the_same_order() {
    let accounts = names("service-accounts");
    assert!(!accounts.is_empty(), "the bundle has accounts");
    assert!(
        accounts
            .iter()
            .all(|name| name.starts_with("serviceaccount/"))
    );
    let bundle = names("bundle");
    assert!(bundle.iter().all(|name| !accounts.contains(name)));
    let all = names("bundle,service-accounts,bundle");
    assert_eq!(all.len(), accounts.len() + bundle.len());
    let default = run(["render", BUNDLE, "-o", "name"]).stdout;
    assert_eq!(default.lines().collect::<Vec<_>>(), all);
}

#[test]
fn words_that_are_no_parts_exit_2() {
    let typo = run(["render", BUNDLE, "--parts", "service-account"]);
    assert_eq!(typo.code, 2);
    assert!(
        typo.stderr.contains("'service-accounts'"),
        "{}",
        typo.stderr
    );
    let both = run(["render", BUNDLE, "--parts", "csv,all"]);
    assert_eq!(both.code, 2);
    assert!(
        both.stderr.contains("all takes no other part"),
        "{}",
        both.stderr
    );
    assert_eq!(run(["render", BUNDLE, "--secrets", "show"]).code, 2);
}

fn write(layout: &str, folder: &Path, more: &[&str]) -> Run {
    let out = format!("{layout}:{}", folder.display());
    run(["render", BUNDLE, "-o", &out].iter().chain(more))
}

/// The text of every file, but for the list.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.map(|entry| {
        let text = fs::read_to_string(entry.path()).expect("a text");
        (entry.file_name().into_string().expect("a name"), text)
    });
    files.filter(|(name, _)| name != LIST).collect()
}

#[test]
fn a_part_that_is_no_longer_asked_for_leaves_the_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let accounts = names("service-accounts").len();
    let all = write("dir", folder.path(), &[]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    let bundle = write("dir", folder.path(), &["--parts", "bundle"]);
    let expected = format!(
        "0 written, {} unchanged, {accounts} removed\n",
        names("bundle").len()
    );
    assert!(bundle.stderr.ends_with(&expected), "{}", bundle.stderr);
}

#[test]
fn owners_in_a_list_are_read_and_never_followed() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("out");
    assert_eq!(write("dir", &folder, &[]).code, 0);
    let (before, list) = (files(&folder), folder.join(LIST));
    let plain = fs::read_to_string(&list).expect("a list");
    fs::write(parent.path().join("precious"), "x").expect("a file");
    let owned = |owners: &str| {
        let lines = plain.lines().map(|line| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line} {owners}\n"),
        });
        lines.collect::<String>()
    };
    fs::write(&list, owned("../precious,/etc/passwd")).expect("a list");
    let again = write("dir", &folder, &[]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("0 written"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&list).expect("a list"), plain);

    for text in [
        owned("a, b"),
        owned("a,"),
        format!("{plain}../precious a\n"),
    ] {
        fs::write(&list, &text).expect("a list");
        let refused = write("dir", &folder, &["--parts", "csv"]);
        assert_eq!(refused.code, 3, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("is not a file name"),
            "{}",
            refused.stderr
        );
        assert_eq!(fs::read_to_string(&list).expect("a list"), text);
    }
    assert_eq!(files(&folder), before);
    assert!(parent.path().join("precious").exists());
}

#[test]
fn a_kustomization_has_the_order_of_application_over_all_installs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = format!("kustomize:{}", folder.path().display());
    let catalog = [
        "--catalog",
        "testdata/catalogs/example",
        "-n",
        "ops",
        "--create-namespace",
    ];
    let rendered = run(["render", "mail-archive", "-o", &out]
        .iter()
        .chain(&catalog));
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    let mut files = files(folder.path());
    let text = files.remove("kustomization.yaml").expect("a kustomization");
    let listed: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .collect();
    assert!(listed.iter().all(|name| files.remove(*name).is_some()) && files.is_empty());
    let kinds = listed
        .iter()
        .map(|name| name.split('-').next().expect("a kind"));
    let mut kinds: Vec<_> = kinds.collect();
    kinds.dedup();
    insta::assert_snapshot!(kinds.join("\n"));
}
