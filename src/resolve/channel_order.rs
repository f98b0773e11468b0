//! The entries of one channel, from its head to its tail.
//!
//! Reproduces `sortChannel` of operator-lifecycle-manager (`pkg/controller/registry/resolver/resolver.go`): the order
//! is that of the one chain of `replaces` that starts at the entry which nothing replaces or skips. Versions play no
//! part in it, and entries that are skipped are left out of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Channel, ChannelEntry};

/// How many chains an error names. OLM names all of them; hostile channels have thousands.
const CHAINS_NAMED: usize = 10;

/// The entries of a channel that have a bundle, each with what `bundle` finds by its name; of two with one name, the
/// first.
pub(super) fn with_bundles<B>(
    channel: &Channel,
    bundle: impl Fn(&str) -> Option<B>,
) -> Vec<(&ChannelEntry, B)> {
    let mut seen = BTreeSet::new();
    let entries = channel.entries.iter();
    let first = entries.filter(|entry| seen.insert(entry.name.as_str()));
    let with_bundle = first.filter_map(|entry| Some((entry, bundle(&entry.name)?)));
    with_bundle.collect()
}

/// The entries from head to tail, without those that another one skips.
///
/// An entry that no chain leads to is left out as well, as OLM does. Names are expected to be unique, as [`with_bundles`] gives them.
///
/// # Errors
/// When the entries are not one chain, in the words of OLM. Several chains are named in the order of their heads.
pub(super) fn head_to_tail<'e>(
    package: &str,
    channel: &str,
    entries: &[&'e ChannelEntry],
) -> Result<Vec<&'e ChannelEntry>, String> {
    if entries.is_empty() {
        return Ok(vec![]);
    }
    let links = Links::of(entries);
    let of_package = format!("in channel {channel:?} of package {package:?}");
    let mut heads = links.heads(entries);
    heads.sort_by_key(|head| entries.get(*head).map(|entry| &entry.name));
    if heads.is_empty() {
        return Err(format!(
            "no channel heads (entries not replaced by another entry) found {of_package}"
        ));
    }
    let mut chains = vec![];
    for head in heads.iter().take(CHAINS_NAMED) {
        let Some(chain) = links.chain(*head, entries) else {
            let head = entries.get(*head).map_or("", |entry| &entry.name);
            return Err(format!(
                "a cycle exists in the chain of replacement beginning with {head:?} {of_package}"
            ));
        };
        chains.push(chain);
    }
    match <[_; 1]>::try_from(chains) {
        Ok([chain]) => Ok(chain),
        Err(chains) => Err(format!(
            "a unique replacement chain within a channel is required to determine the relative order between channel \
             entries, but {} replacement chains were found {of_package}: {}",
            heads.len(),
            names(&chains, heads.len())
        )),
    }
}

/// What replaces and skips what, by position.
struct Links {
    replaces: Vec<Option<usize>>,
    replaced: Vec<bool>,
    skipped: Vec<bool>,
}

impl Links {
    fn of(entries: &[&ChannelEntry]) -> Self {
        let named = entries.iter().enumerate();
        let positions: BTreeMap<&str, usize> = named.map(|(at, e)| (e.name.as_str(), at)).collect();
        let mut links = Self {
            replaces: vec![None; entries.len()],
            replaced: vec![false; entries.len()],
            skipped: vec![false; entries.len()],
        };
        for (entry, replaces) in entries.iter().zip(&mut links.replaces) {
            let replaced = positions.get(entry.replaces.as_str()).copied();
            *replaces = replaced.filter(|_| !entry.replaces.is_empty());
            mark(&mut links.replaced, *replaces);
            for skip in &entry.skips {
                let skip = positions.get(skip.as_str()).copied();
                mark(&mut links.replaced, skip);
                mark(&mut links.skipped, skip);
            }
        }
        links
    }

    fn heads(&self, entries: &[&ChannelEntry]) -> Vec<usize> {
        let replaced = |at: &usize| self.replaced.get(*at).is_some_and(|replaced| *replaced);
        (0..entries.len()).filter(|at| !replaced(at)).collect()
    }

    /// What is not skipped, from `head` along `replaces`; nothing when that ends in a circle.
    fn chain<'e>(
        &self,
        head: usize,
        entries: &[&'e ChannelEntry],
    ) -> Option<Vec<&'e ChannelEntry>> {
        let (mut chain, mut next, mut steps) = (vec![], Some(head), 0);
        while let Some(at) = next {
            if steps == entries.len() {
                return None;
            }
            steps += 1;
            if self.skipped.get(at) == Some(&false) {
                chain.extend(entries.get(at).copied());
            }
            next = self.replaces.get(at).copied().flatten();
        }
        Some(chain)
    }
}

fn mark(marks: &mut [bool], at: Option<usize>) {
    if let Some(mark) = at.and_then(|at| marks.get_mut(at)) {
        *mark = true;
    }
}

fn names(chains: &[Vec<&ChannelEntry>], all: usize) -> String {
    let name = |chain: &Vec<&ChannelEntry>| match chain.as_slice() {
        [] => "[]".to_owned(),
        [only] => only.name.clone(),
        [first, .., last] => format!("{}...{}", first.name, last.name),
    };
    let named: Vec<_> = chains.iter().map(name).collect();
    match all.saturating_sub(chains.len()) {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, replaces: &str) -> ChannelEntry {
        ChannelEntry {
            name: name.to_owned(),
            replaces: replaces.to_owned(),
            ..ChannelEntry::default()
        }
    }

    #[test]
    fn long_chains_and_many_heads_cost_no_more_than_they_are_long() {
        let many: Vec<_> = (0..100_000)
            .map(|at| entry(&format!("a{at:06}"), &format!("a{:06}", at + 1)))
            .collect();
        let chain: Vec<_> = many.iter().collect();
        assert_eq!(
            head_to_tail("a", "c", &chain).expect("a chain").len(),
            100_000
        );

        let many: Vec<_> = (0..50_000)
            .map(|at| entry(&format!("h{at:06}"), "a000000"))
            .chain(many)
            .collect();
        let error =
            head_to_tail("a", "c", &many.iter().collect::<Vec<_>>()).expect_err("many heads");
        assert!(error.contains("but 50000 replacement chains"), "{error}");
        assert!(
            error.ends_with("h000009...a099999, and 49990 more"),
            "{error}"
        );
    }
}
