//! What differs between the value of a document and the one that is wanted, as changes of its text.

use std::{collections::HashMap, ops::Range};

use serde_json::{Map, Value};

use super::{
    Change, matching,
    scalar::{self, Place},
    written::Around,
};
use crate::{
    limits::Limits,
    manifest::yaml::events::spans::{Form, Spans},
};

/// The changes that make a document say `to` instead of `from`; none where there is no way. `text` is that of the document
/// alone, and ends with a line feed.
pub(super) fn changes(
    text: &str,
    from: &Value,
    to: &Value,
    limits: &Limits,
) -> Option<Vec<Change>> {
    let mut draft = Draft {
        text,
        nodes: Spans::of(text, limits)?,
        changes: vec![],
        list_indent: None,
    };
    let root = At {
        node: 0,
        around: Around::Lines,
        column: 0,
    };
    let mut open = vec![(root, from, to)];
    while let Some((at, from, to)) = open.pop() {
        match (draft.nodes.form(at.node)?, from, to) {
            // What it stands for is changed where it stands.
            (Form::Alias, ..) => {}
            (Form::BlockMap | Form::FlowMap, Value::Object(from), Value::Object(to)) => {
                draft.map(at, from, to, &mut open)?;
            }
            (Form::BlockList | Form::FlowList, Value::Array(from), Value::Array(to)) => {
                draft.list(at, from, to, &mut open)?;
            }
            (form, Value::String(from), Value::String(to)) if from != to => {
                draft.scalar(at, form, from, to, limits)?;
            }
            _ if from == to => {}
            _ => draft.replace(at, to)?,
        }
    }
    Some(draft.changes)
}

/// A node, and what it stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) node: usize,
    pub(super) around: Around,
    /// The column of the keys or items around it.
    pub(super) column: usize,
}

/// What is still to be compared.
pub(super) type Open<'v> = Vec<(At, &'v Value, &'v Value)>;

/// A document that is being changed.
pub(super) struct Draft<'t> {
    pub(super) text: &'t str,
    pub(super) nodes: Spans,
    pub(super) changes: Vec<Change>,
    /// How much deeper than their keys lists stand in this document, once it was asked for.
    pub(super) list_indent: Option<usize>,
}

/// A key of a map: what it is read as, and the nodes of it and its value.
pub(super) struct Entry {
    pub(super) name: Option<String>,
    pub(super) key: usize,
    pub(super) value: usize,
}

