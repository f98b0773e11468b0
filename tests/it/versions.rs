//! Compares versions and ranges with Go's: real ones, tricky ones and made up ones are read by the libraries that OLM
//! uses and by ours, and tested against the versions around those that they name.
//!
//! Go's side is the program in `tests/tools/versions-oracle` (blang/semver v4.0.0, Masterminds/semver v3.5.0). The
//! tricky ones are `testdata/versions/tricky.txt`, to which a case is added without writing Rust.

use std::{collections::BTreeSet, fs};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubectl_olm::{
    limits::Limits,
    manifest::yaml,
    versions::{self, Constraint, Range, Version},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{oracle::Oracle, program::root, random::Random};

/// What a text is read as; the oracle knows them by the same names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Dialect {
    Parse,
    Tolerant,
    Compare,
    Range,
    Constraint,
}

const DIALECTS: [Dialect; 5] = [
    Dialect::Parse,
    Dialect::Tolerant,
    Dialect::Compare,
    Dialect::Range,
    Dialect::Constraint,
];

#[derive(Serialize)]
struct Question<'a> {
    dialect: Dialect,
    text: &'a str,
    versions: &'a [String],
}

/// What either side makes of a text.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Answer {
    refused: bool,
    version: String,
    answers: Vec<i8>,
}

/// The same question, answered by us.
fn ours(question: &Question<'_>) -> Answer {
    let text = question.text;
    let answered = match question.dialect {
        Dialect::Parse => versions::parse(text).map(as_version),
        Dialect::Tolerant => versions::parse_tolerant(text).map(as_version),
        Dialect::Compare => versions::parse(text)
            .map(|version| answers(question, |other| versions::compare(&version, other) as i8)),
        Dialect::Range => Range::parse(text)
            .map(|range| answers(question, |version| i8::from(range.contains(version)))),
        Dialect::Constraint => Constraint::parse(text)
            .map(|constraint| answers(question, |version| i8::from(constraint.matches(version)))),
    };
    answered.unwrap_or_else(|_| Answer {
        refused: true,
        ..Answer::default()
    })
}

fn as_version(version: Version) -> Answer {
    Answer {
        version: version.to_string(),
        ..Answer::default()
    }
}

fn answers(question: &Question<'_>, answer: impl Fn(&Version) -> i8) -> Answer {
    let versions = question.versions.iter();
    let answers = versions.map(|version| answer(&versions::parse(version).expect("a version")));
    Answer {
        answers: answers.collect(),
        ..Answer::default()
    }
}

/// How many questions were asked and what came of them.
#[derive(Default)]
struct Tally {
    texts: usize,
    accepted: usize,
    answers: usize,
    differences: Vec<String>,
}

impl Tally {
    /// Asks both sides about a text in some dialects.
    fn ask(&mut self, oracle: &mut Oracle, text: &str, dialects: &[Dialect]) {
        let around = versions_around(text);
        self.texts += 1;
        for dialect in dialects {
            let is_version = matches!(dialect, Dialect::Parse | Dialect::Tolerant);
            let question = Question {
                dialect: *dialect,
                text,
                versions: if is_version { &[] } else { &around },
            };
            let (go, ours): (Answer, _) = (oracle.ask(&question), ours(&question));
            self.accepted += usize::from(!go.refused);
            self.answers += go.answers.len();
            if go != ours {
                self.differences.push(difference(&question, &go, &ours));
            }
        }
    }

    fn finish(self, what: &str) {
        eprintln!(
            "{what}: {} texts, accepted {} times, {} answers, {} differences",
            self.texts,
            self.accepted,
            self.answers,
            self.differences.len()
        );
        let first: Vec<_> = self.differences.iter().take(20).cloned().collect();
        assert!(first.is_empty(), "{}", first.join("\n"));
    }
}

