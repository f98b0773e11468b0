//! The flow collections of the fast reader: `[a, b]` and `{a: 1}` with nothing unusual inside.
//!
//! As everywhere in the fast reader, `None` means that the other reader has to judge.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{LONGEST_KEY, Reader};
use crate::manifest::yaml::scalar;

impl<'t> Reader<'t> {
    /// The flow node at `position`. Goes behind it.
    pub(super) fn flow(&mut self) -> Option<Value> {
        match self.bytes[self.position] {
            b'[' => self.flow_list(),
            b'{' => self.flow_map(),
            b'"' | b'\'' => {
                self.count_node()?;
                self.quoted().map(Value::String)
            }
            _ => {
                self.count_node()?;
                let (text, colon) = self.flow_plain()?;
                let resolved = scalar::resolve(text);
                (!colon).then(|| scalar::value(Cow::Borrowed(text), resolved).ok())?
            }
        }
    }

    fn flow_list(&mut self) -> Option<Value> {
        self.enter()?;
        let mut items = Vec::new();
        if self.flow_next()? != b']' {
            loop {
                items.push(self.flow()?);
                match self.flow_space()? {
                    b',' => self.flow_next()?,
                    b']' => break,
                    _ => return None,
                };
            }
        }
        self.position += 1;
        self.depth_left += 1;
        Some(Value::Array(items))
    }

    fn flow_map(&mut self) -> Option<Value> {
        self.enter()?;
        let mut map = Map::new();
        if self.flow_next()? != b'}' {
            loop {
                let key = self.flow_key()?;
                self.flow_space()?;
                if map.insert(key, self.flow()?).is_some() {
                    return None;
                }
                match self.flow_space()? {
                    b',' => self.flow_next()?,
                    b'}' => break,
                    _ => return None,
                };
            }
        }
        self.position += 1;
        self.depth_left += 1;
        Some(Value::Object(map))
    }

    /// A key on one line, up to and with its colon.
    fn flow_key(&mut self) -> Option<String> {
        self.count_node()?;
        let start = self.position;
        let key = if matches!(self.bytes[start], b'"' | b'\'') {
            let key = self.quoted()?;
            self.skip_spaces();
            key
        } else {
            let (text, colon) = self.flow_plain()?;
            if !colon || text == "<<" {
                return None;
            }
            scalar::key(Cow::Borrowed(text), scalar::resolve(text)).ok()?
        };
        let source = self.bytes.get(start..self.position)?;
        if self.bytes.get(self.position) != Some(&b':')
            || source.len() > LONGEST_KEY
            || source.contains(&b'\n')
        {
            return None;
        }
        self.position += 1;
        Some(key)
    }

    /// A plain scalar on one line. Goes to what ends it, and says whether that is the colon of a key.
    fn flow_plain(&mut self) -> Option<(&'t str, bool)> {
        let start = self.position;
        match self.bytes[start] {
            b'-' if self
                .bytes
                .get(start + 1)
                .is_some_and(u8::is_ascii_alphanumeric) => {}
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'_'
            | b'.'
            | b'/'
            | b'+'
            | b'~'
            | b'$'
            | b'<'
            | b'=' => {}
            _ => return None,
        }
        let mut at = start;
        let colon = loop {
            match *self.bytes.get(at)? {
                b',' | b']' | b'}' | b'\n' => break false,
                b':' if matches!(self.bytes.get(at + 1), Some(b' ' | b'\n')) => break true,
                b'[' | b'{' | b'?' | b'\t' | b'#' => return None,
                _ => at += 1,
            }
        };
        self.position = at;
        Some((self.text.get(start..at)?.trim_end_matches(' '), colon))
    }

    /// Goes behind the indicator at `position` and to the next token, which it gives.
    fn flow_next(&mut self) -> Option<u8> {
        self.position += 1;
        self.flow_space()
    }

    /// Goes to the next token and gives its first byte.
    fn flow_space(&mut self) -> Option<u8> {
        loop {
            self.skip_spaces();
            if *self.bytes.get(self.position)? != b'\n' {
                return self.bytes.get(self.position).copied();
            }
            self.position += 1;
            // Directives and the ends of documents begin so, even here.
            if matches!(self.bytes.get(self.position), Some(b'%' | b'-' | b'.')) {
                return None;
            }
        }
    }
}
