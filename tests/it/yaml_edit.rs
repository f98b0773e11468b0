//! Values are changed in texts whose comments and layout stay.
//!
//! A case in `testdata/yaml_edit/<situation>.yaml` is a text, what changes in one of its documents, and the text that
//! comes of it. Real files and damaged ones are changed too.

use std::{fs, path::PathBuf};

use kubectl_olm::{
    images::pin::{Pins, pin_file, wanted},
    limits::Limits,
    manifest::{Manifest, yaml},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    corpus::{cases, corpus},
    program::root,
    random::Random,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    text: String,
    /// Which document is changed, from 0.
    #[serde(default)]
    document: usize,
    /// New values by JSON pointer; a map gets a key that it does not have, and one that becomes null goes.
    set: Map<String, Value>,
    /// The text that comes of it; null when there is no way.
    expected: Option<String>,
}

/// Sets what a pointer means; null takes a key out.
fn set(value: &mut Value, pointer: &str, to: &Value) {
    if let Some(found) = value.pointer_mut(pointer)
        && !to.is_null()
    {
        *found = to.clone();
        return;
    }
    let (above, key) = pointer.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/").replace("~0", "~");
    let map = value.pointer_mut(above).and_then(Value::as_object_mut);
    let map = map.expect("a map around a new key");
    match to {
        Value::Null => map.remove(&key),
        _ => map.insert(key, to.clone()),
    };
}

fn documents(text: &str) -> Vec<Value> {
    let read = yaml::read(text.as_bytes(), &Limits::DEFAULT).unwrap_or_default();
    read.into_iter().map(|document| document.value).collect()
}

#[test]
fn texts_change_as_each_case_expects() {
    let folder = root().join("testdata/yaml_edit");
    let mut wrong = vec![];
    let mut count = 0;
    let entries = fs::read_dir(folder).expect("cases").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a case");
        for document in documents(&text) {
            count += 1;
            let case: Case = serde_json::from_value(document).expect("a case");
            let mut to = documents(&case.text)
                .get(case.document)
                .cloned()
                .unwrap_or_else(|| panic!("{}: no such document", path.display()));
            for (pointer, value) in &case.set {
                set(&mut to, pointer, value);
            }
            let edited = yaml::edit(&case.text, case.document, &to, &Limits::DEFAULT);
            if edited != case.expected {
                let edited = edited.as_deref().unwrap_or("none");
                wrong.push(format!("{}: {:?}\n{edited}", path.display(), case.text));
            }
        }
    }
    assert!(count >= 30, "cases are missing: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The texts of all ClusterServiceVersions of the corpus.
fn real_files() -> Vec<(PathBuf, String)> {
    let Some(corpus) = corpus() else {
        return vec![];
    };
    let mut files = vec![];
    for case in cases(&corpus) {
        let folder = corpus
            .join("bundles")
            .join(case.operator)
            .join(case.version);
        for entry in fs::read_dir(folder.join("manifests"))
            .expect("manifests")
            .flatten()
        {
            let text = fs::read_to_string(entry.path()).expect("a text");
            let is_csv = |value: &Value| value["kind"] == "ClusterServiceVersion";
            if documents(&text).iter().any(is_csv) {
                files.push((entry.path(), text));
            }
        }
    }
    files
}

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// An image by a digest that tells by what it was named.
fn by_digest(image: &str) -> String {
    let name = image.split('@').next().unwrap_or_default();
    let path = name.rfind('/').unwrap_or(0);
    let tag = name[path..].find(':').map_or(name.len(), |at| path + at);
    format!("{}{DIGEST}", &name[..tag])
}

#[test]
fn corpus_is_pinned_with_its_layout_kept() {
    let (mut files, mut conflicts, mut rewritten, mut others) = (0, 0, vec![], vec![]);
    for (path, text) in real_files() {
        let name = path.display().to_string();
        let manifests = documents(&text)
            .into_iter()
            .map(|it| Manifest::generated(it, "a test"));
        let mut pins = Pins::default();
        for image in wanted(&manifests.collect::<Vec<_>>()) {
            pins.insert(&image.image, by_digest(&image.image));
        }
        files += 1;
        let Ok(pinned) = pin_file(&name, &text, &pins, &Limits::DEFAULT) else {
            conflicts += 1;
            continue;
        };
        if !pinned.keeps_layout {
            rewritten.push(name.clone());
        }
        let about = lines_about_something_else(&text, &pinned.text);
        others.extend(about.map(|line| format!("{name}: {line}")));
        let again = pin_file(&name, &pinned.text, &pins, &Limits::DEFAULT);
        assert_eq!(again.map(|again| again.text), Ok(pinned.text), "{name}");
    }
    eprintln!(
        "pin: {files} files, {conflicts} with conflicts, {} written anew",
        rewritten.len()
    );
    assert!(rewritten.is_empty(), "{rewritten:#?}");
    assert!(
        conflicts * 100 <= files,
        "{conflicts} of {files} are refused"
    );
    let first = &others[..others.len().min(20)];
    assert!(others.is_empty(), "{} lines: {first:#?}", others.len());
}

/// Lines that are gone, or new, and are neither about an image nor of the list of them.
fn lines_about_something_else<'t>(
    before: &'t str,
    after: &'t str,
) -> impl Iterator<Item = String> + 't {
    let mut counts: std::collections::BTreeMap<&str, i64> = std::collections::BTreeMap::new();
    for line in before.lines() {
        *counts.entry(line).or_default() -= 1;
    }
    for line in after.lines() {
        *counts.entry(line).or_default() += 1;
    }
    let is_other = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        !line.starts_with("name: ") && line != "relatedImages:" && line != "relatedImages: []"
    };
    let differ = counts.into_iter().filter(|(_, count)| *count != 0);
    let differ = differ.filter(move |(line, count)| {
        is_other(line) && !(line.contains('/') && (*count < 0 || line.contains("@sha256:")))
    });
    differ.map(|(line, count)| format!("{count:+} {line}"))
}

