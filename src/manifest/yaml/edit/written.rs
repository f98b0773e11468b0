//! Values that stand nowhere yet, as text: in lines, in brackets, and scalars.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::manifest::yaml::style::{self, Style};

/// How values are written in lines.
pub(super) struct Lines<'k> {
    /// How much deeper than a key the items of its list stand.
    pub(super) list_indent: usize,
    /// Keys that come first in a map, in this order; all others follow.
    pub(super) order: &'k [String],
}

impl Lines<'_> {
    /// A key and its value, without the indentation of the first line and the end of the last one. The map around it
    /// stands at a column.
    ///
    /// It recurses as deep as the value is nested, so the depth has to be bounded where the value is made.
    pub(super) fn entry(&self, key: &str, value: &Value, column: usize) -> String {
        let mut out = format!("{}:", scalar(key, Around::Lines));
        match value {
            Value::Array(items) if !items.is_empty() => {
                let column = column + self.list_indent;
                start_line(&mut out, column);
                out.push_str(&self.list(items, column));
            }
            Value::Object(map) if !map.is_empty() => {
                start_line(&mut out, column + 2);
                out.push_str(&self.map(map, column + 2));
            }
            _ => {
                out.push(' ');
                out.push_str(&short(value, column));
            }
        }
        out
    }

    /// An item with its `-`, which stands at a column.
    pub(super) fn item(&self, value: &Value, column: usize) -> String {
        let item = match value {
            Value::Array(items) if !items.is_empty() => self.list(items, column + 2),
            Value::Object(map) if !map.is_empty() => self.map(map, column + 2),
            _ => short(value, column),
        };
        format!("- {item}")
    }

    /// The items of a list, which stand at a column.
    pub(super) fn list(&self, items: &[Value], column: usize) -> String {
        let items = items.iter().map(|item| self.item(item, column));
        joined(items, column)
    }

    /// The entries of a map, which stand at a column.
    pub(super) fn map(&self, map: &Map<String, Value>, column: usize) -> String {
        let rank = |key: &String| self.order.iter().position(|other| other == key);
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by_cached_key(|(key, _)| rank(key).unwrap_or(usize::MAX));
        let entry = |(key, value): (&String, &Value)| self.entry(key, value, column);
        joined(entries.into_iter().map(entry), column)
    }
}

fn joined(parts: impl Iterator<Item = String>, column: usize) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            start_line(&mut out, column);
        }
        out.push_str(&part);
    }
    out
}

fn start_line(out: &mut String, column: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', column));
}

/// A scalar or an empty collection.
pub(super) fn short(value: &Value, column: usize) -> String {
    match value {
        Value::String(text) if style::of_value(text) == Style::Literal => {
            let mut lines = literal(text, column + 2, 2);
            // Whoever writes the next line ends the last one.
            lines.pop();
            lines
        }
        Value::String(text) => scalar(text, Around::Lines),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// What a scalar stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Lines,
    Brackets,
}

/// A text as a scalar on one line, with quotes where it needs them.
pub(super) fn scalar(text: &str, around: Around) -> String {
    let ends_early =
        around == Around::Brackets && text.contains([',', '[', ']', '{', '}', '?', ':']);
    match style::of_value(text) {
        Style::Plain if !ends_early && text != "<<" => text.to_owned(),
        Style::Plain | Style::SingleQuoted => single_quoted(text),
        Style::DoubleQuoted | Style::Literal => double_quoted(text),
    }
}

/// A text in `'`, which can hold everything but control characters and line breaks.
pub(super) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text in `"`, which can hold everything, and is JSON too.
pub(super) fn double_quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A text as it stands between double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if style::needs_escape(character) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// A text of lines below `|`, the lines at a column, which is `step` deeper than what holds it. It ends with a line end.
pub(super) fn literal(text: &str, column: usize, step: usize) -> String {
    let mut out = header('|', text, step);
    push_lines(&mut out, text.lines(), column);
    out
}

/// A text of lines below `>`, as [`literal`]; none where the style cannot hold it: a line that begins with white space is
/// not folded.
pub(super) fn folded(text: &str, column: usize, step: usize) -> Option<String> {
    let mut out = header('>', text, step);
    let mut lines = vec![];
    for (at, line) in text.lines().enumerate() {
        if line.starts_with([' ', '\t']) {
            return None;
        }
        if at > 0 && !line.is_empty() {
            lines.push("");
        }
        lines.push(line);
    }
    push_lines(&mut out, lines.into_iter(), column);
    Some(out)
}

fn header(indicator: char, text: &str, step: usize) -> String {
    let mut out = String::from(indicator);
    if text.starts_with([' ', '\n']) {
        out.push_str(&step.to_string());
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text == "\n" || text.ends_with("\n\n") {
        out.push('+');
    }
    out.push('\n');
    out
}

fn push_lines<'l>(out: &mut String, lines: impl Iterator<Item = &'l str>, column: usize) {
    for line in lines {
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', column));
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// How values are written in brackets.
#[derive(Debug, Clone)]
pub(super) struct Brackets {
    /// Every key and text has double quotes, as in JSON.
    pub(super) quotes: Quotes,
    /// What stands behind `:`, and behind `,` on the same line.
    pub(super) space: &'static str,
    /// How much deeper the lines of what stands inside are; none when it all stands on one line.
    pub(super) step: Option<String>,
}

/// Which texts have quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    All,
    WhereNeeded,
}

impl Brackets {
    pub(super) fn scalar(&self, text: &str) -> String {
        match self.quotes {
            Quotes::All => double_quoted(text),
            Quotes::WhereNeeded => scalar(text, Around::Brackets),
        }
    }

    /// What parts two items whose lines begin with `indent`.
    pub(super) fn separator(&self, indent: &str) -> String {
        match self.step {
            Some(_) => format!(",\n{indent}"),
            None => format!(",{}", self.space),
        }
    }

    pub(super) fn entry(&self, key: &str, value: &Value, indent: &str) -> String {
        let value = flow(value, self, indent);
        format!("{}:{}{value}", self.scalar(key), self.space)
    }

    /// Parts in brackets, on lines of their own if all are. `indent` is that of the line with the first bracket.
    pub(super) fn around(&self, open: char, parts: &[String], close: char, indent: &str) -> String {
        let (Some(step), false) = (&self.step, parts.is_empty()) else {
            let parts = parts.join(&self.separator(indent));
            return format!("{open}{parts}{close}");
        };
        let inside = format!("{indent}{step}");
        let parts = parts.join(&self.separator(&inside));
        format!("{open}\n{inside}{parts}\n{indent}{close}")
    }
}

/// A value in brackets. `indent` is what the line begins with on which it stands.
///
/// It recurses as deep as the value is nested, so the depth has to be bounded where the value is made.
pub(super) fn flow(value: &Value, brackets: &Brackets, indent: &str) -> String {
    let inside = format!("{indent}{}", brackets.step.as_deref().unwrap_or_default());
    match value {
        Value::String(text) => brackets.scalar(text),
        Value::Array(items) => {
            let items = items.iter().map(|item| flow(item, brackets, &inside));
            brackets.around('[', &items.collect::<Vec<_>>(), ']', indent)
        }
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| brackets.entry(key, value, &inside));
            brackets.around('{', &entries.collect::<Vec<_>>(), '}', indent)
        }
        other => other.to_string(),
    }
}
