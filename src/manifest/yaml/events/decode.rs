//! From the nodes of a document to its value, with a stack of its own.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::{Content, Node, Scalar};
use crate::limits::Limits;
use crate::manifest::yaml::REPORTED_DUPLICATES;
use crate::manifest::yaml::scalar::{self, Resolved};
use crate::manifest::yaml::{DuplicateKey, ReadError, push_key};

/// The value of the nodes of one document, null if there are none, and the keys that stand twice in a map.
pub(super) fn decode(
    nodes: &[Node],
    limits: &Limits,
) -> Result<(Value, Vec<DuplicateKey>), ReadError> {
    let mut decoder = Decoder {
        nodes,
        limits,
        nodes_left: limits.document_nodes,
        stack: Vec::new(),
        duplicate_keys: Vec::new(),
    };
    let mut done = match nodes.first() {
        None => Some(Value::Null),
        Some(_) => decoder.open(0, false)?,
    };
    loop {
        if let Some(value) = done.take() {
            let Some(frame) = decoder.stack.last_mut() else {
                return Ok((value, decoder.duplicate_keys));
            };
            if let Some(key) = frame.put(value) {
                decoder.report(&key);
            }
        }
        done = decoder.step()?;
    }
}

/// A collection that is being built.
struct Frame {
    /// The node of the next child, and the one behind the last.
    next: usize,
    end: usize,
    /// The map goes into the one around it, key by key.
    merge: bool,
    building: Building,
}

enum Building {
    List(Vec<Value>),
    Map(MapFrame),
}

#[derive(Default)]
struct MapFrame {
    map: Map<String, Value>,
    /// The key whose value comes next, and its line.
    key: Option<(String, usize)>,
    /// Keys that came by a merge; to set them again is no mistake.
    merged: BTreeSet<String>,
    /// The nodes of maps still to be merged here, the first to be merged last.
    merging: Vec<usize>,
}

impl Frame {
    /// Adds a value. Gives the key if it stood there before.
    fn put(&mut self, value: Value) -> Option<(String, usize)> {
        match &mut self.building {
            Building::List(items) => {
                items.push(value);
                None
            }
            Building::Map(frame) => {
                let (key, line) = frame.key.take()?;
                let by_merge = frame.merged.remove(&key);
                let twice = frame.map.contains_key(&key) && !by_merge;
                let report = twice.then(|| (key.clone(), line));
                frame.map.insert(key, value);
                report
            }
        }
    }
}

struct Decoder<'n> {
    nodes: &'n [Node],
    limits: &'n Limits,
    nodes_left: usize,
    stack: Vec<Frame>,
    duplicate_keys: Vec<DuplicateKey>,
}

