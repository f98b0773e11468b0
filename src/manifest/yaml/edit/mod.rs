//! A text with other values in it, its comments and layout kept.
//!
//! The wanted value is compared with what the text says, and each difference becomes a change of as few bytes as will do.
//! The result is read again, and given only where it says what is wanted. So what this gives can look odd, but never
//! mean something else.
//!
//! | File | What it does |
//! | --- | --- |
//! | `differences.rs` | finds what differs, and where it stands |
//! | `matching.rs` | which items of a list have become which |
//! | `scalar.rs` | another text in place of one, in the same style |
//! | `block.rs` | new keys and items among lines |
//! | `flow.rs` | new keys and items in brackets, as in JSON |
//! | `written.rs` | values that stand nowhere yet |
//! | `line_ends.rs` | line ends as they were, also between values that are new |

mod block;
mod differences;
mod flow;
mod line_ends;
mod matching;
mod scalar;
mod written;

use std::ops::Range;

use serde_json::Value;

use self::line_ends::LineEnds;
use super::{
    Document,
    locate::{document_bytes, line_starts},
    read,
};
use crate::limits::Limits;

/// Bytes that become others; none where something is added.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    bytes: Range<usize>,
    text: String,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The text with the value of one of its documents changed to `to`: only what differs is written anew, everything else
/// stays as it is, to the byte. `document` counts what [`read()`] gives, from 0. Nothing where that cannot be done: what is
/// given always reads as what was wanted, in this document and in all others.
#[must_use]
pub fn edit(text: &str, document: usize, to: &Value, limits: &Limits) -> Option<String> {
    let documents = read(text.as_bytes(), limits).ok()?;
    let from = &documents.get(document)?.value;
    if from == to {
        return Some(text.to_owned());
    }
    let lines = LineEnds::of(text);
    let bytes = bytes_of(lines.text(), &documents, document)?;
    let mut changes = differences::changes(lines.text().get(bytes.clone())?, from, to, limits)?;
    for change in &mut changes {
        change.bytes = change.bytes.start + bytes.start..change.bytes.end + bytes.start;
    }
    let edited = lines.with(changes)?;
    let again = read(edited.as_bytes(), limits).ok()?;
    says(&again, &documents, document, to).then_some(edited)
}

/// The bytes in which a document stands, without the byte order mark.
fn bytes_of(text: &str, documents: &[Document], document: usize) -> Option<Range<usize>> {
    let lines: Vec<usize> = documents.iter().map(|document| document.line).collect();
    let line = *lines.get(document)?;
    let bytes = document_bytes(text.as_bytes(), &line_starts(text.as_bytes()), &lines, line)?;
    let is_marked = text.get(bytes.clone())?.starts_with(BYTE_ORDER_MARK);
    let mark = if is_marked { BYTE_ORDER_MARK.len() } else { 0 };
    Some(bytes.start + mark..bytes.end)
}

/// Whether one document says something else now, and all others what they said.
fn says(again: &[Document], before: &[Document], document: usize, to: &Value) -> bool {
    let mut pairs = again.iter().zip(before).enumerate();
    again.len() == before.len()
        && pairs.all(|(at, (again, before))| {
            let wanted = if at == document { to } else { &before.value };
            again.value == *wanted
        })
}
