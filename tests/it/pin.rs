//! Digests in the place of tags: what changes, what is listed, what is refused and what is told.
//!
//! `testdata/pin/<situation>.yaml` is a map, objects, and what comes of them. In all of them `digest(a)` stands for a digest
//! of sixty-four times that digit. Whatever a case says, pinning a second time changes nothing, and what is refused is as
//! it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use kubectl_olm::{
    image::{ImageReference, canonical, split_scheme},
    images::{
        self, Role,
        pin::{self, Pins},
    },
    limits::Limits,
    manifest::{Manifest, Origin, yaml},
    oci::digest::Digest,
    problem::Problem,
};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{corpus, program::root};

/// Objects, and what becomes of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    pins: BTreeMap<String, String>,
    objects: Vec<Value>,
    /// The position of an object and a pointer into it, and the value that is there afterwards. `spec.relatedImages` of the
    /// first object is not among them.
    #[serde(default)]
    changes: BTreeMap<String, Value>,
    /// `spec.relatedImages` of the first object afterwards.
    related_images: Option<Value>,
    /// Why it is refused.
    #[serde(default)]
    problems: Vec<String>,
    /// The images that want a digest, and where each is named.
    wanted: Option<Vec<String>>,
    unpinned: Option<Vec<String>>,
    lint: Option<Vec<String>>,
    /// The annotation by which the first object says that it is for disconnected clusters, or an empty text.
    claim: Option<String>,
    /// The warning about that, or an empty text.
    claim_broken: Option<String>,
}

#[test]
fn each_case_becomes_what_it_says() {
    let mut paths: Vec<_> = fs::read_dir(root().join("testdata/pin"))
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 40, "cases are missing");
    let wrong: Vec<_> = paths
        .iter()
        .map(|path| (path, differences(&read(path))))
        .filter(|(_, differences)| !differences.is_empty())
        .map(|(path, differences)| format!("{}:\n{}", path.display(), differences.join("\n")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn read(path: &Path) -> Case {
    let text = fs::read_to_string(path).expect("a case");
    let mut parts = text.split("digest(");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digit, rest) = part.split_once(')').expect("a digest ends");
        expanded += &format!("sha256:{}{rest}", digit.repeat(64));
    }
    let documents = yaml::read(expanded.as_bytes(), &Limits::DEFAULT).expect("YAML");
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is otherwise than the case says.
fn differences(case: &Case) -> Vec<String> {
    let objects = case.objects.iter().enumerate();
    let before: Vec<_> = objects
        .map(|(position, object)| {
            let path = format!("object-{position}.yaml").into();
            Manifest::new(object.clone(), Origin::File { path, line: 1 })
        })
        .collect();
    let mut pins = Pins::default();
    for (image, pinned) in &case.pins {
        pins.insert(image, pinned.clone());
    }
    let mut told = vec![];
    let mut expect = |what: &str, found: Value, expected: Value| {
        if found != expected {
            told.push(format!("{what}: {found:#}\ninstead of {expected:#}"));
        }
    };
    if let Some(wanted) = &case.wanted {
        expect("wanted", json!(wanted_of(&before)), json!(wanted));
    }
    if let Some(unpinned) = &case.unpinned {
        expect("unpinned", texts(&pin::unpinned(&before)), json!(unpinned));
    }
    if let Some(lint) = &case.lint {
        expect("lint", texts(&pin::lint(&before)), json!(lint));
    }
    if let Some(claim) = &case.claim {
        let found = pin::claims_disconnected(&before[0]).unwrap_or_default();
        expect("claim", json!(found), json!(claim));
    }
    if let Some(broken) = &case.claim_broken {
        let found = pin::claim_broken(&before).map(|problem| problem.to_string());
        expect(
            "claim_broken",
            json!(found.unwrap_or_default()),
            json!(broken),
        );
    }
    let mut after = before.clone();
    let problems = pin::pin(&mut after, &pins).err().unwrap_or_default();
    expect("problems", texts(&problems), json!(case.problems));
    let changes = changes(&before, &after, |position, _| position == 0);
    expect("changes", json!(changes), json!(case.changes));
    let list = after.first().and_then(related_images);
    let unchanged = before.first().and_then(related_images);
    let expected = case.related_images.clone().or(unchanged);
    expect("related_images", json!(list), json!(expected));
    if problems.is_empty() {
        let mut again = after.clone();
        let problems = pin::pin(&mut again, &pins).err().unwrap_or_default();
        expect("problems of the second time", texts(&problems), json!([]));
        expect("the second time", values(&again), values(&after));
    }
    told
}

fn texts(problems: &[Problem]) -> Value {
    problems.iter().map(ToString::to_string).collect()
}

fn values(manifests: &[Manifest]) -> Value {
    manifests
        .iter()
        .map(|manifest| Value::Object(manifest.object().clone()))
        .collect()
}

/// `image: role name, role name`.
fn wanted_of(manifests: &[Manifest]) -> Vec<String> {
    let wanted = pin::wanted(manifests);
    let place = |image: &images::ImageUse| format!("{} {}", image.role.word(), image.name);
    let line = |unpinned: &pin::Unpinned| {
        let places: Vec<_> = unpinned.uses.iter().map(place).collect();
        format!("{}: {}", unpinned.image, places.join(", "))
    };
    wanted.iter().map(line).collect()
}

fn related_images(manifest: &Manifest) -> Option<Value> {
    manifest.object().get("spec")?.get("relatedImages").cloned()
}

/// What pinning changed, by object and pointer, except for the lists of the objects that `is_apart` tells.
fn changes(
    before: &[Manifest],
    after: &[Manifest],
    is_apart: impl Fn(usize, &Manifest) -> bool,
) -> BTreeMap<String, Value> {
    let mut changes = BTreeMap::new();
    for (position, (before, after)) in before.iter().zip(after).enumerate() {
        let compared = |manifest: &Manifest| {
            let mut object = manifest.object().clone();
            if let Some(Value::Object(spec)) = object
                .get_mut("spec")
                .filter(|_| is_apart(position, manifest))
            {
                spec.remove("relatedImages");
            }
            Value::Object(object)
        };
        let pointer = position.to_string();
        compare(&pointer, &compared(before), &compared(after), &mut changes);
    }
    changes
}

/// Where two values differ: leaves, or whatever has not the same fields.
fn compare(pointer: &str, before: &Value, after: &Value, changes: &mut BTreeMap<String, Value>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after))
            if before.keys().collect::<Vec<_>>() == after.keys().collect::<Vec<_>>() =>
        {
            for (key, value) in before {
                let key_in_pointer = key.replace('~', "~0").replace('/', "~1");
                compare(
                    &format!("{pointer}/{key_in_pointer}"),
                    value,
                    &after[key],
                    changes,
                );
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (position, (before, after)) in before.iter().zip(after).enumerate() {
                compare(&format!("{pointer}/{position}"), before, after, changes);
            }
        }
        _ if before == after => {}
        _ => {
            changes.insert(pointer.to_owned(), after.clone());
        }
    }
}

