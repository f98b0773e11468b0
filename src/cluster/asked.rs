//! Which fields that are asked for a live object has otherwise: for users who may read and not write, so that the API
//! server makes no dry run for them.
//!
//! What is not asked for is not looked at, so that defaults are no difference. Amounts are compared by what Go prints for
//! them, and items of lists by their keys where these are known. A field that the server would refuse, or change on its
//! way in, is not seen so: only a dry run tells the whole truth.

use serde_json::{Map, Value};

use super::list_keys;
use crate::manifest::{findings::Path, same_quantity};

/// Fields above amounts: all that is below them is compared as such.
const AMOUNTS: [&str; 9] = [
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "overhead",
    "requests",
    "sizeLimit",
    "divisor",
];
/// Differences that are told.
const TOLD: usize = 1_000;

/// The paths of the fields that are asked for and that the live object has not, or otherwise, in the order of the object:
/// `spec.template.spec.containers[0].image`. The values stay out of it, as they may be data of a Secret.
#[must_use]
pub fn differences(asked: &Value, live: &Value) -> Vec<String> {
    let mut differing = vec![];
    compare(
        asked,
        Some(live),
        Place::root(asked),
        &Path::Root,
        &mut differing,
    );
    differing
}

/// The live object with what is asked for laid over it: what it would be, as far as that can be told without the server.
/// What the server or others have set stays, and so does what is the same in other words.
#[must_use]
pub fn laid_over(live: &Value, asked: &Value) -> Value {
    lay(live, asked, Place::root(asked))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    Known,
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Plain,
    Amounts,
}

/// Where a value is: its field, the one above, and what is known by that.
#[derive(Clone, Copy)]
struct Place<'a> {
    above: &'a str,
    field: &'a str,
    lists: Lists,
    values: Values,
}

impl<'a> Place<'a> {
    /// Where an object begins.
    fn root(object: &Value) -> Self {
        let api_version = object.get("apiVersion").and_then(Value::as_str);
        let group = api_version.and_then(|version| Some(version.rsplit_once('/')?.0));
        Self {
            above: "",
            field: "",
            lists: if list_keys::knows(group.unwrap_or_default()) {
                Lists::Known
            } else {
                Lists::Unknown
            },
            values: Values::Plain,
        }
    }

    /// Where the value of a field is.
    fn within(self, field: &'a str) -> Self {
        let is_amount = self.values == Values::Amounts || AMOUNTS.contains(&field);
        Self {
            above: self.field,
            field,
            values: if is_amount {
                Values::Amounts
            } else {
                Values::Plain
            },
            ..self
        }
    }

    /// By which fields the items of a list are told apart, where that is known.
    fn keys(self) -> Option<&'static [list_keys::Key]> {
        list_keys::of(self.field, self.above).filter(|_| self.lists == Lists::Known)
    }
}

/// Whether two items of a list are the same one.
fn is_it(one: &Value, other: &Value, keys: &[list_keys::Key]) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            list_keys::identity(one, keys) == list_keys::identity(other, keys)
        }
        (one, other) => one == other,
    }
}

/// Lays what is asked for over a live value; this calls itself as deep as what is asked for is nested, which its reader has
/// bounded.
fn lay(live: &Value, asked: &Value, place: Place<'_>) -> Value {
    match (live, asked) {
        (Value::Object(live), Value::Object(asked)) => {
            let mut laid = live.clone();
            for (field, asked) in asked {
                match live.get(field) {
                    Some(live) => {
                        laid.insert(field.clone(), lay(live, asked, place.within(field)));
                    }
                    None if is_empty(asked) => {}
                    None => {
                        laid.insert(field.clone(), asked.clone());
                    }
                }
            }
            Value::Object(laid)
        }
        (Value::Array(live), Value::Array(asked)) => Value::Array(lay_list(live, asked, place)),
        (live, asked) if is_same(asked, live, place.values) => live.clone(),
        (_, asked) => asked.clone(),
    }
}

/// Items without keys are matched by their places, when there are as many.
fn lay_list(live: &[Value], asked: &[Value], place: Place<'_>) -> Vec<Value> {
    let Some(keys) = place.keys() else {
        if live.len() != asked.len() {
            return asked.to_vec();
        }
        let pairs = live.iter().zip(asked);
        return pairs.map(|(live, asked)| lay(live, asked, place)).collect();
    };
    let mut laid = live.to_vec();
    for item in asked {
        match laid.iter_mut().find(|live| is_it(live, item, keys)) {
            Some(live) => *live = lay(live, item, place),
            None => laid.push(item.clone()),
        }
    }
    laid
}

/// Compares a value; this calls itself as deep as what is asked for is nested, which its reader has bounded.
fn compare(
    asked: &Value,
    live: Option<&Value>,
    place: Place<'_>,
    at: &Path<'_>,
    differing: &mut Vec<String>,
) {
    if differing.len() >= TOLD {
        return;
    }
    let is_same = match (asked, live) {
        (Value::Object(asked), Some(Value::Object(live))) => {
            return compare_maps(asked, live, place, at, differing);
        }
        (Value::Array(asked), Some(Value::Array(live))) => {
            return compare_lists(asked, live, place, at, differing);
        }
        (asked, None | Some(Value::Null)) => is_empty(asked),
        (asked, Some(live)) => is_same(asked, live, place.values),
    };
    if !is_same {
        differing.push(at.to_string());
    }
}

fn compare_maps(
    asked: &Map<String, Value>,
    live: &Map<String, Value>,
    place: Place<'_>,
    at: &Path<'_>,
    differing: &mut Vec<String>,
) {
    for (field, value) in asked {
        compare(
            value,
            live.get(field),
            place.within(field),
            &Path::Key(at, field),
            differing,
        );
    }
}

/// Items are matched by their keys, and by their places where these are not known; then there may be no more of them.
fn compare_lists(
    asked: &[Value],
    live: &[Value],
    place: Place<'_>,
    at: &Path<'_>,
    differing: &mut Vec<String>,
) {
    let keys = place.keys();
    if keys.is_none() && asked.len() != live.len() {
        differing.push(at.to_string());
        return;
    }
    for (index, item) in asked.iter().enumerate() {
        let found = match (keys, item) {
            (Some(keys), Value::Object(_)) => live.iter().find(|live| is_it(live, item, keys)),
            _ => live.get(index),
        };
        let here = Path::Index(at, index);
        match found {
            Some(_) => compare(item, found, place, &here, differing),
            None => differing.push(here.to_string()),
        }
    }
}

/// What the server stores for nothing: Go's `omitempty`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

fn is_same(asked: &Value, live: &Value, values: Values) -> bool {
    match (asked, live) {
        (Value::Number(asked), Value::Number(live)) => {
            asked == live || asked.as_f64() == live.as_f64()
        }
        _ if asked == live => true,
        _ => values == Values::Amounts && same_quantity(asked, live),
    }
}
