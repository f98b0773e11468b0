//! Reads any YAML document, on top of libyaml's parser (crate libyaml-safer).
//!
//! The events become a flat list of nodes, and the nodes become a value by the rules of go-yaml v2's `decode.go`
//! and of sigs.k8s.io/yaml: anchors and aliases, merges, tags, keys that become text, the last of two equal keys.
//! Nothing here recurses, so nesting costs memory but no stack, and an alias costs what it expands to only once
//! the limits have let it.
//!
//! Departures from go-yaml, all in libyaml: `[a:]`, tags with a comma and the escape `\'` are refused, the escape
//! `\/` and `[a?b]` are taken. An alias bomb is refused by `Limits` and not by a ratio.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{
    Encoding, Event, EventData, MappingStyle, Parser, ScalarStyle, Scanner, SequenceStyle,
    TokenData,
};
use memchr::{memchr, memchr_iter};
use serde_json::Value;

use super::{DuplicateKey, ReadError};
use crate::limits::Limits;

mod decode;
pub(super) mod places;
pub(super) mod spans;

/// One node; a collection is followed by its children.
struct Node {
    content: Content,
    /// The index behind the node's last descendant, or 0 while the collection is open.
    end: usize,
    /// The 1-based line of the file.
    line: usize,
    /// The bytes of the text, from the anchor or the tag on. A collection of lines ends with what stands in it last.
    bytes: Range<usize>,
    layout: Layout,
}

/// How a node is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A collection of lines.
    Block,
    /// A collection in brackets, and an alias.
    Flow,
    Scalar(ScalarStyle),
}

enum Content {
    Scalar(Scalar),
    List,
    Map,
    /// The index of the node that is meant.
    Alias(usize),
}

struct Scalar {
    text: String,
    tag: Option<String>,
    /// The scalar is plain, or is tagged with a lone `!`.
    implicit: bool,
}

/// What a document says.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The line of the file on which its content starts.
    pub(super) line: usize,
    pub(super) duplicate_keys: Vec<DuplicateKey>,
}

/// Reads the first document of `text`, which begins on line `first_line` of its file and ends with a line break.
pub(super) fn parse(text: &str, first_line: usize, limits: &Limits) -> Result<Parsed, ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_characters(text, first_line)?;
    let nodes = nodes_of(text, first_line, limits)?;
    let line = nodes.first().map_or(first_line, |node| node.line);
    let (value, duplicate_keys) = decode::decode(&nodes, limits)?;
    Ok(Parsed {
        value,
        line,
        duplicate_keys,
    })
}

/// The nodes of the first document of a text whose characters were checked.
fn nodes_of(text: &str, first_line: usize, limits: &Limits) -> Result<Vec<Node>, ReadError> {
    let parser_failed =
        |_| ReadError::invalid(first_line, "the YAML parser failed on this document");
    // The parser has known ways to panic. They are kept away from it, so this is only the last line of defence.
    catch_unwind(AssertUnwindSafe(|| {
        refuse_tag_before_comma(text, first_line)?;
        Nodes::of(text, first_line, limits)
    }))
    .unwrap_or_else(|panic| Err(parser_failed(panic)))
}

/// The nodes that stand directly in a collection; in a map, keys and values take turns.
fn children(nodes: &[Node], of: usize) -> impl Iterator<Item = usize> {
    let is_collection = |node: &&Node| matches!(node.content, Content::List | Content::Map);
    let node = nodes.get(of).filter(is_collection);
    let end = node.map_or(of, |node| node.end);
    let inside = move |at: usize| (at < end).then_some(at);
    std::iter::successors(inside(of + 1), move |at| {
        nodes.get(*at).and_then(|node| inside(node.end))
    })
}

