//! Cases that are data: a newcomer adds one without writing Rust.
//!
//! `testdata/check/<situation>.yaml` is a bundle and the problems it must be told of; `testdata/render/<situation>/`
//! is a bundle, flags and, in `expected.snap`, the whole output. Both describe the bundle as [`Case`] says. A render
//! case may hold vectors too: what OLM v0's own functions give for the same bundle, and where we differ on purpose.

use std::{collections::BTreeMap, fs, path::Path};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tempfile::TempDir;

use super::program::{Run, program, root, run};

/// A bundle, by what it has more or less than one of `testdata/bundles`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The folder below `testdata/bundles` to start from.
    #[serde(default = "minimal")]
    bundle: String,
    /// JSON merge patches (RFC 7386) for YAML files of the bundle.
    #[serde(default)]
    patch: BTreeMap<String, Value>,
    /// Files to add or replace, with their text.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Text to add to the end of files, many times over.
    #[serde(default)]
    append: BTreeMap<String, Repeated>,
    /// Files to take out.
    #[serde(default)]
    remove: Vec<String>,
    /// The arguments that follow the bundle.
    #[serde(default)]
    args: Vec<String>,
    /// For `check`: every line that it prints, in order.
    #[serde(default)]
    problems: Vec<String>,
    /// For `render`: parts of its output as OLM v0 makes them.
    #[serde(default)]
    vectors: Vec<Vector>,
}

/// A part of an object, as OLM v0 makes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    /// `Kind/name`, or the kind alone where there is only one.
    object: String,
    /// JSON pointer to the part.
    at: String,
    /// What OLM v0 makes of it.
    json: String,
    /// Where we differ: a JSON merge patch.
    #[serde(default)]
    but: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeated {
    text: String,
    times: usize,
}

fn minimal() -> String {
    "minimal".to_owned()
}

