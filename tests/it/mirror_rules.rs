//! Mirror rules, and what becomes of images by them: `testdata/mirror_rules/<situation>.yaml`.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use kubectl_olm::{
    image::ImageReference,
    images::mirror::{MirrorRules, Mirrored, MirroredSource},
    limits::Limits,
    manifest::yaml,
    problem::Problem,
    source::{credentials::Environment, mirrors::Mirrors},
};
use serde::Deserialize;

use super::program::root;

/// What stands for a digest in cases: the algorithm and one digit, 64 times.
const DIGESTS: [(&str, char); 2] = [("sha256:AAA", 'a'), ("sha256:BBB", 'b')];

/// Rules, and what becomes of images by them. In texts, `sha256:AAA` and `sha256:BBB` stand for whole digests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Who says that this is right.
    #[serde(default, rename = "oracle")]
    _oracle: Option<String>,
    /// The files, read in the order of their names; those below a folder are read as a folder.
    files: BTreeMap<String, String>,
    /// What is told of them, in order.
    #[serde(default)]
    problems: Vec<String>,
    /// The sources, as a node has them.
    merged: Option<Vec<Source>>,
    /// What becomes of images: what they are called at their mirror, `other form`, or `nowhere`.
    #[serde(default)]
    images: BTreeMap<String, String>,
    /// The registries.conf of this machine.
    registries_conf: Option<String>,
    /// Where images are asked for, in order, with `insecure` behind where it is so; or why they are not.
    #[serde(default)]
    places: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Source {
    source: String,
    #[serde(default)]
    digest: Vec<String>,
    #[serde(default)]
    tag: Vec<String>,
    #[serde(default)]
    never: bool,
}

impl From<MirroredSource> for Source {
    fn from(source: MirroredSource) -> Self {
        Self {
            source: source.source,
            digest: source.digest_mirrors,
            tag: source.tag_mirrors,
            never: source.never_contact_source,
        }
    }
}