/// The characters that go-yaml refuses (`yaml_parser_update_buffer` in `readerc.go`).
fn check_characters(text: &str, first_line: usize) -> Result<(), ReadError> {
    let forbidden = |c: char| {
        matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{84}' | '\u{86}'..='\u{9f}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let Some(at) = text.find(forbidden) else {
        return Ok(());
    };
    let code = text[at..].chars().next().map_or(0, u32::from);
    let message = format!("control character U+{code:04X} is not allowed outside of escapes");
    Err(ReadError::invalid(line_of(text, at, first_line), message))
}

fn line_of(text: &str, at: usize, first_line: usize) -> usize {
    first_line + memchr_iter(b'\n', &text.as_bytes()[..at]).count()
}

/// The parser panics on a tag that is followed by a comma at once, as in `[!a,b]`, where go-yaml has an error.
///
/// Whether a `!` begins a tag is for a scanner to say. So the scanner first sees the text with a `^` before each
/// comma in question. Behind a tag that is an error, the one that is wanted; elsewhere it is a letter like any other.
fn refuse_tag_before_comma(text: &str, first_line: usize) -> Result<(), ReadError> {
    let commas = commas_behind_marks(text);
    if commas.is_empty() {
        return Ok(());
    }
    let mut marked = String::with_capacity(text.len() + commas.len());
    let mut from = 0;
    for comma in commas {
        marked.push_str(&text[from..comma]);
        marked.push('^');
        from = comma;
    }
    marked.push_str(&text[from..]);
    let mut input = marked.as_bytes();
    let mut scanner = Scanner::new();
    scanner.set_input_string(&mut input);
    scanner.set_encoding(Encoding::Utf8);
    for token in scanner {
        match token {
            Ok(token) if matches!(token.data, TokenData::DocumentEnd) => break,
            Ok(_) => {}
            Err(error) if error.context() == Some("while scanning a tag") => {
                return Err(syntax_error(&error, text, first_line));
            }
            // The parser will come no further than this either.
            Err(_) => break,
        }
    }
    Ok(())
}

fn line(first_line: usize, mark: u64) -> usize {
    first_line + usize::try_from(mark).unwrap_or(0)
}

/// What the parser found wrong in `text`. Behind its last line break it has found the end, which is no line.
fn syntax_error(error: &libyaml_safer::Error, text: &str, first_line: usize) -> ReadError {
    let last_line = line_of(text, text.trim_end_matches('\n').len(), first_line);
    let place = |mark: libyaml_safer::Mark| line(first_line, mark.line).min(last_line);
    let found_on = error.problem_mark().map(place);
    let begun_on = error.context_mark().map(place);
    let mut message = error.problem().to_owned();
    if let Some(context) = error.context() {
        message = format!("{message} {context}");
    }
    if let Some(begun_on) = begun_on.filter(|_| begun_on != found_on) {
        message = format!("{message} that begins on line {begun_on}");
    }
    ReadError::Invalid {
        line: found_on,
        message,
    }
}

/// The commas that would end a tag if the `!` before them began one. The commas inside `!<...>` do not.
fn commas_behind_marks(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut commas = Vec::new();
    let mut behind_mark = false;
    let mut at = memchr(b'!', bytes).unwrap_or(bytes.len());
    // Up to here, no `>` comes before the next blank.
    let mut open_until = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => behind_mark = false,
            b',' if behind_mark => {
                commas.push(at);
                behind_mark = false;
            }
            b'!' => {
                behind_mark = true;
                if at >= open_until && bytes.get(at + 1) == Some(&b'<') {
                    let length = bytes[at..].iter().position(|b| b" \t\n\r>".contains(b));
                    let end = length.map_or(bytes.len(), |length| at + length);
                    if bytes.get(end) == Some(&b'>') {
                        at = end;
                    } else {
                        open_until = end;
                    }
                }
            }
            _ => {}
        }
        at += 1;
        if !behind_mark {
            at = bytes
                .get(at..)
                .and_then(|rest| memchr(b'!', rest))
                .map_or(bytes.len(), |mark| at + mark);
        }
    }
    commas
}

/// Builds the nodes of a document from its events.
struct Nodes<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    open: Vec<usize>,
    anchors: HashMap<String, usize>,
}

impl<'t> Nodes<'t> {
    fn of(text: &'t str, first_line: usize, limits: &Limits) -> Result<Vec<Node>, ReadError> {
        let mut input = text.as_bytes();
        let mut parser = Parser::new();
        parser.set_input_string(&mut input);
        // Left to find out, the parser takes any first character from U+F000 on for a broken byte order mark.
        parser.set_encoding(Encoding::Utf8);
        let mut nodes = Nodes {
            text,
            nodes: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
        };
        loop {
            let event = parser
                .parse()
                .map_err(|error| syntax_error(&error, text, first_line))?;
            let line = line(first_line, event.start_mark.line);
            if matches!(
                event.data,
                EventData::StreamEnd | EventData::DocumentEnd { .. }
            ) {
                return Ok(nodes.nodes);
            }
            nodes.add(event, line)?;
            if nodes.open.len() > limits.depth {
                return Err(ReadError::too_deep(line, limits));
            }
            if nodes.nodes.len() > limits.document_nodes {
                return Err(ReadError::too_many_nodes(line, limits));
            }
        }
    }

