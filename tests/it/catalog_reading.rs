//! Holds the quick way through catalogs to what the full YAML reader says: which documents there are, whose they are,
//! and where they stand.

use std::{fs, path::Path};

use kubectl_olm::{
    catalog::{Catalog, Detail, Entry, Head},
    files::FileTree,
    limits::Limits,
    manifest::yaml::{self, Via},
};
use serde_json::Value;

use super::random::Random;

/// What the full reader says of a file: its documents, or that it is not one of a catalog.
fn truth(text: &str) -> Option<Vec<(Head, Value)>> {
    let documents = yaml::read_via(Via::FullOnly, text.as_bytes(), &Limits::NONE).ok()?;
    let with_head = documents.into_iter().map(|document| {
        let fields = document.value.as_object()?;
        let text = |key: &str| {
            let mut spellings = fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(key));
            match (spellings.next(), spellings.next()) {
                (None, _) => Some(String::new()),
                (Some((_, value)), None) => value.as_str().map(str::to_owned),
                _ => None,
            }
        };
        let head = Head {
            schema: text("schema").filter(|schema| !schema.is_empty())?,
            package: text("package")?,
            name: text("name")?,
        };
        Some((head, document.value))
    });
    with_head.collect()
}

fn catalog(text: &str) -> Option<Catalog> {
    let mut files = FileTree::default();
    files.insert("catalog.yaml", text.into()).expect("a path");
    Catalog::read("catalog", 0, Box::new(files), &Limits::NONE).ok()
}

/// The documents that the quick way lists, in the order of the file.
fn listed(catalog: &Catalog) -> Vec<Entry> {
    let index = catalog.index();
    let mut entries: Vec<_> = index
        .packages()
        .flat_map(|package| index.entries(package))
        .collect();
    entries.sort_by_key(|entry| (entry.start, entry.ordinal));
    entries
}

/// The document that an entry leads to.
fn document_at(text: &str, entry: &Entry) -> Option<Value> {
    let at = |position: u64| usize::try_from(position).expect("a position");
    let part = text.get(at(entry.start)..at(entry.end))?;
    let documents = yaml::read_via(Via::FullOnly, part.as_bytes(), &Limits::NONE).ok()?;
    documents
        .into_iter()
        .nth(entry.ordinal)
        .map(|document| document.value)
}

/// Why the quick way and the full reader do not agree on a text.
fn disagreement(text: &str) -> Option<String> {
    // What is no catalog may look like one until more of it is read.
    let truth = truth(text)?;
    let Some(catalog) = catalog(text) else {
        return Some("the quick way refuses it".to_owned());
    };
    let listed = listed(&catalog);
    if listed.len() != truth.len() {
        return Some(format!("{} documents, not {}", listed.len(), truth.len()));
    }
    listed
        .iter()
        .zip(&truth)
        .find_map(|(entry, (head, value))| {
            if document_at(text, entry).as_ref() != Some(value) {
                return Some(format!("another document at {entry:?}"));
            }
            let is_left_out = || {
                // Taken for a part of a package that it is no part of; building that package finds out.
                let package = catalog.package(entry.head.owner(), Detail::Full);
                let parts = package.ok().flatten().unwrap_or_default();
                head.package.is_empty() && parts.others.iter().all(|other| other.value != *value)
            };
            (entry.head != *head && !is_left_out())
                .then(|| format!("{:?}, not {head:?}", entry.head))
        })
}

/// The files of the real catalogs, where the corpus is at hand, and of ours.
fn catalogs() -> Vec<String> {
    let root = super::program::root();
    let mut folders = vec![root.join("testdata/catalogs")];
    folders.extend(super::corpus::corpus().map(|corpus| corpus.join("catalogs")));
    let mut texts = vec![];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_catalog = |path: &Path| {
                let ending = path.extension().and_then(|ending| ending.to_str());
                matches!(ending, Some("yaml" | "json"))
            };
            if path.is_dir() {
                folders.push(path);
            } else if is_catalog(&path) {
                texts.push(fs::read_to_string(path).expect("a text"));
            }
        }
    }
    texts.sort();
    assert!(texts.len() > 3, "catalogs are missing");
    texts
}

