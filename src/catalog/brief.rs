//! A bundle's document in JSON, without the values of properties that only people and installs need: they are nearly all
//! of it, and passing over them is much faster than building them.
//!
//! Anything unusual is left to the full reader, so this never finds anything wrong.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use super::package::FOR_PEOPLE;
use crate::{limits::Limits, manifest::yaml};

/// Reads a document; nothing when that is left to the full reader.
pub(super) fn read(text: &[u8], limits: &Limits) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let mut document = Map::new();
    for (key, raw) in fields.0 {
        let value = if key.eq_ignore_ascii_case("properties") {
            properties(raw, limits)?
        } else {
            value(raw, limits)?
        };
        document.insert(key, value);
    }
    Some(Value::Object(document))
}

fn properties(raw: &RawValue, limits: &Limits) -> Option<Value> {
    let properties: Vec<Fields<'_>> = serde_json::from_str(raw.get()).ok()?;
    let brief = properties.into_iter().map(|Fields(fields)| {
        let is_kind = |(key, _): &&(String, &RawValue)| key.eq_ignore_ascii_case("type");
        let kind = fields.iter().find(is_kind);
        let kind: Option<String> = kind.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok());
        let is_brief = kind.is_some_and(|kind| FOR_PEOPLE.contains(&kind.as_str()));
        let fields = fields.into_iter().map(|(key, raw)| {
            let is_passed_over = is_brief && key.eq_ignore_ascii_case("value");
            let value = if is_passed_over {
                Value::Null
            } else {
                value(raw, limits)?
            };
            Some((key, value))
        });
        fields.collect::<Option<Map<_, _>>>().map(Value::Object)
    });
    brief.collect::<Option<Vec<_>>>().map(Value::Array)
}

/// A value as the full reader reads it.
fn value(raw: &RawValue, limits: &Limits) -> Option<Value> {
    match raw.get().as_bytes() {
        [b'"', ..] => serde_json::from_str(raw.get()).ok(),
        [b'{', ..] => Some(yaml::read(raw.get().as_bytes(), limits).ok()?.pop()?.value),
        _ => {
            // The full reader takes a list or a number that stands alone for YAML.
            let text = format!("{{\"\":{raw}}}");
            let mut document = yaml::read(text.as_bytes(), limits).ok()?.pop()?;
            document.value.as_object_mut()?.remove("")
        }
    }
}

/// The fields of a map, with their values unread. None of them twice.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = vec![];
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}
