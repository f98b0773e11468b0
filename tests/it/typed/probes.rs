//! Objects that put every kind of value into every field that a type reaches.

use std::collections::BTreeSet;

use kubectl_olm::manifest::conform::{Shape, Struct};
use serde_json::{Value, json};

/// All probes of a type.
pub(crate) fn probes_of(to: &'static Struct) -> Vec<Value> {
    let mut probes = Vec::new();
    let name = to.name.to_owned();
    probe_fields(to, name, &mut Vec::new(), &mut BTreeSet::new(), &mut probes);
    probes
}

/// What is refused on purpose, and shown once in the cases.
fn only_go_takes(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::Int32 | Shape::Int64 => value.as_f64().is_some_and(|number| number > 1e10),
        Shape::Bytes => value.is_array(),
        // Go prints null for no bytes, which we leave out.
        Shape::Map(Shape::Bytes) => {
            matches!(value["a"], Value::Array(_) | Value::Null) && value.get("a").is_some()
        }
        _ => false,
    }
}

/// Puts every value into every field that a shape reaches, once per struct, and once more inside of schemas that Go
/// decodes by encoding/json.
fn probes(
    shape: &'static Shape,
    path: &mut Vec<Step>,
    seen: &mut BTreeSet<String>,
    out: &mut Vec<Value>,
) {
    let (step, inner) = match shape {
        Shape::Struct(to) | Shape::Discarded(to) => {
            return probe_fields(to, to.name.to_owned(), path, seen, out);
        }
        Shape::SchemaOrBool(to) | Shape::SchemaOrList(to) => {
            return probe_fields(to, format!("{} in JSON", to.name), path, seen, out);
        }
        Shape::List(inner) => (Step::Item, inner),
        Shape::Map(inner) => (Step::Key("k"), inner),
        _ => return,
    };
    path.push(step);
    probes(inner, path, seen, out);
    path.pop();
}

enum Step {
    Key(&'static str),
    Item,
}

fn probe_fields(
    to: &'static Struct,
    name: String,
    path: &mut Vec<Step>,
    seen: &mut BTreeSet<String>,
    out: &mut Vec<Value>,
) {
    if !seen.insert(name) {
        return;
    }
    for field in to.fields {
        path.push(Step::Key(field.name));
        for value in probe_values() {
            if only_go_takes(&field.shape, &value) {
                continue;
            }
            let wrap = |inner, step: &Step| match step {
                Step::Key(key) => json!({*key: inner}),
                Step::Item => json!([inner]),
            };
            out.push(path.iter().rev().fold(value, wrap));
        }
        probes(&field.shape, path, seen, out);
        path.pop();
    }
}

#[rustfmt::skip]
fn probe_values() -> Vec<Value> {
    vec![
        json!(null), json!(true), json!(false), json!(0), json!(7), json!(-1), json!(1.5), json!(2.0), json!(1e300),
        json!(u64::MAX), json!(""), json!("x"), json!("7"), json!("1.2.3-rc.1"), json!("2020-02-30T00:00:00Z"),
        json!("2020-01-02T03:04:05+02:00"), json!([]), json!([null]), json!(["x"]), json!([7]), json!([{}]), json!([[]]),
        json!({}), json!({"a": null}), json!({"a": "x"}), json!({"a": 7}), json!({"a": {}}), json!({"a": ["x"]}), json!({"a": []}),
    ]
}
