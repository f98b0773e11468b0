//! How two versions of an install differ: what a person reviews before an upgrade.
//!
//! `testdata/compare/<situation>.yaml` holds the objects of two versions (`old`, `new`), and the lines of the review.

use std::{fs, path::Path};

use kubectl_olm::{
    limits::Limits,
    manifest::{Manifest, Origin, yaml},
    review::upgrade::{May, Right, compare},
};
use serde::Deserialize;
use serde_json::Value;

use super::program::{root, run};

/// A case of `testdata/compare`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    old: Vec<Value>,
    new: Vec<Value>,
    /// `+ object`, `- object`, or `~ object: fields`.
    #[serde(default)]
    objects: Vec<String>,
    #[serde(default)]
    gained: Vec<String>,
    #[serde(default)]
    lost: Vec<String>,
    #[serde(default)]
    images: Vec<String>,
    #[serde(default)]
    definitions: Vec<String>,
}

#[test]
fn each_case_differs_as_it_says() {
    let mut wrong = vec![];
    let mut paths: Vec<_> = fs::read_dir(root().join("testdata/compare"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 5, "cases are missing");
    for path in paths {
        let text = fs::read(&path).expect("a case");
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
        let case = documents.into_iter().next().expect("a case").value;
        let case: Case = serde_json::from_value(case).expect("a case");
        wrong.extend(differences(&path, &case));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What a case says and is not so.
fn differences(path: &Path, case: &Case) -> Vec<String> {
    let manifests = |objects: &[Value]| -> Vec<Manifest> {
        let objects = objects.iter().cloned();
        objects
            .map(|object| Manifest::new(object, Origin::Generated("a test")))
            .collect()
    };
    let (old, new) = (manifests(&case.old), manifests(&case.new));
    let found = compare(&old, &new);
    let objects = found
        .objects
        .iter()
        .map(|change| match (change.before, change.after) {
            (None, Some(after)) => format!("+ {}", after.key()),
            (Some(before), None) => format!("- {}", before.key()),
            (_, after) => format!(
                "~ {}: {}",
                after.expect("a side").key(),
                change.fields.join(" ")
            ),
        });
    let right = |right: &Right| {
        let may = match &right.may {
            May::Rule(rule) => rule.words(),
            May::Role(kind, name) => format!("{kind} {name}"),
        };
        format!("{} in {:?}: {may}", right.subject, right.namespace)
    };
    let images = found.images_new.iter().map(|image| format!("+ {image}"));
    let images = images.chain(found.images_gone.iter().map(|image| format!("- {image}")));
    let definitions = found.definitions.iter().flat_map(|change| {
        let problems = change
            .problems
            .iter()
            .map(|problem| format!("{}: {}", problem.rule, problem.message));
        change
            .versions
            .iter()
            .cloned()
            .chain(problems)
            .collect::<Vec<_>>()
    });
    [
        ("objects", objects.collect(), &case.objects),
        (
            "gained",
            found.gained.iter().map(right).collect(),
            &case.gained,
        ),
        ("lost", found.lost.iter().map(right).collect(), &case.lost),
        ("images", images.collect(), &case.images),
        (
            "definitions",
            definitions.collect::<Vec<_>>(),
            &case.definitions,
        ),
    ]
    .into_iter()
    .filter(|(_, found, expected): &(_, Vec<String>, _)| found != *expected)
    .map(|(what, found, _)| format!("{}: {what}:\n{}", path.display(), found.join("\n")))
    .collect()
}

#[test]
fn two_sources_are_compared_without_a_cluster() {
    let bundle = root().join("testdata/bundles/minimal");
    let copy = tempfile::tempdir().expect("a folder");
    for folder in ["manifests", "metadata"] {
        fs::create_dir(copy.path().join(folder)).expect("a folder");
        for entry in fs::read_dir(bundle.join(folder)).expect("files") {
            let entry = entry.expect("a file");
            let text = fs::read_to_string(entry.path()).expect("text");
            let target = copy.path().join(folder).join(entry.file_name());
            fs::write(
                target,
                text.replace("image: ", "image: registry.example.com/"),
            )
            .expect("a file");
        }
    }
    let old = bundle.to_str().expect("a path");
    let new = copy.path().to_str().expect("a path");
    let same = run(["diff", old, old, "-n", "ops"]);
    assert_eq!(
        (same.code, same.stdout.as_str()),
        (0, ""),
        "{}",
        same.stderr
    );
    let differs = run(["diff", old, new, "-n", "ops"]);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    for part in ["Objects:\n", "Images:\n", "--- before\n", "+++ after\n"] {
        assert!(differs.stdout.contains(part), "{}", differs.stdout);
    }
    let summary = run(["diff", old, new, "-n", "ops", "--summary"]);
    assert_eq!(summary.code, 1, "{}", summary.stderr);
    assert!(!summary.stdout.contains("+++ after"), "{}", summary.stdout);
    let json = run(["diff", old, new, "-n", "ops", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["images"]["new"].as_array().map(Vec::len), Some(1));
}
