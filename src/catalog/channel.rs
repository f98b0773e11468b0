//! The upgrade graph of one channel: its head, and the chain of bundles that replace each other below it.
//!
//! Follows `Channel.Head` and `Channel.validateReplacesChain` of operator-registry `alpha/model/model.go`. Time and
//! memory are those of sorting the entries and what they skip. Ranges that are skipped play no part, as in opm.

use std::collections::{BTreeMap, BTreeSet};

use super::package::{Channel, ChannelEntry};

/// As many names are written into a message; of the rest the number.
const NAMES_TOLD: usize = 20;

/// Why a channel has no head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Each entry is replaced or skipped by one, or there are none.
    #[error("no channel head found in graph")]
    None,
    /// More than one entry is not replaced or skipped; their names, sorted.
    #[error("multiple channel heads found in graph: {}", told(.0, ", "))]
    Several(Vec<String>),
}

/// What is wrong with the upgrade graph of a channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// There is no single head to start from.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Bundles replace each other in a circle; their names in this order, the first one again at the end.
    #[error("detected cycle in replaces chain of upgrade graph: {}", told(.0, " -> "))]
    Cycle(Vec<String>),
    /// Bundles that no upgrade leads to or away from, though none skips them; their names, sorted.
    #[error("channel contains one or more stranded bundles: {}", told(.0, ", "))]
    Stranded(Vec<String>),
}

/// The head of a channel: the one entry that no entry replaces or skips.
///
/// # Errors
/// When there is none, or more than one.
pub fn head(channel: &Channel) -> Result<&ChannelEntry, HeadError> {
    let mut passed = BTreeSet::new();
    for entry in &channel.entries {
        passed.extend(entry.skips.iter().map(String::as_str));
        if !entry.replaces.is_empty() {
            passed.insert(entry.replaces.as_str());
        }
    }
    let heads = by_name(channel).into_values();
    let heads: Vec<_> = heads
        .filter(|entry| !passed.contains(entry.name.as_str()))
        .collect();
    match heads.as_slice() {
        [] => Err(HeadError::None),
        [head] => Ok(head),
        several => Err(HeadError::Several(
            several.iter().map(|head| head.name.clone()).collect(),
        )),
    }
}

/// The entries from the head down, each replaced by the one before it. The chain ends where an entry replaces
/// nothing, or something that is skipped, or something that is not in the channel.
///
/// # Errors
/// When there is no head, the chain runs in a circle, or an entry is neither on it nor skipped.
pub fn replaces_chain(channel: &Channel) -> Result<Vec<&ChannelEntry>, ChainError> {
    let head = head(channel)?;
    let entries = by_name(channel);
    let skips = channel.entries.iter().flat_map(|entry| &entry.skips);
    let skipped: BTreeSet<_> = skips.map(String::as_str).collect();
    let mut chain = vec![head];
    let mut positions = BTreeMap::from([(head.name.as_str(), 0)]);
    let mut current = head;
    while !skipped.contains(current.replaces.as_str()) {
        let Some(next) = entries.get(current.replaces.as_str()) else {
            break;
        };
        if let Some(start) = positions.insert(&next.name, chain.len()) {
            let circle = chain.iter().skip(start).chain([next]);
            let circle = circle.map(|entry| entry.name.clone()).collect();
            return Err(ChainError::Cycle(circle));
        }
        chain.push(next);
        current = next;
    }
    let reached = |name: &str| positions.contains_key(name) || skipped.contains(name);
    let names = entries.into_keys().filter(|name| !reached(name));
    let stranded: Vec<_> = names.map(str::to_owned).collect();
    if stranded.is_empty() {
        Ok(chain)
    } else {
        Err(ChainError::Stranded(stranded))
    }
}

/// The entries by name; the first, should there be several of a name.
fn by_name(channel: &Channel) -> BTreeMap<&str, &ChannelEntry> {
    let mut entries = BTreeMap::new();
    for entry in &channel.entries {
        entries.entry(entry.name.as_str()).or_insert(entry);
    }
    entries
}

fn told(names: &[String], separator: &str) -> String {
    let mut text = names
        .iter()
        .take(NAMES_TOLD)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(separator);
    if let Some(more) = names.len().checked_sub(NAMES_TOLD).filter(|more| *more > 0) {
        text.push_str(&format!("{separator}and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel of entries, each with what it replaces and what it skips.
    fn channel(entries: &[(&str, &str, &[&str])]) -> Channel {
        let entry = |(name, replaces, skips): &(&str, &str, &[&str])| ChannelEntry {
            name: (*name).to_owned(),
            replaces: (*replaces).to_owned(),
            skips: skips.iter().map(|skip| (*skip).to_owned()).collect(),
            skip_range: String::new(),
        };
        Channel {
            entries: entries.iter().map(entry).collect(),
            ..Channel::default()
        }
    }

    fn names(chain: &[&ChannelEntry]) -> Vec<String> {
        chain.iter().map(|entry| entry.name.clone()).collect()
    }

    #[test]
    fn the_chain_ends_at_what_is_skipped_or_elsewhere() {
        let elsewhere = channel(&[("c", "b", &[]), ("b", "gone", &[])]);
        assert_eq!(
            replaces_chain(&elsewhere).map(|chain| names(&chain)),
            Ok(vec!["c".to_owned(), "b".to_owned()])
        );
        let skipped = channel(&[("c", "b", &["b", "a"]), ("b", "a", &[]), ("a", "", &[])]);
        assert_eq!(
            replaces_chain(&skipped).map(|chain| names(&chain)),
            Ok(vec!["c".to_owned()])
        );
    }

    /// It would take hours if every entry were compared with every other, or with all that is skipped.
    #[test]
    fn long_channels_with_long_skips_are_judged_at_once() {
        let name = |number: usize| format!("b.v{number}");
        let mut entries: Vec<_> = (0..100_000)
            .map(|number| ChannelEntry {
                name: name(number),
                replaces: number.checked_sub(1).map(name).unwrap_or_default(),
                ..ChannelEntry::default()
            })
            .collect();
        for entry in &mut entries[99_000..] {
            entry.skips = (0..1000).map(|number| format!("old.v{number}")).collect();
        }
        let channel = Channel {
            entries,
            ..Channel::default()
        };
        assert_eq!(
            replaces_chain(&channel).map(|chain| chain.len()),
            Ok(100_000)
        );
    }

    #[test]
    fn messages_stay_short() {
        let entries: Vec<_> = (0..50).map(|number| format!("b{number:02}")).collect();
        let entries: Vec<_> = entries
            .iter()
            .map(|name| (name.as_str(), "", &[] as &[&str]))
            .collect();
        let error = head(&channel(&entries)).expect_err("many heads");
        assert!(
            error.to_string().ends_with("b18, b19, and 30 more"),
            "{error}"
        );
    }
}
