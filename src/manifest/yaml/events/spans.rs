//! Which bytes of a text each node of a document takes, and how it is written there.

use std::ops::Range;

use libyaml_safer::ScalarStyle;

use super::{Content, Layout, Node, check_characters, children, decode, nodes_of};
use crate::limits::Limits;

/// The nodes of one document, the root first, each collection before what stands in it.
pub(in crate::manifest::yaml) struct Spans(Vec<Node>);

/// What a node is, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest::yaml) enum Form {
    /// A list of lines that begin with `-`.
    BlockList,
    /// A list in brackets.
    FlowList,
    /// A map with a line for each key.
    BlockMap,
    /// A map in braces.
    FlowMap,
    /// A scalar without quotes, maybe an empty one.
    Plain,
    /// A scalar in `'`.
    SingleQuoted,
    /// A scalar in `"`.
    DoubleQuoted,
    /// A scalar of lines below `|`.
    Literal,
    /// A scalar of lines below `>`.
    Folded,
    /// It stands for another node.
    Alias,
}

impl Spans {
    /// The nodes of the first document of `text`, which has no byte order mark and ends with a line feed; none when it
    /// cannot be read.
    pub(in crate::manifest::yaml) fn of(text: &str, limits: &Limits) -> Option<Self> {
        check_characters(text, 1).ok()?;
        nodes_of(text, 1, limits).ok().map(Self)
    }

    /// All nodes, as their indices.
    pub(in crate::manifest::yaml) fn indices(&self) -> Range<usize> {
        0..self.0.len()
    }

    /// How a node is written.
    pub(in crate::manifest::yaml) fn form(&self, at: usize) -> Option<Form> {
        let node = self.0.get(at)?;
        Some(match (&node.content, node.layout) {
            (Content::Alias(_), _) => Form::Alias,
            (Content::List, Layout::Block) => Form::BlockList,
            (Content::List, _) => Form::FlowList,
            (Content::Map, Layout::Block) => Form::BlockMap,
            (Content::Map, _) => Form::FlowMap,
            (Content::Scalar(_), Layout::Scalar(style)) => match style {
                ScalarStyle::SingleQuoted => Form::SingleQuoted,
                ScalarStyle::DoubleQuoted => Form::DoubleQuoted,
                ScalarStyle::Literal => Form::Literal,
                ScalarStyle::Folded => Form::Folded,
                _ => Form::Plain,
            },
            (Content::Scalar(_), _) => Form::Plain,
        })
    }

    /// The bytes of a node, from its anchor or tag on. A collection of lines ends with what stands in it last, and text
    /// of lines where the next line begins.
    pub(in crate::manifest::yaml) fn bytes(&self, at: usize) -> Option<Range<usize>> {
        self.0.get(at).map(|node| node.bytes.clone())
    }

    /// The nodes that stand directly in a collection; in a map, keys and values take turns.
    pub(in crate::manifest::yaml) fn children(&self, of: usize) -> impl Iterator<Item = usize> {
        children(&self.0, of)
    }

    /// The last node that stands in a node, at any depth, or the node itself.
    pub(in crate::manifest::yaml) fn last(&self, of: usize) -> usize {
        self.0.get(of).map_or(of, |node| node.end.saturating_sub(1))
    }

    /// The keys and values of a map.
    pub(in crate::manifest::yaml) fn entries(&self, of: usize) -> Vec<(usize, usize)> {
        let mut children = self.children(of);
        let pair = || Some((children.next()?, children.next()?));
        std::iter::from_fn(pair).collect()
    }

    /// What a key is read as; none for the key of a merge.
    pub(in crate::manifest::yaml) fn key(&self, at: usize) -> Option<String> {
        let node = self.0.get(at)?;
        let node = match &node.content {
            Content::Alias(target) => self.0.get(*target)?,
            Content::Scalar(scalar) if decode::is_merge(scalar) => return None,
            _ => node,
        };
        match &node.content {
            Content::Scalar(scalar) => decode::scalar_key(scalar).ok(),
            _ => None,
        }
    }
}
