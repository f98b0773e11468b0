//! Holds `manifest::conform` against Go itself: real bundles, and cases made to be difficult.
//!
//! The Go side is the program in `tests/tools/go-types`, which decodes with the very types and converter that OLM uses.
//! Numbers are shown by `tests/run typed -- --nocapture`.

mod cases;
mod compare;
mod oracle;
mod probes;

use std::time::{Duration, Instant};

use self::cases::{Expected, cases, limits, quantities};
use self::compare::verdict;
use self::oracle::{ask_go, go_on_corpus, table};
use self::probes::probes_of;
use kubectl_olm::manifest::conform::{Struct, conform};
use kubectl_olm::manifest::go_types::{
    CLUSTER_SERVICE_VERSION, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, OPERATOR_GROUP, SECRET,
    SUBSCRIPTION, SUBSCRIPTION_CONFIG,
};
use serde_json::{Value, json};

#[test]
fn real_bundles_come_out_as_go_prints_them() {
    let Some(root) = super::corpus::corpus() else {
        return;
    };
    let (mut equal, mut refused, mut bytes, mut dropped) = (0, 0, 0, 0);
    let (mut spent, mut problems) = (Duration::ZERO, Vec::new());
    go_on_corpus(&root.join("bundles"), |mut answer| {
        let input = answer["input"].take();
        let to = type_of(&input);
        let mut value = input.clone();
        let start = Instant::now();
        let findings = conform(&mut value, to);
        spent += start.elapsed();
        bytes += input.to_string().len();
        dropped += findings.dropped.len();
        let found = verdict(&input, &value, &findings, &answer, Expected::Same);
        match answer["error"].is_string() {
            _ if !found.is_empty() => problems.push(format!("{}: {found:?}", answer["file"])),
            true => refused += 1,
            false => equal += 1,
        }
    });
    println!(
        "corpus: {equal} equal, {refused} refused by both, {} differ, {dropped} unknown fields; \
         {:.1} MB in {spent:?}, {:.1} us per 100 kB",
        problems.len(),
        bytes as f64 / 1e6,
        spent.as_secs_f64() * 1e6 / (bytes as f64 / 1e5),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(equal > 1000, "the corpus has over a thousand objects");
}

#[test]
fn difficult_cases_come_out_as_go_prints_them() {
    agree("cases", &cases(), true);
}

/// Every value of every type, put into every field of the types: Go and we must agree on what is accepted.
#[test]
fn every_field_takes_and_refuses_what_go_does() {
    let mut inputs = Vec::new();
    for (kind, to) in ROOTS {
        let mut probed = probes_of(to);
        probed.retain(|probe| probe.get("kind").is_none());
        inputs.extend(probed.into_iter().map(|mut probe| {
            probe["kind"] = json!(kind);
            (probe, Expected::Same)
        }));
    }
    agree("probes", &inputs, false);
}

#[test]
fn every_spelling_of_a_quantity_comes_out_as_go_prints_it() {
    let inputs: Vec<_> = quantities()
        .into_iter()
        .map(|text| (limits(text), Expected::Same))
        .collect();
    agree("quantities", &inputs, false);
}

/// Compares the verdicts and values for many inputs.
fn agree(what: &str, inputs: &[(Value, Expected)], show: bool) {
    let objects: Vec<Value> = inputs.iter().map(|(input, _)| input.clone()).collect();
    let answers = ask_go(&objects);
    assert_eq!(answers.len(), inputs.len());
    let (mut accepted, mut refused, mut on_purpose, mut problems) = (0, 0, 0, Vec::new());
    for ((input, expected), answer) in inputs.iter().zip(&answers) {
        let mut value = input.clone();
        let findings = conform(&mut value, type_of(input));
        let found = verdict(input, &value, &findings, answer, *expected);
        for error in findings.errors.iter().filter(|_| show) {
            println!("    ours: {error}\n      Go: {}", answer["error"]);
        }
        match answer["error"].is_string() {
            _ if !found.is_empty() => problems.push(format!("{input}: {found:?}")),
            true => refused += 1,
            false if *expected == Expected::OnlyGoAccepts => on_purpose += 1,
            false => accepted += 1,
        }
    }
    println!(
        "{what}: {} in all, {accepted} accepted and equal, {refused} refused by both, {on_purpose} refused on purpose",
        inputs.len()
    );
    let few = &problems[..problems.len().min(40)];
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        few.join("\n")
    );
}

#[test]
fn the_table_is_what_the_types_say() {
    let written = include_str!("../../../src/manifest/go_types.rs");
    assert!(
        table() == written,
        "src/manifest/go_types.rs is not what `target/tools/go-types table` prints"
    );
}

#[test]
fn deep_schemas_need_little_stack() {
    let depth = 9_990;
    let text = format!(
        r#"{{"kind":"CustomResourceDefinition","spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{}{}}}}}]}}}}"#,
        r#"{"not":"#.repeat(depth) + "{",
        "}".repeat(depth + 1)
    );
    let run = move || {
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        deserializer.disable_recursion_limit();
        let mut value: Value = serde::Deserialize::deserialize(&mut deserializer).expect("JSON");
        let findings = conform(&mut value, &CUSTOM_RESOURCE_DEFINITION);
        assert!(findings.errors.is_empty());
    };
    let thread = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(run)
        .expect("a thread");
    thread.join().expect("no overflow");
}

/// CatalogSource is not among them: Go's decoder of its update strategy panics on `updateStrategy: {}`.
const ROOTS: [(&str, &Struct); 7] = [
    ("ClusterServiceVersion", &CLUSTER_SERVICE_VERSION),
    ("CustomResourceDefinition", &CUSTOM_RESOURCE_DEFINITION),
    ("Namespace", &NAMESPACE),
    ("OperatorGroup", &OPERATOR_GROUP),
    ("Secret", &SECRET),
    ("Subscription", &SUBSCRIPTION),
    ("SubscriptionConfig", &SUBSCRIPTION_CONFIG),
];

fn type_of(input: &Value) -> &'static Struct {
    let kind = input["kind"].as_str().expect("a kind");
    ROOTS
        .iter()
        .find(|(name, _)| *name == kind)
        .expect("a known kind")
        .1
}
