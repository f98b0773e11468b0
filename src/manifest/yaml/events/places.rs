//! Where in a text the fields of a document stand, from the nodes that its events make.

use super::{Content, Node, check_characters, children, nodes_of};
use crate::limits::Limits;
use crate::manifest::yaml::{ReadError, Step};

/// The nodes of one document, with their lines.
pub(in crate::manifest::yaml) struct Places(Vec<Node>);

impl Places {
    /// The places in the first document of `text`, which begins on line `first_line` of its file.
    ///
    /// # Errors
    /// As for reading it.
    pub(in crate::manifest::yaml) fn of(
        text: &str,
        first_line: usize,
        limits: &Limits,
    ) -> Result<Self, ReadError> {
        check_characters(text, first_line)?;
        nodes_of(text, first_line, limits).map(Self)
    }

    /// The line of the last key or item on the way that is there; none when not even the first is.
    pub(in crate::manifest::yaml) fn line(&self, way: &[Step]) -> Option<usize> {
        let mut line = None;
        let mut at = 0;
        for step in way {
            let Some((shown, next)) = self.step(at, step) else {
                break;
            };
            line = Some(self.0.get(shown)?.line);
            at = next;
        }
        line
    }

    /// The lines of the items of the list at the end of a way; none when there is no list.
    pub(in crate::manifest::yaml) fn item_lines(&self, way: &[Step]) -> Vec<usize> {
        let list = way
            .iter()
            .try_fold(0, |at, step| self.step(at, step).map(|(_, next)| next));
        let list = list.map(|list| self.meant(list));
        let is_list = |at: &usize| matches!(self.content(*at), Some(Content::List));
        let Some(list) = list.filter(is_list) else {
            return vec![];
        };
        let items = children(&self.0, list).filter_map(|item| self.0.get(item));
        items.map(|item| item.line).collect()
    }

    /// The node that shows where a step leads, and the one that it leads to.
    fn step(&self, at: usize, step: &Step) -> Option<(usize, usize)> {
        let at = self.meant(at);
        match (self.content(at)?, step) {
            (Content::List, Step::Item(index)) => {
                let item = children(&self.0, at).nth(*index)?;
                Some((item, item))
            }
            (Content::Map, Step::Key(name)) => {
                let mut children = children(&self.0, at);
                let mut found = None;
                // Of two equal keys the last one counts.
                while let (Some(key), Some(value)) = (children.next(), children.next()) {
                    if matches!(self.content(self.meant(key)), Some(Content::Scalar(scalar)) if scalar.text == *name)
                    {
                        found = Some((key, value));
                    }
                }
                found
            }
            _ => None,
        }
    }

    fn content(&self, at: usize) -> Option<&Content> {
        self.0.get(at).map(|node| &node.content)
    }

    /// What an alias stands for.
    fn meant(&self, at: usize) -> usize {
        match self.content(at) {
            Some(Content::Alias(target)) => *target,
            _ => at,
        }
    }
}
