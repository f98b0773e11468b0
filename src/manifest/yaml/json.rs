//! Reads JSON: one value of a stream of values, with limits and with word of duplicate keys.
//!
//! Numbers become what k8s.io/apimachinery makes of them (`util/json`): integers stay exact, the rest are floats.
//! Two things are stricter than Go: text has to be UTF-8, and a surrogate needs its other half.

use std::fmt;

use memchr::memchr_iter;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{DuplicateKey, KEY_CHARACTERS, REPORTED_DUPLICATES, ReadError, Step, push_key, scalar};
use crate::limits::Limits;

/// One value of a stream.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The index behind it.
    pub(super) end: usize,
    pub(super) duplicate_keys: Vec<DuplicateKey>,
}

/// Why a value could not be read.
pub(super) struct Refusal {
    pub(super) error: ReadError,
    /// The text is JSON nevertheless, so another format need not be tried.
    pub(super) is_json: bool,
}

/// Reads the first JSON value of `text`, which begins on line `first_line` of its file.
pub(super) fn parse(text: &str, first_line: usize, limits: &Limits) -> Result<Parsed, Refusal> {
    let mut state = State {
        text,
        nodes_left: limits.document_nodes,
        depth_left: limits.depth,
        broken: None,
        duplicate_keys: Vec::new(),
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The seed bounds the depth itself, so that there is one limit for YAML and JSON.
    deserializer.disable_recursion_limit();
    let value = match Seed(&mut state).deserialize(&mut deserializer) {
        Ok(value) => value,
        Err(error) => {
            let line = first_line + error.line().saturating_sub(1);
            let message = message(&error);
            let is_json = state.broken.is_some() || message == "number out of range";
            let error = match state.broken {
                Some(Broken::Depth) => ReadError::too_deep(line, limits),
                Some(Broken::Nodes) => ReadError::too_many_nodes(line, limits),
                None => ReadError::invalid(line, message),
            };
            return Err(Refusal { error, is_json });
        }
    };
    Ok(Parsed {
        value,
        end: deserializer.into_iter::<IgnoredAny>().byte_offset(),
        duplicate_keys: state.duplicate_keys(first_line),
    })
}

/// The error without its place, which counts from the start of `text`.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => message,
    }
}

/// The limit that stopped the reader.
enum Broken {
    Depth,
    Nodes,
}

struct State<'t> {
    text: &'t str,
    nodes_left: usize,
    depth_left: usize,
    broken: Option<Broken>,
    duplicate_keys: Vec<Duplicate>,
}

struct Duplicate {
    /// The steps of the path, the innermost first: they are added on the way out.
    path: Vec<Step>,
    /// The index of the key in the text; unknown where the key is written with escapes.
    at: Option<usize>,
}

impl State<'_> {
    fn count_node<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.nodes_left == 0 {
            self.broken = Some(Broken::Nodes);
            return Err(E::custom("too many values"));
        }
        self.nodes_left -= 1;
        Ok(())
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth_left == 0 {
            self.broken = Some(Broken::Depth);
            return Err(E::custom("too deep"));
        }
        self.depth_left -= 1;
        Ok(())
    }

    /// Adds the way to the value in which the duplicates behind `from` were found.
    fn add_step(&mut self, from: usize, step: impl Fn() -> Step) {
        for duplicate in &mut self.duplicate_keys[from..] {
            duplicate.path.push(step());
        }
    }

    fn duplicate_keys(self, first_line: usize) -> Vec<DuplicateKey> {
        let line = |at: usize| first_line + memchr_iter(b'\n', &self.text.as_bytes()[..at]).count();
        let dotted = |duplicate: Duplicate| {
            let mut key = String::new();
            for step in duplicate.path.iter().rev() {
                match step {
                    Step::Key(name) => push_key(&mut key, name),
                    Step::Item(index) => key.push_str(&format!("[{index}]")),
                }
            }
            let line = line(duplicate.at.unwrap_or_default());
            DuplicateKey { key, line }
        };
        self.duplicate_keys.into_iter().map(dotted).collect()
    }
}