fn difference(question: &Question<'_>, go: &Answer, ours: &Answer) -> String {
    let pairs = go.answers.iter().zip(&ours.answers);
    let at = pairs.into_iter().position(|(go, ours)| go != ours);
    let version = at.and_then(|at| question.versions.get(at));
    let (dialect, text) = (question.dialect, question.text);
    match version {
        Some(version) => format!("{dialect:?} {text:?}: not the same for {version}"),
        None => format!(
            "{dialect:?} {text:?}: Go refuses: {} {:?}, we: {} {:?}",
            go.refused, go.version, ours.refused, ours.version
        ),
    }
}

/// The versions that a text names, those beside them, and their pre-releases.
fn versions_around(text: &str) -> Vec<String> {
    let mut found: BTreeSet<String> = ["0.0.0-0", "0.0.0", "0.0.1", "0.1.0", "1.0.0", "7.8.9"]
        .map(str::to_owned)
        .into();
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let named: BTreeSet<_> = text.split(|c| !is_of_number(c)).collect();
    for numbers in named
        .into_iter()
        .filter(|numbers| !numbers.is_empty())
        .take(8)
    {
        let mut numbers = numbers.split('.').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0_u64);
        let (major, minor, patch) = (next(), next(), next());
        let (below, above) = (u64::wrapping_sub, u64::wrapping_add);
        for (major, minor, patch) in [
            (major, minor, patch),
            (major, minor, above(patch, 1)),
            (major, minor, below(patch, 1)),
            (major, above(minor, 1), 0),
            (major, above(minor, 1), patch),
            (major, below(minor, 1), patch),
            (major, minor, 0),
            (major, 0, 0),
            (above(major, 1), 0, 0),
            (above(major, 1), minor, patch),
            (below(major, 1), minor, patch),
        ] {
            let version = format!("{major}.{minor}.{patch}");
            for suffix in ["-0", "-rc.1", "-rc.1.1+x", "-z", "+x", ""] {
                found.insert(format!("{version}{suffix}"));
            }
        }
    }
    // The whole words of the text, which bring its own pre-releases.
    let words = text.split([' ', ',', '|', '<', '>', '=', '!', '~', '^']);
    let words = words.filter_map(|word| versions::parse_tolerant(word).ok());
    found.extend(words.take(8).map(|version| version.to_string()));
    found.into_iter().collect()
}

#[test]
fn tricky_texts_mean_what_they_mean_in_go() {
    let (mut oracle, mut tally) = (Oracle::start("versions-oracle", &[]), Tally::default());
    for text in tricky() {
        tally.ask(&mut oracle, &text, &DIALECTS);
    }
    tally.finish("tricky versions and ranges");
}

fn tricky() -> Vec<String> {
    let path = root().join("testdata/versions/tricky.txt");
    let table = fs::read_to_string(path).expect("the table");
    let lines = table.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.to_owned()))
        .collect()
}

#[test]
fn corpus_ranges_mean_what_they_mean_in_go() {
    let Some(corpus) = super::corpus::corpus() else {
        return;
    };
    let mut found = BTreeSet::new();
    let mut folders = vec![corpus];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let extension = path.extension().unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if extension == "yaml" || extension == "json" {
                let text = fs::read(&path).expect("readable");
                let documents = yaml::read(&text, &Limits::NONE).unwrap_or_default();
                for document in documents {
                    collect(&document.value, &mut found);
                }
            }
        }
    }
    assert!(
        found.len() > 800,
        "the corpus is not whole: {}",
        found.len()
    );
    let (mut oracle, mut tally) = (Oracle::start("versions-oracle", &[]), Tally::default());
    for text in &found {
        tally.ask(&mut oracle, text, &DIALECTS);
    }
    tally.finish("versions and ranges of the corpus");
}

/// The ranges and versions in a document, also in the objects that a catalog holds as base64.
fn collect(value: &Value, found: &mut BTreeSet<String>) {
    const NAMES: [&str; 5] = [
        "skipRange",
        "olm.skipRange",
        "versionRange",
        "minKubeVersion",
        "version",
    ];
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if NAMES.contains(&name.as_str()) => {
                        found.insert(text.clone());
                    }
                    Value::String(text) if name == "data" => {
                        let object = STANDARD.decode(text).unwrap_or_default();
                        let object: Value = serde_json::from_slice(&object).unwrap_or_default();
                        collect(&object, found);
                    }
                    _ => collect(field, found),
                }
            }
        }
        _ => {}
    }
}

