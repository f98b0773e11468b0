//! `metadata.managedFields`: which fields of a live object are ours.
//!
//! A server leaves them out of objects that would be too large with them (kubernetes/apiserver
//! `pkg/endpoints/handlers/fieldmanager`), so that having none of them proves nothing.

use serde_json::{Map, Value, json};

use super::{FIELD_MANAGER, desired};

/// A hash of our entries in `managedFields`, without their times: as long as it stays the same, nobody has changed a field
/// that we set. Empty when there is none.
#[must_use]
pub fn ours(live: &Value) -> String {
    let mut entries: Vec<Value> = of_us(live)
        .map(|entry| {
            let field = |name: &str| entry.get(name).cloned().unwrap_or_default();
            json!([
                field("apiVersion"),
                field("subresource"),
                field("fieldsType"),
                field("fieldsV1")
            ])
        })
        .collect();
    if entries.is_empty() {
        return String::new();
    }
    // A server sorts entries by their times too.
    entries.sort_by_cached_key(Value::to_string);
    desired::hash(&Value::Array(entries))
}

/// Whether we created the object, and nobody else: our entry is as old as the object, and no other one is. Where somebody
/// else has written to it in its first second too it cannot be told, so that the answer is no.
#[must_use]
pub fn is_created_by_us(live: &Value) -> bool {
    let created = live
        .get("metadata")
        .and_then(|metadata| metadata.get("creationTimestamp")?.as_str());
    let Some(created) = created.filter(|created| !created.is_empty()) else {
        return false;
    };
    let is_first = |entry: &&Value| {
        // All times are of one form, and in UTC, so that they sort as texts do.
        let time = entry
            .get("time")
            .and_then(Value::as_str)
            .unwrap_or_default();
        is_main(entry) && time <= created
    };
    let mut first = entries(live).filter(is_first).peekable();
    first.peek().is_some() && first.all(is_ours)
}

/// Whether the label with the install of an object is as we set it, whichever install that was for.
#[must_use]
pub fn sets_label(live: &Value) -> bool {
    let labels = |entry: &Value| {
        let labels = entry.pointer("/fieldsV1/f:metadata/f:labels")?;
        labels.get(format!("f:{}", desired::PART_OF)).cloned()
    };
    of_us(live).any(|entry| labels(entry).is_some())
}

/// Whether we have set that a ClusterRole collects the rules of others.
#[must_use]
pub fn sets_aggregation(live: &Value) -> bool {
    of_us(live).any(|entry| entry.pointer("/fieldsV1/f:aggregationRule").is_some())
}

/// Whether anybody has set a field, whose path this is, or what it is in as a whole, or anything in it.
#[must_use]
pub fn is_set(live: &Value, path: &[&str]) -> bool {
    entries(live).any(|entry| sets(entry, path))
}

/// Whether anybody but us has, as [`is_set`] says.
#[must_use]
pub fn is_set_by_others(live: &Value, path: &[&str]) -> bool {
    entries(live).any(|entry| !is_ours(entry) && sets(entry, path))
}

fn sets(entry: &Value, path: &[&str]) -> bool {
    let mut fields = entry.get("fieldsV1");
    for field in path {
        match fields.and_then(Value::as_object) {
            None => return false,
            Some(all) if all.is_empty() => return true,
            Some(all) => fields = all.get(&format!("f:{field}")),
        }
    }
    fields.is_some()
}

/// An object with those fields of a live one that we applied: applying it changes nothing. Nothing when we applied none, or
/// in another version than the live object is in.
#[must_use]
pub fn applied(live: &Value) -> Option<Value> {
    let version = live.get("apiVersion")?;
    let entry = of_us(live).find(|entry| is_main(entry))?;
    if entry.get("apiVersion") != Some(version) {
        return None;
    }
    let mut object = covered(live, entry.get("fieldsV1")?.as_object()?);
    let fields = object.as_object_mut()?;
    for field in ["apiVersion", "kind"] {
        fields.insert(field.to_owned(), live.get(field)?.clone());
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    for field in ["name", "namespace"] {
        if let Some(value) = live.pointer(&format!("/metadata/{field}")) {
            metadata[field] = value.clone();
        }
    }
    Some(object)
}

/// That part of a value which a set of fields names (sigs.k8s.io/structured-merge-diff `fieldpath/serialize.go`): `f:` a
/// field, `k:` an item of a list by its keys, `v:` one by its value, `.` the value itself, and all of it when nothing is
/// named.
fn covered(value: &Value, set: &Map<String, Value>) -> Value {
    if set.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(fields) => {
            let of = |(name, below): (&String, &Value)| {
                let name = name.strip_prefix("f:")?;
                Some((
                    name.to_owned(),
                    covered(fields.get(name)?, below.as_object()?),
                ))
            };
            Value::Object(set.iter().filter_map(of).collect())
        }
        Value::Array(items) => {
            let named: Vec<_> = set.iter().filter_map(Item::read).collect();
            let of = |item: &Value| named.iter().find_map(|named| named.part(item));
            Value::Array(items.iter().filter_map(of).collect())
        }
        _ => value.clone(),
    }
}

