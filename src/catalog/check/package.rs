//! Checks of what defines a package, and of what belongs to none.

use std::collections::BTreeSet;

use super::{
    super::package::{Package, PackageDefinition},
    beginning, quoted,
};
use crate::{
    manifest::names,
    problem::{Place, Problem},
};

/// Blobs may only refer to a package that there is.
pub(super) fn is_defined(package: &Package, problems: &mut Vec<Problem>) {
    if !package.definitions.is_empty() {
        return;
    }
    let channels = package.channels.iter();
    let bundles = package.bundles.iter();
    let deprecations = package.deprecations.iter();
    let mut blobs = channels
        .map(|channel| (&channel.place, format!("channel {}", quoted(&channel.name))))
        .chain(bundles.map(|bundle| (&bundle.place, format!("bundle {}", quoted(&bundle.name)))))
        .chain(deprecations.map(|blob| (&blob.place, "deprecations".to_owned())));
    let Some((place, blob)) = blobs.next() else {
        return;
    };
    let others = match blobs.count() {
        0 => String::new(),
        others => format!(" and {others} more blobs"),
    };
    let message = format!(
        "unknown package {} for {blob}{others}: no blob of schema olm.package defines it",
        quoted(&package.name)
    );
    problems.push(package.problem_at(place, "catalog-package-unknown", message));
}

/// A package has one definition.
pub(super) fn is_defined_once(package: &Package, problems: &mut Vec<Problem>) {
    let Some((first, others)) = package.definitions.split_first() else {
        return;
    };
    for definition in others {
        let message = format!(
            "duplicate package {}: {} defines it already",
            quoted(&package.name),
            first.place
        );
        let rule = "catalog-package-duplicate";
        problems.push(package.problem_at(&definition.place, rule, message));
    }
}

/// The names of objects on the cluster are made of that of the package.
pub(super) fn name_is_valid(package: &Package, problems: &mut Vec<Problem>) {
    let Some(definition) = package.definitions.first() else {
        return;
    };
    if let Some(reason) = names::label_error(&package.name) {
        let message = format!("invalid package name {}: {reason}", quoted(&package.name));
        problems.push(package.problem_at(&definition.place, "catalog-package-name", message));
    }
}

/// A package without channels cannot be installed.
pub(super) fn channels_exist(package: &Package, problems: &mut Vec<Problem>) {
    let Some(definition) = package.definitions.first() else {
        return;
    };
    if package.channels.is_empty() {
        let message = "package must contain at least one channel";
        problems.push(package.problem_at(&definition.place, "catalog-package-channels", message));
    }
}

/// Each definition names a channel that there is.
pub(super) fn default_channel_exists(package: &Package, problems: &mut Vec<Problem>) {
    let channels: BTreeSet<_> = package
        .channels
        .iter()
        .map(|channel| &channel.name)
        .collect();
    for definition in &package.definitions {
        let PackageDefinition {
            place,
            default_channel: name,
            ..
        } = definition;
        let message = if name.is_empty() {
            "default channel must be set: name one of the channels in `defaultChannel`".to_owned()
        } else if !channels.contains(name) {
            format!(
                "default channel {} not found in channels list",
                quoted(name)
            )
        } else {
            continue;
        };
        problems.push(package.problem_at(place, "catalog-default-channel", message));
    }
}

/// What of a catalog belongs to no package, though it is of a schema that belongs to one. `package` holds all of it.
pub(super) fn blobs_of_none(package: &Package) -> Vec<Problem> {
    let mut problems = vec![];
    let mut tell = |place: &Place, message: String| {
        problems.push(Problem::error("catalog-package-missing", message).at(place.clone()));
    };
    for definition in &package.definitions {
        tell(
            &definition.place,
            "config contains package with no name".to_owned(),
        );
    }
    for channel in &package.channels {
        let name = quoted(&channel.name);
        tell(
            &channel.place,
            format!("package name must be set for channel {name}"),
        );
    }
    for bundle in &package.bundles {
        let name = quoted(&bundle.name);
        tell(
            &bundle.place,
            format!("package name must be set for bundle {name}"),
        );
    }
    for deprecations in &package.deprecations {
        tell(
            &deprecations.place,
            "package name must be set for deprecations".to_owned(),
        );
    }
    problems
}

impl Package {
    /// An error of the package as a whole.
    pub(super) fn problem_at(
        &self,
        place: &Place,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Problem {
        let object = format!("package {}", beginning(&self.name));
        Problem::error(rule, message).at(place.clone()).on(object)
    }
}
