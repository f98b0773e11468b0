//! What commands make of catalogs: cases that are data, and the lists of opm.
//!
//! `testdata/catalog/<situation>.yaml` has the arguments and everything that the program gives, and, where it needs
//! one that is not in `testdata/catalogs`, the files of a catalog.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde::Deserialize;
use serde_json::Value;

use super::{
    corpus::corpus,
    program::{Run, program, root, run},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Files by path; the command runs in the folder that holds them, else in the project's root.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The arguments.
    args: Vec<String>,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    code: i32,
}

#[test]
fn each_case_prints_what_it_expects() {
    let mut wrong = vec![];
    for path in cases() {
        let case: Case = serde_json::from_value(read(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in &case.files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        let at = if case.files.is_empty() {
            root()
        } else {
            folder.path()
        };
        let mut program = program();
        program.current_dir(at).args(&case.args);
        let run: Run = program.output().expect("the program starts").into();
        if (&run.stdout, &run.stderr, run.code) != (&case.stdout, &case.stderr, case.code) {
            wrong.push(format!(
                "{}: exit code {}\n{}----- standard error\n{}",
                path.display(),
                run.code,
                run.stdout,
                run.stderr
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("testdata/catalog")).expect("cases");
    let mut cases: Vec<_> = entries.map(|entry| entry.expect("a case").path()).collect();
    cases.sort();
    assert!(cases.len() > 10, "cases are missing");
    cases
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    documents.into_iter().next().expect("a document").value
}

#[test]
fn completion_offers_the_packages_of_the_catalogs_named_so_far() {
    let offered = |words: &[&str]| run(["__complete", "catalog"].iter().chain(words)).stdout;
    let example = "testdata/catalogs/example";
    assert_eq!(
        offered(&["show", "--catalog", example, "mail"]),
        "mail-archive\nmail-operator\n:4\n"
    );
    let named = format!("--catalog=ours={example}");
    assert_eq!(
        offered(&["list", &named, "minimal", "que"]),
        "queue-operator\n:4\n"
    );
    assert_eq!(offered(&["graph", "--catalog", "not-there", ""]), ":0\n");
}

#[test]
fn lists_equal_those_of_opm() {
    let Some(corpus) = corpus() else {
        return;
    };
    for version in ["v4.14", "v4.19"] {
        let catalog = corpus.join("catalogs").join(version);
        let opm = |what: &str| {
            let file = catalog.with_file_name(format!("{version}.{what}.txt"));
            columns(&fs::read_to_string(file).expect("what opm prints"))
        };
        let ours = |flags: &[&str], list: &str, row: fn(&Value) -> Vec<String>| {
            let catalog = catalog.to_str().expect("Unicode");
            let run = run(["catalog", "list", "-o", "json", "--catalog", catalog]
                .iter()
                .chain(flags));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            let lists: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let rows = lists[list].as_array().expect("a list");
            let mut rows: Vec<_> = rows.iter().map(row).collect();
            rows.sort();
            rows
        };
        let mut packages = ours(&[], "packages", |row| {
            texts(row, &["name", "displayName", "defaultChannel"])
        });
        let expected = opm("packages");
        for (package, expected) in packages.iter_mut().zip(&expected) {
            // opm looks for it in embedded objects only.
            if expected[1].is_empty() {
                package[1].clear();
            }
        }
        assert_eq!(packages, expected);
        let channels = ours(&["--channels"], "channels", |row| {
            texts(row, &["package", "name", "head"])
        });
        assert_eq!(channels, opm("channels"));
        let bundles = ours(&["--bundles"], "bundles", |row| {
            let skips = row["skips"].as_array().into_iter().flatten();
            let skips: Vec<_> = skips.map(|skip| skip.as_str().expect("text")).collect();
            let mut row = texts(
                row,
                &[
                    "package",
                    "channel",
                    "name",
                    "replaces",
                    "skipRange",
                    "image",
                ],
            );
            row.insert(4, skips.join(","));
            row
        });
        let mut expected = opm("bundles");
        expected.sort();
        assert_eq!(bundles.len(), expected.len());
        for (ours, opm) in bundles.iter().zip(&expected) {
            assert_eq!(ours, opm);
        }
    }
}

fn texts(row: &Value, keys: &[&str]) -> Vec<String> {
    let text = |key: &&str| row[*key].as_str().unwrap_or_default().to_owned();
    keys.iter().map(text).collect()
}

/// The rows of a table whose columns start where their headers do, two spaces behind the widest cell before.
fn columns(table: &str) -> Vec<Vec<String>> {
    let mut lines = table.lines();
    let header: Vec<char> = lines.next().expect("headers").chars().collect();
    let starts_column = |at: &usize| {
        let follows_a_gap = || *at >= 2 && header[at - 2..*at] == [' ', ' '];
        header[*at] != ' ' && (*at == 0 || follows_a_gap())
    };
    let starts: Vec<_> = (0..header.len()).filter(starts_column).collect();
    let cells = |line: &str| {
        let line: Vec<char> = line.chars().collect();
        let ends = starts.iter().skip(1).copied().chain([line.len()]);
        let cell = |(start, end): (usize, usize)| {
            let cell = line.get(start..end.min(line.len())).unwrap_or_default();
            cell.iter().collect::<String>().trim_end().to_owned()
        };
        starts.iter().copied().zip(ends).map(cell).collect()
    };
    lines.map(cells).collect()
}
