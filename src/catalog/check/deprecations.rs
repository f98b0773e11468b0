//! Checks of what is said to be deprecated.

use std::collections::BTreeSet;

use super::{
    super::package::{
        BUNDLE_SCHEMA, CHANNEL_SCHEMA, Deprecation, Deprecations, PACKAGE_SCHEMA, Package,
    },
    beginning, quoted, repeated,
};
use crate::problem::Problem;

/// A package has one list of what is deprecated.
pub(super) fn are_told_once(package: &Package, problems: &mut Vec<Problem>) {
    for deprecations in package.deprecations.iter().skip(1) {
        let message =
            "expected a maximum of one deprecation per package: put all entries into one blob";
        let problem = Problem::error("catalog-deprecations-duplicate", message);
        problems.push(deprecations.problem(package, problem));
    }
}

/// A thing is deprecated for one reason.
pub(super) fn entries_are_unique(package: &Package, problems: &mut Vec<Problem>) {
    for deprecations in &package.deprecations {
        for entry in repeated(&deprecations.entries, |entry| (&entry.schema, &entry.name)) {
            let message = format!(
                "duplicate deprecation entry for {} {}",
                quoted(&entry.schema),
                quoted(&entry.name)
            );
            let problem = Problem::error("catalog-deprecation-duplicate", message);
            problems.push(deprecations.problem(package, problem));
        }
    }
}

/// Only what there is can be deprecated.
pub(super) fn things_exist(package: &Package, problems: &mut Vec<Problem>) {
    let bundles: BTreeSet<_> = package.bundles.iter().map(|bundle| &bundle.name).collect();
    let channels: BTreeSet<_> = package
        .channels
        .iter()
        .map(|channel| &channel.name)
        .collect();
    for deprecations in &package.deprecations {
        for (index, Deprecation { schema, name, .. }) in deprecations.entries.iter().enumerate() {
            let quoted_name = quoted(name);
            let message = match schema.as_str() {
                BUNDLE_SCHEMA if !bundles.contains(name) => {
                    format!("cannot deprecate bundle {quoted_name}: bundle not found")
                }
                CHANNEL_SCHEMA if !channels.contains(name) => {
                    format!("cannot deprecate channel {quoted_name}: channel not found")
                }
                PACKAGE_SCHEMA if !name.is_empty() => format!(
                    "package name must be empty for deprecated package (specified {quoted_name})"
                ),
                BUNDLE_SCHEMA | CHANNEL_SCHEMA | PACKAGE_SCHEMA => continue,
                "" => format!("entries[{index}]: schema must be set for deprecation entry"),
                other => format!(
                    "entries[{index}]: cannot deprecate object {quoted_name}: object schema {} unknown",
                    quoted(other)
                ),
            };
            let problem = Problem::error("catalog-deprecation-reference", message);
            problems.push(deprecations.problem(package, problem));
        }
    }
}

/// Who uses what is deprecated must be told what to do.
pub(super) fn messages_are_given(package: &Package, problems: &mut Vec<Problem>) {
    for deprecations in &package.deprecations {
        let entries = deprecations.entries.iter().enumerate();
        for (index, _) in entries.filter(|(_, entry)| entry.message.is_empty()) {
            let message = format!("entries[{index}]: invalid deprecation: message must be set");
            let problem = Problem::error("catalog-deprecation-message", message);
            problems.push(deprecations.problem(package, problem));
        }
    }
}

impl Deprecations {
    /// A problem of the deprecations of a package.
    fn problem(&self, package: &Package, problem: Problem) -> Problem {
        let object = format!("package {}", beginning(&package.name));
        problem.at(self.place.clone()).on(object)
    }
}
