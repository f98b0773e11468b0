//! Custom resources that a new definition would refuse.
//!
//! OLM v1 does not look at them. What the API server checks by a structural schema is checked here: types, required fields,
//! null, enums, patterns, and bounds of numbers, texts, lists and maps
//! (k8s.io/apiextensions-apiserver `pkg/apiserver/validation`). Rules in CEL, formats, and `allOf`, `anyOf`, `oneOf` and `not`
//! are not: what is told is wrong, and more may be. An object that is refused stays as it is and is served, and the server
//! takes updates that leave the wrong fields alone (ratcheting); it cannot be created again from its own manifest.

use std::{borrow::Cow, collections::BTreeMap};

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::definition::{Definition, is_deeper};
use crate::problem::Problem;

/// As many reasons are told of one object.
const TOLD_REASONS: usize = 3;
/// As many objects are told of one definition.
const TOLD_OBJECTS: usize = 10;
/// Nesting of an object; beyond it nothing is looked at.
const DEEPEST: usize = 400;
/// Bytes of a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// An object that a definition refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its namespace; empty when it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why, with the path of the field before each reason; never empty, and no more than a few.
    pub reasons: Vec<String>,
}

/// The existing custom resources that a new definition would refuse, as problems: one for each of the first, and one that
/// counts the rest. `objects` are of the definition's kind, each in a version that it has.
#[must_use]
pub fn against_objects(new: &Value, objects: &[Value]) -> Vec<Problem> {
    let found = refused(new, objects);
    let kind = new.pointer("/spec/names/kind").and_then(Value::as_str);
    let name = new.pointer("/metadata/name").and_then(Value::as_str);
    let object = format!(
        "customresourcedefinition.apiextensions.k8s.io/{}",
        name.unwrap_or_default()
    );
    let kind = kind.unwrap_or_default();
    let mut problems: Vec<_> = found
        .iter()
        .take(TOLD_OBJECTS)
        .map(|refused| {
            let place = match refused.namespace.as_str() {
                "" => String::new(),
                namespace => format!(" in {namespace}"),
            };
            let message = format!(
                "{kind} {}{place} is there and would be refused ({}); change it before the upgrade",
                refused.name,
                refused.reasons.join(", ")
            );
            Problem::error("existing-objects", message).on(&object)
        })
        .collect();
    let more = found.len().saturating_sub(TOLD_OBJECTS);
    if more > 0 {
        let message = format!(
            "and {more} more of {} objects of kind {kind} would be refused",
            objects.len()
        );
        problems.push(Problem::error("existing-objects", message).on(&object));
    }
    problems
}

/// The objects that a definition refuses, in their order. Those of a version that it does not have are left out.
#[must_use]
pub fn refused(new: &Value, objects: &[Value]) -> Vec<Refused> {
    let Some(Ok(definition)) = Definition::read(new) else {
        return vec![];
    };
    let mut patterns = Patterns::default();
    let refused = objects.iter().filter_map(|object| {
        let version = object.get("apiVersion").and_then(Value::as_str)?;
        let version = version.rsplit('/').next().unwrap_or_default();
        let schema = &definition.version(version)?.schema;
        let reasons = reasons(object, schema, &mut patterns);
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        (!reasons.is_empty()).then(|| Refused {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            reasons,
        })
    });
    refused.collect()
}

/// Patterns that were compiled; nothing for those that cannot be.
#[derive(Default)]
struct Patterns {
    compiled: BTreeMap<String, Option<Regex>>,
}

impl Patterns {
    /// Whether a text does not match a pattern; a pattern that cannot be read refuses nothing.
    fn refuses(&mut self, pattern: &str, text: &str) -> bool {
        let compiled = self.compiled.entry(pattern.to_owned()).or_insert_with(|| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(LARGEST_PATTERN).build().ok()
        });
        compiled.as_ref().is_some_and(|regex| !regex.is_match(text))
    }
}

/// A value that is to be checked.
struct Pending<'v> {
    path: String,
    value: &'v Value,
    schema: &'v Map<String, Value>,
}

/// Why an object is refused: the first reasons, each with its path.
fn reasons(object: &Value, schema: &Value, patterns: &mut Patterns) -> Vec<String> {
    let mut reasons = vec![];
    let Value::Object(schema) = schema else {
        return reasons;
    };
    if is_deeper(object, DEEPEST) {
        return reasons;
    }
    let mut pending = vec![Pending {
        path: String::new(),
        value: object,
        schema,
    }];
    while let Some(next) = pending.pop() {
        if reasons.len() >= TOLD_REASONS {
            break;
        }
        let path = match next.path.as_str() {
            "" => Cow::Borrowed("the object"),
            path => Cow::Borrowed(path),
        };
        match wrong(next.value, next.schema, patterns) {
            Some(reason) => reasons.push(format!("{path} {reason}")),
            None => {
                for name in missing(next.value, next.schema) {
                    let name = joined(&next.path, name);
                    reasons.push(format!("{name} is required and not there"));
                }
                add_children(&next, &mut pending);
            }
        }
    }
    reasons.truncate(TOLD_REASONS);
    reasons
}

