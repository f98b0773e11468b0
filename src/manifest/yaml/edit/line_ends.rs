//! Line ends as they were: changes are made in a text whose lines end as YAML's readers want them, and what is kept of it
//! gets its own line ends back.

use std::borrow::Cow;

use memchr::memmem;

use super::Change;

/// A text whose lines end with a line feed alone, the last one too, and how they ended before.
pub(super) struct LineEnds<'t> {
    text: Cow<'t, str>,
    /// Where in `text` the line feeds stand that had a carriage return before them, ascending.
    with_return: Vec<usize>,
    /// How new lines end: as the first one does.
    new: &'static str,
    /// The last line had no end.
    is_open: bool,
}

impl<'t> LineEnds<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut with_return = vec![];
        let mut kept = Cow::Borrowed(text);
        for (before, at) in memmem::find_iter(text.as_bytes(), b"\r\n").enumerate() {
            with_return.push(at - before);
        }
        if !with_return.is_empty() {
            kept = Cow::Owned(text.replace("\r\n", "\n"));
        }
        let is_open = !text.ends_with('\n');
        if is_open {
            kept.to_mut().push('\n');
        }
        let first = memchr::memchr(b'\n', kept.as_bytes());
        let returns = first.is_some() && first == with_return.first().copied();
        Self {
            text: kept,
            with_return,
            new: if returns { "\r\n" } else { "\n" },
            is_open,
        }
    }

    /// The text that can be changed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text with changes, its lines ended as they were; none when changes overlap or stand outside of it. Of changes
    /// at the same place, those that add come first, in their order.
    pub(super) fn with(&self, mut changes: Vec<Change>) -> Option<String> {
        changes.sort_by_key(|change| (change.bytes.start, change.bytes.end));
        let added: usize = changes.iter().map(|change| change.text.len()).sum();
        let mut out = String::with_capacity(self.text.len() + self.with_return.len() + added);
        let mut at = 0;
        for change in &changes {
            self.keep(at..change.bytes.start, &mut out)?;
            out.push_str(&change.text.replace('\n', self.new));
            at = change.bytes.end;
        }
        self.keep(at..self.text.len(), &mut out)?;
        if self.is_open {
            let end = ["\r\n", "\n"].into_iter().find(|end| out.ends_with(end));
            out.truncate(out.len() - end.map_or(0, str::len));
        }
        Some(out)
    }

    fn keep(&self, bytes: std::ops::Range<usize>, out: &mut String) -> Option<()> {
        let first = self.with_return.partition_point(|at| *at < bytes.start);
        let mut from = bytes.start;
        for at in self.with_return.iter().skip(first) {
            if *at >= bytes.end {
                break;
            }
            out.push_str(self.text.get(from..*at)?);
            out.push('\r');
            from = *at;
        }
        out.push_str(self.text.get(from..bytes.end)?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(bytes: std::ops::Range<usize>, text: &str) -> Change {
        let text = text.to_owned();
        Change { bytes, text }
    }

    #[test]
    fn what_is_kept_keeps_its_line_ends() {
        let lines = LineEnds::of("a\r\nb\nc\r\nd");
        assert_eq!(lines.text(), "a\nb\nc\nd\n");
        let changes = vec![change(8..8, "z\n"), change(2..3, "x\ny")];
        assert_eq!(
            lines.with(changes).as_deref(),
            Some("a\r\nx\r\ny\nc\r\nd\nz")
        );
    }

    #[test]
    fn changes_that_overlap_are_refused() {
        let lines = LineEnds::of("abc\n");
        assert_eq!(lines.with(vec![change(0..2, ""), change(1..3, "")]), None);
        assert_eq!(lines.with(vec![change(9..9, "")]), None);
    }
}
