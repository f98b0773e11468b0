//! The upgrades of a package as a graph, and its text in the languages of two tools that draw.
//!
//! An arrow leads from what is installed to what it can be upgraded to. Unlike `opm alpha render-graph` of
//! operator-registry (`alpha/declcfg/write.go`), a `skipRange` is a node of its own and not an arrow from every bundle
//! in the range: with those, a channel of 100 bundles has thousands of arrows, and Mermaid draws 500 at most.

mod dot;
mod mermaid;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{dot::dot, mermaid::mermaid};
use super::{
    channel,
    facts::Facts,
    package::{BUNDLE_SCHEMA, CHANNEL_SCHEMA, Channel, PACKAGE_SCHEMA, Package},
};

/// The upgrades of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// The package.
    pub package: String,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// Its channels, by name. Every node belongs to one.
    pub channels: Vec<GraphChannel>,
}

/// The upgrades in one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphChannel {
    /// Its name.
    pub name: String,
    /// Whether it is taken when none is asked for.
    pub default: bool,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// The bundles from the newest version to the oldest, then what only edges name.
    pub nodes: Vec<Node>,
    /// The upgrades.
    pub edges: Vec<Edge>,
}

/// A bundle in a channel, or what an edge starts from instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The name of the bundle, or the range.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Whether the bundle is deprecated.
    pub deprecated: bool,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// The head of the channel.
    Head,
    /// Another bundle of the channel.
    Bundle,
    /// A bundle that is not in the channel and is still replaced or skipped.
    Outside,
    /// A range of versions.
    Range,
}

/// An upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// What allows it.
    pub kind: EdgeKind,
    /// The position of the node that it leads from.
    pub from: usize,
    /// The position of the node that it leads to.
    pub to: usize,
}

/// What allows an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// `replaces`: a solid line.
    Replaces,
    /// `skips`: a dashed line.
    Skips,
    /// `skipRange`: a dotted line.
    SkipRange,
}

impl Graph {
    /// The graph of a package, or of one channel of it.
    #[must_use]
    pub fn of(package: &Package, only: Option<&str>) -> Self {
        let facts = Facts::of(package);
        let mut channels = facts.channels();
        channels.retain(|channel| only.is_none_or(|only| channel.name == only));
        let channels = channels.into_iter().map(|channel| GraphChannel {
            default: channel.name == package.default_channel(),
            deprecated: facts.deprecation(CHANNEL_SCHEMA, &channel.name).is_some(),
            ..upgrades(&facts, channel)
        });
        Self {
            package: package.name.clone(),
            deprecated: facts.deprecation(PACKAGE_SCHEMA, "").is_some(),
            channels: channels.collect(),
        }
    }
}

fn upgrades(facts: &Facts<'_>, channel: &Channel) -> GraphChannel {
    let entries = facts.entries(channel);
    let head = channel::head(channel).ok().map(|head| head.name.as_str());
    let mut nodes = Nodes::default();
    for entry in &entries {
        let kind = match head {
            Some(head) if head == entry.name => NodeKind::Head,
            _ => NodeKind::Bundle,
        };
        nodes.position(facts, &entry.name, kind);
    }
    let mut edges = BTreeSet::new();
    for entry in &entries {
        let to = nodes.position(facts, &entry.name, NodeKind::Bundle);
        let replaces = [&entry.replaces].into_iter();
        let froms = replaces
            .map(|name| (EdgeKind::Replaces, name))
            .chain(entry.skips.iter().map(|name| (EdgeKind::Skips, name)))
            .chain([(EdgeKind::SkipRange, &entry.skip_range)]);
        for (kind, name) in froms.filter(|(_, name)| !name.is_empty()) {
            let node = match kind {
                EdgeKind::SkipRange => NodeKind::Range,
                _ => NodeKind::Outside,
            };
            let from = nodes.position(facts, name, node);
            edges.insert(Edge { kind, from, to });
        }
    }
    GraphChannel {
        name: channel.name.clone(),
        nodes: nodes.nodes,
        edges: edges.into_iter().collect(),
        ..GraphChannel::default()
    }
}

/// The nodes of a channel, and where each is.
#[derive(Default)]
struct Nodes<'c> {
    nodes: Vec<Node>,
    positions: BTreeMap<(bool, &'c str), usize>,
}

impl<'c> Nodes<'c> {
    /// The position of a node, which is made when it is new. A range is never taken for a bundle of the same name.
    fn position(&mut self, facts: &Facts<'_>, name: &'c str, kind: NodeKind) -> usize {
        let key = (kind == NodeKind::Range, name);
        *self.positions.entry(key).or_insert_with(|| {
            self.nodes.push(Node {
                name: name.to_owned(),
                kind,
                deprecated: facts.deprecation(BUNDLE_SCHEMA, name).is_some(),
            });
            self.nodes.len() - 1
        })
    }
}

/// A name and, in parentheses, what is to be known of it.
fn marked(name: &str, marks: &[(bool, &str)]) -> String {
    let marks: Vec<_> = marks
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, mark)| *mark)
        .collect();
    match marks.join(", ") {
        none if none.is_empty() => name.to_owned(),
        marks => format!("{name} ({marks})"),
    }
}

impl Graph {
    fn label(&self) -> String {
        marked(&self.package, &[(self.deprecated, "deprecated")])
    }
}

impl GraphChannel {
    fn label(&self) -> String {
        let marks = [(self.default, "default"), (self.deprecated, "deprecated")];
        marked(&self.name, &marks)
    }
}

impl Node {
    fn label(&self) -> String {
        let marks = [
            (self.kind == NodeKind::Head, "head"),
            (self.kind == NodeKind::Outside, "not in the channel"),
            (self.deprecated, "deprecated"),
        ];
        marked(&self.name, &marks)
    }
}

/// Whether a character is only ever itself in both languages. All others are written as their number: names are
/// whatever a catalog says, and in both languages text can become markup.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || " .,:_+-/()=~^!@*$".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ChannelEntry;

    #[test]
    fn names_cannot_become_markup() {
        let entry = ChannelEntry {
            name: "a\"] --> b[\"<b>\\n&amp;#35;`".to_owned(),
            ..ChannelEntry::default()
        };
        let channel = Channel {
            name: "end\nsubgraph".to_owned(),
            entries: vec![entry],
            ..Channel::default()
        };
        let package = Package {
            name: "\"}".to_owned(),
            channels: vec![channel],
            ..Package::default()
        };
        let graph = Graph::of(&package, None);
        let label = "\"a#34;#93; --#62; b#91;#34;#60;b#62;#92;n#38;amp#59;#35;35#59;#96; (head)\"";
        assert!(mermaid(&graph).contains(label), "{}", mermaid(&graph));
        let label = "\"a&#34;&#93; --&#62; b&#91;&#34;&#60;b&#62;\\\\n&#38;amp&#59;&#35;35&#59;&#96; (head)\"";
        assert!(dot(&graph).contains(label), "{}", dot(&graph));
        for text in [mermaid(&graph), dot(&graph)] {
            assert!(!text.contains("\nsubgraph\""), "{text}");
        }
    }
}
