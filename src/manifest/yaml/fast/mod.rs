//! Reads the everyday part of YAML, several times as fast as a full parser.
//!
//! It knows block maps and lists, plain, quoted and block scalars, small flow collections and comments. Whatever
//! it is not certain about, an error above all, it leaves to `events.rs` by answering `None`: anchors, aliases,
//! tags, merges, duplicate keys, directives, explicit keys, tabs where indentation counts, unusual characters.
//! Where it answers, it answers what go-yaml v2 reads (`scannerc.go`, from `yaml_parser_fetch_next_token` to
//! `yaml_parser_scan_plain_scalar`); tests compare the two readers on real files and on damaged ones.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::{Map, Value};

use super::scalar;
use crate::limits::Limits;

mod flow;
mod scalars;

/// Reads one document, which has to end with a line break.
///
/// Gives the value and the index of its first byte, or `None` if the other reader has to judge.
pub(super) fn parse(document: &str, limits: &Limits) -> Option<(Value, usize)> {
    if !document.ends_with('\n') || !scalars::is_ordinary(document.as_bytes()) {
        return None;
    }
    let mut reader = Reader {
        text: document,
        bytes: document.as_bytes(),
        position: 0,
        column: END,
        nodes_left: limits.document_nodes,
        depth_left: limits.depth.min(DEEPEST),
    };
    reader.skip_document_start()?;
    reader.seek()?;
    let start = reader.position;
    let value = match reader.column {
        END => Value::Null,
        column if starts_entry(reader.bytes, start) => reader.list(column)?,
        column => {
            let key = reader.key()?;
            reader.map(column, key)?
        }
    };
    (reader.column == END).then_some((value, start))
}

/// Deeper documents go to the other reader, which does not recurse.
const DEEPEST: usize = 128;

/// The column of the end of the text: left of everything.
const END: isize = -1;

/// A simple key may be 1,024 characters long, its quotes and the spaces behind it included.
const LONGEST_KEY: usize = 1000;

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The next byte to look at.
    position: usize,
    /// The column of the next token, or `END`. It is right whenever a collection asks for its next entry.
    column: isize,
    nodes_left: usize,
    depth_left: usize,
}

/// What ended a line of a plain scalar, and where.
enum Stop {
    Colon(usize),
    Comment(usize),
    LineEnd(usize),
}

impl<'t> Reader<'t> {
    /// A document may open with a line `---`.
    fn skip_document_start(&mut self) -> Option<()> {
        if self.bytes.starts_with(b"---") {
            self.position = 3;
            self.end_line()?;
        }
        Some(())
    }

    /// From the start of a line to the next token. Sets `column`.
    fn seek(&mut self) -> Option<()> {
        loop {
            let start = self.position;
            self.skip_spaces();
            self.column = (self.position - start).cast_signed();
            match self.bytes.get(self.position) {
                None => self.column = END,
                Some(b'\n') => {
                    self.position += 1;
                    continue;
                }
                Some(b'#') => {
                    self.skip_line()?;
                    continue;
                }
                Some(b'\t') => return None,
                // Directives and the marks around documents.
                Some(b'%' | b'.') if self.column == 0 => return None,
                Some(b'-') if self.column == 0 && self.bytes[start..].starts_with(b"---") => {
                    return None;
                }
                Some(_) => {}
            }
            return Some(());
        }
    }

    fn skip_spaces(&mut self) {
        while self.bytes.get(self.position) == Some(&b' ') {
            self.position += 1;
        }
    }

    fn skip_line(&mut self) -> Option<()> {
        self.position += memchr(b'\n', &self.bytes[self.position..])? + 1;
        Some(())
    }

    /// Nothing but a comment may follow on this line. Goes to the start of the next one.
    fn end_line(&mut self) -> Option<()> {
        let before = self.position;
        self.skip_spaces();
        match self.bytes.get(self.position) {
            Some(b'\n') => self.position += 1,
            Some(b'#') if self.position > before => self.skip_line()?,
            _ => return None,
        }
        Some(())
    }

    /// Whether the rest of the line, behind an indicator and spaces, holds no token.
    fn at_line_end(&self) -> bool {
        matches!(self.bytes.get(self.position), Some(b'\n' | b'#'))
    }

    fn count_node(&mut self) -> Option<()> {
        self.nodes_left = self.nodes_left.checked_sub(1)?;
        Some(())
    }

    fn enter(&mut self) -> Option<()> {
        self.depth_left = self.depth_left.checked_sub(1)?;
        self.count_node()
    }

    /// The node at `position` in `column`, inside a collection of column `parent`.
    fn node(&mut self, parent: isize) -> Option<Value> {
        let column = self.column;
        match *self.bytes.get(self.position)? {
            b'-' if starts_entry(self.bytes, self.position) => self.list(column),
            b'"' | b'\'' => {
                let start = self.position;
                let text = self.quoted()?;
                let behind = self.bytes.get(self.position..)?;
                if behind.starts_with(b":") || behind.starts_with(b" :") {
                    self.position = start;
                    let key = self.key()?;
                    return self.map(column, key);
                }
                self.quoted_value(text)
            }
            b'|' | b'>' => self.block_scalar(parent),
            b'[' | b'{' => self.flow_node(),
            _ => {
                let start = self.position;
                match self.plain_line()? {
                    (key, Stop::Colon(colon)) => {
                        let key = self.plain_key(key, start, colon)?;
                        self.map(column, key)
                    }
                    (line, stop) => self.plain_value(line, stop, parent),
                }
            }
        }
    }

