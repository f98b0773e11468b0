//! Writes values as YAML, byte for byte as `Marshal` of sigs.k8s.io/yaml does.
//!
//! The layout is that of go-yaml v2's emitter (`emitterc.go`, from `yaml_emitter_emit_block_sequence_item` to
//! `yaml_emitter_write_literal_scalar`) with its defaults: two spaces, lists in maps not indented further, lines
//! broken at the first space after column 80. There is one exception: characters beyond U+FFFF, such as emoji,
//! are written as they are, where go-yaml writes `"\U0001F600"`. Comments and anchors are never written.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::order::sorted;
use super::scalar;
use super::style::{self, Style};

/// Appends one document to `out`: keys sorted, lines ended by LF, no `---`.
///
/// It recurses as deep as the value is nested, so the depth has to be bounded where the value is made.
pub fn write(value: &Value, out: &mut String) {
    let mut writer = Writer {
        out,
        column: 0,
        after_space: true,
        only_indicators: true,
    };
    writer.node(value, None, Within::Document);
    writer.start_line(0);
}

/// What a value stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Document,
    List,
    Map,
}

struct Writer<'o> {
    out: &'o mut String,
    /// Characters written on the current line.
    column: usize,
    /// No space is needed before the next token.
    after_space: bool,
    /// The line holds nothing but indentation, `-`, `?` and `:`, so that a collection may begin on it.
    only_indicators: bool,
}

/// Past this column, a text is broken at its next space.
const BEST_WIDTH: usize = 80;

impl Writer<'_> {
    /// `indent` is the column of the collection around the value; there is none around a document's root.
    fn node(&mut self, value: &Value, indent: Option<usize>, within: Within) {
        match value {
            Value::Null => self.token("null"),
            Value::Bool(true) => self.token("true"),
            Value::Bool(false) => self.token("false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => {
                self.scalar(text, style::of_value(text), indent, true);
            }
            Value::Array(items) if items.is_empty() => self.token("[]"),
            Value::Array(items) => self.list(items, indent, within),
            Value::Object(map) if map.is_empty() => self.token("{}"),
            Value::Object(map) => self.map(map, indent),
        }
    }

    fn list(&mut self, items: &[Value], indent: Option<usize>, within: Within) {
        let level = match indent {
            None => 0,
            Some(indent) if within == Within::Map && !self.only_indicators => indent,
            Some(indent) => indent + 2,
        };
        for item in items {
            self.start_line(level);
            self.indicator('-');
            self.node(item, Some(level), Within::List);
        }
    }

    fn map(&mut self, map: &Map<String, Value>, indent: Option<usize>) {
        let level = indent.map_or(0, |indent| indent + 2);
        for (key, value) in sorted(map) {
            let (style, simple) = style::of_key(key);
            self.start_line(level);
            if simple {
                self.scalar(key, style, Some(level), false);
                self.out.push(':');
                self.column += 1;
                self.after_space = false;
            } else {
                self.indicator('?');
                self.scalar(key, style, Some(level), true);
                self.start_line(level);
                self.indicator(':');
            }
            self.node(value, Some(level), Within::Map);
        }
    }

    /// Goes to column `level` of a fresh line, or of this one where it has come no further than that.
    fn start_line(&mut self, level: usize) {
        if !self.only_indicators
            || self.column > level
            || (self.column == level && !self.after_space)
        {
            self.break_line();
        }
        self.pad(level);
        self.after_space = true;
        self.only_indicators = true;
    }

    fn break_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn pad(&mut self, level: usize) {
        const SPACES: &str = "                                ";
        while self.column < level {
            let count = (level - self.column).min(SPACES.len());
            self.out.push_str(&SPACES[..count]);
            self.column += count;
        }
    }

    /// `-`, `?` or `:`, behind which a collection may begin on the same line.
    fn indicator(&mut self, indicator: char) {
        self.space();
        self.out.push(indicator);
        self.column += 1;
    }

    /// The space before a token, unless there is one. Afterwards one is needed.
    fn space(&mut self) {
        if !self.after_space {
            self.out.push(' ');
            self.column += 1;
        }
        self.after_space = false;
    }

    /// Something that stays on its line and ends what a collection could begin on.
    fn token(&mut self, text: &str) {
        self.space();
        self.out.push_str(text);
        self.column += text.len();
        self.only_indicators = false;
    }

    fn number(&mut self, number: &Number) {
        self.space();
        // Writing to a String cannot fail. The width of a number never decides about a line break after it.
        let _ = match number.as_f64() {
            Some(float) if number.is_f64() => self.out.write_str(&float_text(float)),
            _ => write!(self.out, "{number}"),
        };
        self.column += 1;
        self.only_indicators = false;
    }

    fn scalar(&mut self, text: &str, style: Style, indent: Option<usize>, may_break: bool) {
        let level = indent.unwrap_or(0) + 2;
        let width = if may_break { BEST_WIDTH } else { usize::MAX };
        self.space();
        self.only_indicators = false;
        match style {
            Style::Plain => self.broken_text(text, level, width, 0),
            Style::SingleQuoted => {
                let doubled = text.replace('\'', "''");
                self.quote('\'');
                self.broken_text(&doubled, level, width, 1);
                self.quote('\'');
            }
            Style::DoubleQuoted => {
                self.quote('"');
                self.escaped_text(text, level, width);
                self.quote('"');
            }
            Style::Literal => self.literal(text, level),
        }
    }

    fn quote(&mut self, quote: char) {
        self.out.push(quote);
        self.column += 1;
    }

    /// Text that is broken in place of a single space past `width`, but not within `margin` bytes of its ends.
    fn broken_text(&mut self, text: &str, level: usize, width: usize, margin: usize) {
        let mut rest = text;
        while self.column.saturating_add(rest.len()) > width {
            let Some(at) = break_after(
                rest,
                width.saturating_sub(self.column),
                margin,
                rest.len() == text.len(),
            ) else {
                break;
            };
            self.out.push_str(&rest[..at]);
            self.break_line();
            self.pad(level);
            rest = &rest[at + 1..];
        }
        self.out.push_str(rest);
        self.column += rest.chars().count();
    }

    fn escaped_text(&mut self, text: &str, level: usize, width: usize) {
        let mut after_space = false;
        for (at, character) in text.char_indices() {
            let inside = at > 0 && at + 1 < text.len();
            if character == ' ' && !after_space && inside && self.column > width {
                self.break_line();
                self.pad(level);
                if text.as_bytes().get(at + 1) == Some(&b' ') {
                    self.quote('\\');
                }
            } else if style::needs_escape(character) || matches!(character, '"' | '\\') {
                self.escape(character);
            } else {
                self.quote(character);
            }
            after_space = character == ' ';
        }
    }

    fn escape(&mut self, character: char) {
        let before = self.out.len();
        let short = match character {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '\u{85}' => 'N',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            '"' | '\\' => character,
            _ => 'x',
        };
        self.out.push('\\');
        let code = u32::from(character);
        // Writing to a String cannot fail.
        let _ = match (short, code) {
            ('x', 0..=0xff) => write!(self.out, "x{code:02X}"),
            ('x', _) => write!(self.out, "u{code:04X}"),
            _ => self.out.write_char(short),
        };
        self.column += self.out.len() - before;
    }

    fn literal_line(&mut self, line: &str, level: usize) {
        if !line.is_empty() {
            self.pad(level);
            self.out.push_str(line);
        }
    }

    fn literal(&mut self, text: &str, level: usize) {
        self.out.push('|');
        if text.starts_with([' ', '\n']) {
            self.out.push('2');
        }
        if !text.ends_with('\n') {
            self.out.push('-');
        } else if text == "\n" || text.ends_with("\n\n") {
            self.out.push('+');
        }
        self.break_line();
        let mut rest = text;
        while let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) {
            self.literal_line(&rest[..end], level);
            self.break_line();
            rest = &rest[end + 1..];
        }
        self.literal_line(rest, level);
        self.only_indicators = rest.is_empty();
        self.after_space = true;
    }
}