impl Decoder<'_> {
    /// Takes the next child of the innermost collection. Gives a value once one is complete.
    fn step(&mut self) -> Result<Option<Value>, ReadError> {
        let Some(frame) = self.stack.last_mut() else {
            return Ok(None);
        };
        if let Building::Map(map) = &mut frame.building
            && let Some(index) = map.merging.pop()
        {
            return self.open(index, true);
        }
        if frame.next >= frame.end {
            return Ok(self.close());
        }
        let index = frame.next;
        frame.next = self.nodes[index].end;
        match &frame.building {
            Building::Map(map) if map.key.is_none() => self.take_key(index).map(|()| None),
            _ => self.open(index, false),
        }
    }

    /// The value of a scalar, or nothing yet for a collection, which goes onto the stack.
    fn open(&mut self, index: usize, merge: bool) -> Result<Option<Value>, ReadError> {
        let node = self.resolve_alias(index);
        let line = self.nodes[index].line;
        self.count(index, node)?;
        let building = match &self.nodes[node].content {
            Content::Scalar(scalar) => {
                return scalar_value(scalar)
                    .map(Some)
                    .map_err(|message| ReadError::invalid(self.nodes[node].line, message));
            }
            Content::List => Building::List(Vec::new()),
            Content::Map | Content::Alias(_) => Building::Map(MapFrame::default()),
        };
        if self.stack.len() >= self.limits.depth {
            return Err(ReadError::too_deep(line, self.limits));
        }
        self.stack.push(Frame {
            next: node + 1,
            end: self.nodes[node].end,
            merge,
            building,
        });
        Ok(None)
    }

    /// Counts a node. Text that the document does not hold again and again may not fill the memory either: what
    /// comes by an alias counts once for every hundred bytes.
    fn count(&mut self, index: usize, node: usize) -> Result<(), ReadError> {
        let cost = match &self.nodes[node].content {
            Content::Scalar(scalar) => 1 + scalar.text.len() / 100,
            _ => 1,
        };
        self.nodes_left = self
            .nodes_left
            .checked_sub(cost)
            .ok_or_else(|| ReadError::too_many_nodes(self.nodes[index].line, self.limits))?;
        Ok(())
    }

    /// An alias never means another alias, so one step is enough.
    fn resolve_alias(&self, index: usize) -> usize {
        match self.nodes[index].content {
            Content::Alias(target) => target,
            _ => index,
        }
    }

    /// Takes the innermost collection off the stack.
    fn close(&mut self) -> Option<Value> {
        let frame = self.stack.pop()?;
        match frame.building {
            Building::List(items) => Some(Value::Array(items)),
            Building::Map(inner) if frame.merge => {
                if let Some(Building::Map(outer)) =
                    self.stack.last_mut().map(|frame| &mut frame.building)
                {
                    outer.merged.extend(inner.map.keys().cloned());
                    outer.map.extend(inner.map);
                }
                None
            }
            Building::Map(inner) => Some(Value::Object(inner.map)),
        }
    }

    fn take_key(&mut self, index: usize) -> Result<(), ReadError> {
        let line = self.nodes[index].line;
        let node = self.resolve_alias(index);
        self.count(index, node)?;
        if let Content::Scalar(scalar) = &self.nodes[index].content
            && is_merge(scalar)
        {
            return self.take_merge(line);
        }
        let key = match &self.nodes[node].content {
            Content::Scalar(scalar) => {
                scalar_key(scalar).map_err(|message| ReadError::invalid(line, message))?
            }
            Content::List => {
                return Err(ReadError::invalid(
                    line,
                    "a list cannot be the key of a map",
                ));
            }
            _ => return Err(ReadError::invalid(line, "a map cannot be the key of a map")),
        };
        if let Some(Building::Map(map)) = self.stack.last_mut().map(|frame| &mut frame.building) {
            map.key = Some((key, line));
        }
        Ok(())
    }

    /// What follows the key `<<`: a map, or a list of maps of which earlier ones win.
    fn take_merge(&mut self, line: usize) -> Result<(), ReadError> {
        let want_map = || {
            ReadError::invalid(
                line,
                "map merge requires map or sequence of maps as the value",
            )
        };
        let nodes = self.nodes;
        let is_map = |index: usize| match nodes[index].content {
            Content::Map => true,
            Content::Alias(target) => matches!(nodes[target].content, Content::Map),
            _ => false,
        };
        let Some(Frame {
            next,
            building: Building::Map(map),
            ..
        }) = self.stack.last_mut()
        else {
            return Err(want_map());
        };
        let value = *next;
        *next = nodes[value].end;
        if !matches!(nodes[value].content, Content::List) {
            map.merging.push(value);
        } else {
            let mut item = value + 1;
            while item < nodes[value].end {
                map.merging.push(item);
                item = nodes[item].end;
            }
        }
        if map.merging.iter().all(|&index| is_map(index)) {
            Ok(())
        } else {
            Err(want_map())
        }
    }

    fn report(&mut self, key: &(String, usize)) {
        if self.duplicate_keys.len() == REPORTED_DUPLICATES {
            return;
        }
        let mut path = String::new();
        for frame in &self.stack[..self.stack.len() - 1] {
            match &frame.building {
                Building::Map(map) => {
                    if let Some((key, _)) = &map.key {
                        push_key(&mut path, key);
                    }
                }
                Building::List(items) => {
                    // Writing to a String cannot fail.
                    let _ = write!(path, "[{}]", items.len());
                }
            }
        }
        push_key(&mut path, &key.0);
        self.duplicate_keys.push(DuplicateKey {
            key: path,
            line: key.1,
        });
    }
}

const BINARY: &str = "tag:yaml.org,2002:binary";

/// Whether a key means that the map which follows is merged into the one around it.
pub(super) fn is_merge(scalar: &Scalar) -> bool {
    scalar.text == "<<"
        && (scalar.implicit || scalar.tag.as_deref() == Some("tag:yaml.org,2002:merge"))
}

fn scalar_value(scalar: &Scalar) -> Result<Value, String> {
    if scalar.tag.as_deref() == Some(BINARY) {
        return decode_binary(&scalar.text).map(Value::String);
    }
    Ok(scalar::value(
        Cow::Borrowed(&scalar.text),
        resolve(scalar)?,
    )?)
}

/// The text that a scalar is as the key of a map, or why it cannot be one.
pub(super) fn scalar_key(scalar: &Scalar) -> Result<String, String> {
    if scalar.tag.as_deref() == Some(BINARY) {
        return decode_binary(&scalar.text);
    }
    Ok(scalar::key(Cow::Borrowed(&scalar.text), resolve(scalar)?)?)
}