impl Draft<'_> {
    fn map<'v>(
        &mut self,
        at: At,
        from: &'v Map<String, Value>,
        to: &'v Map<String, Value>,
        open: &mut Open<'v>,
    ) -> Option<()> {
        if from.keys().any(|key| !to.contains_key(key)) {
            return None;
        }
        if from.is_empty() && !to.is_empty() {
            return self.replace(at, &Value::Object(to.clone()));
        }
        let entries: Vec<Entry> = self.entries(at.node);
        // Of two equal keys the last one counts.
        let values: HashMap<&str, usize> = entries
            .iter()
            .filter_map(|entry| Some((entry.name.as_deref()?, entry.value)))
            .collect();
        let inside = self.inside(at.node, entries.first().map(|entry| entry.key))?;
        let mut added = vec![];
        for (key, wanted) in to {
            match (from.get(key), values.get(key.as_str())) {
                (Some(value), Some(&node)) => open.push((At { node, ..inside }, value, wanted)),
                // It came by a merge.
                (Some(value), None) if value == wanted => {}
                _ => added.push((key.as_str(), wanted)),
            }
        }
        if added.is_empty() {
            return Some(());
        }
        match inside.around {
            Around::Lines => self.add_lines_of_keys(&entries, &added, inside.column),
            Around::Brackets => self.add_keys_in_braces(at.node, &entries, &added),
        }
    }

    fn list<'v>(
        &mut self,
        at: At,
        from: &'v [Value],
        to: &'v [Value],
        open: &mut Open<'v>,
    ) -> Option<()> {
        if from.is_empty() || to.is_empty() {
            return if from == to {
                Some(())
            } else {
                self.replace(at, &Value::Array(to.to_vec()))
            };
        }
        let pairs = matching::pairs(from, to);
        let items: Vec<usize> = self.nodes.children(at.node).collect();
        let inside = self.inside(at.node, None)?;
        if inside.around == Around::Brackets && pairs.len() < from.len() {
            return self.replace(at, &Value::Array(to.to_vec()));
        }
        for (old, new) in &pairs {
            let node = *items.get(*old)?;
            open.push((At { node, ..inside }, from.get(*old)?, to.get(*new)?));
        }
        if pairs.len() == from.len() && pairs.len() == to.len() {
            return Some(());
        }
        match inside.around {
            Around::Lines => self.set_lines_of_items(at.node, &items, to, &pairs),
            Around::Brackets => self.add_items_in_brackets(at.node, &items, to, &pairs),
        }
    }

    fn scalar(&mut self, at: At, form: Form, from: &str, to: &str, limits: &Limits) -> Option<()> {
        let bytes = self.body(at.node)?;
        let place = Place {
            raw: self.text.get(bytes.clone())?,
            form,
            around: at.around,
            column: at.column,
        };
        let text = scalar::replaced(&place, from, to, limits)?;
        self.change(bytes, text);
        Some(())
    }

    /// The keys and values of a map.
    pub(super) fn entries(&self, map: usize) -> Vec<Entry> {
        let entries = self.nodes.entries(map).into_iter();
        let entry = |(key, value)| Entry {
            name: self.nodes.key(key),
            key,
            value,
        };
        entries.map(entry).collect()
    }

    /// What stands in a collection, whose first key is given if it is a map. The node is still that of the collection.
    fn inside(&self, node: usize, first_key: Option<usize>) -> Option<At> {
        let around = match self.nodes.form(node)? {
            Form::BlockMap | Form::BlockList => Around::Lines,
            _ => Around::Brackets,
        };
        let first = match first_key {
            Some(key) => self.nodes.bytes(key)?.start,
            None => self.body(node)?.start,
        };
        let column = if around == Around::Lines {
            self.column(first)
        } else {
            0
        };
        Some(At {
            node,
            around,
            column,
        })
    }

    pub(super) fn change(&mut self, bytes: Range<usize>, text: String) {
        self.changes.push(Change { bytes, text });
    }

    /// The bytes of a node without its anchor, its tag and the comments behind them.
    pub(super) fn body(&self, node: usize) -> Option<Range<usize>> {
        let bytes = self.nodes.bytes(node)?;
        let mut rest = self.text.get(bytes.clone())?;
        if self.nodes.form(node)? == Form::Alias {
            return Some(bytes);
        }
        while rest.starts_with(['&', '!', '#']) {
            let is_comment = rest.starts_with('#');
            let end = match is_comment {
                true => rest.find('\n'),
                false => rest.find([' ', '\t', '\n']),
            };
            rest = rest.get(end.unwrap_or(rest.len())..)?.trim_start();
        }
        Some(bytes.end - rest.len()..bytes.end)
    }

    /// Where the line of a byte begins.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        memchr::memrchr(b'\n', before).map_or(0, |end| end + 1)
    }

    /// In which column of its line a byte stands.
    pub(super) fn column(&self, at: usize) -> usize {
        let before = self.text.get(self.line_start(at)..at).unwrap_or_default();
        before.chars().count()
    }

    /// The white space with which the line of a byte begins.
    pub(super) fn indent(&self, at: usize) -> &str {
        let line = self.text.get(self.line_start(at)..).unwrap_or_default();
        let end = line
            .find(|c| !matches!(c, ' ' | '\t'))
            .unwrap_or(line.len());
        line.get(..end).unwrap_or_default()
    }
}
