//! Several lists of mirrors of one source become one, each mirror once, in an order that keeps that of every list if
//! that can be.
//!
//! Reproduces `topoSortRepos` of openshift/runtime-utils `pkg/registries` (`registries.go`) and `Sorted` of its
//! `topograph.go`: a source stands behind all mirrors of a list that does not name it; what nothing stands before comes
//! first, by name; a circle is broken at the first by name that was not used yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A place in the order.
#[derive(Default)]
struct Node<'n> {
    /// Those that stand before it, and are not used yet.
    before: BTreeSet<&'n str>,
    /// Those that stand behind it.
    behind: BTreeSet<&'n str>,
}

/// The mirrors of all lists in their order. The source is among them only where it is to be asked before one of them.
/// None of the lists is empty.
pub(super) fn merged(source: &str, lists: &[Vec<String>]) -> Vec<String> {
    let mut nodes: BTreeMap<&str, Node<'_>> = BTreeMap::new();
    for list in lists {
        let source = (!list.iter().any(|mirror| mirror == source)).then_some(source);
        let all: Vec<_> = list.iter().map(String::as_str).chain(source).collect();
        for (before, behind) in all.iter().zip(all.iter().skip(1)) {
            nodes.entry(before).or_default().behind.insert(behind);
            nodes.entry(behind).or_default().before.insert(before);
        }
    }
    let mut order = sorted(nodes);
    if order.last() == Some(&source) {
        order.pop();
    }
    order.into_iter().map(str::to_owned).collect()
}

fn sorted<'n>(mut nodes: BTreeMap<&'n str, Node<'n>>) -> Vec<&'n str> {
    let names: Vec<_> = nodes.keys().copied().collect();
    let mut by_name = names.into_iter();
    let is_free = |(name, node): (&&'n str, &Node<'n>)| node.before.is_empty().then_some(*name);
    let mut free: VecDeque<_> = nodes.iter().filter_map(is_free).collect();
    let mut used = BTreeSet::new();
    let mut order = vec![];
    loop {
        let next = free.pop_front();
        let Some(name) = next.or_else(|| by_name.find(|name| !used.contains(name))) else {
            return order;
        };
        used.insert(name);
        order.push(name);
        let node = nodes.get_mut(name).map(std::mem::take);
        for behind in node.unwrap_or_default().behind {
            if let Some(node) = nodes.get_mut(behind)
                && node.before.remove(name)
                && node.before.is_empty()
                && !used.contains(behind)
            {
                free.push_back(behind);
            }
        }
    }
}
