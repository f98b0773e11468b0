//! `--scope` splits what is rendered in two: what is of the whole cluster, and what is in namespaces.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kubectl_olm::{limits::Limits, manifest::yaml};
use rayon::prelude::*;

use super::{
    corpus,
    program::{root, run},
};

/// The text of every object, by its file.
type Files = BTreeMap<PathBuf, String>;

/// What is rendered of a bundle into a folder, in one scope or in both.
fn render(bundle: &Path, watched: Option<&str>, scope: Option<&str>) -> Files {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let bundle = bundle.to_str().expect("a path");
    let format = format!("dir:{}", out.display());
    let mut arguments = vec!["render", bundle, "-n", "operators", "-o", &format];
    arguments.extend(["--create-namespace", "--parts", "all"]);
    arguments.extend(
        watched
            .iter()
            .flat_map(|watched| ["--watch-namespace", watched]),
    );
    arguments.extend(scope.iter().flat_map(|scope| ["--scope", scope]));
    let rendered = run(arguments);
    assert_eq!(rendered.code, 0, "{bundle}: {}", rendered.stderr);
    let files = fs::read_dir(&out).expect("a folder").flatten();
    let files = files.map(|file| file.file_name().into());
    let files = files.filter(|name: &PathBuf| name.extension().is_some_and(|end| end == "yaml"));
    let text = |name: &PathBuf| fs::read_to_string(out.join(name)).expect("a file");
    files.map(|name| (name.clone(), text(&name))).collect()
}

/// Both scopes are the whole, and only what is in the namespaced one says its namespace.
fn check(bundle: &Path, watched: Option<&str>) {
    let mut whole = render(bundle, watched, None);
    for (scope, has_namespace) in [("cluster", false), ("namespaced", true)] {
        for (name, text) in render(bundle, watched, Some(scope)) {
            let at = format!("{scope}: {}: {}", bundle.display(), name.display());
            assert_eq!(whole.remove(&name).as_ref(), Some(&text), "{at}");
            let objects = yaml::read(text.as_bytes(), &Limits::DEFAULT).expect("YAML");
            let namespace = objects[0].value.pointer("/metadata/namespace");
            assert_eq!(namespace.is_some(), has_namespace, "{at}");
        }
    }
    assert!(whole.is_empty(), "{}: {:?}", bundle.display(), whole.keys());
}

#[test]
fn both_scopes_are_the_whole_of_every_bundle() {
    check(&root().join("testdata/bundles/queue-operator"), None);
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    corpus::cases(&corpus).par_iter().for_each(|case| {
        let bundle = corpus
            .join("bundles")
            .join(&case.operator)
            .join(&case.version);
        check(&bundle, case.watched.as_deref());
    });
}

#[test]
fn the_cluster_part_is_for_its_administrator_and_folders_follow_the_scope() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = format!("dir:{}", folder.path().display());
    let render = |output: &str, more: &[&str]| {
        let bundle = "testdata/bundles/queue-operator";
        let arguments = ["render", bundle, "--create-namespace", "-o", output];
        run(arguments.iter().chain(more))
    };
    let names = |scope| render("name", &["--scope", scope]).stdout;
    let (cluster, namespaced) = (names("cluster"), names("namespaced"));
    render(&folder, &[]);
    let split = render(&folder, &["--scope", "cluster"]).stderr;
    let counts = (cluster.lines().count(), namespaced.lines().count());
    let expected = format!("0 written, {} unchanged, {} removed\n", counts.0, counts.1);
    assert!(split.ends_with(&expected), "{split}");
    insta::assert_snapshot!(format!("{cluster}-----\n{namespaced}"));
}