/// Pieces that mean something to YAML, to be put into texts that were well.
const PIECES: &[&str] = &[
    "\n", "\r\n", "\t", " ", "  ", "- ", ": ", "#", " #", "&a ", "*a", "!!str ", "!", "|", ">-",
    "|2+\n", "'", "\"", "\\", "{", "}", "[", "]", ",", "? ", "<<: *a\n", "\n---\n", "\n...\n", "%",
    "\u{feff}", "\u{85}", "\u{2028}", "é", "😀", "\r", "null", "~", "`", "@",
];

/// A text with some of its bytes gone, doubled, or something between them.
fn damaged(text: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..random.below(4) {
        let boundary = |at: usize| {
            (0..=at)
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0)
        };
        let from = boundary(random.below(text.len() + 1));
        let to = boundary((from + random.below(20)).min(text.len())).max(from);
        let piece = match random.below(3) {
            0 => String::new(),
            1 => text[from..to].repeat(2),
            _ => PIECES[random.below(PIECES.len())].to_owned(),
        };
        text.replace_range(from..to, &piece);
    }
    text
}

/// Changes some of the texts in a value, and adds keys and items.
fn change(value: &mut Value, random: &mut Random) {
    match value {
        Value::String(text) if random.below(4) == 0 => *text = damaged(text, random),
        Value::Array(items) => {
            items.iter_mut().for_each(|item| change(item, random));
            match random.below(8) {
                0 => items.push(json!({"name": "new", "image": "x.io/y@1"})),
                1 => items.insert(0, json!("first")),
                2 => drop(items.pop()),
                3 => items.reverse(),
                _ => {}
            }
        }
        Value::Object(map) => {
            map.values_mut().for_each(|value| change(value, random));
            match random.below(8) {
                0 => drop(map.insert("new".to_owned(), json!([["x"], {"y": {}}, "z\n"]))),
                1 => drop(map.insert("a".to_owned(), json!("5"))),
                _ => {}
            }
        }
        _ => {}
    }
}

#[test]
fn damaged_texts_change_as_wanted_or_not_at_all() {
    let mut texts = vec![];
    for entry in fs::read_dir(root().join("testdata/yaml_edit"))
        .expect("cases")
        .flatten()
    {
        let text = fs::read_to_string(entry.path()).expect("a case");
        texts.extend(
            documents(&text)
                .iter()
                .filter_map(|case| case["text"].as_str().map(str::to_owned)),
        );
    }
    let mut random = Random::new(7);
    let (mut tried, mut edited) = (0, 0);
    for round in 0..20_000 {
        let text = damaged(&texts[round % texts.len()], &mut random);
        let before = documents(&text);
        let at = random.below(before.len());
        let Some(mut wanted) = before.get(at).cloned() else {
            continue;
        };
        change(&mut wanted, &mut random);
        tried += 1;
        if let Some(result) = yaml::edit(&text, at, &wanted, &Limits::DEFAULT) {
            edited += 1;
            let mut expected = before;
            expected[at] = wanted;
            assert_eq!(documents(&result), expected, "{text:?} became {result:?}");
        }
    }
    eprintln!("edit: {edited} of {tried} damaged texts");
    assert!(edited > tried / 2, "{edited} of {tried}");
}
