//! The way from one version of a channel to another.
//!
//! OLM v0 upgrades by itself, one bundle at a time, each time to the one nearest to the head that can be installed over
//! the present one (operator-lifecycle-manager, `getSubscriptionVariables` in
//! `pkg/controller/registry/resolver/resolver.go`), and stops at the head. [`UpgradeGraph::path`] walks as it does, and
//! looks for another way only when that walk does not come by. Whether dependencies allow a step is not looked at.
//!
//! Time grows with the channel and its edges. Ranges are the exception: which versions they hold can only be tried, so
//! that is done two million times at most.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use semver::Version;

use super::upgrade_graph::{Hop, Link, UpgradeGraph};
use crate::versions;

/// How often a version is compared with a range before a way is given up; real channels need some thousands.
const RANGES_TRIED: usize = 2_000_000;

/// A way from one bundle to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Each step, in order; none when the two are one.
    pub hops: Vec<Hop>,
    /// Who goes this way.
    pub walk: Walk,
}

/// Who goes a way through a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walk {
    /// OLM goes it by itself and stays at its end.
    Automatic,
    /// OLM goes it by itself and then goes on; only `installPlanApproval: Manual` stops it there.
    StopsIfManual,
    /// OLM v0 never comes to the end of the way: where it leaves the way it takes this hop, or none at all. The
    /// catalog allows each step, so that OLM v1 goes it when it is told each version.
    PassedBy(Option<Hop>),
}

/// Why there is no way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPath {
    /// The bundle that was to be reached.
    pub to: String,
    /// Why it cannot be.
    pub reason: NoPathReason,
    /// Of what can be reached, the bundle nearest to it in version: rather an older one than a newer.
    pub nearest: Option<String>,
}

/// Why a bundle cannot be reached from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPathReason {
    /// The channel does not have it; these channels of the package do.
    NotInChannel(Vec<String>),
    /// The channel has no head, for this reason.
    NoHead(String),
    /// The version to start from is newer.
    Older,
    /// No chain of upgrades leads there.
    NothingLeadsThere,
    /// The channel has too many ranges to say.
    TooManyRanges,
}

impl UpgradeGraph<'_> {
    /// The way from a bundle, which need not be in the channel, to another one or to the head.
    ///
    /// # Errors
    /// When there is no way.
    pub fn path(
        &self,
        from: &str,
        version: Option<&Version>,
        to: Option<&str>,
    ) -> Result<Path, NoPath> {
        let head = self.head().map(|head| head.name.as_str());
        let to = match (to, head) {
            (Some(to), _) | (None, Ok(to)) => to,
            (None, Err(error)) => return Err(self.no_head(error)),
        };
        let known = self.position(from).and_then(|at| self.nodes.get(at));
        let version = version.or(known.and_then(|node| node.version.as_ref()));
        let search = Search::of(self);
        let walked = search.walk(from, version);
        if search.exhausted() {
            return Err(self.no_path(to, NoPathReason::TooManyRanges, None));
        }
        let reached = walked.iter().position(|hop| hop.to == to);
        if from == to || reached.is_some() {
            let hops = reached.map_or(0, |last| last + 1);
            let walk = if hops == walked.len() {
                Walk::Automatic
            } else {
                Walk::StopsIfManual
            };
            let hops = walked.into_iter().take(hops).collect();
            return Ok(Path { hops, walk });
        }
        self.around(&search, (from, version), to, walked)
    }

    /// A way to a bundle that OLM's own walk does not come to.
    fn around(
        &self,
        search: &Search<'_>,
        from: (&str, Option<&Version>),
        to: &str,
        walked: Vec<Hop>,
    ) -> Result<Path, NoPath> {
        let Some(target) = self.position(to) else {
            let channels = self.package.channels.iter();
            let channels = channels.filter(|c| c.entries.iter().any(|entry| entry.name == to));
            let channels = channels.map(|channel| channel.name.clone()).collect();
            return Err(self.no_path(to, NoPathReason::NotInChannel(channels), None));
        };
        let came_from = search.spread(from);
        if let Some(hops) = search.way_back(&came_from, from.0, target) {
            let passes = walked
                .into_iter()
                .zip(&hops)
                .find(|(walked, hop)| walked != *hop);
            let walk = Walk::PassedBy(passes.map(|(walked, _)| walked));
            return Ok(Path { hops, walk });
        }
        let goal = self
            .nodes
            .get(target)
            .and_then(|node| node.version.as_ref());
        let older = from
            .1
            .zip(goal)
            .is_some_and(|(from, to)| versions::compare(from, to).is_gt());
        let reason = if search.exhausted() {
            NoPathReason::TooManyRanges
        } else if older {
            NoPathReason::Older
        } else {
            NoPathReason::NothingLeadsThere
        };
        Err(self.no_path(to, reason, self.nearest(&came_from, goal)))
    }

    fn no_head(&self, error: &str) -> NoPath {
        let to = format!("the head of channel {}", self.channel.name);
        self.no_path(&to, NoPathReason::NoHead(error.to_owned()), None)
    }

    fn no_path(&self, to: &str, reason: NoPathReason, nearest: Option<String>) -> NoPath {
        let to = to.to_owned();
        NoPath {
            to,
            reason,
            nearest,
        }
    }

    /// Of the nodes that were reached, the newest that is not newer than `goal`, or else the oldest.
    fn nearest(&self, came_from: &CameFrom, goal: Option<&Version>) -> Option<String> {
        let reached = came_from.keys().filter_map(|at| self.nodes.get(*at));
        let mut reached: Vec<_> = reached
            .filter_map(|node| Some((node.version.as_ref()?, node)))
            .collect();
        reached.sort_by(|(one, _), (other, _)| versions::compare(one, other));
        let older = reached
            .iter()
            .rev()
            .find(|(version, _)| goal.is_some_and(|goal| versions::compare(version, goal).is_le()));
        let nearest = older.or(reached.first());
        nearest.map(|(_, node)| node.entry.name.clone())
    }
}

