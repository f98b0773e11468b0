//! What new definitions break: what we find must be what crdify finds, with which OLM v1 checks them. The oracle is the
//! program in `tests/tools/crd-safety-oracle`.
//!
//! `testdata/crd_safety/<situation>.yaml` holds a definition before (`old`) and after (`new`), each as its `spec` with what
//! else it needs, or as the `schema` of the `spec` of its only version, and the `problems` that are told of it. With
//! `objects`, it holds custom resources, and in `refused` what is told of them. In `refusals` is what is told when a server
//! does not take the new definition, given how many custom resources there are.

use std::{collections::BTreeSet, fs};

use kubectl_olm::{
    limits::Limits,
    manifest::yaml,
    review::crd_safety::{against_objects, check, findings, refusals},
};
use nix::time::{ClockId, clock_gettime};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    corpus::{cases, corpus},
    oracle::Oracle,
    program::root,
    random::Random,
};

/// Check, version and path of what is wrong.
type Found = BTreeSet<(String, String, String)>;

#[derive(Deserialize)]
struct Answer {
    findings: Vec<Finding>,
    crashed: bool,
}

#[derive(Deserialize)]
struct Finding {
    check: String,
    version: String,
    path: String,
    text: String,
}

/// A case of `testdata/crd_safety`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The definition that is there; without it, only `objects` are looked at.
    #[serde(default)]
    old: Value,
    new: Value,
    /// The lines of the problems, in order.
    #[serde(default)]
    problems: Vec<String>,
    #[serde(default)]
    objects: Vec<Value>,
    /// The lines of the problems with `objects`.
    #[serde(default)]
    refused: Vec<String>,
    /// What is told when a server refuses the new definition.
    #[serde(default)]
    refusals: Vec<Refusal>,
}

/// What is told when a server refuses a definition.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// How many custom resources there are, where that is known.
    objects: Option<usize>,
    says: Vec<String>,
}

