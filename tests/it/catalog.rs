//! What commands make of catalogs: cases that are data, and the lists of opm.
//!
//! `testdata/catalog/<situation>.yaml` is as `command_lines.rs` says.

use std::fs;

use serde_json::Value;

use super::{command_lines, corpus::corpus, program::run};

#[test]
fn each_case_prints_what_it_expects() {
    command_lines::check("testdata/catalog");
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