/// The index of the first single space of `text` that lies more than `room` characters in, `margin` bytes away
/// from the ends of the text (and from its start only where this is the `start` of it).
fn break_after(text: &str, room: usize, margin: usize, start: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = text
        .char_indices()
        .nth(room.saturating_add(1))
        .map(|(at, _)| at)?;
    if start {
        from = from.max(margin);
    }
    let last = bytes.len() - margin;
    memchr::memchr_iter(b' ', bytes.get(from..last)?)
        .map(|at| from + at)
        .find(|&at| (at == 0 || bytes[at - 1] != b' ') && bytes.get(at + 1) != Some(&b' '))
}

/// A float as Go prints it after the way through JSON.
fn float_text(float: f64) -> String {
    let integral = float.fract() == 0.0 && float.abs() < 1e21;
    let digits = format!("{}", float + 0.0);
    if integral && (digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok()) {
        digits
    } else {
        scalar::go_format(&format!("{float:e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(value: &Value) -> String {
        let mut out = String::new();
        write(value, &mut out);
        out
    }

    // All expected texts are what sigs.k8s.io/yaml v1.6.0 prints.
    #[test]
    fn collections_are_laid_out_as_go_does() {
        let value = json!({"m": {"l": [1, [2, [3]], {"a": [], "b": {}}]}, "e": null, "f": true});
        assert_eq!(
            text(&value),
            "e: null\nf: true\nm:\n  l:\n  - 1\n  - - 2\n    - - 3\n  - a: []\n    b: {}\n"
        );
        assert_eq!(text(&json!([])), "[]\n");
        assert_eq!(text(&json!("a\nb")), "|-\n  a\n  b\n");
    }

    #[test]
    fn keys_that_are_long_or_have_lines_are_written_out() {
        let long = "k".repeat(129);
        assert_eq!(
            text(&json!({"a\nb": [1], long.clone(): {"x": 1}})),
            format!("? |-\n  a\n  b\n: - 1\n? {long}\n: x: 1\n")
        );
    }

    #[test]
    fn numbers_are_printed_as_go_does() {
        for (number, expected) in [
            (json!(1.0), "1\n"),
            (json!(-0.0), "0\n"),
            (json!(1e19), "10000000000000000000\n"),
            (json!(1e20), "1e+20\n"),
            (json!(0.000_001), "1e-06\n"),
            (json!(1_234_567.5), "1.2345675e+06\n"),
            (json!(u64::MAX), "18446744073709551615\n"),
        ] {
            assert_eq!(text(&number), expected);
        }
    }

    #[test]
    fn long_lines_break_at_the_first_space_after_column_80() {
        let words = "word ".repeat(20);
        let expected = format!(
            "k: {}\n  word word word word\n",
            "word ".repeat(15) + "word"
        );
        assert_eq!(text(&json!({"k": words.trim_end()})), expected);
    }

    #[test]
    fn what_could_hurt_a_reader_is_escaped() {
        assert_eq!(
            text(&json!("a\u{feff}\u{85}\u{2028}\u{7f}\u{1}\"\\ \u{1f600}")),
            "\"a\\uFEFF\\N\\L\\x7F\\x01\\\"\\\\ \u{1f600}\"\n"
        );
    }
}
