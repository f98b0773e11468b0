//! New keys and items among lines, items that go, and values that become something else.

use std::ops::Range;

use serde_json::Value;

use super::{
    differences::{At, Draft, Entry},
    written::{Around, Lines, short},
};
use crate::manifest::yaml::events::spans::Form;

impl Draft<'_> {
    /// Adds keys to a map whose keys stand at a column: where the alphabet wants them if the others stand so, else at the
    /// end.
    pub(super) fn add_lines_of_keys(
        &mut self,
        entries: &[Entry],
        added: &[(&str, &Value)],
        column: usize,
    ) -> Option<()> {
        let lines = Lines {
            list_indent: self.list_indent(),
            order: &[],
        };
        let first = self.nodes.bytes(entries.first()?.key)?.start;
        let indent = " ".repeat(column);
        for (key, value) in added {
            let entry = lines.entry(key, value, column);
            match place_of(key, entries).checked_sub(1) {
                None => self.change(first..first, format!("{entry}\n{indent}")),
                Some(before) => {
                    let at = self.line_end(entries.get(before)?.value)?;
                    self.change(at..at, format!("{indent}{entry}\n"));
                }
            }
        }
        Some(())
    }

    /// Takes out the items of a list that have no pair, and adds those of `to` that have none.
    pub(super) fn set_lines_of_items(
        &mut self,
        list: usize,
        items: &[usize],
        to: &[Value],
        pairs: &[(usize, usize)],
    ) -> Option<()> {
        let start = self.body(list)?.start;
        let column = self.column(start);
        let order = self.key_order(items);
        let lines = Lines {
            list_indent: self.list_indent(),
            order: &order,
        };
        let mut stays = vec![false; items.len()];
        for (old, _) in pairs {
            *stays.get_mut(*old)? = true;
        }
        let mut reached = start;
        for (item, stays) in items.iter().zip(stays) {
            if !stays {
                let bytes = self.lines_of_item(*item, reached, column)?;
                self.change(bytes, String::new());
            }
            reached = self.nodes.bytes(*item)?.end;
        }
        let indent = " ".repeat(column);
        for (new, value) in to.iter().enumerate() {
            let before = pairs.partition_point(|pair| pair.1 < new);
            if pairs.get(before).is_some_and(|pair| pair.1 == new) {
                continue;
            }
            let item = lines.item(value, column);
            let at = match before.checked_sub(1).and_then(|before| pairs.get(before)) {
                Some((old, _)) => self.line_end(*items.get(*old)?)?,
                None => self.line_start(start),
            };
            let begins_line = self.text.get(at..start).is_none_or(is_blank);
            match begins_line {
                true => self.change(at..at, format!("{indent}{item}\n")),
                false => self.change(start..start, format!("{item}\n{indent}")),
            }
        }
        Some(())
    }

    /// Writes a value in the place of another.
    pub(super) fn replace(&mut self, at: At, to: &Value) -> Option<()> {
        let body = self.body(at.node)?;
        let form = self.nodes.form(at.node)?;
        let is_long = match to {
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => false,
        };
        let had_some = self.nodes.children(at.node).next().is_some();
        match form {
            _ if at.around == Around::Brackets => self.replace_in_brackets(at.node, to),
            Form::FlowList | Form::FlowMap if is_long && (had_some || at.node == 0) => {
                self.replace_in_brackets(at.node, to)
            }
            Form::BlockList | Form::BlockMap => None,
            _ if is_long => self.open_lines(at, body, to),
            _ => {
                let end = if self.text.get(body.clone())?.ends_with('\n') {
                    "\n"
                } else {
                    ""
                };
                let before = self.text.get(..body.start)?;
                let space = if before.ends_with([' ', '\t', '\n']) {
                    ""
                } else {
                    " "
                };
                self.change(body, format!("{space}{}{end}", short(to, at.column)));
                Some(())
            }
        }
    }

    /// Puts a collection of lines below the line on which something shorter stood.
    fn open_lines(&mut self, at: At, body: Range<usize>, to: &Value) -> Option<()> {
        let lines = Lines {
            list_indent: self.list_indent(),
            order: &[],
        };
        let (column, text) = match to {
            _ if at.node == 0 => return None,
            Value::Array(items) => {
                let column = at.column + lines.list_indent;
                (column, lines.list(items, column))
            }
            Value::Object(map) => (at.column + 2, lines.map(map, at.column + 2)),
            _ => return None,
        };
        let end = self.line_end(at.node)?;
        let before = self.text.get(..body.start)?.trim_end_matches([' ', '\t']);
        // Text of lines takes its line end with it.
        let kept = if body.end == end { "\n" } else { "" };
        self.change(before.len()..body.end, kept.to_owned());
        self.change(end..end, format!("{}{text}\n", " ".repeat(column)));
        Some(())
    }

    /// Where the line behind the last one of a node begins; none when something else stands there.
    fn line_end(&self, node: usize) -> Option<usize> {
        let last = self.nodes.last(node);
        let body = self.body(last)?;
        let mut end = self.nodes.bytes(node)?.end;
        if matches!(self.nodes.form(last)?, Form::Literal | Form::Folded) {
            let header = self.text.get(body.clone())?.lines().next()?;
            let header = header.split('#').next()?;
            if header.contains('+') {
                return Some(end);
            }
            // Empty lines behind it are not part of it.
            let lines = self.text.get(body.clone())?.trim_end();
            end = body.start + lines.len();
        }
        let rest = self.text.get(end..)?;
        let (line, _) = rest.split_once('\n')?;
        let is_end = is_blank(line) || line.trim_start().starts_with('#');
        is_end.then_some(end + line.len() + 1)
    }

    /// The lines of an item that stands behind the byte `from`, from its `-` on.
    fn lines_of_item(&self, item: usize, from: usize, column: usize) -> Option<Range<usize>> {
        let mut start = self.line_start(self.nodes.bytes(item)?.start);
        loop {
            let line = self.text.get(start..)?;
            let (indent, rest) = line.split_at_checked(column)?;
            let behind = rest.strip_prefix('-').filter(|_| is_blank(indent));
            if behind.is_some_and(|behind| behind.starts_with([' ', '\t', '\n'])) {
                return Some(start..self.line_end(item)?);
            }
            // Between the `-` and the item are only empty lines and comments.
            let before = start.checked_sub(1).filter(|before| *before >= from)?;
            start = self.line_start(before);
        }
    }

    /// The keys of the first map among the items of a list, as they stand.
    pub(super) fn key_order(&self, items: &[usize]) -> Vec<String> {
        let mut maps = items.iter().map(|item| self.entries(*item));
        let first = maps.find(|entries| !entries.is_empty());
        let entries = first.into_iter().flatten();
        entries.filter_map(|entry| entry.name).collect()
    }

    /// How much deeper than its key most lists of the document stand.
    fn list_indent(&mut self) -> usize {
        if let Some(indent) = self.list_indent {
            return indent;
        }
        let (mut level, mut deeper) = (0, 0);
        for map in self.nodes.indices() {
            if self.nodes.form(map) != Some(Form::BlockMap) {
                continue;
            }
            for (key, value) in self.nodes.entries(map) {
                if self.nodes.form(value) != Some(Form::BlockList) {
                    continue;
                }
                let start = |node: usize| self.body(node).map_or(0, |body| body.start);
                match self.column(start(value)) > self.column(start(key)) {
                    true => deeper += 1,
                    false => level += 1,
                }
            }
        }
        let indent = if deeper > level { 2 } else { 0 };
        self.list_indent = Some(indent);
        indent
    }
}

/// Behind how many of the keys of a map a new one belongs.
pub(super) fn place_of(key: &str, entries: &[Entry]) -> usize {
    let names: Option<Vec<&str>> = entries.iter().map(|it| it.name.as_deref()).collect();
    match names {
        Some(names) if names.is_sorted() => names.partition_point(|name| *name < key),
        _ => entries.len(),
    }
}

fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|character| matches!(character, ' ' | '\t'))
}