    fn add(&mut self, event: Event, line: usize) -> Result<(), ReadError> {
        let start = event.start_mark.index;
        let bytes = bytes_of(&event);
        let layout = layout_of(&event.data);
        let (anchor, content) = match event.data {
            EventData::SequenceStart { anchor, .. } => (anchor, Content::List),
            EventData::MappingStart { anchor, .. } => (anchor, Content::Map),
            EventData::Alias { anchor } => (None, Content::Alias(self.target(&anchor, line)?)),
            EventData::Scalar {
                anchor,
                tag,
                value,
                plain_implicit,
                style,
                ..
            } => {
                let lone_mark = tag.is_none() && plain_implicit && self.has_lone_mark(start, style);
                let scalar = Scalar {
                    text: value,
                    tag: if lone_mark { Some("!".to_owned()) } else { tag },
                    implicit: plain_implicit,
                };
                (anchor, Content::Scalar(scalar))
            }
            EventData::SequenceEnd | EventData::MappingEnd => {
                self.close(bytes.end);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let index = self.nodes.len();
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, index);
        }
        let end = match content {
            Content::List | Content::Map => 0,
            Content::Scalar(_) | Content::Alias(_) => {
                self.reach(bytes.end);
                index + 1
            }
        };
        if end == 0 {
            self.open.push(index);
        }
        self.nodes.push(Node {
            content,
            end,
            line,
            bytes,
            layout,
        });
        Ok(())
    }

    /// Ends the innermost collection. The event of one of lines stands where the next thing begins, which tells nothing.
    fn close(&mut self, end: usize) {
        let Some(index) = self.open.pop() else { return };
        let count = self.nodes.len();
        let Some(node) = self.nodes.get_mut(index) else {
            return;
        };
        node.end = count;
        if node.layout == Layout::Flow {
            node.bytes.end = end;
        }
        let end = node.bytes.end;
        self.reach(end);
    }

    /// The innermost collection goes on up to a byte at least.
    fn reach(&mut self, end: usize) {
        let around = self
            .open
            .last()
            .and_then(|index| self.nodes.get_mut(*index));
        if let Some(node) = around {
            node.bytes.end = end;
        }
    }

    fn target(&self, anchor: &str, line: usize) -> Result<usize, ReadError> {
        match self.anchors.get(anchor) {
            None => Err(ReadError::invalid(
                line,
                "an alias names an anchor that does not stand before it",
            )),
            Some(&index) if self.nodes[index].end == 0 => Err(ReadError::invalid(
                line,
                "an alias stands inside of what its own anchor names",
            )),
            Some(&index) => Ok(index),
        }
    }

    /// The parser hides the tag `!`, which makes any scalar text. It shows only in the source.
    fn has_lone_mark(&self, start: u64, style: ScalarStyle) -> bool {
        if style != ScalarStyle::Plain {
            return true;
        }
        let source = usize::try_from(start)
            .ok()
            .and_then(|start| self.text.get(start..));
        let source = source.unwrap_or_default();
        let behind_anchor = source.strip_prefix('&').map(|anchor| {
            anchor
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
                .trim_start()
        });
        // No plain scalar begins so itself.
        behind_anchor.unwrap_or(source).starts_with('!')
    }
}

fn bytes_of(event: &Event) -> Range<usize> {
    let byte = |mark: libyaml_safer::Mark| usize::try_from(mark.index).unwrap_or(usize::MAX);
    byte(event.start_mark)..byte(event.end_mark)
}

fn layout_of(data: &EventData) -> Layout {
    match data {
        EventData::Scalar { style, .. } => Layout::Scalar(*style),
        EventData::SequenceStart { style, .. } if *style != SequenceStyle::Flow => Layout::Block,
        EventData::MappingStart { style, .. } if *style != MappingStyle::Flow => Layout::Block,
        _ => Layout::Flow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, String> {
        parse(text, 1, &Limits::DEFAULT)
            .map(|parsed| parsed.value)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_tag_before_a_comma_is_an_error_and_not_a_panic() {
        let error = "line 2: did not find expected whitespace or line break while scanning a tag";
        assert_eq!(read("a:\n- [!x,1]\n"), Err(error.to_owned()));
        assert_eq!(read("a:\n- [!<x>,1]\n"), Err(error.to_owned()));
        assert_eq!(
            read("a: ['!x,1', \"!y,\", b !z, c]\n"),
            Ok(json!({"a": ["!x,1", "!y,", "b !z", "c"]}))
        );
        assert_eq!(read("a: &x b!c:,d\n"), Ok(json!({"a": "b!c:,d"})));
    }

    #[test]
    fn lone_marks_make_text() {
        assert_eq!(read("- ! 5\n- &a ! 6\n- 7\n"), Ok(json!(["5", "6", 7])));
    }

    #[test]
    fn an_anchor_inside_itself_is_refused() {
        let error = "line 1: an alias stands inside of what its own anchor names";
        assert_eq!(read("&a [*a]\n"), Err(error.to_owned()));
    }

    #[test]
    fn control_characters_are_named() {
        let error = "line 2: control character U+001B is not allowed outside of escapes";
        assert_eq!(read("a: b\nc: \u{1b}[0m\n"), Err(error.to_owned()));
    }
}
