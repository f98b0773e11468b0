//! What counts as the same: all that Go prints, but for the noise that nobody wrote.

use std::collections::BTreeSet;

use kubectl_olm::manifest::conform::{Field, Findings, Shape, Struct, Zero};
use serde_json::{Value, json};

use super::cases::Expected;
use super::type_of;

/// What is wrong with our answer.
pub(crate) fn verdict(
    input: &Value,
    ours: &Value,
    findings: &Findings,
    go: &Value,
    expected: Expected,
) -> Vec<String> {
    match (go["error"].as_str(), findings.errors.first()) {
        (Some(_), Some(_)) if expected == Expected::Same => vec![],
        (Some(error), None) => vec![format!("Go refuses: {error}")],
        (None, Some(_)) if expected == Expected::OnlyGoAccepts => vec![],
        (None, Some(error)) => vec![format!("Go accepts: {error}")],
        _ if expected == Expected::OnlyGoAccepts => vec!["both give the same verdict".to_owned()],
        _ => {
            let mut differences = Vec::new();
            compare_struct(
                Some(input),
                ours,
                &go["value"],
                type_of(input),
                "",
                &mut differences,
            );
            differences
        }
    }
}

/// All that Go prints must be there, but for what nobody wrote and no API server needs.
fn compare_struct(
    input: Option<&Value>,
    ours: &Value,
    go: &Value,
    to: &Struct,
    at: &str,
    out: &mut Vec<String>,
) {
    let (Some(ours), Some(go)) = (ours.as_object(), go.as_object()) else {
        return out.push(format!("{at}: expected {go}, got {ours}"));
    };
    let keys: BTreeSet<&String> = ours.keys().chain(go.keys()).collect();
    for key in keys {
        let at = format!("{at}.{key}");
        let Some(field) = to.fields.iter().find(|field| field.name == key) else {
            out.push(format!("{at}: not in the table"));
            continue;
        };
        let input = input.and_then(|input| input.get(key));
        match (ours.get(key), go.get(key)) {
            (None, Some(go)) if is_noise(input, go, field) => {}
            // OLM reads these and never prints them, so that Go's `omitempty` never comes to bear.
            (Some(ours), None) if to.name.ends_with("SubscriptionConfig") && is_empty(ours) => {}
            (Some(ours), Some(go)) => compare(input, ours, go, &field.shape, &at, out),
            (ours, go) => out.push(format!("{at}: expected {go:?}, got {ours:?}")),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value == &json!([]) || value == &json!({})
}

/// Whether Go prints a field that may be left out.
fn is_noise(input: Option<&Value>, go: &Value, field: &Field) -> bool {
    let unwritten = input.is_none_or(Value::is_null);
    match (&field.shape, go) {
        (_, Value::Null) => true,
        (Shape::Discarded(_), _) => true,
        (_, _) if field.pointer || field.zero == Zero::Added => false,
        (Shape::Struct(inner), Value::Object(entries)) => entries.iter().all(|(key, go)| {
            let inner = inner.fields.iter().find(|field| field.name == key);
            inner.is_some_and(|field| is_noise(input.and_then(|input| input.get(key)), go, field))
        }),
        (Shape::Map(Shape::SchemaOrNames(_)), Value::Object(entries)) => {
            entries.values().all(Value::is_null)
        }
        (Shape::String, Value::String(text)) => unwritten && text.is_empty(),
        (Shape::Bool, Value::Bool(go)) => unwritten && !go,
        (Shape::Int32 | Shape::Int64, Value::Number(number)) => {
            unwritten && number.as_i64() == Some(0)
        }
        (Shape::Version, Value::String(text)) => unwritten && text == "0.0.0",
        _ => false,
    }
}

fn compare(
    input: Option<&Value>,
    ours: &Value,
    go: &Value,
    shape: &Shape,
    at: &str,
    out: &mut Vec<String>,
) {
    match (shape, ours, go) {
        (
            Shape::Struct(to)
            | Shape::SchemaOrBool(to)
            | Shape::SchemaOrList(to)
            | Shape::SchemaOrNames(to),
            _,
            Value::Object(_),
        ) => {
            compare_struct(input, ours, go, to, at, out);
        }
        (Shape::SchemaOrList(to), Value::Array(_), Value::Array(_)) => {
            compare_items(input, ours, go, &Shape::Struct(to), at, out);
        }
        (Shape::List(of), Value::Array(_), Value::Array(_)) => {
            compare_items(input, ours, go, of, at, out)
        }
        (Shape::Map(of), Value::Object(ours), Value::Object(go)) => {
            let keys: BTreeSet<&String> = ours.keys().chain(go.keys()).collect();
            for key in keys {
                let input = input.and_then(|input| input.get(key));
                match (ours.get(key), go.get(key)) {
                    (None, Some(Value::Null)) => {}
                    (Some(ours), Some(go)) => {
                        compare(input, ours, go, of, &format!("{at}.{key}"), out)
                    }
                    (ours, go) => out.push(format!("{at}.{key}: expected {go:?}, got {ours:?}")),
                }
            }
        }
        _ if ours == go => {}
        _ => out.push(format!("{at}: expected {go}, got {ours}")),
    }
}

fn compare_items(
    input: Option<&Value>,
    ours: &Value,
    go: &Value,
    of: &Shape,
    at: &str,
    out: &mut Vec<String>,
) {
    let (ours, go) = (
        ours.as_array().expect("a list"),
        go.as_array().expect("a list"),
    );
    if ours.len() != go.len() {
        return out.push(format!(
            "{at}: expected {} items, got {}",
            go.len(),
            ours.len()
        ));
    }
    for (index, (ours, go)) in ours.iter().zip(go).enumerate() {
        let input = input.and_then(|input| input.get(index));
        compare(input, ours, go, of, &format!("{at}[{index}]"), out);
    }
}