#[test]
fn images_are_mirrored_as_nodes_do_it() {
    let mut paths: Vec<_> = fs::read_dir(root().join("testdata/mirror_rules"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 30, "cases are missing");
    let mut wrong = vec![];
    for path in paths {
        let differences = differences(&case(&path));
        let shown = differences
            .iter()
            .map(|difference| format!("{}: {difference}", path.display()));
        wrong.extend(shown);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn case(path: &Path) -> Case {
    let mut text = fs::read_to_string(path).expect("a case");
    for (short, digit) in DIGESTS {
        text = text.replace(short, &format!("sha256:{}", String::from(digit).repeat(64)));
    }
    let documents = yaml::read(text.as_bytes(), &Limits::DEFAULT).expect("YAML");
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn image(text: &str) -> ImageReference {
    ImageReference::parse(text).expect("an image")
}

/// What is otherwise than the case says.
fn differences(case: &Case) -> Vec<String> {
    let (rules, problems) = read(&case.files);
    let mut wrong = vec![];
    if problems != case.problems {
        wrong.push(format!("told is\n{}", problems.join("\n")));
    }
    let merged: Vec<_> = rules
        .sources()
        .values()
        .cloned()
        .map(Source::from)
        .collect();
    if case.merged.as_ref().is_some_and(|wanted| *wanted != merged) {
        wrong.push(format!("merged is {merged:#?}"));
    }
    for (text, wanted) in &case.images {
        let found = match rules.mirrored(&image(text)) {
            Mirrored::At(image) => image.to_string(),
            Mirrored::OtherForm => "other form".to_owned(),
            Mirrored::Nowhere => "nowhere".to_owned(),
        };
        if found != *wanted {
            wrong.push(format!("{text} is {found}"));
        }
    }
    let conf = case.registries_conf.as_deref();
    let mirrors = registries_conf(conf.unwrap_or_default()).with(rules);
    for (text, wanted) in &case.places {
        let found = match mirrors.places(&image(text).normalized()) {
            Ok(places) => places
                .iter()
                .map(|place| {
                    let insecure = if place.insecure { " insecure" } else { "" };
                    format!("{}{insecure}", place.image)
                })
                .collect(),
            Err(error) => vec![without_folder(&error.to_string())],
        };
        if found != *wanted {
            wrong.push(format!("{text} is asked for at {found:#?}"));
        }
    }
    wrong
}

/// A message that names the file of this machine without its folder.
fn without_folder(message: &str) -> String {
    let words = message.split(' ');
    let words = words.map(|word| {
        word.rsplit_once("/registries.conf")
            .map_or(word, |_| "registries.conf")
    });
    words.collect::<Vec<_>>().join(" ")
}

fn read(files: &BTreeMap<String, String>) -> (MirrorRules, Vec<String>) {
    let mut rules = MirrorRules::default();
    let mut problems = vec![];
    let mut folders: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        match path.split_once('/') {
            Some((folder, _)) => folders.entry(folder).or_default().push((path, text)),
            None => {
                let read = rules.add_files(path, &[(path, text)], &Limits::DEFAULT);
                problems.extend(read.err().unwrap_or_default());
            }
        }
    }
    for (folder, files) in folders {
        let read = rules.add_files(folder, &files, &Limits::DEFAULT);
        problems.extend(read.err().unwrap_or_default());
    }
    let told = problems.iter().map(Problem::to_string).collect();
    (rules, told)
}

fn registries_conf(text: &str) -> Mirrors {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("registries.conf");
    fs::write(&path, text).expect("a file");
    let environment = Environment {
        containers_registries_conf: Some(path),
        ..Environment::default()
    };
    Mirrors::read(&environment).expect("a configuration")
}

/// With every rule in one source, as many circles as can be, and an image for each of many sources.
#[test]
fn many_rules_take_no_time() {
    let begun = Instant::now();
    let mut text = String::from(
        "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata:\n  name: many\nspec:\n  imageDigestMirrors:\n",
    );
    for number in 0..1_000 {
        text +=
            &format!("  - source: quay.io/team-{number}\n    mirrors: [m.example.com/{number}]\n");
        let (next, before) = ((number * 7 + 1) % 1_000, (number * 13) % 1_000);
        text += &format!(
            "  - source: quay.io/all\n    mirrors: [m{number}.example.com, m{next}.example.com, m{before}.example.com]\n"
        );
    }
    let mut rules = MirrorRules::default();
    rules
        .add_files("many.yaml", &[("many.yaml", &text)], &Limits::DEFAULT)
        .expect("rules");
    let digest = "a".repeat(64);
    for number in 0..10_000 {
        let team = number % 1_000;
        let asked = format!("quay.io/team-{team}/app-{number}@sha256:{digest}");
        let mirrored = format!("m.example.com/{team}/app-{number}@sha256:{digest}");
        assert_eq!(
            rules.mirrored(&image(&asked)),
            Mirrored::At(image(&mirrored))
        );
    }
    let all = rules.sources().get("quay.io/all");
    assert_eq!(all.expect("a source").digest_mirrors.len(), 1_000);
    // It takes a fraction of that, and hours if each rule were compared with each image.
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

/// What a real mapping of thousands of lines is.
#[test]
fn many_lines_take_no_time() {
    let begun = Instant::now();
    let lines: String = (0..20_000)
        .map(|number| {
            format!(
                "docker://quay.io/a/b-{}@sha256:{number:064x}=docker://m.example.com/a/b-{}:{number:x}\n",
                number % 500,
                number % 500
            )
        })
        .collect();
    let mut rules = MirrorRules::default();
    rules
        .add_files("mapping.txt", &[("mapping.txt", &lines)], &Limits::DEFAULT)
        .expect("rules");
    for number in 0..20_000 {
        let name = format!("a/b-{}@sha256:{number:064x}", number % 500);
        assert_eq!(
            rules.mirrored(&image(&format!("quay.io/{name}"))),
            Mirrored::At(image(&format!("m.example.com/{name}")))
        );
    }
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}
