//! Checks of bundles: their names, versions and images. What their properties look like is judged in `properties`.

use std::collections::{BTreeMap, BTreeSet};

use semver::{Prerelease, Version};
use serde_json::Value;

use super::{
    super::package::{BUNDLE_OBJECT_PROPERTY, CatalogBundle, PACKAGE_PROPERTY, Package},
    beginning,
    properties::text,
    quoted, repeated,
};
use crate::{image::ImageReference, problem::Problem, versions};

/// Bytes of the longest release that a ClusterServiceVersion takes.
const LONGEST_RELEASE: usize = 20;

/// Entries, upgrades and installs name bundles.
pub(super) fn names_are_unique(package: &Package, problems: &mut Vec<Problem>) {
    for bundle in repeated(&package.bundles, |bundle| &bundle.name) {
        let message = format!(
            "package {} has duplicate bundle {}",
            quoted(&package.name),
            quoted(&bundle.name)
        );
        problems.push(bundle.problem(Problem::error("catalog-bundle-duplicate", message)));
    }
}

/// A bundle in no channel could never be installed.
pub(super) fn channels_list_them(package: &Package, problems: &mut Vec<Problem>) {
    let entries = package.channels.iter().flat_map(|channel| &channel.entries);
    let listed: BTreeSet<_> = entries.map(|entry| &entry.name).collect();
    for bundle in &package.bundles {
        if !listed.contains(&bundle.name) {
            let message =
                "bundle not found in any channel entries: add an entry, or take the bundle out";
            problems.push(bundle.problem(Problem::error("catalog-bundle-unlisted", message)));
        }
    }
}

/// A bundle says once which package it is of, and says the same as its blob.
pub(super) fn packages_are_stated_once(package: &Package, problems: &mut Vec<Problem>) {
    for bundle in &package.bundles {
        let stated: Vec<_> = bundle.properties_of(PACKAGE_PROPERTY).collect();
        let message = match stated.as_slice() {
            [property] => {
                let name = text(property, "packageName");
                if name == package.name {
                    continue;
                }
                format!(
                    "package {} does not match {PACKAGE_PROPERTY:?} property {}",
                    quoted(&package.name),
                    quoted(name)
                )
            }
            several => format!(
                "bundle must have exactly 1 {PACKAGE_PROPERTY:?} property, found {}",
                several.len()
            ),
        };
        problems.push(bundle.problem(Problem::error("catalog-package-property", message)));
    }
}

/// Versions are semantic, to the letter.
pub(super) fn versions_are_valid(package: &Package, problems: &mut Vec<Problem>) {
    for (bundle, property) in stated(package) {
        let version = text(property, "version");
        if let Err(reason) = versions::parse(version) {
            let message = format!("error parsing version: {reason}");
            problems.push(bundle.problem(Problem::error("catalog-version", message)));
        }
    }
}

/// Of two bundles of one version, nobody could tell which one is installed.
pub(super) fn versions_are_unique(package: &Package, problems: &mut Vec<Problem>) {
    let mut first: BTreeMap<String, &CatalogBundle> = BTreeMap::new();
    for (bundle, property) in stated(package) {
        let Ok(version) = versions::parse(text(property, "version")) else {
            continue;
        };
        let version = with_release(&version, text(property, "release"));
        let other = *first.entry(version.clone()).or_insert(bundle);
        if other.name != bundle.name {
            let message = format!(
                "duplicate versions found in bundles: {version} is also that of {} ({})",
                quoted(&other.name),
                other.place
            );
            problems.push(bundle.problem(Problem::error("catalog-version-duplicate", message)));
        }
    }
}

/// A release has the form of a pre-release, is a part of the bundle's name, and takes the place of build metadata.
pub(super) fn releases_are_valid(package: &Package, problems: &mut Vec<Problem>) {
    for (bundle, property) in stated(package) {
        let release = text(property, "release");
        if release.is_empty() {
            continue;
        }
        let mut tell = |message: String| {
            problems.push(bundle.problem(Problem::error("catalog-release", message)));
        };
        if let Some(reason) = release_error(release) {
            tell(format!(
                "error parsing release version {}: {reason}",
                quoted(release)
            ));
            continue;
        }
        let Ok(version) = versions::parse(text(property, "version")) else {
            continue;
        };
        let name = format!("{}-v{}", package.name, with_release(&version, release));
        if bundle.name != name {
            tell(format!(
                "name does not match normalized name {}",
                quoted(&name)
            ));
        }
        if !version.build.is_empty() {
            tell("cannot use build metadata in version with a release version".to_owned());
        }
    }
}

/// Images are named in a form that can be pulled.
pub(super) fn images_are_valid(package: &Package, problems: &mut Vec<Problem>) {
    for bundle in &package.bundles {
        let mut tell = |field: String, image: &str| {
            if image.is_empty() {
                return;
            }
            if let Err(reason) = ImageReference::parse(image) {
                let message = format!(
                    "{field}: invalid image pull spec {}: {reason}",
                    quoted(image)
                );
                problems.push(bundle.problem(Problem::error("catalog-image", message)));
            }
        };
        tell("image".to_owned(), &bundle.image);
        for (index, related) in bundle.related_images.iter().enumerate() {
            tell(format!("relatedImages[{index}].image"), &related.image);
        }
    }
}

/// The files of a bundle are in its image, or in the catalog.
pub(super) fn images_or_objects_exist(package: &Package, problems: &mut Vec<Problem>) {
    for bundle in &package.bundles {
        let has_objects = || {
            bundle
                .properties_of(BUNDLE_OBJECT_PROPERTY)
                .next()
                .is_some()
        };
        if bundle.image.is_empty() && !has_objects() {
            let message = format!(
                "bundle image must be set, as there is no {BUNDLE_OBJECT_PROPERTY:?} property"
            );
            problems.push(bundle.problem(Problem::error("catalog-bundle-image", message)));
        }
    }
}

impl CatalogBundle {
    /// A problem of this bundle.
    pub(super) fn problem(&self, problem: Problem) -> Problem {
        problem
            .at(self.place.clone())
            .on(format!("bundle {}", beginning(&self.name)))
    }
}

/// Each bundle with its first statement of package and version.
fn stated(package: &Package) -> impl Iterator<Item = (&CatalogBundle, &Value)> {
    package.bundles.iter().filter_map(|bundle| {
        let property = bundle.properties_of(PACKAGE_PROPERTY).next()?;
        Some((bundle, property))
    })
}

fn with_release(version: &Version, release: &str) -> String {
    let dash = if release.is_empty() { "" } else { "-" };
    format!("{version}{dash}{release}")
}

/// Why a text is no release (`NewRelease` of operator-registry `alpha/model/versionrelease.go`).
fn release_error(release: &str) -> Option<String> {
    if release.len() > LONGEST_RELEASE {
        return Some(format!(
            "exceeds maximum length of {LONGEST_RELEASE} characters"
        ));
    }
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut numbers = release.split('.').filter(is_number);
    let fits = numbers.all(|number| number.parse::<u64>().is_ok());
    match Prerelease::new(release) {
        Ok(_) if fits => None,
        Ok(_) => Some("a number is too large".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
