//! JSON in which every program finds the same: no name twice in one object, and none that Go takes for another, as its
//! reader does not care for upper and lower case.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Reads JSON.
///
/// # Errors
/// Why it is none, or which name is there twice.
pub(super) fn parse(body: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Checked>(body).map(|checked| checked.0)
}

/// Checks that an object has no name that is one of the known ones but for the case of its letters.
///
/// # Errors
/// With both names.
pub(super) fn names(object: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    for name in object.keys() {
        let alike = known
            .iter()
            .find(|known| *known != name && folded(known) == folded(name));
        if let Some(known) = alike {
            let name: String = name.chars().take(80).collect();
            return Err(format!(
                "it has a field {name:?}, which some programs read as {known:?}"
            ));
        }
    }
    Ok(())
}

/// A name as Go's `encoding/json` compares it: two letters beyond ASCII are alike to letters in it.
fn folded(name: &str) -> String {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}

struct Checked(Value);

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CheckedVisitor).map(Self)
    }
}

struct CheckedVisitor;

impl<'de> Visitor<'de> for CheckedVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = vec![];
        while let Some(Checked(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let Checked(value) = map.next_value()?;
            if values.contains_key(&name) {
                let name: String = name.chars().take(80).collect();
                return Err(A::Error::custom(format!(
                    "the field {name:?} is there twice"
                )));
            }
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}
