//! What may not change in one schema, leaving aside the properties and items in it.
//!
//! Each rule is one of crdify's (`pkg/validations/property`), and takes the field that it is about. What differs and no rule
//! takes is `unhandled`: nobody knows what it breaks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::paths::Fields;

/// What crdify calls the check for all that it does not know.
pub(super) const UNHANDLED: &str = "unhandled";

/// What follows from that.
const UNKNOWN: &str = "; nobody can say what that breaks";
/// The field that holds the schema of free keys, which has a path of its own.
const FREE_KEYS: &str = "additionalProperties";

/// What is wrong with a change of a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    /// What crdify calls the check.
    pub(super) check: &'static str,
    /// What changes, and what that breaks.
    pub(super) text: String,
}

/// A check of one field: its text, if what was there and what is there now is wrong.
type Check = fn(&Sides<'_>) -> Option<String>;

/// The checks, by the field that each is about.
const CHECKS: &[(&str, Check)] = &[
    ("default", default),
    ("description", |_| None),
    ("enum", allowed),
    ("maxItems", highest),
    ("maxLength", highest),
    ("maxProperties", highest),
    ("maximum", highest),
    ("minItems", lowest),
    ("minLength", lowest),
    ("minProperties", lowest),
    ("minimum", lowest),
    ("nullable", nullable),
    ("oneOf", one_of),
    ("pattern", pattern),
    ("required", required),
    ("type", kind),
];

/// The fields that hold schemas with paths of their own, which are compared by themselves.
const CHILDREN: [&str; 2] = ["items", "properties"];
/// Fields that say nothing about which objects are valid. crdify clears them in the schemas of `oneOf`.
const WORDS: [&str; 4] = ["description", "example", "externalDocs", "title"];
/// Characters of a value that are shown.
const SHOWN: usize = 60;

/// What is wrong with what a schema has become.
pub(super) fn changes(old: &Fields, new: &Fields) -> Vec<Change> {
    let mut found = vec![];
    for (field, check) in CHECKS {
        let sides = Sides {
            field,
            old: old.get(*field),
            new: new.get(*field),
        };
        if sides.old != sides.new
            && let Some(text) = check(&sides)
        {
            found.push(Change { check: field, text });
        }
    }
    found.extend(unhandled(old, new));
    found
}

/// Whether nothing but the schema of free keys has changed within, so that what changed in it is found there too.
pub(super) fn is_only_within(text: &str) -> bool {
    text.strip_suffix(UNKNOWN) == Some(&within(FREE_KEYS))
}

fn within(field: &str) -> String {
    format!("{field} changes within")
}

/// A field before and after, which differ.
struct Sides<'s> {
    field: &'static str,
    old: Option<&'s Value>,
    new: Option<&'s Value>,
}

impl<'s> Sides<'s> {
    /// The items of both lists.
    fn lists(&self) -> [&'s [Value]; 2] {
        [self.old, self.new].map(|side| {
            side.and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice)
        })
    }

    /// The texts of both; empty where there is none.
    fn texts(&self) -> [&'s str; 2] {
        [self.old, self.new].map(|side| side.and_then(Value::as_str).unwrap_or_default())
    }

    /// A bound, which may not come to be and not become tighter.
    fn bound(&self, is_tighter: fn(f64, f64) -> bool) -> Option<String> {
        let (new, field) = (self.new?, self.field);
        let Some(old) = self.old else {
            return Some(format!(
                "it gets {field} {new}; objects that go beyond that are refused"
            ));
        };
        is_tighter(new.as_f64()?, old.as_f64()?).then(|| {
            format!("its {field} becomes {new} and was {old}; objects in between are refused")
        })
    }
}

fn highest(sides: &Sides<'_>) -> Option<String> {
    sides.bound(|new, old| new < old)
}

fn lowest(sides: &Sides<'_>) -> Option<String> {
    sides.bound(|new, old| new > old)
}

fn kind(sides: &Sides<'_>) -> Option<String> {
    let [old, new] = sides.texts();
    let text = match (old, new) {
        ("", new) => format!("it gets the type {new}; values of other types are refused"),
        (old, "") => format!("it loses its type {old}"),
        (old, new) => {
            format!("its type becomes {new} and was {old}; values of the old type are refused")
        }
    };
    Some(text)
}

fn default(sides: &Sides<'_>) -> Option<String> {
    let text = match (sides.old, sides.new) {
        (None, Some(new)) => format!(
            "it gets the default {}; objects without it take that on when they are read",
            shown(new)
        ),
        (Some(old), None) => {
            format!(
                "it loses its default {}; objects without it stay without",
                shown(old)
            )
        }
        (Some(old), Some(new)) => format!(
            "its default becomes {} and was {}; objects without it change when they are read",
            shown(new),
            shown(old)
        ),
        (None, None) => return None,
    };
    Some(text)
}

