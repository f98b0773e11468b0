//! Bad catalogs: an error or the answer that OLM would give, in bounded time and memory.

use std::{
    ffi::OsStr,
    fmt::Write,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::{hostile::bounded, program::Run};

/// A catalog of one file.
fn catalog(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("catalog.yaml");
    fs::write(&path, text).expect("a file");
    (folder, path)
}

/// Runs a command of words on a catalog.
fn on(words: &str, catalog: &Path) -> Run {
    let words = words.split(' ').chain(["--catalog"]).map(OsStr::new);
    bounded(words.chain([catalog.as_os_str()]))
}

fn refused(run: &Run, expected: &[&str]) {
    assert_eq!(run.code, 3, "{}", run.stderr);
    for text in expected {
        assert!(
            run.stderr.contains(text),
            "{text:?} is not in:\n{}",
            run.stderr
        );
    }
}

fn package(name: &str) -> String {
    format!("---\nschema: olm.package\nname: {name}\ndefaultChannel: c0\n")
}

fn bundle(package: &str, name: &str, version: &str, more: &str) -> String {
    format!(
        "---\nschema: olm.bundle\npackage: {package}\nname: {name}\nimage: example.com/{package}:1\nproperties:\n\
         - type: olm.package\n  value: {{packageName: {package}, version: {version}}}\n{more}"
    )
}

#[test]
fn a_cycle_of_upgrades() {
    let (_folder, catalog) = catalog(
        &(package("a")
            + "---\nschema: olm.channel\npackage: a\nname: c0\nentries:\n\
        - {name: a.v1, replaces: a.v2}\n- {name: a.v2, replaces: a.v1}\n"
            + &bundle("a", "a.v1", "1.0.0", "")
            + &bundle("a", "a.v2", "2.0.0", "")),
    );
    let run = on("render a -n ops", &catalog);
    refused(
        &run,
        &[
            "no channel heads (entries not replaced by another entry) found in channel \"c0\" of package \"a\"",
        ],
    );
    // Where something is installed the cycle is no reason to go round in it.
    let run = on("explain a --installed a.v1 --to a.v2", &catalog);
    assert!(run.code == 0 || run.code == 3, "{}", run.stderr);
}

#[test]
fn a_thousand_channels_of_a_thousand_entries() {
    let mut text = package("a");
    for channel in 0..1_000 {
        let _ = write!(
            text,
            "---\nschema: olm.channel\npackage: a\nname: c{channel}\nentries:\n- name: a.v0\n"
        );
        for entry in 1..1_000 {
            let _ = writeln!(text, "- {{name: a.v{entry}, replaces: a.v{}}}", entry - 1);
        }
    }
    for version in 0..1_000 {
        text += &bundle("a", &format!("a.v{version}"), &format!("{version}.0.0"), "");
    }
    let (_folder, catalog) = catalog(&text);
    let run = on("explain a --channel c999", &catalog);
    assert!(run.stdout.contains("a.v999"), "{}", run.stderr);
    let run = on("catalog list --channels", &catalog);
    assert_eq!(run.stdout.lines().count(), 1_001, "{}", run.stderr);
}

#[test]
fn a_channel_of_a_hundred_thousand_entries() {
    let mut text =
        package("a") + "---\nschema: olm.channel\npackage: a\nname: c0\nentries:\n- name: a.v0\n";
    for entry in 1..100_000 {
        let _ = writeln!(
            text,
            "- {{name: a.v{entry}, replaces: a.v{}, skipRange: '<{entry}.0.0'}}",
            entry - 1
        );
    }
    text += &bundle("a", "a.v99999", "99999.0.0", "");
    let (_folder, catalog) = catalog(&text);
    for words in [
        "catalog show a",
        "catalog graph a",
        "explain a",
        "explain a --installed a.v5=5.0.0 --to a.v50000",
    ] {
        let run = on(words, &catalog);
        assert!(run.code == 0 || run.code == 3, "{words}: {}", run.stderr);
    }
}

#[test]
fn a_document_over_the_limit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("catalog.json");
    let mut file = fs::File::create(&path).expect("a file");
    let piece = "x".repeat(1 << 20);
    file.write_all(b"{\"schema\": \"olm.package\", \"name\": \"a\", \"description\": \"")
        .expect("space");
    for _ in 0..100 {
        file.write_all(piece.as_bytes()).expect("space");
    }
    file.write_all(b"\"}\n").expect("space");
    refused(
        &on("catalog list", &path),
        &[
            "catalog.json",
            "is larger than the limit of 67108864 bytes",
            "--no-limits",
        ],
    );
}