/// The fields and items of a value that have a schema, the first on top.
fn add_children<'v>(of: &Pending<'v>, pending: &mut Vec<Pending<'v>>) {
    let from = pending.len();
    match of.value {
        Value::Object(entries) => {
            let free = of
                .schema
                .get("additionalProperties")
                .and_then(Value::as_object);
            for (key, value) in entries {
                let Some(schema) = property(of.schema, key).or(free) else {
                    continue;
                };
                // The server sees to what every object has.
                if of.path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&key.as_str())
                {
                    continue;
                }
                let path = joined(&of.path, key);
                pending.push(Pending {
                    path,
                    value,
                    schema,
                });
            }
        }
        Value::Array(items) => {
            let Some(Value::Object(schema)) = of.schema.get("items") else {
                return;
            };
            pending.extend(items.iter().enumerate().map(|(index, value)| Pending {
                path: format!("{}[{index}]", of.path),
                value,
                schema,
            }));
        }
        _ => {}
    }
    if let Some(children) = pending.get_mut(from..) {
        children.reverse();
    }
}

fn joined(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

fn property<'v>(schema: &'v Map<String, Value>, key: &str) -> Option<&'v Map<String, Value>> {
    schema.get("properties")?.get(key)?.as_object()
}

/// The required fields that a value lacks and no default gives it.
fn missing<'v>(value: &Value, schema: &'v Map<String, Value>) -> Vec<&'v str> {
    let (Value::Object(entries), Some(Value::Array(required))) = (value, schema.get("required"))
    else {
        return vec![];
    };
    let has_default =
        |name: &str| property(schema, name).is_some_and(|schema| schema.contains_key("default"));
    let names = required.iter().filter_map(Value::as_str);
    names
        .filter(|name| !entries.contains_key(*name) && !has_default(name))
        .collect()
}

/// What is wrong with a value itself.
fn wrong(value: &Value, schema: &Map<String, Value>, patterns: &mut Patterns) -> Option<String> {
    let is_set = |field: &str| schema.get(field) == Some(&Value::Bool(true));
    if value.is_null() {
        let is_free =
            is_set("nullable") || schema.contains_key("default") || !schema.contains_key("type");
        return (!is_free).then(|| "is null, which is not allowed".to_owned());
    }
    let kind = schema.get("type").and_then(Value::as_str);
    let is_right = match kind {
        _ if is_set("x-kubernetes-int-or-string") => value.is_string() || is_whole(value),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => is_whole(value),
        Some("number") => value.is_number(),
        _ => true,
    };
    if !is_right {
        let wanted = kind.unwrap_or("whole number or string");
        return Some(format!(
            "is {}, and has to be of type {wanted}",
            shown(value)
        ));
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        return Some(format!("is {}, which is not allowed", shown(value)));
    }
    if let (Some(Value::String(pattern)), Value::String(text)) = (schema.get("pattern"), value)
        && patterns.refuses(pattern, text)
    {
        return Some(format!(
            "is {}, which does not match its pattern",
            shown(value)
        ));
    }
    out_of_bounds(value, schema)
}

/// Whether a number is whole, as the API server takes 1.0 for one too.
fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn out_of_bounds(value: &Value, schema: &Map<String, Value>) -> Option<String> {
    let bound = |field: &str| schema.get(field).and_then(Value::as_f64);
    let is_set = |field: &str| schema.get(field) == Some(&Value::Bool(true));
    let (size, what, least, most) = match value {
        Value::Number(number) => (number.as_f64()?, "", "minimum", "maximum"),
        Value::String(text) => (
            text.chars().count() as f64,
            "characters",
            "minLength",
            "maxLength",
        ),
        Value::Array(items) => (items.len() as f64, "items", "minItems", "maxItems"),
        Value::Object(entries) => (
            entries.len() as f64,
            "fields",
            "minProperties",
            "maxProperties",
        ),
        _ => return None,
    };
    let is_number = value.is_number();
    let is_low = bound(least).is_some_and(|bound| {
        size < bound || is_number && is_set("exclusiveMinimum") && size == bound
    });
    let is_high = bound(most).is_some_and(|bound| {
        size > bound || is_number && is_set("exclusiveMaximum") && size == bound
    });
    let (rule, side) = match (is_low, is_high) {
        (true, _) => (least, bound(least)?),
        (_, true) => (most, bound(most)?),
        _ => return None,
    };
    Some(match is_number {
        true => format!("is {size}, and its {rule} is {side}"),
        false => format!("has {size} {what}, and its {rule} is {side}"),
    })
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