fn allowed(sides: &Sides<'_>) -> Option<String> {
    let [old, new] = sides.lists().map(texts);
    let gone: Vec<_> = old.difference(&new).map(String::as_str).collect();
    if old.is_empty() {
        return Some(format!(
            "only {} are allowed from now on; objects with other values are refused",
            listed(new.iter().map(String::as_str))
        ));
    }
    if gone.is_empty() {
        return None;
    }
    Some(if new.is_empty() {
        "the list of its allowed values goes; programs that know the list meet others".to_owned()
    } else {
        let gone = listed(gone.into_iter());
        format!("it no longer allows {gone}; objects with that are refused")
    })
}

fn required(sides: &Sides<'_>) -> Option<String> {
    let [old, new] = sides
        .lists()
        .map(|names| -> BTreeSet<&str> { names.iter().filter_map(Value::as_str).collect() });
    let mut added = new.difference(&old).copied().peekable();
    added.peek()?;
    let added = listed(added);
    Some(format!(
        "{added} becomes required; objects without it are refused"
    ))
}

fn pattern(sides: &Sides<'_>) -> Option<String> {
    let [old, new] = sides.texts().map(shortened);
    Some(match (old.as_str(), new.as_str()) {
        ("", new) => format!("it has to match `{new}` from now on; other values are refused"),
        (old, "") => {
            format!(
                "it need not match `{old}` any more; programs that count on it meet other values"
            )
        }
        (old, new) => {
            format!("it has to match `{new}` and had to match `{old}`; other values are refused")
        }
    })
}

fn nullable(sides: &Sides<'_>) -> Option<String> {
    let text = match sides.new == Some(&Value::Bool(true)) {
        true => "it may be null from now on; programs that count on a value meet null",
        false => "it may not be null any more; objects with null are refused",
    };
    Some(text.to_owned())
}

fn one_of(sides: &Sides<'_>) -> Option<String> {
    let [old, new] = sides
        .lists()
        .map(|schemas| -> BTreeSet<String> { schemas.iter().map(without_words).collect() });
    let (gone, added) = (old.difference(&new).count(), new.difference(&old).count());
    if old.is_empty() && !new.is_empty() {
        let text =
            "it has to match exactly one of several schemas from now on; other values are refused";
        return Some(text.to_owned());
    }
    (gone + added > 0).then(|| {
        format!(
            "it has to match exactly one of several schemas, of which {gone} went and {added} came; what matched one of \
             those may be refused"
        )
    })
}

/// What differs and no check is about.
fn unhandled(old: &Fields, new: &Fields) -> Option<Change> {
    let is_handled =
        |field: &str| CHILDREN.contains(&field) || CHECKS.iter().any(|(known, _)| *known == field);
    let fields: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differing = fields
        .into_iter()
        .filter(|field| !is_handled(field) && old.get(field.as_str()) != new.get(field.as_str()));
    let texts: Vec<_> = differing
        .map(|field| match (old.get(field), new.get(field)) {
            (None, Some(new)) => format!("it gets {field} {}", shown(new)),
            (Some(old), None) => format!("it loses {field} {}", shown(old)),
            (Some(old), Some(new)) => differing_words(field, old, new),
            (None, None) => String::new(),
        })
        .collect();
    (!texts.is_empty()).then(|| Change {
        check: UNHANDLED,
        text: format!("{}{UNKNOWN}", texts.join(", ")),
    })
}

/// Both sides of a field, or only its name where they are too large to be read side by side.
fn differing_words(field: &str, old: &Value, new: &Value) -> String {
    match (old, new) {
        (Value::Object(_) | Value::Array(_), Value::Object(_) | Value::Array(_)) => within(field),
        _ => format!("its {field} becomes {} and was {}", shown(new), shown(old)),
    }
}

/// A schema as text, without what only people read.
fn without_words(schema: &Value) -> String {
    let Value::Object(fields) = schema else {
        return schema.to_string();
    };
    let mut fields = fields.clone();
    fields.retain(|field, _| !WORDS.contains(&field.as_str()));
    Value::Object(fields).to_string()
}

fn texts(values: &[Value]) -> BTreeSet<String> {
    values.iter().map(Value::to_string).collect()
}

/// Some of the words, joined, and how many more there are.
fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.map(shortened).collect();
    match words.get(..5) {
        Some(first) if words.len() > 5 => {
            format!("{} and {} more", first.join(", "), words.len() - 5)
        }
        _ => words.join(", "),
    }
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
