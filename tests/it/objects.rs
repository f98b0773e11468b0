//! Manifests and what is read from them, and that nothing of a Secret is ever told.
//!
//! `testdata/objects/<situation>.yaml` holds files, the problems that they must be told of, every line of them, and the
//! objects that are kept.

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubectl_olm::{
    install::Objects,
    limits::Limits,
    manifest::{Manifest, yaml},
    problem::Problem,
};
use serde::Deserialize;

use super::{program::root, random::Random};

/// One situation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The files, read in the order of their names.
    files: BTreeMap<String, String>,
    /// What is told, in order.
    #[serde(default)]
    problems: Vec<String>,
    /// The objects that are kept, by the list that keeps them.
    #[serde(default)]
    objects: BTreeMap<String, Vec<String>>,
}

#[test]
fn manifests_are_read_as_each_case_expects() {
    let mut cases: Vec<_> = fs::read_dir(root().join("testdata/objects"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 35, "cases are missing");
    let mut wrong = vec![];
    for path in cases {
        let case = case(&path);
        let (problems, objects) = read(&case.files);
        if problems != case.problems || objects != case.objects {
            wrong.push(format!(
                "{}\n{}\n{objects:#?}",
                path.display(),
                problems.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn case(path: &Path) -> Case {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is told of some files, and the objects that are kept of them.
fn read(files: &BTreeMap<String, String>) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let (mut objects, mut problems) = (Objects::default(), vec![]);
    for (path, text) in files {
        objects.read(path, text.as_bytes(), &Limits::DEFAULT, &mut problems);
    }
    problems.extend(objects.left_out());
    problems.sort();
    let told = problems.iter().map(Problem::to_string).collect();
    (told, kept(&objects))
}

fn kept(objects: &Objects) -> BTreeMap<String, Vec<String>> {
    let lists = [
        ("catalog_sources", &objects.catalog_sources),
        ("subscriptions", &objects.subscriptions),
        ("operator_groups", &objects.operator_groups),
        (
            "cluster_service_versions",
            &objects.cluster_service_versions,
        ),
        ("cluster_catalogs", &objects.cluster_catalogs),
        ("cluster_extensions", &objects.cluster_extensions),
        ("bundles", &objects.bundles),
        ("bundle_deployments", &objects.bundle_deployments),
        ("namespaces", &objects.namespaces),
        ("secrets", &objects.secrets),
        ("proxies", &objects.proxies),
        ("mirror_sets", &objects.mirror_sets),
    ];
    let names = |list: &[Manifest]| list.iter().map(shown).collect();
    let filled = lists.into_iter().filter(|(_, list)| !list.is_empty());
    filled
        .map(|(name, list)| (name.to_owned(), names(list)))
        .collect()
}

/// An object as a case writes it: where it is from, its namespace and its name.
fn shown(manifest: &Manifest) -> String {
    format!(
        "{}: {}/{}",
        manifest.origin,
        manifest.namespace(),
        manifest.name()
    )
}

/// What is emitted again must not have lost what only the cluster wrote.
#[test]
fn objects_are_kept_as_they_were_written() {
    let text = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata:\n  name: g\n  uid: u\n  labels: {}\nspec:\n  targetNamespaces: []\nstatus:\n  lastUpdated: null\n  later: 1\n";
    let (mut objects, mut problems) = (Objects::default(), vec![]);
    objects.read("g.yaml", text.as_bytes(), &Limits::DEFAULT, &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let written = yaml::read(text.as_bytes(), &Limits::DEFAULT)
        .expect("YAML")
        .remove(0)
        .value;
    let kept = objects.operator_groups.remove(0).into_value();
    assert_eq!(kept, written);
}

#[test]
fn ten_thousand_objects_take_no_time() {
    let subscription = |number: usize| {
        format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: s{number}\n  namespace: ops\nspec:\n  name: queue\n  source: cat\n  sourceNamespace: olm\n"
        )
    };
    let documents: Vec<_> = (0..10_000).map(subscription).collect();
    let item = |document: &String| format!("- {}", document.replace('\n', "\n  "));
    let items: Vec<_> = documents.iter().map(item).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", items.join("\n"));
    let broken = documents.join("---\n").replace("source:", "soruce:");
    let object =
        r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","a":"PAD"}]}"#;
    let stream = format!("{}\n", object.replace("PAD", &"a".repeat(300))).repeat(10_000);
    for (text, kept) in [
        (stream, 0),
        (documents.join("---\n"), 10_000),
        (list, 10_000),
        (broken, 0),
    ] {
        let (mut objects, mut problems) = (Objects::default(), vec![]);
        let start = Instant::now();
        objects.read("all.yaml", text.as_bytes(), &Limits::DEFAULT, &mut problems);
        let spent = start.elapsed();
        println!(
            "{} bytes: {spent:?}, {} problems",
            text.len(),
            problems.len()
        );
        assert_eq!(objects.subscriptions.len(), kept);
        assert!(problems.len() <= 1001);
        assert!(spent.as_secs() < 5, "{spent:?}");
    }
}

#[test]
fn lists_in_lists_are_bounded() {
    let limits = Limits {
        file_objects: 5,
        ..Limits::DEFAULT
    };
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}"#;
    let list = |inside: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":[{inside}]}}"#);
    let three = list(&[namespace; 3].join(","));
    let six = list(&[three.as_str(), three.as_str()].join(","));
    let (mut objects, mut problems) = (Objects::default(), vec![]);
    objects.read("six.json", six.as_bytes(), &limits, &mut problems);
    let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
    assert_eq!(
        told,
        [
            "error[limit]: six.json: the file has more objects than the limit of 5 (--no-limits lifts it for content you trust)"
        ]
    );
    let deep = (0..120).fold(namespace.to_owned(), |inside, _| list(&inside));
    let mut problems = vec![];
    Objects::default().read(
        "deep.json",
        deep.as_bytes(),
        &Limits::DEFAULT,
        &mut problems,
    );
    assert_eq!(problems.len(), 1, "nesting is bounded");
}

const CANARY: &str = "c4nary-in-a-coal-mine";

/// A Secret and what stands around it, in the ways in which people write them.
fn with_canary() -> Vec<String> {
    let encoded = STANDARD.encode(CANARY);
    let catalog = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata:\n  name: cat\nspec:\n  sourceType: grpc\n  image: quay.io/a/b:v1\n  secrets: [pull]\n";
    let head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: pull\n";
    vec![
        format!(
            "{catalog}---\n{head}type: Opaque\ndata:\n  password: {encoded}\nstringData:\n  other: {CANARY}\n"
        ),
        format!(
            "stringData:\n  password: \"{CANARY}\"\n{head}  annotations:\n    last: '{{\"data\":\"{CANARY}\"}}'\n---\n{catalog}"
        ),
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {{\"name\": \"pull\"}},\n \"data\": {{\"password\": \"{encoded}\"}}, \"stringData\": {{\"a\": \"{CANARY}\"}}}}\n"
        ),
        format!(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: pull}}\n  stringData:\n    a: |\n      {CANARY}\n  dta:\n    b: {encoded}\n"
        ),
        format!("{head}data:\n  password: !!int {CANARY}\n"),
        format!("{head}data: [{CANARY}]\nstringData: {CANARY}\n"),
        format!("{head}data:\n  {CANARY}: 5\n{CANARY}: x\n"),
    ]
}

fn assert_silent(text: &[u8]) {
    let (mut objects, mut problems) = (Objects::default(), vec![]);
    objects.read("s.yaml", text, &Limits::DEFAULT, &mut problems);
    problems.extend(objects.left_out());
    let told: String = problems
        .iter()
        .map(|problem| format!("{problem}\n{problem:?}\n"))
        .collect();
    for secret in [CANARY, &STANDARD.encode(CANARY)] {
        assert!(
            !told.contains(secret),
            "{told}\n{}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn a_secret_that_is_cut_anywhere_is_never_told() {
    for text in with_canary() {
        for end in 0..=text.len() {
            assert_silent(&text.as_bytes()[..end]);
            assert_silent(&text.as_bytes()[end..]);
        }
    }
}

#[test]
fn a_secret_in_which_anything_is_mistyped_is_never_told() {
    let mut random = Random::new(20);
    let typed = b"\n\t :-#'\"{}[],&*!|>%@`?a0\x00\xff";
    for text in with_canary() {
        for _ in 0..3000 {
            let mut text = text.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let at = random.below(text.len());
                let byte = typed[random.below(typed.len())];
                match random.below(3) {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    _ => drop(text.remove(at)),
                }
            }
            assert_silent(&text);
        }
    }
}