#[test]
fn every_text_is_replaced_once() {
    let [one, two] =
        ["1", "2"].map(|digit| format!("quay.io/org/{digit}@sha256:{}", digit.repeat(64)));
    let mut swap = Pins::default();
    swap.insert(&one, two.clone());
    swap.insert(&two, one.clone());
    swap.insert("quay.io/org/one:v1", one.clone());
    let object = |images: [&str; 3], notes: String| {
        let container = |image| json!({"name": "c", "image": image});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"notes": notes}},
            "spec": {"containers": images.map(container)}})
    };
    let before = object(
        [&one, &two, "quay.io/org/one:v1"],
        format!("{one},{two},quay.io/org/one:v1"),
    );
    let mut manifests = [Manifest::generated(before, "a test")];
    pin::pin(&mut manifests, &swap).expect("nothing to refuse");
    let expected = object([&two, &one, &one], format!("{two},{one},{one}"));
    assert_eq!(values(&manifests), json!([expected]));
}

#[test]
fn of_very_many_warnings_of_one_rule_the_number_is_told() {
    let env: Vec<_> = (10..60)
        .map(|number| json!({"name": format!("RELATED_IMAGE_{number}")}))
        .collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "a", "env": env}]}});
    let problems = pin::lint(&[Manifest::generated(pod, "a test")]);
    assert_eq!(problems.len(), 21);
    let counted = problems
        .iter()
        .filter(|problem| problem.message.contains("30 more"));
    assert_eq!(counted.count(), 1);
}

#[test]
fn a_real_bundle_becomes_what_its_authors_published() {
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    let bundle = corpus.join("simple-disconnected-operator");
    let map = fs::read(bundle.join("replacements.json")).expect("the map");
    let pins = Pins::parse(&map).expect("a map");
    assert_eq!(pins.to_json().as_bytes(), map);
    let mut manifests = corpus::manifests(&bundle.join("tagged"));
    let wanted: BTreeSet<_> = pin::wanted(&manifests)
        .into_iter()
        .map(|unpinned| unpinned.image)
        .collect();
    let named: BTreeSet<_> = pins.iter().map(|(image, _)| image.to_owned()).collect();
    assert_eq!(wanted, named);
    assert!(pin::claim_broken(&manifests).is_some());
    pin::pin(&mut manifests, &pins).expect("nothing to refuse");
    assert_eq!(
        values(&manifests),
        values(&corpus::manifests(&bundle.join("published")))
    );
    assert_eq!(pin::unpinned(&manifests), []);
    assert_eq!(pin::claim_broken(&manifests), None);
}