/// Each package with what choosing needs, read as it is and from what was read in full.
fn brief_disagreement(text: &str) -> Option<String> {
    let catalog = catalog(text)?;
    let mut packages = catalog.packages();
    packages.find_map(|name| {
        let [brief, full] = [Detail::Choice, Detail::Full].map(|detail| {
            let package = catalog.package(name, detail).expect("readable");
            package.expect("a package")
        });
        let mut expected = full;
        for bundle in &mut expected.bundles {
            let for_people = ["olm.bundle.object", "olm.csv.metadata"];
            let properties = &mut bundle.properties;
            properties.retain(|property| !for_people.contains(&property.kind.as_str()));
        }
        (brief != expected).then(|| name.to_owned())
    })
}

#[test]
fn real_catalogs_are_listed_as_the_full_reader_reads_them() {
    for text in catalogs() {
        // Not everything in the folders is a catalog.
        let Some(documents) = truth(&text) else {
            continue;
        };
        assert_eq!(disagreement(&text), None, "{}", &text[..200]);
        let documents = documents.iter().map(|(_, value)| value);
        let pretty: Vec<_> = documents
            .clone()
            .map(|value| format!("{value:#}"))
            .collect();
        let compact: Vec<_> = documents.map(ToString::to_string).collect();
        for json in [pretty.join("\n"), compact.join("\n"), compact.concat()] {
            assert_eq!(disagreement(&json), None, "{}", &json[..200]);
            assert_eq!(brief_disagreement(&json), None, "{}", &json[..200]);
        }
    }
}

/// Texts in which a line looks like something else than it is.
#[rustfmt::skip]
const TRICKY: &[&str] = &[
    // Keys of the document inside strings, at the start of a line.
    "schema: olm.bundle\npackage: a\nname: b\nx: \"\nname: c\n\"\n",
    "schema: olm.bundle\nname: b\nx: \"\npackage: c\n\"\n",
    "schema: x\nx: 'a\npackage: c\n'\n",
    "schema: x\nx: {a: 1,\npackage: c\n}\n",
    "schema: x\nx: [a,\npackage: c\n]\n",
    "  x: \"\nschema: a\npackage: b\"\n  schema: c\n  package: d\n",
    // Values that are more, or other, than their line.
    "schema: olm.bundle\npackage: a\n  b\nname: c\n",
    "schema: olm.bundle\npackage: a\n\n  b\nname: c\n",
    "schema: olm.bundle\npackage: >-\n  a\nname: c\n",
    "schema: olm.bundle\npackage: &a b\nname: *a\n",
    "schema: olm.bundle\npackage: !!str 1\nname: c\n",
    "schema: olm.bundle\npackage: 1\nname: c\n",
    "schema: olm.bundle\npackage: yes\nname: c\n",
    "schema: olm.bundle\npackage: \"a\\x62\"\nname: 'c''d'\n",
    "schema: olm.bundle\npackage: a # b\nname: c #d\n",
    "schema: olm.bundle\npackage:\nname: c\n",
    "schema: olm.bundle\npackage: ~\nname: c\n",
    "schema: olm.bundle\npackage: 3.x\nname: 2020-01-01\n",
    // Other ways to write keys.
    "Schema: olm.bundle\nPACKAGE: a\nname: b\n",
    "\"schema\": olm.bundle\npackage: a\nname: b\n",
    "? schema\n: olm.bundle\n? package\n: a\n",
    "schema : olm.bundle\npackage : a\n",
    "<<: {package: a}\nschema: olm.bundle\n",
    "schema: olm.bundle\npackage: a\npackage: b\n",
    "schema: olm.bundle\npackage: a\nPackage: b\n",
    "{schema: olm.bundle, package: a}\n",
    "!!map\nschema: olm.bundle\npackage: a\n",
    // Line breaks that are not line feeds.
    "schema: olm.bundle\r\npackage: a\r\nname: b\r\n",
    "schema: olm.bundle\nx: y\rpackage: a\n",
    "schema: olm.bundle\nx: y\u{2028}package: a\n",
    "schema: olm.bundle\nx: y\u{85}package: a\n",
    // Where documents begin and end.
    "---\nschema: a\n---\nschema: b\n",
    "--- # one\nschema: a\n--- \nschema: b\n---\n",
    "# one\n---\nschema: a\n---\n# nothing\n---\nnull\n---\nschema: b\n",
    "schema: a\n...\nschema: b\n",
    "schema: a\n--- b\n",
    "--- {schema: a}\n",
    "%YAML 1.1\n---\nschema: a\n",
    "\u{feff}schema: a\n",
    "schema: a\nx: |\n  text\n---\nschema: b\n",
    "schema: a\nx: |\n---\nschema: b\n",
    "schema: a\nx:\n- b\n-\n  c\n- - d\n",
    "schema: a\n\tx: b\n",
    "schema: a\nname: b",
    // JSON, and what begins like it.
    "{\"schema\": \"a\"}{\"schema\": \"b\", \"name\": \"c\"}\n\n{\"schema\": \"d\"}",
    "{\"schema\": \"a\", \"schema\": \"b\"}",
    "{\"schema\": \"a\", \"Schema\": \"b\"}",
    "{\"sch\\u0065ma\": \"a\\u0062\", \"x\": {\"name\": \"b\"}}",
    "{\"schema\": \"a\"}\n---\nschema: b\n",
    "{\"schema\": \"a\"}\n---\n{\"schema\": \"b\"}\n---\n{\"schema\": \"c\"}\n",
    "{\"schema\": \"a\", \"name\": null}",
    "{\"schema\": \"a\", \"name\": 1}",
    "{\"schema\": \"a\",}",
    "  \n {\"schema\": \"a\"}",
    "{schema: a, name: b}",
];

