//! Changes of objects as text: as the cases of `testdata/diff` say, to which one is added without writing Rust, and large
//! ones in time.

use std::{fmt::Write, fs, time::Instant};

use kubectl_olm::{
    cluster::diff::{Asked, Difference, Pair, difference, noise::NOISE, text, unified},
    manifest::Manifest,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{cases, program::root, random::Random};

/// An object before and after, and what is shown of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    before: Option<Value>,
    after: Option<Value>,
    asked: Option<Value>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    text: String,
}

/// An object without a key of its own takes that of either side.
fn pair(before: Option<Value>, after: Option<Value>, asked: Asked) -> Pair {
    let object = after.as_ref().or(before.as_ref());
    let object = object.cloned().unwrap_or_default();
    Pair {
        key: Manifest::generated(object, "a test").key(),
        before,
        after,
        asked,
    }
}

#[test]
fn changes_are_shown_as_their_cases_say() {
    let (mut wrong, mut count) = (vec![], 0);
    let folder = fs::read_dir(root().join("testdata/diff")).expect("cases");
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("a case").path()).collect();
    paths.sort();
    for path in paths {
        count += 1;
        let case: Case = cases::read(&path);
        let asked = match case.asked {
            Some(Value::String(word)) if word == "everything" => Asked::Everything,
            Some(object) => Asked::Object(object),
            None => Asked::Nothing,
        };
        let pair = pair(case.before, case.after, asked);
        let difference = difference(&pair);
        let shown = difference.as_ref().map(unified).unwrap_or_default();
        let fields = difference
            .as_ref()
            .map(|difference| difference.fields.clone());
        if (shown.as_str(), fields.unwrap_or_default()) != (case.text.as_str(), case.fields) {
            wrong.push(format!("{}:\n{shown}{difference:?}", path.display()));
        }
        let all = format!("{pair:?} {difference:?} {shown}");
        for canary in ["canary", "Y2FuYXJ5"] {
            assert!(!all.contains(canary), "{}: {all}", path.display());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count > 10, "cases are missing");
}

#[test]
fn every_line_of_the_list_has_a_case() {
    let cases = fs::read_dir(root().join("testdata/diff")).expect("cases");
    let cases: String = cases
        .map(|entry| fs::read_to_string(entry.expect("a case").path()).expect("a case"))
        .collect();
    for noise in NOISE {
        let last = noise.path.last().expect("a path").trim_matches('*');
        assert!(
            cases.contains(last),
            "no case in testdata/diff shows {:?}",
            noise.path
        );
    }
}

/// What a Secret may be like, hostile ones included: wherever its canary stands, it is not shown.
#[test]
fn no_data_of_a_secret_is_shown_wherever_it_stands() {
    let mut random = Random::new(22);
    for _ in 0..2_000 {
        let (before, after) = (secret(&mut random), secret(&mut random));
        let asked = match random.below(3) {
            0 => Asked::Everything,
            1 => Asked::Nothing,
            _ => Asked::Object(secret(&mut random)),
        };
        let sides = [
            (Some(&before), Some(&after)),
            (None, Some(&after)),
            (Some(&before), None),
        ];
        let (before, after) = sides[random.below(3)];
        let mut pair = pair(before.cloned(), after.cloned(), asked);
        pair.key.kind = "Secret".to_owned();
        let Some(difference) = difference(&pair) else {
            continue;
        };
        let sides = [&difference.before, &difference.after].map(|side| text(side.as_ref()));
        let all = format!("{pair:?} {difference:?} {sides:?} {}", unified(&difference));
        assert!(!all.contains("canary"), "{all}");
    }
}

fn secret(random: &mut Random) -> Value {
    let values = [
        json!("canary"),
        json!({"k": "canary"}),
        json!([{"k": {"k": "canary"}}]),
        json!("{\"data\": \"canary\"}"),
        json!(1),
        Value::Null,
    ];
    let mut value = || values[random.below(values.len())].clone();
    let (data, strings, other, copy, kind) = (value(), value(), value(), value(), value());
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "a",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": copy},
        },
        "type": if kind.is_string() { json!("Opaque") } else { kind },
        "data": data,
        "stringData": strings,
        "x": other,
        ".dockerconfigjson": "canary",
    });
    match random.below(4) {
        0 => secret["metadata"] = json!(["canary"]),
        1 => secret["metadata"]["annotations"] = json!(["canary"]),
        2 => secret["data"] = json!({"a": secret["data"], "b": "canary"}),
        _ => {}
    }
    secret
}

fn config_map(text: String) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": text}})
}

fn timed(what: &str, before: String, after: String) -> Difference {
    let pair = pair(
        Some(config_map(before)),
        Some(config_map(after)),
        Asked::Nothing,
    );
    let start = Instant::now();
    let difference = difference(&pair).expect("a difference");
    let shown = unified(&difference);
    let time = start.elapsed();
    eprintln!("{what}: {} lines in {time:?}", shown.lines().count());
    assert!(time.as_secs() < 20, "{what} takes {time:?}");
    difference
}

#[test]
fn large_changes_are_shown_in_time() {
    let lines = |count: usize, line: &dyn Fn(usize) -> usize| {
        let mut text = String::new();
        for at in 0..count {
            let _ = writeln!(text, "line {}", line(at));
        }
        text
    };
    // Nothing is the same; all is, in another order; and all lines are among a few.
    timed(
        "20,000 other lines",
        lines(20_000, &|at| at),
        lines(20_000, &|at| at + 20_000),
    );
    timed(
        "20,000 lines backwards",
        lines(20_000, &|at| at),
        lines(20_000, &|at| 20_000 - at),
    );
    timed(
        "20,000 lines of 7",
        lines(20_000, &|at| at * at % 7),
        lines(20_000, &|at| at * at * at % 7),
    );
    timed(
        "each second line of 40,000",
        lines(40_000, &|at| at),
        lines(40_000, &|at| at + at % 2),
    );
    let object = |of: &dyn Fn(usize) -> usize| {
        let items: Vec<_> = (0..20_000).map(|at| json!({"name": of(at)})).collect();
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"name": "a"}, "items": items})
    };
    let pair = pair(
        Some(object(&|at| at)),
        Some(object(&|at| at + 1)),
        Asked::Nothing,
    );
    let start = Instant::now();
    let difference = difference(&pair).expect("a difference");
    assert_eq!(difference.fields.len(), 20_000);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn an_object_that_is_nested_deeply_is_shown() {
    let nested = |leaf: &str| {
        let mut value = json!({"kind": "Secret", "data": {"a": "canary"}, "b": leaf});
        for _ in 0..5_000 {
            value = Value::Array(vec![value]);
        }
        json!({"apiVersion": "v1", "kind": "Deep", "metadata": {"name": "a"}, "a": value})
    };
    // Content is handled on stacks of this size, as deep values are dropped one within the other.
    let thread = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(move || {
            let pair = pair(Some(nested("x")), Some(nested("y")), Asked::Nothing);
            let difference = difference(&pair).expect("a difference");
            assert!(!text(difference.after.as_ref()).contains("canary"));
            assert_eq!(difference.fields.len(), 1);
        });
    thread.expect("a thread").join().expect("no panic");
}
