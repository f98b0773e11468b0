//! Checks of channels: their entries, and the graph that these make.

use std::collections::BTreeSet;

use super::{
    super::{
        channel::{ChainError, replaces_chain},
        package::{Channel, Package},
    },
    beginning, quoted, repeated,
};
use crate::{problem::Problem, versions::Range};

/// Subscriptions name channels.
pub(super) fn names_are_given(package: &Package, problems: &mut Vec<Problem>) {
    let nameless = package
        .channels
        .iter()
        .filter(|channel| channel.name.is_empty());
    problems.extend(nameless.map(|channel| {
        let message = "channel name must not be empty";
        channel.problem(package, Problem::error("catalog-channel-name", message))
    }));
}

/// One channel, one blob: its entries are not added up.
pub(super) fn names_are_unique(package: &Package, problems: &mut Vec<Problem>) {
    for channel in repeated(&package.channels, |channel| &channel.name) {
        let message = format!(
            "package {} has duplicate channel {}: put all entries into one blob",
            quoted(&package.name),
            quoted(&channel.name)
        );
        let problem = Problem::error("catalog-channel-duplicate", message);
        problems.push(channel.problem(package, problem));
    }
}

/// A channel leads to a bundle.
pub(super) fn entries_exist(package: &Package, problems: &mut Vec<Problem>) {
    let empty = package
        .channels
        .iter()
        .filter(|channel| channel.entries.is_empty());
    problems.extend(empty.map(|channel| {
        let message = "channel must contain at least one bundle";
        channel.problem(package, Problem::error("catalog-channel-empty", message))
    }));
}

/// An entry is a bundle's name before all else.
pub(super) fn entries_are_named(package: &Package, problems: &mut Vec<Problem>) {
    for channel in &package.channels {
        for (index, entry) in channel.entries.iter().enumerate() {
            if entry.name.is_empty() {
                let message = format!("entries[{index}]: name must be set");
                let problem = Problem::error("catalog-entry-name", message);
                problems.push(channel.problem(package, problem));
            }
        }
    }
}

/// Two entries of one bundle could say different things.
pub(super) fn entries_are_unique(package: &Package, problems: &mut Vec<Problem>) {
    for channel in &package.channels {
        for entry in repeated(&channel.entries, |entry| &entry.name) {
            let message = format!("duplicate entry {}", quoted(&entry.name));
            let problem = Problem::error("catalog-entry-duplicate", message);
            problems.push(channel.problem(package, problem));
        }
    }
}

/// Every entry has its bundle.
pub(super) fn entries_are_bundles(package: &Package, problems: &mut Vec<Problem>) {
    let bundles: BTreeSet<_> = package.bundles.iter().map(|bundle| &bundle.name).collect();
    for channel in &package.channels {
        let names: BTreeSet<_> = channel.entries.iter().map(|entry| &entry.name).collect();
        for name in names.difference(&bundles).filter(|name| !name.is_empty()) {
            let message = format!("no olm.bundle blob found for entry {}", quoted(name));
            let problem = Problem::error("catalog-entry-unknown", message);
            problems.push(channel.problem(package, problem));
        }
    }
}

/// A channel has one head, from which `replaces` leads to every bundle that none skips.
pub(super) fn graphs_are_chains(package: &Package, problems: &mut Vec<Problem>) {
    for channel in &package.channels {
        if channel.entries.is_empty() {
            continue;
        }
        let Err(error) = replaces_chain(channel) else {
            continue;
        };
        let problem = match &error {
            ChainError::Head(_) => {
                let fix = "exactly one bundle may be neither replaced nor skipped";
                Problem::error("catalog-channel-head", format!("{error}: {fix}"))
            }
            ChainError::Cycle(_) => Problem::error("catalog-channel-cycle", error.to_string()),
            ChainError::Stranded(_) => {
                let fix = "replace or skip each on the way from the channel's head";
                Problem::error("catalog-channel-stranded", format!("{error}: {fix}"))
            }
        };
        problems.push(channel.problem(package, problem));
    }
}

/// What is skipped has a name.
pub(super) fn skips_are_named(package: &Package, problems: &mut Vec<Problem>) {
    for channel in &package.channels {
        for entry in &channel.entries {
            let skips = entry.skips.iter().enumerate();
            for (index, _) in skips.filter(|(_, skip)| skip.is_empty()) {
                let message = format!("entry {}: skips[{index}] is empty", quoted(&entry.name));
                let problem = Problem::error("catalog-skip-empty", message);
                problems.push(channel.problem(package, problem));
            }
        }
    }
}

/// opm refuses ranges that it cannot read, where OLM reads over them.
pub(super) fn skip_ranges_are_valid(package: &Package, problems: &mut Vec<Problem>) {
    for channel in &package.channels {
        for entry in channel
            .entries
            .iter()
            .filter(|entry| !entry.skip_range.is_empty())
        {
            let Err(reason) = Range::parse(&entry.skip_range) else {
                continue;
            };
            let message = format!("entry {}: invalid skipRange: {reason}", quoted(&entry.name));
            let problem = Problem::error("catalog-skip-range", message);
            problems.push(channel.problem(package, problem));
        }
    }
}

impl Channel {
    /// A problem of this channel of a package.
    fn problem(&self, package: &Package, problem: Problem) -> Problem {
        let names = (beginning(&package.name), beginning(&self.name));
        let object = format!("channel {}/{}", names.0, names.1);
        problem.at(self.place.clone()).on(object)
    }
}
