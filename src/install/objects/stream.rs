//! The objects of one file, one by one: documents, and the items of the lists in them.

use serde_json::{Map, Value};

use super::fields::Privacy;
use crate::manifest::yaml::{Document, DuplicateKey, Lines};

/// One value that should be an object.
pub(super) struct Item {
    pub(super) value: Value,
    /// The line on which it starts.
    pub(super) line: usize,
    /// The line on which its document starts.
    pub(super) document: usize,
    /// Its path in the document: `items[2]`, empty for the document itself.
    pub(super) path: String,
    /// Private when it, or a list that holds it, is in such disorder that nobody knows what is what.
    pub(super) privacy: Privacy,
}

impl Item {
    /// The path of one of its fields in the document.
    pub(super) fn path_of(&self, field: &str) -> String {
        let dot = if self.path.is_empty() || field.is_empty() || field.starts_with('[') {
            ""
        } else {
            "."
        };
        format!("{}{dot}{field}", self.path)
    }
}

/// The file holds more objects than the limit.
pub(super) struct TooMany;

/// Hands every object to `take`. Lists are opened, and the lists in them, however deep. Each takes one of `budget`, and
/// so does a list in a list.
pub(super) fn each_item(
    document: Document,
    lines: &mut Lines<'_>,
    budget: &mut usize,
    mut take: impl FnMut(Item, &mut Lines<'_>),
) -> Result<(), TooMany> {
    let duplicates = &document.duplicate_keys;
    let mut open = vec![Item {
        value: document.value,
        line: document.line,
        document: document.line,
        path: String::new(),
        privacy: privacy(duplicates, ""),
    }];
    while let Some(mut item) = open.pop() {
        let Some((list, items)) = items_of(&mut item.value) else {
            *budget = budget.checked_sub(1).ok_or(TooMany)?;
            take(item, lines);
            continue;
        };
        if !item.path.is_empty() {
            *budget = budget.checked_sub(1).ok_or(TooMany)?;
        }
        if items.len() > *budget {
            return Err(TooMany);
        }
        let inside = inside(&item, &list, items, lines, duplicates);
        open.extend(inside.into_iter().rev());
    }
    Ok(())
}

/// The items of a list, in their order.
fn inside(
    outer: &Item,
    list: &List,
    items: Vec<Value>,
    lines: &mut Lines<'_>,
    duplicates: &[DuplicateKey],
) -> Vec<Item> {
    let path = outer.path_of("items");
    let places = lines.item_lines(outer.document, &path);
    let places = places.into_iter().chain(std::iter::repeat(outer.line));
    let items = items.into_iter().enumerate().zip(places);
    let item = |((index, value), line)| {
        let path = format!("{path}[{index}]");
        Item {
            value: typed(value, list),
            line,
            document: outer.document,
            privacy: match outer.privacy {
                Privacy::Private => Privacy::Private,
                Privacy::Open => privacy(duplicates, &path),
            },
            path,
        }
    };
    items.map(item).collect()
}

/// Whether the value at a path may be told: not when one of its own fields stands twice, as that may be its kind.
fn privacy(duplicates: &[DuplicateKey], path: &str) -> Privacy {
    let is_own = |duplicate: &DuplicateKey| {
        let field = duplicate.key.strip_prefix(path);
        field.is_some_and(|field| !field.trim_start_matches('.').contains(['.', '[']))
    };
    // Beyond so many, there may be one that is not in the list.
    let is_full = duplicates.len() >= crate::manifest::yaml::REPORTED_DUPLICATES;
    match is_full || duplicates.iter().any(is_own) {
        true => Privacy::Private,
        false => Privacy::Open,
    }
}

/// What a list says of its items.
struct List {
    api_version: Value,
    /// The kind of its items; none for a list of anything.
    kind: Option<String>,
}

/// Takes the items out of a list, as apimachinery tells one (`UnstructuredList`): by its kind and its items.
fn items_of(value: &mut Value) -> Option<(List, Vec<Value>)> {
    let object = value.as_object_mut()?;
    let kind = object.get("kind")?.as_str()?.strip_suffix("List")?;
    let list = List {
        api_version: object.get("apiVersion")?.clone(),
        kind: (!kind.is_empty()).then(|| kind.to_owned()),
    };
    match object.get_mut("items")? {
        Value::Array(items) => Some((list, std::mem::take(items))),
        // Go writes an empty list so.
        Value::Null => Some((list, vec![])),
        _ => None,
    }
}

/// An item of a list whose kind says the kind of its items, as an API server sends it.
fn typed(mut value: Value, list: &List) -> Value {
    if let (Some(kind), Value::Object(object)) = (&list.kind, &mut value)
        && says_no_type(object)
    {
        object.insert("apiVersion".to_owned(), list.api_version.clone());
        object.insert("kind".to_owned(), Value::from(kind.as_str()));
    }
    value
}

fn says_no_type(object: &Map<String, Value>) -> bool {
    !object.contains_key("apiVersion") && !object.contains_key("kind")
}