impl Random {
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Up to so many of some words, joined by nothing.
    fn words(&mut self, most: usize, words: &[&str]) -> String {
        let count = self.below(most) + 1;
        (0..count).map(|_| self.of(words)).collect()
    }

    /// What looks like a range: comparators, versions with gaps in them, and what stands between.
    fn range(&mut self) -> String {
        const OPERATORS: &[&str] = &[
            "", "", "", "=", "==", "!", "!=", ">", ">=", "<", "<=", "~", "^", "~>", "=>", "=<",
        ];
        const BETWEEN: &[&str] = &[
            " ", " ", " ", ", ", ",", " || ", " || ", "||", " - ", "  ", " | ", " ,",
        ];
        let mut text = String::new();
        for index in 0..=self.below(4) {
            if index > 0 {
                text.push_str(self.of(BETWEEN));
            }
            text.push_str(self.of(OPERATORS));
            text.push_str(self.of(&["", "", "", "", " ", "v", "\t"]));
            text.push_str(&self.version());
        }
        text
    }

    fn version(&mut self) -> String {
        const NUMBERS: &[&str] = &["0", "1", "2", "3", "10", "x", "x", "*", "X", "01", "-1"];
        const SUFFIXES: &[&str] = &[
            "", "", "", "", "", "-0", "-rc.1", "-rc.x", "-x", "+x", "+1", "-rc.1+b", "-01", "-",
        ];
        let count = self.of(&[1, 2, 3, 3, 3, 3, 4]);
        // Mostly numbers, so that whole ranges are often read by both sides.
        let numbers: Vec<_> = (0..count)
            .map(|_| {
                let plain = self.below(5) > 0;
                self.of(if plain { &NUMBERS[..5] } else { NUMBERS })
            })
            .collect();
        numbers.join(".") + self.of(SUFFIXES)
    }
}

#[test]
fn made_up_texts_mean_what_they_mean_in_go() {
    const CHARACTERS: &[&str] = &[
        "0", "1", "2", "9", "x", "X", "*", ".", ".", "-", "+", "v", "a", " ", " ", "<", ">", "=",
        "!", "~", "^", "|", "||", ",", "\t", "é",
    ];
    let (mut oracle, mut tally) = (Oracle::start("versions-oracle", &[]), Tally::default());
    let mut random = Random::new(0x6f6c_6d76_3076_3121);
    for _ in 0..20_000 {
        let range = random.range();
        tally.ask(&mut oracle, &range, &[Dialect::Range, Dialect::Constraint]);
    }
    for _ in 0..10_000 {
        let version = random.version();
        tally.ask(&mut oracle, &version, &DIALECTS);
    }
    for _ in 0..20_000 {
        let text = random.words(10, CHARACTERS);
        tally.ask(&mut oracle, &text, &DIALECTS);
    }
    tally.finish("made up versions and ranges");
}

#[test]
fn long_texts_mean_what_they_mean_in_go() {
    let (mut oracle, mut tally) = (Oracle::start("versions-oracle", &[]), Tally::default());
    for word in [
        "1",
        "1.",
        "x",
        ".x",
        "1.0.0 ",
        "1.0.x ",
        "<",
        " ",
        "- ",
        "1 - 2 ",
        "1.0.0 || ",
        "||",
        "1,",
        "1.0.0-a.",
    ] {
        for bytes in [256, 257, 512, 513, 64 << 10] {
            let text = word.repeat(bytes / word.len() + 1);
            for (text, start) in [(&text[..bytes], ""), (&text[..bytes - 6], "1.0.0-")] {
                tally.ask(&mut oracle, &format!("{start}{text}"), &DIALECTS);
            }
        }
    }
    for alternatives in [32, 33] {
        let text = vec!["1.0.0"; alternatives].join(" || ");
        tally.ask(&mut oracle, &text, &DIALECTS);
    }
    tally.finish("long versions and ranges");
}
