//! The checks of catalogs: `testdata/catalog-check/<situation>.yaml` is a catalog, the problems it must be told of,
//! and what opm says of it. A newcomer adds one without writing Rust.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use kubectl_olm::{
    catalog::{Catalog, check},
    files::FileTree,
    limits::Limits,
    manifest::yaml,
    problem::Problem,
};
use serde::Deserialize;

use super::{corpus::corpus, program::root};

/// A catalog and what is wrong with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The files of the catalog, with their text.
    files: BTreeMap<String, String>,
    /// Every problem, in order.
    problems: Vec<String>,
    /// What `opm validate` of operator-registry v1.73.0 refuses it with; empty when it does not.
    #[serde(default)]
    opm: String,
    /// Why the catalog is refused though opm takes it, or the other way round.
    differs: Option<String>,
}

#[test]
fn catalogs_are_told_the_problems_of_each_case() {
    let cases = cases();
    assert!(cases.len() > 40, "cases are missing");
    let mut wrong = vec![];
    for (name, case) in &cases {
        let problems = problems(case);
        let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
        if told != case.problems {
            wrong.push(format!("{name}:\n{}", told.join("\n")));
        }
        let agrees = problems.iter().any(Problem::is_error) != case.opm.is_empty();
        if agrees == case.differs.is_some() {
            wrong.push(format!(
                "{name}: opm says {:?}, and that should be `differs`",
                case.opm
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_rule_of_catalogs_has_a_case() {
    let mut rules = BTreeSet::new();
    for entry in fs::read_dir(root().join("src/catalog/check")).expect("sources") {
        let text = fs::read_to_string(entry.expect("a source").path()).expect("a source");
        let words = text.split("\"catalog-").skip(1);
        rules.extend(
            words.filter_map(|after| Some(format!("[catalog-{}]", after.split('"').next()?))),
        );
    }
    assert!(rules.len() > 20, "the rules were not found: {rules:?}");
    for case in cases().values() {
        rules.retain(|rule| !case.problems.iter().any(|problem| problem.contains(rule)));
    }
    assert!(
        rules.is_empty(),
        "no case in testdata/catalog-check shows {rules:?}"
    );
}

/// opm passes them, so nothing may be refused; and what is told of catalogs that people use must be worth reading.
#[test]
fn nothing_is_wrong_with_real_catalogs() {
    let Some(corpus) = corpus() else {
        return;
    };
    for version in ["v4.14", "v4.19"] {
        let mut files = FileTree::default();
        for package in fs::read_dir(corpus.join("catalogs").join(version)).expect("packages") {
            let package = package.expect("a package").path();
            for file in fs::read_dir(&package).expect("a package's files") {
                let path = file.expect("a file").path();
                let name = path.strip_prefix(&corpus).expect("below the corpus");
                let text = fs::read(&path).expect("a file of the package");
                let name = name.to_str().expect("Unicode");
                files.insert(name, text).expect("a good path");
            }
        }
        let catalog =
            Catalog::read(version, 0, Box::new(files), &Limits::DEFAULT).expect("a catalog");
        assert!(catalog.packages().count() > 10, "packages are missing");
        assert_eq!(check::check_all(&catalog), [], "{version}");
    }
}

fn problems(case: &Case) -> Vec<Problem> {
    let mut files = FileTree::default();
    for (path, text) in &case.files {
        let bytes = text.clone().into_bytes();
        files.insert(path, bytes).expect("a good path");
    }
    let mut problems = match Catalog::read("case", 0, Box::new(files), &Limits::DEFAULT) {
        Ok(catalog) => check::check_all(&catalog),
        Err(problems) => problems,
    };
    problems.sort();
    problems
}

fn cases() -> BTreeMap<String, Case> {
    let entries = fs::read_dir(root().join("testdata/catalog-check")).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    paths
        .map(|path| (path.display().to_string(), read(&path)))
        .collect()
}

fn read(path: &Path) -> Case {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
