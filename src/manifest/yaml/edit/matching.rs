//! Which items of a list have become which of another.
//!
//! Items keep their order, so that those that stay can stay where they are. An item is known by its `name`, else by what
//! it says as a whole.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
};

use serde_json::Value;

/// Pairs of items that stand for each other, both ascending.
pub(super) fn pairs(from: &[Value], to: &[Value]) -> Vec<(usize, usize)> {
    let known = longest_ascending(&known_pairs(from, to));
    let mut pairs = vec![];
    let mut before = (0, 0);
    for (old, new) in known.into_iter().chain([(from.len(), to.len())]) {
        gap(from, before.0..old, to, before.1..new, &mut pairs);
        if old < from.len() {
            pairs.push((old, new));
        }
        before = (old + 1, new + 1);
    }
    pairs
}

/// For each new item the first old one that is known as it is and has not been taken.
fn known_pairs(from: &[Value], to: &[Value]) -> Vec<(usize, usize)> {
    let mut by_identity: HashMap<&Value, VecDeque<usize>> = HashMap::new();
    for (at, item) in from.iter().enumerate() {
        by_identity.entry(identity(item)).or_default().push_back(at);
    }
    let mut pair = |(new, item): (usize, &Value)| {
        let old = by_identity.get_mut(identity(item))?.pop_front()?;
        Some((old, new))
    };
    to.iter().enumerate().filter_map(&mut pair).collect()
}

fn identity(item: &Value) -> &Value {
    name(item).unwrap_or(item)
}

fn name(item: &Value) -> Option<&Value> {
    item.get("name").filter(|name| name.is_string())
}

/// Between items that are known, as many that are not may have been changed one by one.
fn gap(
    from: &[Value],
    old: Range<usize>,
    to: &[Value],
    new: Range<usize>,
    pairs: &mut Vec<(usize, usize)>,
) {
    if old.len() != new.len() {
        return;
    }
    for (old, new) in old.zip(new) {
        let (Some(before), Some(after)) = (from.get(old), to.get(new)) else {
            return;
        };
        let is_other = name(before).is_some() && name(after).is_some();
        if !is_other {
            pairs.push((old, new));
        }
    }
}

/// The most pairs whose old items ascend as their new ones do.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair with the smallest old item that ends a row of this length.
    let mut ends: Vec<usize> = vec![];
    let mut before: Vec<Option<usize>> = vec![];
    let old = |at: usize| pairs.get(at).map_or(0, |pair| pair.0);
    for at in 0..pairs.len() {
        let length = ends.partition_point(|end| old(*end) < old(at));
        before.push(length.checked_sub(1).and_then(|end| ends.get(end).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let last = ends.last().copied();
    let row = std::iter::successors(last, |at| before.get(*at).copied().flatten());
    let mut row: Vec<_> = row.filter_map(|at| pairs.get(at).copied()).collect();
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(from: &Value, to: &Value) -> Vec<(usize, usize)> {
        let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
        pairs(&items(from), &items(to))
    }

    #[test]
    fn named_items_are_followed_and_the_most_stay() {
        let from = json!([{"name": "a"}, {"name": "b", "x": 1}, {"name": "c"}]);
        let to = json!([{"name": "c"}, {"name": "a"}, {"name": "new"}, {"name": "b"}]);
        assert_eq!(of(&from, &to), [(0, 1), (1, 3)]);
    }

    #[test]
    fn texts_between_equal_ones_are_changed_in_place() {
        let from = json!(["--a", "--image=x:1", "--b", "--b"]);
        let to = json!(["--a", "--image=x@y", "--b", "--b"]);
        assert_eq!(of(&from, &to), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        assert_eq!(
            of(&json!(["a", "b"]), &json!(["c", "b", "d"])),
            [(0, 0), (1, 1)]
        );
        let others = json!([{"name": "x"}]);
        assert_eq!(of(&json!([{"name": "y"}]), &others), []);
    }
}
