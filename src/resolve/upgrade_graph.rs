//! Which bundle of a channel can be installed over which.
//!
//! The edges are those of OLM v0's `ReplacesPredicate` and `SkipRangeIncludesPredicate`
//! (operator-lifecycle-manager, `pkg/controller/registry/resolver/cache/predicates.go`), which OLM v1 shares. The ways
//! along them are found in [`upgrade_path`](super::upgrade_path).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use semver::Version;

use super::channel_order::{head_to_tail, with_bundles};
use crate::{
    catalog::{CatalogBundle, Channel, ChannelEntry, Package},
    versions::{self, Range},
};

/// What lets one bundle be installed over another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// Its `replaces` names the other.
    Replaces,
    /// Its `skips` name the other.
    Skips,
    /// Its `skipRange`, which is given, holds the other's version.
    SkipRange(String),
}

/// A bundle that can be installed over another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The name of the bundle before.
    pub from: String,
    /// The name of the bundle after.
    pub to: String,
    /// What allows it.
    pub link: Link,
}

/// The upgrades of one channel.
#[derive(Debug)]
pub struct UpgradeGraph<'p> {
    pub(super) package: &'p Package,
    pub(super) channel: &'p Channel,
    /// From head to tail, then what is not on the chain, newest first.
    pub(super) nodes: Vec<Node<'p>>,
    /// Where each name stands among the nodes.
    positions: BTreeMap<&'p str, usize>,
    /// How many nodes are on the chain, or why there is none.
    pub(super) chain: Result<usize, String>,
    /// The nodes that replace or skip a bundle, by its name, in their order.
    pub(super) over: BTreeMap<&'p str, Vec<usize>>,
    /// The nodes that have a range, in their order.
    pub(super) ranges: Vec<(usize, Range)>,
}

/// An entry with the version of its bundle.
#[derive(Debug)]
pub(super) struct Node<'p> {
    pub(super) entry: &'p ChannelEntry,
    pub(super) version: Option<Version>,
    /// Whether OLM v0 never chooses it.
    pub(super) prohibited: bool,
}

impl Link {
    /// What lets the bundle of `entry` be installed over the one of this name and version.
    #[must_use]
    pub fn over(entry: &ChannelEntry, name: &str, version: Option<&Version>) -> Option<Self> {
        Self::by_name(entry, name).or_else(|| {
            let range = Range::parse(&entry.skip_range).ok()?;
            let holds = range.contains(version?);
            holds.then(|| Self::SkipRange(entry.skip_range.clone()))
        })
    }

    /// What lets it, whatever the other's version is.
    pub(super) fn by_name(entry: &ChannelEntry, name: &str) -> Option<Self> {
        if name.is_empty() {
            None
        } else if entry.replaces == name {
            Some(Self::Replaces)
        } else {
            let skips = entry.skips.iter().any(|skip| skip == name);
            skips.then_some(Self::Skips)
        }
    }
}

impl<'p> UpgradeGraph<'p> {
    /// The graph of a channel; nothing when the package has none of that name.
    #[must_use]
    pub fn of(package: &'p Package, channel: &str) -> Option<Self> {
        let channel = package.channel(channel)?;
        let bundles = package.bundles.iter().rev();
        let bundles: Bundles<'_> = bundles
            .map(|bundle| (bundle.name.as_str(), bundle))
            .collect();
        let entries = with_bundles(channel, |name| bundles.get(name).copied());
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
        let order = head_to_tail(&package.name, &channel.name, &entries);
        let chain = order.as_ref().map(Vec::len).map_err(Clone::clone);
        let mut graph = Self {
            package,
            channel,
            nodes: nodes(&bundles, order.unwrap_or_default(), &entries),
            chain,
            positions: BTreeMap::new(),
            over: BTreeMap::new(),
            ranges: vec![],
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            graph.positions.insert(&node.entry.name, at);
            let skips = node.entry.skips.iter().map(String::as_str);
            let over: BTreeSet<_> = skips.chain([node.entry.replaces.as_str()]).collect();
            for name in over.into_iter().filter(|name| !name.is_empty()) {
                graph.over.entry(name).or_default().push(at);
            }
            let range = Range::parse(&node.entry.skip_range).ok();
            graph.ranges.extend(range.map(|range| (at, range)));
        }
        Some(graph)
    }

    /// The head of the channel.
    ///
    /// # Errors
    /// When the channel is not one chain, in the words of OLM.
    pub fn head(&self) -> Result<&'p ChannelEntry, &str> {
        let chain = self.chain.as_ref().map_err(String::as_str)?;
        let head = self.nodes.first().filter(|_| *chain > 0);
        head.map(|node| node.entry)
            .ok_or("the channel has no entries")
    }

    /// The entry of this name, by its position among the nodes.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

type Bundles<'p> = BTreeMap<&'p str, &'p CatalogBundle>;

/// The entries with the versions of their bundles: first those in order, then the others, newest first.
fn nodes<'p>(
    bundles: &Bundles<'p>,
    order: Vec<&'p ChannelEntry>,
    entries: &[&'p ChannelEntry],
) -> Vec<Node<'p>> {
    let node = |entry: &'p ChannelEntry| {
        let bundle = bundles.get(entry.name.as_str()).copied();
        let version = bundle.and_then(CatalogBundle::version);
        Node {
            entry,
            version: version.and_then(|version| versions::parse_tolerant(version).ok()),
            prohibited: bundle.is_some_and(CatalogBundle::is_prohibited),
        }
    };
    let on_chain: BTreeSet<_> = order.iter().map(|entry| entry.name.as_str()).collect();
    let others = entries
        .iter()
        .filter(|entry| !on_chain.contains(entry.name.as_str()));
    let mut others: Vec<_> = others.map(|entry| node(entry)).collect();
    others.sort_by(|one, other| {
        let by_version = versions::newest_first(one.version.as_ref(), other.version.as_ref());
        by_version.then_with(|| one.entry.name.cmp(&other.entry.name))
    });
    order.into_iter().map(node).chain(others).collect()
}

/// As a sentence about the newer bundle: what it does with the older one.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaces => f.write_str("replaces"),
            Self::Skips => f.write_str("skips"),
            Self::SkipRange(range) => write!(f, "skipRange {range}"),
        }
    }
}
