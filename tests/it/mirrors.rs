//! Where images are asked for by registries.conf: `testdata/mirrors/<situation>.yaml`.

use std::{collections::BTreeMap, error::Error, fs};

use kubectl_olm::{
    image::ImageReference,
    limits::Limits,
    manifest::yaml,
    source::{
        credentials::Environment,
        mirrors::{MirrorError, Mirrors},
    },
};
use serde::Deserialize;
use tempfile::TempDir;

use super::program::root;

/// Configuration, and where images are asked for by it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Who says that this is right; without it, where and why this is otherwise.
    #[serde(default, rename = "oracle")]
    _oracle: Option<String>,
    /// Files below a folder that has the user's in `home` and the machine's in `etc` and `usr`.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// `CONTAINERS_REGISTRIES_CONF`, below that folder.
    containers_registries_conf: Option<String>,
    /// What is told when they are read.
    error: Option<String>,
    #[serde(default)]
    ask: Vec<Ask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    image: String,
    /// The image at each place, in order, with `insecure` behind it where it is so.
    #[serde(default)]
    places: Vec<String>,
    error: Option<String>,
}

#[test]
fn images_are_asked_for_where_podman_asks() {
    let mut wrong = vec![];
    let folder = root().join("testdata/mirrors");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "cases are missing");
    for path in paths {
        let text = fs::read(&path).expect("a case");
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
        let value = documents.into_iter().next().expect("a document").value;
        let case: Case = serde_json::from_value(value)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let told = differences(&case);
        wrong.extend(
            told.into_iter()
                .map(|difference| format!("{}: {difference}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is otherwise than the case says.
fn differences(case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in &case.files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let variable = case.containers_registries_conf.as_ref();
    let environment = Environment {
        home: Some(folder.path().join("home")),
        system_folders: ["etc", "usr"].map(|name| folder.path().join(name)).into(),
        containers_registries_conf: variable.map(|path| folder.path().join(path)),
        ..Environment::default()
    };
    let mirrors = match Mirrors::read(&environment) {
        Ok(mirrors) => mirrors,
        Err(error) => {
            let told = whole(&error, &folder);
            return (Some(&told) != case.error.as_ref())
                .then_some(told)
                .into_iter()
                .collect();
        }
    };
    let mut wrong = vec![];
    if let Some(error) = &case.error {
        wrong.push(format!("nothing is told, not even {error}"));
    }
    for ask in &case.ask {
        let image = ImageReference::parse(&ask.image)
            .expect("an image")
            .normalized();
        let (places, error) = match mirrors.places(&image) {
            Ok(places) => (places, None),
            Err(error) => (vec![], Some(whole(&error, &folder))),
        };
        let shown: Vec<_> = places
            .iter()
            .map(|place| {
                format!(
                    "{}{}",
                    place.image,
                    if place.insecure { " insecure" } else { "" }
                )
            })
            .collect();
        if shown != ask.places || error != ask.error {
            wrong.push(format!("{}: {places:?} {error:?}", ask.image));
        }
    }
    wrong
}

/// A message with its causes.
fn whole(error: &MirrorError, folder: &TempDir) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace(&folder.path().display().to_string(), "~")
}
