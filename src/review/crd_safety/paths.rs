//! Every schema within a schema, by its path.
//!
//! Paths are those of crdify (`pkg/validations/util.go`, `FlattenCRDVersion`, with the simple location): `^.spec.ports.items`.
//! Two schemas may have one path, when a property is called `items`; then, as there, the one that is met last counts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The fields of a schema.
pub(super) type Fields = Map<String, Value>;

/// The schemas of a version.
pub(super) struct Schemas<'s> {
    by_path: BTreeMap<String, &'s Fields>,
}

impl<'s> Schemas<'s> {
    /// Every schema within one, itself included.
    pub(super) fn of(schema: &'s Value) -> Self {
        let mut by_path = BTreeMap::new();
        let mut pending = vec![("^".to_owned(), schema)];
        while let Some((path, schema)) = pending.pop() {
            let Value::Object(fields) = schema else {
                continue;
            };
            // What is met first has to be taken first.
            let from = pending.len();
            add_children(fields, &path, &mut pending);
            if let Some(children) = pending.get_mut(from..) {
                children.reverse();
            }
            by_path.insert(path, fields);
        }
        Self { by_path }
    }

    /// Paths and schemas, sorted by path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'s Fields)> {
        self.by_path
            .iter()
            .map(|(path, fields)| (path.as_str(), *fields))
    }

    /// The schema at a path, if there is one.
    pub(super) fn get(&self, path: &str) -> Option<&'s Fields> {
        self.by_path.get(path).copied()
    }
}

/// The schemas right below one, in the order in which crdify meets them.
fn add_children<'s>(fields: &'s Fields, path: &str, pending: &mut Vec<(String, &'s Value)>) {
    match fields.get("items") {
        Some(Value::Array(items)) => add_list("items", items, path, pending),
        Some(items) => pending.push((format!("{path}.items"), items)),
        None => {}
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(items)) = fields.get(field) {
            add_list(field, items, path, pending);
        }
    }
    let alone = |field: &str| {
        let schema = fields.get(field).filter(|schema| schema.is_object());
        schema.map(|schema| (format!("{path}.{field}"), schema))
    };
    pending.extend(alone("not"));
    if let Some(Value::Object(properties)) = fields.get("properties") {
        let children = properties.iter();
        pending.extend(children.map(|(name, schema)| (format!("{path}.{name}"), schema)));
    }
    pending.extend(alone("additionalProperties"));
    add_map("patternProperties", fields, path, pending);
    pending.extend(alone("additionalItems"));
    add_map("definitions", fields, path, pending);
    add_map("dependencies", fields, path, pending);
}

fn add_list<'s>(
    field: &str,
    items: &'s [Value],
    path: &str,
    pending: &mut Vec<(String, &'s Value)>,
) {
    let items = items.iter().enumerate();
    pending.extend(items.map(|(index, schema)| (format!("{path}.{field}[{index}]"), schema)));
}

fn add_map<'s>(
    field: &str,
    fields: &'s Fields,
    path: &str,
    pending: &mut Vec<(String, &'s Value)>,
) {
    if let Some(Value::Object(schemas)) = fields.get(field) {
        let schemas = schemas.iter().filter(|(_, schema)| schema.is_object());
        pending.extend(schemas.map(|(key, schema)| (format!("{path}.{field}[{key}]"), schema)));
    }
}

/// The path of the schema that holds the one at a path; nothing for the outermost.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.rmatch_indices(['.', '[']);
    ends.filter_map(|(end, _)| path.get(..end))
}

/// A path in words: `spec.ports[].name`.
pub(super) fn in_words(path: &str) -> String {
    let path = path.strip_prefix('^').unwrap_or(path);
    if path.is_empty() {
        return "the object".to_owned();
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    path.split('.')
        .enumerate()
        .map(|(index, part)| match (index, part) {
            (1.., "items") => "[]".to_owned(),
            (1.., "additionalProperties") => "[*]".to_owned(),
            (0, part) => part.to_owned(),
            (_, part) => format!(".{part}"),
        })
        .collect()
}