/// What became of a real bundle.
#[derive(Debug)]
enum Outcome {
    Pinned,
    Refused(Vec<String>),
    Wrong(String),
}

#[test]
fn every_real_bundle_is_pinned_or_refused_for_its_names() {
    let Some(corpus) = corpus::corpus() else {
        return;
    };
    let cases = corpus::cases(&corpus);
    let outcomes: Vec<_> = cases
        .par_iter()
        .map(|case| {
            let name = format!("{}/{}", case.operator, case.version);
            let outcome = pinned(&corpus::manifests(&corpus.join("bundles").join(&name)));
            (name, outcome)
        })
        .collect();
    let mut pinned = 0;
    let mut wrong = vec![];
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Pinned => pinned += 1,
            Outcome::Refused(problems) => eprintln!("{name} is refused: {}", problems.join("; ")),
            Outcome::Wrong(what) => wrong.push(format!("{name}: {what}")),
        }
    }
    eprintln!("{pinned} of {} bundles are pinned", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(pinned * 100 >= cases.len() * 99, "{pinned}");
}

/// Pins with made-up digests, and looks at what came of it.
fn pinned(before: &[Manifest]) -> Outcome {
    let mut pins = Pins::default();
    for wanted in pin::wanted(before) {
        if let Ok(reference) = ImageReference::parse(&wanted.image) {
            let digest = Digest::of(wanted.image.as_bytes());
            pins.insert(&wanted.image, format!("{}@{digest}", reference.name()));
        }
    }
    let _ = (
        pin::lint(before),
        pin::unpinned(before),
        pin::claim_broken(before),
    );
    let mut after = before.to_vec();
    if let Err(problems) = pin::pin(&mut after, &pins) {
        if values(before) != values(&after) {
            return Outcome::Wrong("refused, and changed".to_owned());
        }
        return Outcome::Refused(problems.iter().map(ToString::to_string).collect());
    }
    let mut again = after.clone();
    if pin::pin(&mut again, &pins).is_err() || values(&again) != values(&after) {
        return Outcome::Wrong("the second time is another".to_owned());
    }
    let left = pin::unpinned(&after).into_iter().filter(Problem::is_error);
    let is_image = |problem: &Problem| !problem.message.contains("is no image");
    if let Some(problem) = left.into_iter().find(is_image) {
        return Outcome::Wrong(format!("left: {problem}"));
    }
    if let Some(unlisted) = unlisted(&after) {
        return Outcome::Wrong(format!("not listed: {unlisted}"));
    }
    let is_csv = |_, manifest: &Manifest| manifest.kind() == "ClusterServiceVersion";
    for (pointer, value) in &changes(before, &after, is_csv) {
        if let Some(what) = not_an_image(before, pointer, value, &pins) {
            return Outcome::Wrong(format!("{pointer}: {what}"));
        }
    }
    Outcome::Pinned
}

/// An image that a kubelet pulls, and that is not in the list.
fn unlisted(after: &[Manifest]) -> Option<String> {
    let csvs = after
        .iter()
        .filter(|manifest| manifest.kind() == "ClusterServiceVersion");
    for csv in csvs {
        let uses = images::of(csv);
        let mut seen = BTreeSet::new();
        for entry in uses.iter().filter(|image| image.role == Role::RelatedImage) {
            if !seen.insert(canonical(&entry.text)) {
                return Some(format!("{} is there twice", entry.text));
            }
        }
        let mut needed = uses
            .iter()
            .filter(|image| image.role.is_pulled() || image.role == Role::RelatedImageVariable);
        let missing = needed.find(|image| {
            ImageReference::parse(&image.text).is_ok() && !seen.contains(&canonical(&image.text))
        });
        if let Some(image) = missing {
            return Some(image.text.clone());
        }
    }
    None
}

/// Why a text that changed is not the same text with digests in it.
fn not_an_image(before: &[Manifest], pointer: &str, value: &Value, pins: &Pins) -> Option<String> {
    let (position, rest) = pointer.split_once('/')?;
    let object = values(before);
    let old = object
        .pointer(&format!("/{position}/{rest}"))
        .and_then(Value::as_str);
    let (Some(old), Some(new)) = (old, value.as_str()) else {
        return Some("the structure changed".to_owned());
    };
    let (scheme, _) = split_scheme(old);
    if pins
        .get(old)
        .is_some_and(|pinned| format!("{scheme}{pinned}") == new)
    {
        return None;
    }
    if !rest.contains("annotations/") {
        return Some(format!("{old} became {new}"));
    }
    // Taking every digest back out gives the text as it was, but for the tags.
    let mut back = new.to_owned();
    for (image, pinned) in pins.iter() {
        back = back.replace(pinned, image);
    }
    (back != old).then(|| format!("{old} became {new}"))
}