#[test]
fn check_tells_the_problems_of_each_case() {
    let mut wrong = vec![];
    let mut cases: Vec<_> = fs::read_dir(root().join("testdata/check"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    assert!(cases.len() > 30, "cases are missing");
    for path in cases {
        let case = read(&path);
        let run = run_on(&case, "check");
        let told: Vec<_> = run.stdout.lines().collect();
        let refused = case
            .problems
            .iter()
            .any(|problem| problem.starts_with("error"))
            || case.args.iter().any(|argument| argument == "--strict") && !case.problems.is_empty();
        if told != case.problems || run.code != if refused { 3 } else { 0 } {
            wrong.push(format!(
                "{}: exit code {}\n{}\n{}",
                path.display(),
                run.code,
                told.join("\n"),
                run.stderr
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_rule_has_a_case() {
    let rules = rules_in(&root().join("src"));
    let cases: String = fs::read_dir(root().join("testdata/check"))
        .expect("cases")
        .map(|entry| fs::read_to_string(entry.expect("a case").path()).expect("a case"))
        .collect();
    let untested: Vec<_> = rules
        .iter()
        .filter(|rule| !cases.contains(&format!("[{rule}]")))
        .collect();
    assert!(
        untested.is_empty(),
        "no case in testdata/check shows {untested:?}"
    );
}

/// The rule words that the checks of a bundle can give.
fn rules_in(folder: &Path) -> Vec<String> {
    let mut rules = vec![];
    for part in ["bundle", "bundle/check"] {
        for entry in fs::read_dir(folder.join(part)).expect("sources") {
            let path = entry.expect("a source").path();
            if path.is_dir() {
                continue;
            }
            let text = fs::read_to_string(path).expect("a source");
            for call in ["Problem::error(", "Problem::warning("] {
                rules.extend(text.split(call).skip(1).filter_map(|after| {
                    after
                        .trim_start()
                        .strip_prefix('"')?
                        .split('"')
                        .next()
                        .map(str::to_owned)
                }));
            }
        }
    }
    // What only thousands of problems show is in the tests of hostile content.
    rules.retain(|rule| rule != "too-many");
    rules.sort();
    rules.dedup();
    assert!(rules.len() > 20, "the rules were not found: {rules:?}");
    rules
}

#[test]
fn render_prints_what_each_case_expects() {
    insta::glob!("../../testdata/render", "*/case.yaml", |path| {
        let run = run_on(&read(path), "render");
        let text = format!(
            "{}----- standard error\n{}----- exit code {}\n",
            run.stdout, run.stderr, run.code
        );
        insta::with_settings!({
            snapshot_path => path.parent().expect("the case's folder"),
            snapshot_suffix => "",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!("expected", text) });
    });
}

#[test]
fn render_makes_what_olm_v0_makes() {
    let mut compared = 0;
    let folders = fs::read_dir(root().join("testdata/render")).expect("cases");
    for folder in folders.flatten() {
        let case: Case = read(&folder.path().join("case.yaml"));
        if case.vectors.is_empty() {
            continue;
        }
        let run = run_on(&case, "render");
        let objects = yaml::read(run.stdout.as_bytes(), &Limits::DEFAULT).expect("YAML");
        for vector in &case.vectors {
            let is_meant = |object: &&Value| {
                let kind = object["kind"].as_str().unwrap_or_default();
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                vector.object == kind || vector.object == format!("{kind}/{name}")
            };
            let mut found = objects
                .iter()
                .map(|document| &document.value)
                .filter(is_meant);
            let object = found.next().expect("the object of a vector");
            assert!(found.next().is_none(), "several are {}", vector.object);
            let mut expected = serde_json::from_str(&vector.json).expect("a vector");
            if !vector.but.is_null() {
                merge(&mut expected, &vector.but);
            }
            let part = object.pointer(&vector.at);
            assert_eq!(part, Some(&expected), "{} of {}", vector.at, vector.object);
            compared += 1;
        }
    }
    assert!(compared >= 4, "vectors are missing");
}

/// Names, folders and times that differ from machine to machine must not show.
#[test]
fn the_same_bundle_gives_the_same_bytes_everywhere() {
    let case = read(&root().join("testdata/render/all-namespaces/case.yaml"));
    let (one, other) = (build(&case), build(&case));
    let render = |folder: &TempDir| {
        let output = program()
            .current_dir(folder.path())
            .args(["render", "bundle", "-n", "ops"])
            .env("TZ", "Pacific/Auckland")
            .env("LC_ALL", "tr_TR.UTF-8")
            .output()
            .expect("the program starts");
        output.stdout
    };
    let first = render(&one);
    assert!(!first.is_empty());
    assert_eq!(first, render(&other));
    let elsewhere = run([
        Path::new("render"),
        &one.path().join("bundle"),
        Path::new("-n"),
        Path::new("ops"),
    ]);
    assert_eq!(first, elsewhere.stdout.as_bytes());
}

/// Runs a command on the case's bundle, in the folder that it stands in.
fn run_on(case: &Case, verb: &str) -> Run {
    let folder = build(case);
    let mut program = program();
    program.current_dir(folder.path()).args([verb, "bundle"]);
    let output = program.args(&case.args).output();
    output.expect("the program starts").into()
}

/// A folder with a copy of the bundle `minimal` in its folder `bundle`.
pub(crate) fn minimal_bundle() -> TempDir {
    build(&serde_json::from_str("{}").expect("a case needs nothing"))
}

/// A case of any kind, from the first document of a file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes the case's bundle into the folder `bundle` of a temporary folder.
pub(crate) fn build(case: &Case) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bundle = folder.path().join("bundle");
    let base = root().join("testdata/bundles").join(&case.bundle);
    for part in ["manifests", "metadata"] {
        fs::create_dir_all(bundle.join(part)).expect("a folder");
        for entry in fs::read_dir(base.join(part)).expect("the base bundle") {
            let entry = entry.expect("a file of the base bundle");
            fs::copy(entry.path(), bundle.join(part).join(entry.file_name())).expect("a copy");
        }
    }
    for (path, patch) in &case.patch {
        let path = bundle.join(path);
        let text = fs::read(&path).unwrap_or_default();
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("the file to patch is YAML");
        let mut value = documents
            .into_iter()
            .next()
            .map_or(Value::Null, |document| document.value);
        merge(&mut value, patch);
        let mut text = String::new();
        yaml::write(&value, &mut text);
        fs::write(path, text).expect("the patched file");
    }
    for (path, text) in &case.files {
        let path = bundle.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    for (path, added) in &case.append {
        let path = bundle.join(path);
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, text + &added.text.repeat(added.times)).expect("a longer file");
    }
    for path in &case.remove {
        let path = bundle.join(path);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .expect("something to take out");
    }
    folder
}

/// RFC 7386.
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = value else {
        unreachable!("made a map above")
    };
    for (name, patch) in patch {
        if patch.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), patch);
        }
    }
}
