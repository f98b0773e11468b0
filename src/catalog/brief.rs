//! A bundle's document in JSON, without the values of properties that only people and installs need: they are nearly all
//! of it, and passing over them is much faster than building them.
//!
//! Anything unusual is left to the full reader, so this never finds anything wrong.

use std::{fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use super::package::FOR_PEOPLE;
use crate::{limits::Limits, manifest::yaml};

/// Reads a document; nothing when that is left to the full reader.
pub(super) fn read(text: &[u8], limits: &Limits) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let Fields(fields) = serde_json::from_str::<Fields<Field<'_>>>(text).ok()?;
    let fields = fields.into_iter().map(|(key, field)| {
        let value = match field {
            Field::Properties(list) => properties(list, limits)?,
            Field::Other(raw) => value(raw, limits)?,
        };
        Some((key, value))
    });
    fields.collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn properties(list: Vec<Fields<&RawValue>>, limits: &Limits) -> Option<Value> {
    let brief = list.into_iter().map(|Fields(fields)| {
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

/// The value of a field of the document. Properties are looked into at once, as they are nearly all of it.
enum Field<'t> {
    Properties(Vec<Fields<&'t RawValue>>),
    Other(&'t RawValue),
}

/// The fields of a map.
struct Fields<T>(Vec<(String, T)>);

/// What a field is read into, by its key.
trait OfKey<'de>: Sized {
    fn next<A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Self, A::Error>;
}

impl<'de> OfKey<'de> for &'de RawValue {
    fn next<A: MapAccess<'de>>(_: &str, map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }
}

impl<'de> OfKey<'de> for Field<'de> {
    fn next<A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Self, A::Error> {
        if key.eq_ignore_ascii_case("properties") {
            map.next_value().map(Self::Properties)
        } else {
            map.next_value().map(Self::Other)
        }
    }
}

impl<'de, T: OfKey<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor<T>(PhantomData<T>);
        impl<'de, T: OfKey<'de>> Visitor<'de> for FieldsVisitor<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = vec![];
                while let Some(key) = map.next_key::<String>()? {
                    let value = T::next(&key, &mut map)?;
                    fields.push((key, value));
                }
                Ok(fields)
            }
        }
        deserializer
            .deserialize_map(FieldsVisitor(PhantomData))
            .map(Self)
    }
}