/// Builds a value and keeps account of what it costs.
struct Seed<'s, 't>(&'s mut State<'t>);

impl<'de> DeserializeSeed<'de> for Seed<'_, 'de> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.count_node()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, 'de> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(Value::Bool(bool))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Value, E> {
        Ok(Value::Number(integer.into()))
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Value, E> {
        Ok(Value::Number(integer.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, float: f64) -> Result<Value, E> {
        scalar::number(float)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.0.enter()?;
        let mut items = Vec::new();
        loop {
            let known = self.0.duplicate_keys.len();
            let Some(item) = list.next_element_seed(Seed(&mut *self.0))? else {
                break;
            };
            self.0.add_step(known, || Step::Item(items.len()));
            items.push(item);
        }
        self.0.depth_left += 1;
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.0.enter()?;
        let mut map = Map::new();
        while let Some((key, at)) = entries.next_key_seed(KeySeed(self.0.text))? {
            self.0.count_node()?;
            let known = self.0.duplicate_keys.len();
            let value = entries.next_value_seed(Seed(&mut *self.0))?;
            self.0.add_step(known, || Step::Key(beginning(&key)));
            let reports = self.0.duplicate_keys.len() < REPORTED_DUPLICATES;
            if reports && map.contains_key(&key) {
                self.0.duplicate_keys.push(Duplicate {
                    path: vec![Step::Key(beginning(&key))],
                    at,
                });
            }
            map.insert(key, value);
        }
        self.0.depth_left += 1;
        Ok(Value::Object(map))
    }
}

/// As much of a key as a path shows.
fn beginning(key: &str) -> String {
    key.chars().take(KEY_CHARACTERS).collect()
}

/// Reads a key, and where it stands in the text.
struct KeySeed<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for KeySeed<'de> {
    type Value = (String, Option<usize>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'de> {
    type Value = (String, Option<usize>);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key in quotes")
    }

    /// A key without escapes is a piece of the text itself.
    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        let at = key.as_ptr().addr().checked_sub(self.0.as_ptr().addr());
        Ok((key.to_owned(), at.filter(|&at| at <= self.0.len())))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key.to_owned(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_one_value_and_says_where_it_ends() {
        let parsed = parse(" {\"a\": [1, 1.0, 1.5, 1e3, -0]} {}", 1, &Limits::DEFAULT);
        let parsed = parsed.ok().map(|parsed| (parsed.value, parsed.end));
        assert_eq!(parsed, Some((json!({"a": [1, 1, 1.5, 1000, 0]}), 30)));
    }

    #[test]
    fn duplicate_keys_are_reported_and_the_last_one_counts() {
        let text = "{\"a\": [{}, {\"b\": 1,\n\"b\": 2}],\n\"c\": {\"\\u0064\": 0, \"d\": 1}}";
        let Ok(parsed) = parse(text, 5, &Limits::DEFAULT) else {
            panic!("valid JSON");
        };
        assert_eq!(parsed.value, json!({"a": [{}, {"b": 2}], "c": {"d": 1}}));
        let found: Vec<_> = parsed
            .duplicate_keys
            .iter()
            .map(|d| (d.key.as_str(), d.line))
            .collect();
        assert_eq!(found, [("a[1].b", 6), ("c.d", 7)]);
    }

    #[test]
    fn limits_are_named() {
        let limits = Limits {
            depth: 3,
            document_nodes: 5,
            ..Limits::DEFAULT
        };
        let error = |text: &str| {
            parse(text, 1, &limits)
                .map(|parsed| parsed.end)
                .map_err(|e| e.error.to_string())
        };
        assert_eq!(error("[[[]]]"), Ok(6));
        assert!(
            error("\n[[[[]]]]")
                .is_err_and(|e| e.starts_with("line 2: nesting is deeper than the limit of 3 "))
        );
        assert!(error("[1,2,3,4,5]").is_err_and(|e| e.contains("than the limit of 5 ")));
    }
}