/// How each node was reached first: from which node, or from the start, and by what.
type CameFrom = BTreeMap<usize, (Option<usize>, Link)>;

/// Walks through one graph, which together try no more ranges than is allowed.
struct Search<'g> {
    graph: &'g UpgradeGraph<'g>,
    tries_left: Cell<usize>,
}

impl<'g> Search<'g> {
    fn of(graph: &'g UpgradeGraph<'g>) -> Self {
        let tries_left = Cell::new(RANGES_TRIED);
        Self { graph, tries_left }
    }

    fn exhausted(&self) -> bool {
        self.tries_left.get() == 0
    }

    /// The hops that OLM v0 takes by itself, until there are no more or they come round.
    fn walk(&self, from: &str, version: Option<&Version>) -> Vec<Hop> {
        let (mut hops, mut from, mut version) = (vec![], from, version);
        let mut seen = BTreeSet::from([from]);
        while let Some((next, link)) = self.nearest_to_head(from, version) {
            let node = self.graph.nodes.get(next);
            let node = node.filter(|node| !self.exhausted() && seen.insert(&node.entry.name));
            let Some(node) = node else {
                break;
            };
            let to = node.entry.name.as_str();
            hops.push(Hop {
                from: from.to_owned(),
                to: to.to_owned(),
                link,
            });
            (from, version) = (to, node.version.as_ref());
        }
        hops
    }

    /// The first of the chain that can be installed over a bundle.
    fn nearest_to_head(&self, name: &str, version: Option<&Version>) -> Option<(usize, Link)> {
        let chain = self.graph.chain.as_ref().map_or(0, |length| *length);
        let may_be = |at: &usize| {
            let node = self.graph.nodes.get(*at);
            *at < chain && node.is_some_and(|node| !node.prohibited)
        };
        let mut over = self.graph.over.get(name).into_iter().flatten().copied();
        let named = over.find(may_be);
        let limit = named.unwrap_or(chain);
        let ranges = self.graph.ranges.iter().map(|(at, _)| *at).enumerate();
        let mut ranges = ranges.take_while(|(_, at)| *at < limit);
        let held = version.and_then(|version| {
            ranges.find(|(range, at)| may_be(at) && self.holds(*range, version))
        });
        let next = held.map(|(_, at)| at).or(named)?;
        let entry = self.graph.nodes.get(next)?.entry;
        let link = Link::by_name(entry, name);
        Some((
            next,
            link.unwrap_or_else(|| Link::SkipRange(entry.skip_range.clone())),
        ))
    }

    fn holds(&self, range: usize, version: &Version) -> bool {
        let Some(left) = self.tries_left.get().checked_sub(1) else {
            return false;
        };
        self.tries_left.set(left);
        let range = self.graph.ranges.get(range);
        range.is_some_and(|(_, range)| range.contains(version))
    }

