//! New keys and items in brackets, as in JSON: on lines of their own where the others stand so.

use serde_json::Value;

use super::{
    block::place_of,
    differences::{Draft, Entry},
    written::{Brackets, Quotes, flow},
};
use crate::manifest::yaml::events::spans::Form;

impl Draft<'_> {
    /// Adds keys to a map in braces: where the alphabet wants them if the others stand so, else at the end.
    pub(super) fn add_keys_in_braces(
        &mut self,
        map: usize,
        entries: &[Entry],
        added: &[(&str, &Value)],
    ) -> Option<()> {
        let brackets = self.brackets(map)?;
        let Some(first) = entries.first() else {
            let added = added.iter();
            let added = added.map(|(key, value)| ((*key).to_owned(), (*value).clone()));
            return self.replace_in_brackets(map, &Value::Object(added.collect()));
        };
        let first = self.nodes.bytes(first.key)?.start;
        let indent = self.indent(first).to_owned();
        let separator = brackets.separator(&indent);
        for (key, value) in added {
            let entry = brackets.entry(key, value, &indent);
            match place_of(key, entries).checked_sub(1) {
                None => self.change(first..first, entry + &separator),
                Some(before) => {
                    let end = self.nodes.bytes(entries.get(before)?.value)?.end;
                    self.change(end..end, format!("{separator}{entry}"));
                }
            }
        }
        Some(())
    }

    /// Adds the items that have no pair; every old one has.
    pub(super) fn add_items_in_brackets(
        &mut self,
        list: usize,
        items: &[usize],
        to: &[Value],
        pairs: &[(usize, usize)],
    ) -> Option<()> {
        let brackets = self.brackets(list)?;
        let first = self.nodes.bytes(*items.first()?)?.start;
        let indent = self.indent(first).to_owned();
        let separator = brackets.separator(&indent);
        for (new, value) in to.iter().enumerate() {
            let before = pairs.partition_point(|pair| pair.1 < new);
            if pairs.get(before).is_some_and(|pair| pair.1 == new) {
                continue;
            }
            let item = flow(value, &brackets, &indent);
            match before.checked_sub(1).and_then(|before| pairs.get(before)) {
                None => self.change(first..first, item + &separator),
                Some((old, _)) => {
                    let end = self.nodes.bytes(*items.get(*old)?)?.end;
                    self.change(end..end, format!("{separator}{item}"));
                }
            }
        }
        Some(())
    }

    /// Writes a value in the place of another that stands in brackets, or is in brackets itself.
    pub(super) fn replace_in_brackets(&mut self, node: usize, to: &Value) -> Option<()> {
        let body = self.body(node)?;
        let brackets = self.brackets(node)?;
        let indent = self.indent(body.start).to_owned();
        let text = flow(to, &brackets, &indent);
        self.change(body, text);
        Some(())
    }

    /// How a collection in brackets is written; for one without anything in it, and for a scalar, how the document is.
    fn brackets(&self, node: usize) -> Option<Brackets> {
        let is_flow = |node: &usize| {
            let form = self.nodes.form(*node);
            let has_some = self.nodes.children(*node).next().is_some();
            matches!(form, Some(Form::FlowList | Form::FlowMap)) && has_some
        };
        let is_json = self.text.trim_start().starts_with('{');
        let model = [node, 0].into_iter().find(is_flow);
        let Some(model) = model else {
            return Some(Brackets {
                quotes: if is_json {
                    Quotes::All
                } else {
                    Quotes::WhereNeeded
                },
                space: " ",
                step: None,
            });
        };
        let start = self.body(model)?.start;
        let mut children = self.nodes.children(model);
        let first = self.nodes.bytes(children.next()?)?.start;
        let second = children.next().and_then(|second| self.nodes.bytes(second));
        let before = self.text.get(..second.map_or(0, |second| second.start))?;
        let is_spaced = before.is_empty() || before.ends_with([' ', '\t', '\n']);
        let is_quoted = is_json || self.text.get(first..)?.starts_with('"');
        let has_lines = self.line_start(first) > start;
        let step = self.indent(first).strip_prefix(self.indent(start));
        Some(Brackets {
            quotes: if is_quoted {
                Quotes::All
            } else {
                Quotes::WhereNeeded
            },
            space: if is_spaced { " " } else { "" },
            step: step.filter(|_| has_lines).map(str::to_owned),
        })
    }
}
