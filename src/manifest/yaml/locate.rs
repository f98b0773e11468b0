//! On which line of a text a field stands.
//!
//! Readers of documents keep no places, since almost nothing is ever asked for. Where something is wrong with an
//! object its document is read once more, for the places alone. Fields that came by a merge (`<<`) and keys that are no
//! text have none of their own: what holds them is shown.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr_iter, memmem};

use super::{Document, events::places::Places};
use crate::limits::Limits;

/// A step from a value into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To the value of a key.
    Key(String),
    /// To an item of a list, from 0.
    Item(usize),
}

/// The places in one text, of which the document asked for last is remembered.
pub struct Lines<'t> {
    text: &'t [u8],
    limits: &'t Limits,
    /// Where each line begins, once it was asked for.
    starts: Vec<usize>,
    /// The lines on which documents start, ascending.
    documents: Vec<usize>,
    document: Option<(usize, Option<Places>)>,
}

impl<'t> Lines<'t> {
    /// The places in a text with these documents; nothing is read once more yet.
    #[must_use]
    pub fn new(text: &'t [u8], documents: &[Document], limits: &'t Limits) -> Self {
        Self {
            text,
            limits,
            starts: vec![],
            documents: documents.iter().map(|document| document.line).collect(),
            document: None,
        }
    }

    /// The line of the field at `path`, written as findings write it (`spec.source`, `items[2]["a/b"]`), in the document
    /// that starts on `document_line`. When there is no such field it is the line of what would hold it.
    pub fn line(&mut self, document_line: usize, path: &str) -> usize {
        let way = way(path);
        let places = self.places(document_line);
        places
            .and_then(|places| places.line(&way))
            .unwrap_or(document_line)
    }

    /// The lines of the items of the list at `path`; empty when they are not known.
    pub fn item_lines(&mut self, document_line: usize, path: &str) -> Vec<usize> {
        let way = way(path);
        let places = self.places(document_line);
        places.map_or_else(Vec::new, |places| places.item_lines(&way))
    }

    fn places(&mut self, document_line: usize) -> Option<&Places> {
        if self
            .document
            .as_ref()
            .is_none_or(|(line, _)| *line != document_line)
        {
            let read = self
                .document_text(document_line)
                .and_then(|text| Places::of(&text, document_line, self.limits).ok());
            self.document = Some((document_line, read));
        }
        self.document.as_ref()?.1.as_ref()
    }

    fn document_text(&mut self, line: usize) -> Option<Cow<'t, str>> {
        if self.starts.is_empty() {
            self.starts = line_starts(self.text);
        }
        let range = document_bytes(self.text, &self.starts, &self.documents, line)?;
        let text = std::str::from_utf8(self.text.get(range)?).ok()?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Without a line break at the end, the parser may panic.
        Some(match text.ends_with('\n') {
            true => Cow::Borrowed(text),
            false => Cow::Owned(format!("{text}\n")),
        })
    }
}

/// Where each line of a text begins.
pub(super) fn line_starts(text: &[u8]) -> Vec<usize> {
    let behind_breaks = memchr_iter(b'\n', text).map(|at| at + 1);
    std::iter::once(0).chain(behind_breaks).collect()
}

/// The bytes from the line on which a document starts to the next separator. Between values of JSON there is none: there
/// it ends with the line on which the next one starts, which may be that of its last brace. `starts` is where each line
/// begins, `documents` the lines on which documents start, ascending.
pub(super) fn document_bytes(
    text: &[u8],
    starts: &[usize],
    documents: &[usize],
    line: usize,
) -> Option<Range<usize>> {
    let start = *starts.get(line.checked_sub(1)?)?;
    let next = documents.partition_point(|other| *other <= line);
    let next = documents.get(next);
    let limit = next.and_then(|next| starts.get(*next).copied());
    let rest = text.get(start..limit.unwrap_or(text.len()))?;
    let end = memmem::find(rest, b"\n---").map_or(rest.len(), |at| at + 1);
    Some(start..start + end)
}

/// The steps of a path as findings write it, as far as they can be read: long ones are cut when they are written.
#[must_use]
pub fn way(path: &str) -> Vec<Step> {
    let mut way = vec![];
    let mut rest = path;
    while !rest.is_empty() {
        let Some((step, behind)) = first_step(rest) else {
            break;
        };
        way.push(step);
        rest = behind;
    }
    way
}

fn first_step(path: &str) -> Option<(Step, &str)> {
    if let Some(quoted) = path.strip_prefix("[\"") {
        let end = end_of_quoted(quoted)?;
        let key = serde_json::from_str(path.get(1..end + 3)?).ok()?;
        return Some((Step::Key(key), quoted.get(end + 1..)?.strip_prefix(']')?));
    }
    if let Some(index) = path.strip_prefix('[') {
        let (index, behind) = index.split_once(']')?;
        return Some((Step::Item(index.parse().ok()?), behind));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (key, behind) = path.split_at(end);
    (!key.is_empty()).then(|| (Step::Key(key.to_owned()), behind))
}

/// The index of the quote that closes.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let closes = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        closes.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::{super::read, *};

    fn of(text: &str) -> Lines<'_> {
        let documents = read(text.as_bytes(), &Limits::DEFAULT).unwrap_or_default();
        Lines::new(text.as_bytes(), &documents, &Limits::DEFAULT)
    }

    fn lines(text: &str, document: usize, paths: &[&str]) -> Vec<usize> {
        let mut lines = of(text);
        paths
            .iter()
            .map(|path| lines.line(document, path))
            .collect()
    }

    #[test]
    fn keys_and_items_are_found_in_the_document_meant() {
        let text = "a: 1\n---\n# b\nb:\n  - x\n  - c.d/e: 1\n    'q\"': 2\n--- # last\nb: 3\n";
        let paths = [
            "b",
            "b[0]",
            "b[1][\"c.d/e\"]",
            "b[1][\"q\\\"\"]",
            "b[1].gone.deep",
            "gone",
        ];
        assert_eq!(lines(text, 4, &paths), [4, 5, 6, 7, 6, 4]);
        assert_eq!(lines(text, 9, &["b"]), [9]);
    }

    #[test]
    fn json_aliases_and_windows_line_ends_are_followed() {
        let json = "{\n\t\"a\": [\n\t\t{\"b\": 1},\r\n\t\t{\"b\": 2}\n\t]\n}\n{\"a\": 1}";
        assert_eq!(lines(json, 1, &["a[1].b", "a[0]"]), [4, 3]);
        let text = "a: &x\n  b: 1\nc: *x\n";
        assert_eq!(lines(text, 1, &["c", "c.b"]), [3, 2]);
        let mut items = of(json);
        assert_eq!(items.item_lines(1, "a"), [3, 4]);
        let stream = "{\n\"a\": 1\n}\n{\n\"a\":\n2}{\"b\":\n3}";
        assert_eq!(lines(stream, 1, &["a"]), [2]);
        assert_eq!(lines(stream, 4, &["a"]), [5]);
    }

    #[test]
    fn what_cannot_be_read_gives_the_line_of_the_document() {
        assert_eq!(
            lines("a: [\n", 1, &["a[0]", "[", "[\"a", "a..b", "[9"]),
            [1; 5]
        );
        assert_eq!(lines("a: 1\n", 7, &["a"]), [7]);
    }
}