#[test]
fn each_case_is_told_as_it_says_and_found_as_crdify_finds_it() {
    let mut oracle = Oracle::start("crd-safety-oracle", &[]);
    let mut wrong = vec![];
    let folder = root().join("testdata/crd_safety");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 20, "cases are missing");
    for path in paths {
        let text = fs::read(&path).expect("a case");
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
        let case = documents.into_iter().next().expect("a case").value;
        let case: Case = serde_json::from_value(case).expect("a case");
        let new = definition(&case.new);
        let mut lines = |what: &str, expected: &[String], problems: Vec<_>| {
            let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
            if told != expected {
                wrong.push(format!("{}: {what}:\n{}", path.display(), told.join("\n")));
            }
        };
        lines(
            "refused",
            &case.refused,
            against_objects(&new, &case.objects),
        );
        if case.old.is_null() {
            continue;
        }
        let old = definition(&case.old);
        lines("problems", &case.problems, check(&old, &new));
        for refusal in &case.refusals {
            let told = refusals(&old, &new, refusal.objects);
            lines("refusals", &refusal.says, told);
        }
        if new["apiVersion"] != "apiextensions.k8s.io/v1" {
            continue;
        }
        wrong.extend(
            difference(&mut oracle, &old, &new).map(|text| format!("{}: {text}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A whole definition.
fn definition(short: &Value) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Queue", "plural": "queues"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    });
    if let Some(schema) = short.get("schema") {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        definition["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": schema});
    }
    for (field, value) in short.as_object().into_iter().flatten() {
        if field == "spec" {
            for (field, value) in value.as_object().expect("a map") {
                definition["spec"][field] = value.clone();
            }
        } else if field != "schema" {
            definition[field] = value.clone();
        }
    }
    definition
}

/// In what we differ from crdify, if we do.
fn difference(oracle: &mut Oracle, old: &Value, new: &Value) -> Option<String> {
    let answer: Answer = oracle.ask(&json!({"old": old, "new": new}));
    if answer.crashed {
        return None;
    }
    let theirs: Found = answer
        .findings
        .iter()
        .map(|finding| {
            // The path of a field that goes stands in the text.
            let gone = finding.text.strip_prefix("removed field : ");
            let gone = gone.and_then(|gone| gone.split_once(".^"));
            let (version, path) = match gone {
                Some((version, path)) => (version.to_owned(), format!("^{path}")),
                None => (finding.version.clone(), finding.path.clone()),
            };
            (finding.check.clone(), version, path)
        })
        .collect();
    let ours: Found = findings(old, new)
        .into_iter()
        .map(|finding| (finding.check.to_owned(), finding.version, finding.path))
        .collect();
    let (ours, theirs) = (without_known(ours, old), without_known(theirs, old));
    (ours != theirs).then(|| {
        let more: Vec<_> = ours.difference(&theirs).take(5).collect();
        let less: Vec<_> = theirs.difference(&ours).take(5).collect();
        format!("only we find {more:?}, only crdify finds {less:?}")
    })
}

/// What is found, without what depends on the text of something that was wrong between two versions before: crdify lists
/// required fields in random order, and shows of what it does not know only the surroundings.
fn without_known(found: Found, old: &Value) -> Found {
    let mut nothing = old.clone();
    nothing["spec"]["versions"] = json!([]);
    let known: BTreeSet<_> = findings(&nothing, old)
        .into_iter()
        .filter(|finding| ["required", "unhandled"].contains(&finding.check))
        .map(|finding| (finding.check.to_owned(), finding.version, finding.path))
        .collect();
    found.difference(&known).cloned().collect()
}

/// The definitions of the corpus: for each operator, the versions with their definitions, by name.
fn corpus_definitions() -> Vec<Vec<Vec<Value>>> {
    let Some(corpus) = corpus() else {
        return vec![];
    };
    let definitions = |case: &super::corpus::Case| -> Vec<Value> {
        let path = corpus
            .join("bundles")
            .join(&case.operator)
            .join(&case.version);
        let text = fs::read(path.join("expected.yaml")).expect("what is expected");
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
        let objects = documents.into_iter().map(|document| document.value);
        let is_definition = |object: &Value| {
            object["kind"] == "CustomResourceDefinition"
                && object["apiVersion"] == "apiextensions.k8s.io/v1"
        };
        objects.filter(is_definition).collect()
    };
    let cases = cases(&corpus);
    let read: Vec<_> = cases.par_iter().map(definitions).collect();
    let mut operators: Vec<Vec<Vec<Value>>> = vec![];
    let mut last = "";
    for (case, definitions) in cases.iter().zip(read) {
        match operators.last_mut() {
            Some(versions) if last == case.operator => versions.push(definitions),
            _ => operators.push(vec![definitions]),
        }
        last = &case.operator;
    }
    operators
}

#[test]
fn corpus_upgrades_break_what_crdify_says() {
    let mut pairs = vec![];
    let operators = corpus_definitions();
    for versions in &operators {
        for (old, new) in versions.iter().zip(versions.iter().skip(1)) {
            for new in new {
                let name = &new["metadata"]["name"];
                let is_same = |old: &&Value| old["metadata"]["name"] == *name;
                if let Some(old) = old.iter().find(is_same).filter(|old| *old != new) {
                    // And back, which breaks other things.
                    pairs.extend([(old, new), (new, old)]);
                }
            }
        }
    }
    let start = || Oracle::start("crd-safety-oracle", &[]);
    let compared: Vec<_> = pairs
        .par_iter()
        .map_init(start, |oracle, (old, new)| {
            let name = &new["metadata"]["name"];
            let wrong = difference(oracle, old, new).map(|text| format!("{name}: {text}"));
            (check(old, new).is_empty(), wrong)
        })
        .collect();
    let unsafe_ones = compared.iter().filter(|(is_safe, _)| !is_safe).count();
    println!("{} pairs differ, {unsafe_ones} are unsafe", pairs.len());
    let wrong: Vec<_> = compared
        .into_iter()
        .filter_map(|(_, wrong)| wrong)
        .collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn made_up_changes_of_real_schemas_break_what_crdify_says() {
    let mut oracle = Oracle::start("crd-safety-oracle", &[]);
    let definitions: Vec<_> = corpus_definitions()
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    if definitions.is_empty() {
        return;
    }
    let mut random = Random::new(20_260_602);
    let mut wrong = vec![];
    for round in 0..400 {
        let old = &definitions[random.below(definitions.len())];
        if old.to_string().len() > 300_000 {
            continue;
        }
        let mut old = old.clone();
        // Half of them start from two versions, so that these are compared with each other too.
        if round % 2 == 0 {
            let mut other = old["spec"]["versions"][0].clone();
            other["name"] = ["v1alpha7", "v2", "v1beta9"][random.below(3)].into();
            mutate(&mut other, &mut random, 2);
            old["spec"]["versions"]
                .as_array_mut()
                .expect("versions")
                .push(other);
        }
        let mut new = old.clone();
        let count = new["spec"]["versions"].as_array().map_or(0, Vec::len);
        let version = random.below(count);
        mutate(&mut new["spec"]["versions"][version], &mut random, 4);
        wrong.extend(
            difference(&mut oracle, &old, &new)
                .map(|text| format!("{round} {}: {text}", old["metadata"]["name"])),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Changes a few schemas of a version.
fn mutate(version: &mut Value, random: &mut Random, changes: usize) {
    for _ in 0..=random.below(changes) {
        let mut schema = &mut version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            return;
        }
        for _ in 0..random.below(7) {
            let children: Vec<_> = ["/items", "/additionalProperties"]
                .into_iter()
                .map(str::to_owned)
                .chain(
                    schema["properties"]
                        .as_object()
                        .into_iter()
                        .flat_map(|properties| properties.keys())
                        .map(|key| {
                            format!("/properties/{}", key.replace('~', "~0").replace('/', "~1"))
                        }),
                )
                .filter(|pointer| schema.pointer(pointer).is_some_and(Value::is_object))
                .collect();
            if children.is_empty() {
                break;
            }
            let pointer = &children[random.below(children.len())];
            schema = schema.pointer_mut(pointer).expect("found above");
        }
        change(schema, random);
    }
}

/// Changes one schema.
fn change(schema: &mut Value, random: &mut Random) {
    let schemas = json!([{"required": ["a"], "description": "x"}, {"required": ["b"]}]);
    let changes: [(&str, Value); 26] = [
        ("type", json!("integer")),
        ("default", json!("x")),
        ("default", json!({"b": 1, "a": [null]})),
        ("enum", json!(["a", "b"])),
        ("enum", json!(["b", 1])),
        ("maximum", json!(5)),
        ("maximum", json!(5.5)),
        ("minimum", json!(-1)),
        ("maxLength", json!(10)),
        ("minLength", json!(1)),
        ("maxItems", json!(3)),
        ("minProperties", json!(1)),
        ("pattern", json!("^a+$")),
        ("pattern", json!("")),
        ("nullable", json!(true)),
        ("nullable", json!(false)),
        ("required", json!(["a", "b"])),
        ("oneOf", schemas.clone()),
        ("oneOf", json!([schemas[1], schemas[0]])),
        ("anyOf", schemas),
        ("format", json!("int64")),
        ("description", json!("another")),
        ("title", json!("another")),
        ("x-kubernetes-preserve-unknown-fields", json!(false)),
        (
            "x-kubernetes-validations",
            json!([{"rule": "true", "message": "m"}]),
        ),
        ("additionalProperties", json!(true)),
    ];
    let fields = schema.as_object_mut().expect("a schema");
    match random.below(4) {
        0 => {
            let keys: Vec<_> = fields.keys().cloned().collect();
            if !keys.is_empty() {
                fields.remove(&keys[random.below(keys.len())]);
            }
        }
        1 => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                let keys: Vec<_> = properties.keys().cloned().collect();
                let key = keys[random.below(keys.len())].clone();
                properties.remove(&key);
            }
        }
        _ => {
            let (field, value) = changes[random.below(changes.len())].clone();
            fields.insert(field.to_owned(), value);
        }
    }
}

#[test]
fn a_definition_of_two_megabytes_is_compared_in_seconds() {
    let property = |index: usize| {
        let field = json!({"type": "string", "description": "d".repeat(200), "maxLength": 10});
        (format!("field{index}"), field)
    };
    let properties: serde_json::Map<_, _> = (0..9_000).map(property).collect();
    let old = definition(&json!({"schema": {"type": "object", "properties": properties}}));
    let text = old.to_string();
    assert!(text.len() > 2_000_000);
    let new =
        serde_json::from_str(&text.replace("\"maxLength\":10", "\"maxLength\":9")).expect("JSON");
    // The time of this thread alone: others may have the processor.
    let now = || {
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
            .expect("a clock")
            .tv_sec()
    };
    let start = now();
    let problems = check(&old, &new);
    assert!(now() - start < 3, "it took {} s", now() - start);
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100].message, "… and 8900 more changes like these");
}

#[test]
fn definitions_that_are_made_to_hurt_are_refused() {
    let mut schema = json!({"type": "object"});
    for _ in 0..300 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let deep = definition(&json!({"schema": schema}));
    let flat = definition(&json!({"schema": {"type": "object"}}));
    let versions: Vec<_> = (1..2_000)
        .map(|number| json!({"name": format!("v{number}"), "served": true}))
        .collect();
    let many = definition(&json!({"spec": {"versions": versions}}));
    for (old, new) in [(&deep, &flat), (&flat, &deep), (&many, &many)] {
        let rules: Vec<_> = check(old, new).iter().map(|problem| problem.rule).collect();
        assert_eq!(rules, ["too-large"]);
    }
}
