//! Where one document of a catalog stands, and what it says it is.

use std::borrow::Cow;

use super::parse::Head;

/// One document of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it says it is.
    pub head: Head,
    /// The position of its file among the catalog's files.
    pub file: usize,
    /// The position of its first byte in the file.
    pub start: u64,
    /// The position behind its last byte.
    pub end: u64,
    /// The line of its first byte, from 1.
    pub line: usize,
    /// Which of the documents between `start` and `end` it is, from 0.
    pub ordinal: usize,
}

/// An entry as it is stored: the three parts of its head, then the other fields in their order.
type Line<'l> = ([Cow<'l, str>; 3], usize, u64, u64, usize, usize);

/// Bytes between two documents of one file that are read along with them.
const NEAR: u64 = 64;

impl Entry {
    /// Its stored form, on one line.
    pub(super) fn to_line(&self) -> String {
        let Head {
            schema,
            package,
            name,
        } = &self.head;
        let head = [schema, package, name].map(|text| Cow::from(text.as_str()));
        let Self {
            file,
            start,
            end,
            line,
            ordinal,
            ..
        } = *self;
        let line: Line<'_> = (head, file, start, end, line, ordinal);
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Reads the stored form.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let (head, file, start, end, line, ordinal): Line<'_> = serde_json::from_str(line).ok()?;
        let [schema, package, name] = head.map(Cow::into_owned);
        let head = Head {
            schema,
            package,
            name,
        };
        Some(Self {
            head,
            file,
            start,
            end,
            line,
            ordinal,
        })
    }

    /// Whether the next document follows closely, so that both can be read at once.
    pub(super) fn is_near(&self, next: &Self) -> bool {
        self.file == next.file && next.start >= self.end && next.start - self.end <= NEAR
    }

    /// Its bytes in a part of the file that begins at `start`.
    pub(super) fn part_of<'t>(&self, text: &'t [u8], start: u64) -> &'t [u8] {
        let at =
            |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
        text.get(at(self.start)..at(self.end)).unwrap_or_default()
    }
}