    /// A list whose dashes stand in `column`.
    fn list(&mut self, column: isize) -> Option<Value> {
        self.enter()?;
        let mut items = Vec::new();
        while self.column == column && starts_entry(self.bytes, self.position) {
            let dash = self.position;
            self.position += 1;
            self.skip_spaces();
            items.push(if self.at_line_end() {
                self.skip_line()?;
                self.seek()?;
                self.node_below(column)?
            } else {
                self.column = column + (self.position - dash).cast_signed();
                self.node(column)?
            });
        }
        self.depth_left += 1;
        (self.column <= column).then_some(Value::Array(items))
    }

    /// A map whose keys stand in `column`, from behind the colon of its first key.
    fn map(&mut self, column: isize, first: String) -> Option<Value> {
        self.enter()?;
        let mut map = Map::new();
        let mut key = first;
        loop {
            let value = self.map_value(column)?;
            if map.insert(key, value).is_some() {
                return None;
            }
            if self.column != column {
                break;
            }
            key = self.key()?;
        }
        self.depth_left += 1;
        (self.column < column).then_some(Value::Object(map))
    }

    /// A key at `position`, up to and with its colon.
    fn key(&mut self) -> Option<String> {
        let start = self.position;
        if !matches!(self.bytes.get(start)?, b'"' | b'\'') {
            return match self.plain_line()? {
                (key, Stop::Colon(colon)) => self.plain_key(key, start, colon),
                _ => None,
            };
        }
        let key = self.quoted()?;
        self.skip_spaces();
        let on_one_line = memchr(b'\n', &self.bytes[start..self.position]).is_none();
        if !on_one_line
            || self.position - start > LONGEST_KEY
            || !is_value_colon(self.bytes, self.position)
        {
            return None;
        }
        self.position += 1;
        self.count_node()?;
        Some(key)
    }

    fn plain_key(&mut self, key: &str, start: usize, colon: usize) -> Option<String> {
        if colon - start > LONGEST_KEY || key == "<<" {
            return None;
        }
        self.position = colon + 1;
        self.count_node()?;
        scalar::key(Cow::Borrowed(key), scalar::resolve(key)).ok()
    }

    /// What follows the colon of a key of a map in `column`.
    fn map_value(&mut self, column: isize) -> Option<Value> {
        self.skip_spaces();
        if self.at_line_end() {
            self.skip_line()?;
            self.seek()?;
            // A list may stand in the column of the key that it belongs to.
            if self.column == column && starts_entry(self.bytes, self.position) {
                return self.list(column);
            }
            return self.node_below(column);
        }
        match self.bytes[self.position] {
            b'"' | b'\'' => {
                let text = self.quoted()?;
                self.quoted_value(text)
            }
            b'|' | b'>' => self.block_scalar(column),
            b'[' | b'{' => self.flow_node(),
            b'-' if starts_entry(self.bytes, self.position) => None,
            _ => {
                let (line, stop) = self.plain_line()?;
                self.plain_value(line, stop, column)
            }
        }
    }

    /// What stands below a dash or a key in `column`, where that line holds no more. Nothing means null.
    fn node_below(&mut self, column: isize) -> Option<Value> {
        if self.column > column {
            return self.node(column);
        }
        self.count_node()?;
        Some(Value::Null)
    }

    fn quoted_value(&mut self, text: String) -> Option<Value> {
        self.count_node()?;
        self.end_line()?;
        self.seek()?;
        Some(Value::String(text))
    }

    fn flow_node(&mut self) -> Option<Value> {
        let value = self.flow()?;
        self.end_line()?;
        self.seek()?;
        Some(value)
    }
}

/// Whether a dash at `at` begins an entry of a list.
fn starts_entry(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 2), Some([b'-', b' ' | b'\n']))
}

/// Whether a colon at `at` ends a key. A tab behind it would too, but is left to the other reader.
fn is_value_colon(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 2), Some([b':', b' ' | b'\n']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Option<Value> {
        parse(text, &Limits::DEFAULT).map(|(value, _)| value)
    }

    // Expected values are what YAMLToJSON of sigs.k8s.io/yaml gives.
    #[test]
    fn reads_everyday_yaml() {
        let text = "--- # CSV\nkind: X\nspec:\n  on: 010\n  list:\n  - a: b # c\n    'd e': [1, {x: \"y\"}]\n  -\n  - - z\n";
        let expected = json!({"kind": "X", "spec": {"true": 8, "list": [
            {"a": "b", "d e": [1, {"x": "y"}]}, null, ["z"]]}});
        assert_eq!(read(text), Some(expected));
    }

    #[test]
    fn folds_and_chomps() {
        let text =
            "a: x\n y\n\n z\nb: \"p\\\n  q \\\n\n  r\"\nc: |-\n  l\n\n   m\n\nd: >+\n  s\n  t\n\n";
        let expected = json!({"a": "x y\nz", "b": "pq \nr", "c": "l\n\n m", "d": "s t\n\n"});
        assert_eq!(read(text), Some(expected));
    }

    #[test]
    fn leaves_what_is_not_certain() {
        for text in [
            "a: &x b\n",
            "a: *x\n",
            "a: !!str b\n",
            "<<: {a: b}\n",
            "a: 1\na: 2\n",
            "? a\n: b\n",
            "a:\tb\n",
            "a: b\n\t\n",
            "%YAML 1.1\n---\na: b\n",
            "a: b\n...\n",
            "a: b: c\n",
            "a: 'b\n",
            "a: [b\n",
            "a: .inf\n",
            "null: a\n",
            "a:\n  b: 1\n c: 2\n",
            "a: b\u{2028}\n",
            "a: b",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        let limits = Limits {
            depth: 2,
            document_nodes: 5,
            ..Limits::DEFAULT
        };
        assert!(parse("a: [b]\n", &limits).is_some());
        assert!(parse("a: [[b]]\n", &limits).is_none());
        assert!(parse("a: [b, c, d]\n", &limits).is_none());
    }
}
