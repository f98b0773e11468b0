//! The checks of a catalog: one list, one function each. All of them run, and all they find is told at once.
//!
//! What opm's validation refuses is an error, with opm's meaning and near its wording: `ConvertToModel` of
//! operator-registry (`alpha/declcfg/declcfg_to_model.go`), the validators of `alpha/model/model.go`, and `Parse` of
//! `alpha/property/property.go`. opm stops at the first of most, and looks for the bundles of only the last channel.
//! Documents that are no blobs are refused when they are read. Warnings are what opm passes in silence.
//!
//! Nothing here looks at the images that a catalog names, nor at icons, which a [`Package`] does not hold.

mod bundle;
mod channel;
mod deprecations;
mod package;
mod properties;
mod property_shapes;

use super::{
    Catalog,
    package::{Detail, Package},
};
use crate::problem::Problem;

/// One check: adds what it finds.
type Check = fn(&Package, &mut Vec<Problem>);

/// Every check, roughly in the order in which opm looks.
const CHECKS: &[Check] = &[
    package::is_defined,
    package::is_defined_once,
    package::name_is_valid,
    package::channels_exist,
    package::default_channel_exists,
    channel::names_are_given,
    channel::names_are_unique,
    channel::entries_exist,
    channel::entries_are_named,
    channel::entries_are_unique,
    channel::entries_are_bundles,
    channel::graphs_are_chains,
    channel::skips_are_named,
    channel::skip_ranges_are_valid,
    bundle::names_are_unique,
    bundle::channels_list_them,
    properties::shapes_are_known,
    properties::objects_can_be_read,
    properties::required_ranges_are_valid,
    properties::people_are_told,
    bundle::packages_are_stated_once,
    bundle::versions_are_valid,
    bundle::versions_are_unique,
    bundle::releases_are_valid,
    bundle::images_are_valid,
    bundle::images_or_objects_exist,
    deprecations::are_told_once,
    deprecations::entries_are_unique,
    deprecations::things_exist,
    deprecations::messages_are_given,
];

/// Runs every check on one package, which must have been read with [`Detail::Full`]: without the embedded objects, a
/// bundle that consists of nothing else looks empty. The order of the problems is that of the checks.
#[must_use]
pub fn check(package: &Package) -> Vec<Problem> {
    let mut problems = vec![];
    for check in CHECKS {
        check(package, &mut problems);
    }
    problems
}

/// Runs every check on every package, one after the other so that only one is in memory, and tells the blobs that
/// belong to none. What cannot be read is among the problems; nothing else is told of its package.
#[must_use]
pub fn check_all(catalog: &Catalog) -> Vec<Problem> {
    let mut problems = vec![];
    for name in catalog.packages() {
        match catalog.package(name, Detail::Full) {
            Ok(package) => problems.extend(package.iter().flat_map(check)),
            Err(unreadable) => problems.extend(unreadable),
        }
    }
    match catalog.package("", Detail::Full) {
        Ok(package) => problems.extend(package.iter().flat_map(package::blobs_of_none)),
        Err(unreadable) => problems.extend(unreadable),
    }
    problems
}

/// The places in a list of what stands there for the second time or more, by a key.
fn repeated<'a, T, K: Ord>(items: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let mut seen = std::collections::BTreeSet::new();
    items
        .iter()
        .filter(|item| !seen.insert(key(item)))
        .collect()
}

/// A text in quotes, which content may have made as long as it liked.
fn quoted(text: &str) -> String {
    format!(
        "{:?}{}",
        beginning(text),
        if beginning(text) == text { "" } else { "..." }
    )
}

/// As much of a text as every problem can repeat.
fn beginning(text: &str) -> &str {
    const SHOWN: usize = 253;
    let end = text.char_indices().nth(SHOWN).map(|(at, _)| at);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}