/// Resolves a scalar with its tag. Tags that go-yaml does not know make text.
fn resolve(scalar: &Scalar) -> Result<Resolved, String> {
    let Some(tag) = scalar.tag.as_deref() else {
        return Ok(if scalar.implicit {
            scalar::resolve(&scalar.text)
        } else {
            Resolved::Text
        });
    };
    let resolved = || scalar::resolve(&scalar.text);
    let resolved = match tag.strip_prefix("tag:yaml.org,2002:") {
        Some("bool") => Some(resolved()).filter(|r| matches!(r, Resolved::Bool(_))),
        Some("int") => {
            Some(resolved()).filter(|r| matches!(r, Resolved::Integer(_) | Resolved::Unsigned(_)))
        }
        Some("null") => Some(resolved()).filter(|r| matches!(r, Resolved::Null)),
        Some("timestamp") => Some(resolved()).filter(|r| matches!(r, Resolved::Timestamp)),
        Some("float") => match resolved() {
            #[expect(clippy::cast_precision_loss, reason = "upstream converts so")]
            Resolved::Integer(integer) => Some(Resolved::Float(integer as f64)),
            float @ Resolved::Float(_) => Some(float),
            _ => None,
        },
        _ => Some(Resolved::Text),
    };
    resolved.ok_or_else(|| {
        let tag = tag.replace("tag:yaml.org,2002:", "!!");
        format!("the text is not what its tag {tag} says")
    })
}

/// Go does not look at the bits that the padding leaves over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Go decodes to bytes, and its JSON then replaces each byte that is not UTF-8.
fn decode_binary(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = BASE64
        .decode(digits)
        .map_err(|_| "!!binary value contains invalid base64 data".to_owned())?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse;
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        parse(text, 1, &Limits::DEFAULT)
            .map(|parsed| parsed.value)
            .map_err(|error| error.to_string())
    }

    // Expected values are what YAMLToJSON of sigs.k8s.io/yaml gives.
    #[test]
    fn merges_override_what_came_before_them() {
        let text = "b: &b {x: 1, z: 2}\nc: &c {x: 3}\na: {x: 0, <<: [*b, *c], z: 9}\n";
        assert_eq!(
            read(text).map(|v| v["a"].clone()),
            Ok(json!({"x": 1, "z": 9}))
        );
        let error = "line 1: map merge requires map or sequence of maps as the value";
        assert_eq!(read("{<<: 1}\n"), Err(error.to_owned()));
    }

    #[test]
    fn tags_are_followed() {
        let text = "- !!str 5\n- !!float 5\n- !!int '0x10'\n- !!binary aGk=\n- !!binary /w==\n- !x {a: !y on}\n";
        assert_eq!(
            read(text),
            Ok(json!(["5", 5, 16, "hi", "\u{fffd}", {"a": "on"}]))
        );
        assert_eq!(
            read("!!int x\n"),
            Err("line 1: the text is not what its tag !!int says".to_owned())
        );
    }

    #[test]
    fn keys_become_text() {
        let text = "{on: 1, 1.5: 2, 0x10: 3, '': 4}\n";
        assert_eq!(read(text), Ok(json!({"true": 1, "1.5": 2, "16": 3, "": 4})));
        assert!(read("? [a]\n: b\n").is_err_and(|e| e.contains("a list cannot be the key")));
        assert!(read("~: b\n").is_err_and(|e| e.contains("null cannot be the key")));
    }

    #[test]
    fn duplicate_keys_are_reported_with_path_and_line() {
        let text = "m: &m {z: 1}\na:\n- b: 1\n- <<: *m\n  z: 2\n  c.d: 1\n  c.d: 2\n";
        let parsed = parse(text, 10, &Limits::DEFAULT).map(|parsed| parsed.duplicate_keys);
        let expected = DuplicateKey {
            key: "a[1].c.d".to_owned(),
            line: 16,
        };
        assert_eq!(parsed, Ok(vec![expected]));
    }

    #[test]
    fn an_alias_bomb_stops_at_the_limit() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..12 {
            let alias = format!("*a{}", n - 1);
            text += &format!("a{n}: &a{n} [{}]\n", vec![alias; 10].join(", "));
        }
        assert_eq!(
            read(&text).map_err(|error| error.split(": ").last().map(str::to_owned)),
            Err(Some(
                "the document has more values, aliases expanded, than the limit of 1000000 \
                 (--no-limits lifts it for content you trust)"
                    .to_owned()
            ))
        );
    }
}
