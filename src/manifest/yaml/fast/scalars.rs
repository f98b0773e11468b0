//! The scalars of the fast reader: plain, quoted, and block.
//!
//! As everywhere in the fast reader, `None` means that the other reader has to judge.

use std::borrow::Cow;

use memchr::{memchr, memchr3};
use serde_json::Value;

use super::{Reader, Stop};
use crate::manifest::yaml::scalar;

/// Whether a text holds no characters that YAML forbids or takes for unusual line breaks.
pub(super) fn is_ordinary(bytes: &[u8]) -> bool {
    let control = |byte: u8| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f;
    // Without an early way out inside a chunk, the compiler looks at many bytes at a time.
    let chunk_is_bad = |chunk: &[u8]| chunk.iter().fold(false, |bad, &byte| bad | control(byte));
    if bytes.chunks(4096).any(chunk_is_bad) {
        return false;
    }
    let special = memchr::memchr3_iter(0xc2, 0xe2, 0xef, bytes);
    let odd = |at: usize| match bytes[at..] {
        [0xc2, next, ..] => next < 0xa0,
        [0xe2, 0x80, next, ..] => matches!(next, 0xa8 | 0xa9),
        [0xef, 0xbb, 0xbf, ..] | [0xef, 0xbf, 0xbe | 0xbf, ..] => true,
        _ => false,
    };
    !special.into_iter().any(odd)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

impl<'t> Reader<'t> {
    /// One line of a plain scalar, without the blanks behind it. Leaves `position` alone.
    pub(super) fn plain_line(&self) -> Option<(&'t str, Stop)> {
        let start = self.position;
        match self.bytes[start] {
            b'-' if matches!(self.bytes.get(start + 1), Some(b' ' | b'\t' | b'\n')) => return None,
            b'\t' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!'
            | b'|' | b'>' | b'\'' | b'"' | b'%' | b'@' | b'`' => return None,
            _ => {}
        }
        let (end, stop) = self.plain_end(start)?;
        let line = self.text.get(start..end)?;
        Some((line.trim_end_matches([' ', '\t']), stop))
    }

    fn plain_end(&self, start: usize) -> Option<(usize, Stop)> {
        let mut from = start;
        loop {
            let at = from + memchr3(b':', b'#', b'\n', self.bytes.get(from..)?)?;
            match self.bytes[at] {
                b'\n' => return Some((at, Stop::LineEnd(at))),
                b'#' if at > start && is_blank(self.bytes[at - 1]) => {
                    return Some((at, Stop::Comment(at)));
                }
                b':' => match self.bytes.get(at + 1)? {
                    b' ' | b'\n' => return Some((at, Stop::Colon(at))),
                    b'\t' => return None,
                    _ => {}
                },
                _ => {}
            }
            from = at + 1;
        }
    }

    /// The plain scalar that begins with `line`, with the lines below that continue it, inside a collection of
    /// column `parent`.
    pub(super) fn plain_value(
        &mut self,
        line: &'t str,
        stop: Stop,
        parent: isize,
    ) -> Option<Value> {
        self.count_node()?;
        let mut text = Cow::Borrowed(line);
        let mut stop = stop;
        while let Stop::LineEnd(end) = stop {
            let Some(breaks) = self.continuation(end, parent)? else {
                stop = Stop::LineEnd(end);
                break;
            };
            let (start, lines) = breaks;
            let (end, next) = self.plain_end(start)?;
            let line = self.text.get(start..end)?.trim_end_matches([' ', '\t']);
            let text = text.to_mut();
            fold(text, lines);
            text.push_str(line);
            stop = next;
        }
        match stop {
            Stop::Colon(_) => return None,
            Stop::Comment(at) | Stop::LineEnd(at) => self.position = at,
        }
        self.skip_line()?;
        self.seek()?;
        let resolved = scalar::resolve(&text);
        scalar::value(text, resolved).ok()
    }

    /// Whether the text behind the line break at `end` continues a plain scalar: where, and after how many empty
    /// lines.
    fn continuation(&self, end: usize, parent: isize) -> Option<Option<(usize, usize)>> {
        let mut empty_lines = 0;
        let mut line = end + 1;
        loop {
            let mut at = line;
            while self.bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            match self.bytes.get(at) {
                Some(b'\n') => {
                    empty_lines += 1;
                    line = at + 1;
                }
                Some(b'\t') => return None,
                Some(byte) if *byte != b'#' && (at - line).cast_signed() > parent => {
                    return Some(Some((at, empty_lines)));
                }
                _ => return Some(None),
            }
        }
    }

    /// The quoted scalar at `position`. Goes behind its closing quote.
    pub(super) fn quoted(&mut self) -> Option<String> {
        let quote = self.bytes[self.position];
        let other = if quote == b'"' { b'\\' } else { quote };
        let mut text = String::new();
        // Blanks before a line break are dropped, but not those that were written as escapes.
        let mut solid = 0;
        self.position += 1;
        loop {
            let rest = self.bytes.get(self.position..)?;
            let at = self.position + memchr3(quote, other, b'\n', rest)?;
            text.push_str(self.text.get(self.position..at)?);
            self.position = at + 1;
            match self.bytes[at] {
                b'\n' => {
                    let kept = text[solid..].trim_end_matches([' ', '\t']).len();
                    text.truncate(solid + kept);
                    let empty_lines = self.skip_to_continuation()?;
                    fold(&mut text, empty_lines);
                }
                b'\\' => self.escape(&mut text)?,
                _ if quote == b'\'' && self.bytes.get(self.position) == Some(&quote) => {
                    text.push('\'');
                    self.position += 1;
                }
                _ => return Some(text),
            }
            solid = text.len();
        }
    }

    /// From behind a line break inside quotes to the next text. Gives the number of empty lines between.
    fn skip_to_continuation(&mut self) -> Option<usize> {
        let mut empty_lines = 0;
        let mut line = self.position;
        loop {
            let byte = *self.bytes.get(self.position)?;
            // The end of a document does not end a text, it is an error.
            if self.position == line && self.bytes[line..].starts_with(b"...") {
                return None;
            }
            if byte == b'\n' {
                empty_lines += 1;
                line = self.position + 1;
            } else if !is_blank(byte) {
                return Some(empty_lines);
            }
            self.position += 1;
        }
    }

    /// What stands behind a backslash in double quotes.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let code = *self.bytes.get(self.position)?;
        self.position += 1;
        let digits = match code {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            b'\n' => {
                let empty_lines = self.skip_to_continuation()?;
                text.extend(std::iter::repeat_n('\n', empty_lines));
                return Some(());
            }
            _ => {
                text.push(short_escape(code)?);
                return Some(());
            }
        };
        let digits = self.text.get(self.position..self.position + digits)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.position += digits.len();
        text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        Some(())
    }

    /// The block scalar at `position`, inside a collection of column `parent`.
    pub(super) fn block_scalar(&mut self, parent: isize) -> Option<Value> {
        self.count_node()?;
        let literal = self.bytes[self.position] == b'|';
        self.position += 1;
        let (mut keep, mut strip, mut indent) = (false, false, None);
        for _ in 0..2 {
            match *self.bytes.get(self.position)? {
                b'+' if !keep && !strip => keep = true,
                b'-' if !keep && !strip => strip = true,
                digit @ b'1'..=b'9' if indent.is_none() => indent = Some(usize::from(digit - b'0')),
                _ => break,
            }
            self.position += 1;
        }
        self.end_line()?;
        let outer = parent.max(0).cast_unsigned();
        let indent = match indent {
            Some(more) => outer + more,
            None => self
                .block_indent()?
                .max((parent + 1).max(1).cast_unsigned()),
        };
        let (mut text, empty_lines) = if literal {
            self.literal_lines(indent)?
        } else {
            self.folded_lines(indent)?
        };
        if !strip && !text.is_empty() {
            text.push('\n');
        }
        if keep {
            text.extend(std::iter::repeat_n('\n', empty_lines));
        }
        self.seek()?;
        Some(Value::String(text))
    }

    /// The indentation of the first line of a block scalar that is not empty.
    fn block_indent(&self) -> Option<usize> {
        let mut line = self.position;
        let mut widest = 0;
        loop {
            let mut at = line;
            while self.bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            match self.bytes.get(at) {
                Some(b'\n') => {
                    widest = widest.max(at - line);
                    line = at + 1;
                }
                Some(b'\t') => return None,
                // Empty lines that are wider than the text make an odd case.
                _ => return (widest <= at - line).then_some(at - line),
            }
        }
    }

    /// The next line of a block scalar and the number of empty lines before it, or only that number at the end.
    fn block_line(&mut self, indent: usize) -> Option<(Option<&'t str>, usize)> {
        let mut empty_lines = 0;
        loop {
            let line = self.position;
            let mut at = line;
            while at < line + indent && self.bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            match self.bytes.get(at) {
                Some(b'\n') => {
                    empty_lines += 1;
                    self.position = at + 1;
                }
                Some(_) if at == line + indent => {
                    let end = at + memchr(b'\n', &self.bytes[at..])?;
                    self.position = end + 1;
                    return Some((Some(self.text.get(at..end)?), empty_lines));
                }
                Some(b'\t') => return None,
                _ => return Some((None, empty_lines)),
            }
        }
    }

    /// The lines of a literal scalar, and how many empty ones follow them.
    fn literal_lines(&mut self, indent: usize) -> Option<(String, usize)> {
        let mut text = String::new();
        let mut first = true;
        loop {
            let (line, empty_lines) = self.block_line(indent)?;
            let Some(line) = line else {
                return Some((text, empty_lines));
            };
            if !first {
                text.push('\n');
            }
            first = false;
            text.extend(std::iter::repeat_n('\n', empty_lines));
            text.push_str(line);
        }
    }

    /// The lines of a folded scalar, and how many empty ones follow them. Lines that begin with a blank are not
    /// folded.
    fn folded_lines(&mut self, indent: usize) -> Option<(String, usize)> {
        let mut text = String::new();
        let mut before: Option<bool> = None;
        loop {
            let (line, empty_lines) = self.block_line(indent)?;
            let Some(line) = line else {
                return Some((text, empty_lines));
            };
            let indented = line.bytes().next().is_some_and(is_blank);
            match before {
                Some(false) if !indented => fold(&mut text, empty_lines),
                Some(_) => text.extend(std::iter::repeat_n('\n', empty_lines + 1)),
                None => text.extend(std::iter::repeat_n('\n', empty_lines)),
            }
            before = Some(indented);
            text.push_str(line);
        }
    }
}

/// A line break becomes a space, unless empty lines follow it, which become line breaks.
fn fold(text: &mut String, empty_lines: usize) {
    if empty_lines == 0 {
        text.push(' ');
    } else {
        text.extend(std::iter::repeat_n('\n', empty_lines));
    }
}

fn short_escape(code: u8) -> Option<char> {
    Some(match code {
        b'0' => '\0',
        b'a' => '\x07',
        b'b' => '\x08',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\x0b',
        b'f' => '\x0c',
        b'r' => '\r',
        b'e' => '\x1b',
        b' ' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