    /// Every node that can be reached, each by the fewest hops and of those by the one nearest to the head.
    fn spread(&self, (from, version): (&str, Option<&Version>)) -> CameFrom {
        let mut came_from = CameFrom::new();
        let mut ranges: Vec<_> = (0..self.graph.ranges.len()).collect();
        let mut queue = VecDeque::from([(None, from, version)]);
        while let Some((at, name, version)) = queue.pop_front().filter(|_| !self.exhausted()) {
            let over = self.graph.over.get(name).into_iter().flatten();
            let mut next: BTreeMap<usize, Option<Link>> = over.map(|over| (*over, None)).collect();
            ranges.retain(|range| {
                let held = version.is_some_and(|version| self.holds(*range, version));
                let holder = self.graph.ranges.get(*range).filter(|_| held);
                next.extend(holder.map(|(holder, _)| (*holder, None)));
                !held
            });
            for to in next.into_keys() {
                let Some(node) = self
                    .graph
                    .nodes
                    .get(to)
                    .filter(|node| node.entry.name != from)
                else {
                    continue;
                };
                if let std::collections::btree_map::Entry::Vacant(place) = came_from.entry(to) {
                    let link = Link::by_name(node.entry, name);
                    let link =
                        link.unwrap_or_else(|| Link::SkipRange(node.entry.skip_range.clone()));
                    place.insert((at, link));
                    queue.push_back((Some(to), &node.entry.name, node.version.as_ref()));
                }
            }
        }
        came_from
    }

    /// The hops to a node that was reached.
    fn way_back(&self, came_from: &CameFrom, start: &str, target: usize) -> Option<Vec<Hop>> {
        let (mut hops, mut at) = (vec![], Some(target));
        while let Some(to) = at {
            let (before, link) = came_from.get(&to)?;
            let name = |at: usize| Some(self.graph.nodes.get(at)?.entry.name.clone());
            hops.push(Hop {
                from: before.map_or_else(|| Some(start.to_owned()), name)?,
                to: name(to)?,
                link: link.clone(),
            });
            at = *before;
        }
        hops.reverse();
        Some(hops)
    }
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = &self.to;
        match &self.reason {
            NoPathReason::NotInChannel(channels) if channels.is_empty() => {
                write!(f, "{to} is in no channel of the package")
            }
            NoPathReason::NotInChannel(channels) => {
                write!(
                    f,
                    "{to} is not in the channel, but in {}",
                    channels.join(", ")
                )
            }
            NoPathReason::NoHead(error) => write!(f, "cannot find {to}: {error}"),
            NoPathReason::Older => write!(f, "{to} is older, and no edge leads back to it"),
            NoPathReason::NothingLeadsThere => write!(f, "no chain of upgrades leads to {to}"),
            NoPathReason::TooManyRanges => {
                write!(
                    f,
                    "cannot say whether {to} can be reached: the channel has too many skip ranges"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogBundle, Channel, ChannelEntry, Package, Property};

    /// A chain of `length` bundles, each of which replaces the one before.
    fn chain(length: usize, range: impl Fn(usize) -> String) -> Package {
        let entry = |at: usize| ChannelEntry {
            name: format!("a.v{at}"),
            replaces: format!("a.v{}", at.wrapping_sub(1)),
            skip_range: range(at),
            ..ChannelEntry::default()
        };
        let bundle = |at: usize| CatalogBundle {
            name: format!("a.v{at}"),
            properties: vec![Property {
                kind: "olm.package".to_owned(),
                value: serde_json::json!({"packageName": "a", "version": format!("{at}.0.0")}),
            }],
            ..CatalogBundle::default()
        };
        let channel = Channel {
            name: "c".to_owned(),
            entries: (0..length).map(entry).collect(),
            ..Channel::default()
        };
        Package {
            name: "a".to_owned(),
            channels: vec![channel],
            bundles: (0..length).map(bundle).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn a_long_way_costs_no_more_than_it_is_long() {
        let package = chain(100_000, |_| String::new());
        let graph = UpgradeGraph::of(&package, "c").expect("a channel");
        let path = graph.path("a.v0", None, None).expect("a way");
        assert_eq!((path.hops.len(), path.walk), (99_999, Walk::Automatic));
        let back = graph.path("a.v1", None, Some("a.v0")).expect_err("no way");
        assert_eq!(back.nearest.as_deref(), Some("a.v2"));
    }

    #[test]
    fn hostile_ranges_are_given_up_on() {
        let package = chain(100_000, |at| format!("<0.0.{at}"));
        let graph = UpgradeGraph::of(&package, "c").expect("a channel");
        let error = graph.path("a.v1", None, None).expect_err("too many ranges");
        assert_eq!(error.reason, NoPathReason::TooManyRanges);
    }
}