#[test]
fn tricky_texts_are_listed_as_the_full_reader_reads_them() {
    let wrong = TRICKY
        .iter()
        .filter_map(|text| Some((text, disagreement(text)?)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A text with a few small damages.
fn damaged(random: &mut Random, text: &str) -> String {
    #[rustfmt::skip]
    const PIECES: &[&str] = &[
        "\n", "\n\n", " ", "  ", "\t", "\r\n", "\r", "\u{2028}", "\"", "'", ": ", ":", "- ", "#", " #", "|", ">\n", "[", "]",
        "{", "}", "&a ", "*a", "!x ", "? ", "---\n", "...\n", "\nname: z", "\npackage: z\n", "\nschema: z\n", "Name: ", ",",
    ];
    let mut result: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(result.len() + 1);
        if random.below(3) == 0 && at < result.len() {
            result.remove(at);
        } else {
            result.splice(at..at, PIECES[random.below(PIECES.len())].chars());
        }
    }
    result.into_iter().collect()
}

#[test]
fn damaged_catalogs_are_listed_as_the_full_reader_reads_them() {
    let example = "schema: olm.package\nname: a\ndefaultChannel: c\ndescription: |\n  text\n  name: d\n---\n\
        schema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n  skips:\n  - a.v0\n---\n\
        image: \"x\"\nname: a.v1\npackage: a\nproperties:\n- type: t\n  value: 'it''s'\nschema: olm.bundle\n";
    let mut random = Random::new(20_261_122);
    let (mut read, mut wrong) = (0, vec![]);
    let texts: Vec<_> = TRICKY.iter().copied().chain([example; 60]).collect();
    for _ in 0..40_000 {
        let text = texts[random.below(texts.len())];
        let text = damaged(&mut random, text);
        read += usize::from(truth(&text).is_some());
        wrong.extend(disagreement(&text).map(|why| (text, why)));
    }
    assert!(read > 8_000, "only {read} are catalogs");
    assert!(
        wrong.is_empty(),
        "{} of {read}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(8)]
    );
}