#[test]
fn thousands_of_documents_in_braces() {
    let documents = (0..9_900)
        .map(|number| format!("{{\"schema\": \"olm.package\", \"name\": \"p{number}\"}}\n"));
    let text = documents.collect::<Vec<_>>().join("---\n");
    for text in [text.clone(), format!("---\n{text}")] {
        let (_folder, catalog) = catalog(&text);
        let run = on("catalog list -o name", &catalog);
        assert_eq!(run.stdout.lines().count(), 9_900, "{}", run.stderr);
    }
    // With a mark in front that takes the file as a whole, there are too many to look for each.
    let (_folder, catalog) = catalog(&format!("\u{feff}{text}"));
    refused(
        &on("catalog list -o name", &catalog),
        &["too many documents"],
    );
}

#[test]
fn a_file_of_holes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("catalog.json");
    let file = fs::File::create(&path).expect("a file");
    file.set_len(20 << 30).expect("a sparse file");
    refused(&on("catalog list", &path), &["catalog.json"]);
}

#[test]
fn packages_that_are_there_twice() {
    let (_folder, catalog) = catalog(
        &(package("a")
            + &package("a")
            + "---\nschema: olm.channel\npackage: a\nname: c0\nentries:\n- name: a.v1\n"
            + &bundle("a", "a.v1", "1.0.0", "")),
    );
    refused(
        &on(
            "render a -n ops --offline --image-source example.com/=testdata/bundles",
            &catalog,
        ),
        &[],
    );
    let run = bounded(
        ["catalog", "check"]
            .map(OsStr::new)
            .into_iter()
            .chain([catalog.as_os_str()]),
    );
    assert!(
        run.stdout.contains("error[catalog-package-duplicate]"),
        "{}",
        run.stdout
    );
}

#[test]
fn versions_that_are_none() {
    let (_folder, catalog) = catalog(
        &(package("a")
            + "---\nschema: olm.channel\npackage: a\nname: c0\nentries:\n- name: a.v1\n- name: a.v2\n  replaces: a.v1\n"
            + &bundle("a", "a.v1", "v1", "")
            + &bundle("a", "a.v2", "99999999999999999999.0.0", "")),
    );
    refused(
        &on("render a -n ops --version >=1", &catalog),
        &["no bundles found for package \"a\" matching version \">=1\""],
    );
    refused(&on("render a -n ops --offline", &catalog), &["--offline"]);
    let run = on("explain a --version >=1", &catalog);
    assert_eq!(
        run.stdout.matches("has no semantic version").count(),
        2,
        "{}",
        run.stdout
    );
}

#[test]
fn nesting_without_end() {
    let nested = "[".repeat(100_000);
    let (_folder, yaml) = catalog(&format!("schema: olm.package\nname: a\nx: {nested}\n"));
    refused(
        &on("catalog show a", &yaml),
        &["catalog.yaml", "nesting is deeper than the limit of 128"],
    );
    let (_folder, json) = catalog(&format!(
        "{{\"schema\": \"olm.package\", \"name\": \"a\", \"x\": {nested}{}}}",
        "]".repeat(100_000)
    ));
    refused(
        &on("catalog show a", &json),
        &["catalog.yaml", "nesting is deeper than the limit of 128"],
    );
    let run = on("catalog show a --no-limits", &json);
    assert_eq!(run.code, 3, "{}", run.stderr);
}

#[test]
fn aliases_that_multiply() {
    let mut text =
        "schema: olm.package\nname: a\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let _ = writeln!(
            text,
            "a{level}: &a{level} [{}]",
            vec![format!("*a{}", level - 1); 10].join(", ")
        );
    }
    let (_folder, catalog) = catalog(&text);
    refused(
        &on("catalog show a", &catalog),
        &["more values, aliases expanded, than the limit"],
    );
}

#[test]
fn names_that_steer_a_terminal() {
    let (_folder, catalog) = catalog(
        "{\"schema\": \"olm.package\", \"name\": \"a\\u001b[2J\\n\\u202e\", \"defaultChannel\": \"\\u0007\"}\n\
        {\"schema\": \"olm.channel\", \"package\": \"a\\u001b[2J\\n\\u202e\", \"name\": \"\\u0007\", \"entries\": [{\"name\": \"\\u009b31m\"}]}\n",
    );
    for words in [
        "catalog list",
        "catalog list --channels",
        "catalog list --bundles -o wide",
        "catalog list -o name",
        "catalog search a",
        "catalog list -o yaml",
        "catalog list -o json",
    ] {
        let run = on(words, &catalog);
        assert!(run.code == 0 || run.code == 3, "{words}: {}", run.stderr);
    }
}

#[test]
fn an_archive_that_grows_without_end() {
    // A little more than what is held of a compressed catalog.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("catalog.tar.gz");
    let packed = std::process::Command::new("sh")
        .arg("-c")
        .arg("truncate -s 1025M zeros.yaml && tar -cf - zeros.yaml | gzip -1 > catalog.tar.gz && rm zeros.yaml")
        .current_dir(folder.path())
        .status();
    assert!(packed.expect("tar starts").success());
    refused(
        &on("catalog list", &path),
        &["catalog.tar.gz", "it is over the limit of 1073741824 bytes"],
    );
}
