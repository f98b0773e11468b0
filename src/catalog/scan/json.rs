//! What JSON documents say they are: serde_json passes over the rest of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use serde_json::value::RawValue;

use crate::catalog::parse::Head;

/// What the documents at hand say they are, each with where it starts and ends; the last one may go on behind what is at
/// hand. Where a document says it in an unusual way it has no head, and where the bounds are not clear there is nothing:
/// both are left to the full reader.
pub(super) fn heads(text: &[u8], is_last: bool) -> Option<Vec<(Option<Head>, usize, usize)>> {
    let mut heads = vec![];
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<JsonHead>();
    let mut passed = 0;
    while let Some(document) = documents.next() {
        match document {
            Ok(JsonHead(head)) => {
                let end = documents.byte_offset();
                let between = text.get(passed..end).unwrap_or_default();
                let blank = between.len() - between.trim_ascii_start().len();
                heads.push((head, passed + blank, end));
                passed = end;
            }
            Err(error) if error.is_eof() && !is_last => break,
            Err(_) => return None,
        }
    }
    Some(heads)
}

/// The head of a JSON document; everything else of it is passed over.
struct JsonHead(Option<Head>);

impl<'de> Deserialize<'de> for JsonHead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor).map(Self)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Option<Head>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Head>, A::Error> {
        let mut found: [Option<String>; 3] = Default::default();
        let mut is_usual = true;
        while let Some(key) = map.next_key::<Key>()? {
            let Key::Head(place) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw = map.next_value::<&RawValue>()?.get();
            // Not twice, and nothing but text.
            match (found.get_mut(place), serde_json::from_str(raw)) {
                (Some(found @ None), Ok(text)) => *found = Some(text),
                _ => is_usual = false,
            }
        }
        let [schema, package, name] = found.map(Option::unwrap_or_default);
        let head = Head {
            schema,
            package,
            name,
        };
        Ok(is_usual
            .then_some(head)
            .filter(|head| !head.schema.is_empty()))
    }
}

/// A key of a document: one of a head, by its position there, or another.
enum Key {
    Head(usize),
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
                let mut keys = ["schema", "package", "name"].into_iter();
                let place = keys.position(|known| known.eq_ignore_ascii_case(key));
                Ok(place.map_or(Key::Other, Key::Head))
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}