/// What a set of fields names of an item of a list.
enum Item<'s> {
    /// The item with these keys, and what is named of it.
    Keyed(Map<String, Value>, &'s Map<String, Value>),
    /// The item that is this value.
    Whole(Value),
}

impl<'s> Item<'s> {
    fn read((name, below): (&'s String, &'s Value)) -> Option<Self> {
        let (form, text) = name.split_once(':')?;
        match form {
            "k" => Some(Self::Keyed(
                serde_json::from_str(text).ok()?,
                below.as_object()?,
            )),
            "v" => Some(Self::Whole(serde_json::from_str(text).ok()?)),
            _ => None,
        }
    }

    /// What is named of an item, if it is the one.
    fn part(&self, item: &Value) -> Option<Value> {
        match self {
            Self::Whole(value) => (item == value).then(|| item.clone()),
            Self::Keyed(keys, below) => {
                let is_it = keys.iter().all(|(key, value)| item.get(key) == Some(value));
                let mut part = is_it.then(|| covered(item, below))?;
                part.as_object_mut()?.extend(keys.clone());
                Some(part)
            }
        }
    }
}

fn is_main(entry: &Value) -> bool {
    let subresource = entry.get("subresource").and_then(Value::as_str);
    subresource.is_none_or(str::is_empty)
}

fn of_us(live: &Value) -> impl Iterator<Item = &Value> {
    entries(live).filter(|entry| is_ours(entry))
}

fn is_ours(entry: &Value) -> bool {
    let is = |field: &str, wanted: &str| entry.get(field).and_then(Value::as_str) == Some(wanted);
    is("manager", FIELD_MANAGER) && is("operation", "Apply")
}

fn entries(live: &Value) -> impl Iterator<Item = &Value> {
    let metadata = live.get("metadata");
    let entries = metadata.and_then(|metadata| metadata.get("managedFields")?.as_array());
    entries.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": "Apply", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn live(entries: &[Value]) -> Value {
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:05Z", "managedFields": entries}})
    }

    #[test]
    fn the_hash_is_of_our_fields_and_nothing_else() {
        let ours_at = |time: &str| entry(FIELD_MANAGER, time, json!({"f:data": {"f:a": {}}}));
        let first = ours(&live(&[ours_at("2026-01-01T00:00:05Z")]));
        let other = entry(
            "kubectl",
            "2026-01-01T00:00:07Z",
            json!({"f:data": {"f:b": {}}}),
        );
        assert_eq!(
            ours(&live(&[other.clone(), ours_at("2026-01-01T00:00:09Z")])),
            first
        );
        let fewer = entry(FIELD_MANAGER, "2026-01-01T00:00:05Z", json!({"f:data": {}}));
        assert_ne!(ours(&live(&[fewer])), first);
        // What was written by POST or PUT with our name is not what we apply.
        let mut posted = ours_at("2026-01-01T00:00:05Z");
        posted["operation"] = json!("Update");
        assert_eq!(ours(&live(&[other, posted])), "");
        assert_eq!(ours(&json!({"metadata": {"managedFields": "x"}})), "");
    }

    #[test]
    fn an_object_is_ours_by_creation_only_when_nobody_was_as_early() {
        let us = |time: &str| entry(FIELD_MANAGER, time, json!({}));
        let controller = entry("controller", "2026-01-01T00:00:06Z", json!({}));
        let at_once = us("2026-01-01T00:00:05Z");
        assert!(is_created_by_us(&live(&[at_once.clone(), controller])));
        let creator = entry("creator", "2026-01-01T00:00:05Z", json!({}));
        assert!(!is_created_by_us(&live(&[
            at_once.clone(),
            creator.clone()
        ])));
        assert!(!is_created_by_us(&live(&[us("2026-01-01T00:00:06Z")])));
        let mut status = creator;
        status["subresource"] = json!("status");
        assert!(is_created_by_us(&live(&[at_once, status])));
        assert!(!is_created_by_us(&json!({"metadata": {}})));
    }
}
