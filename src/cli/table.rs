//! Tables as kubectl prints them: columns three spaces apart, `<none>` for what is empty.
//!
//! On a terminal a table is as wide as the terminal, where that leaves enough to read: what is too long is cut, the
//! longest first, but never names, which people copy. Elsewhere nothing is cut but what nobody would read.

use std::io;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::text::printable;

/// The space between two columns.
const GAP: usize = 3;
/// No column is cut to less.
const MIN_WIDTH: usize = 12;

/// A table: its rows have as many cells as it has headers.
pub(super) struct Table {
    headers: Option<Vec<String>>,
    names: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows, whose first columns, so many, are names: people copy them.
    pub(super) fn new<'h>(headers: impl IntoIterator<Item = &'h str>, names: usize) -> Self {
        let headers = headers.into_iter().map(str::to_owned).collect();
        Self {
            headers: Some(headers),
            names,
            rows: vec![],
        }
    }

    /// The same table without its headers.
    #[must_use]
    pub(super) fn without_headers(mut self) -> Self {
        self.headers = None;
        self
    }

    /// Adds a row. Its cells may say anything; what is no text to show is made visible.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| match cell.as_str() {
            "" => "<none>".to_owned(),
            text => printable(text),
        });
        self.rows.push(cells.collect());
    }

    /// The lines, each behind `indent`, no wider than `width` columns where that can be.
    #[must_use]
    pub(super) fn text(&self, indent: &str, width: Option<usize>) -> String {
        let lines = || self.headers.iter().chain(&self.rows);
        let mut widths: Vec<usize> = vec![];
        for line in lines() {
            widths.resize(widths.len().max(line.len()), 0);
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.width());
            }
        }
        if let Some(width) = width {
            let gaps = GAP * widths.len().saturating_sub(1) + indent.len();
            let all = widths.iter().sum::<usize>() + gaps;
            let over = all.saturating_sub(width);
            if let Some(others) = widths.get_mut(self.names..) {
                narrow(others, over);
            }
        }
        let mut text = String::new();
        for line in lines() {
            text.push_str(indent);
            let mut pending = 0;
            for (cell, width) in line.iter().zip(&widths) {
                text.extend(std::iter::repeat_n(' ', pending));
                let cell = cut(cell, *width);
                pending = width.saturating_sub(cell.width()) + GAP;
                text.push_str(&cell);
            }
            text.push('\n');
        }
        text
    }
}

/// The width of the terminal that standard output goes to; nothing when it goes elsewhere.
#[must_use]
pub(super) fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// Makes columns narrower, the widest first, by `over` in all where they are wide enough.
fn narrow(widths: &mut [usize], mut over: usize) {
    while over > 0 {
        let widest = widths.iter().copied().max().unwrap_or_default();
        if widest <= MIN_WIDTH {
            break;
        }
        // All that are as wide are cut alike, down to the next narrower one.
        let next = widths.iter().copied().filter(|width| *width < widest).max();
        let next = next.unwrap_or_default().max(MIN_WIDTH);
        let count = widths.iter().filter(|width| **width == widest).count();
        let share = over.div_ceil(count).min(widest - next);
        // The last one tells least.
        let widths = widths.iter_mut().rev();
        for width in widths.filter(|width| **width == widest) {
            let taken = share.min(over);
            *width -= taken;
            over -= taken;
        }
    }
}

/// The text in as many columns of the terminal, with a sign where it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 1);
    for character in text.chars() {
        used += character.width().unwrap_or_default();
        if used > width {
            break;
        }
        short.push(character);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "DESCRIPTION"], 1);
        table.push(["queue-operator", "runs message queues"].map(str::to_owned));
        table.push(["漢字\n", ""].map(str::to_owned));
        table
    }

    #[test]
    fn columns_are_as_wide_as_what_is_shown_in_them() {
        let text = "NAME             DESCRIPTION\n\
                    queue-operator   runs message queues\n\
                    漢字\\u{a}        <none>\n";
        assert_eq!(table().text("", None), text);
        let rows = text.split_once('\n').map(|(_, rows)| rows);
        assert_eq!(
            Some(table().without_headers().text("", None).as_str()),
            rows
        );
    }

    #[test]
    fn a_terminal_cuts_what_is_long_but_no_names() {
        let text = "  NAME             DESCRIPTION\n  \
                      queue-operator   runs message…\n  \
                      漢字\\u{a}        <none>\n";
        assert_eq!(table().text("  ", Some(32)), text);
        let lines = table().text("", Some(27));
        assert!(
            lines.contains("\nqueue-operator   runs messag…\n"),
            "{lines}"
        );
        // Less would not be worth reading.
        assert_eq!(table().text("", Some(5)), lines);
    }

    #[test]
    fn columns_that_are_as_wide_are_cut_alike() {
        let mut widths = [40, 30, 30, 5];
        narrow(&mut widths, 25);
        assert_eq!(widths, [25, 25, 25, 5]);
        narrow(&mut widths, 100);
        assert_eq!(widths, [12, 12, 12, 5]);
    }
}
