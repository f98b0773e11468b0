//! Checks of the properties of bundles.

use serde_json::Value;

use super::{
    super::{
        embedded,
        package::{
            BUNDLE_OBJECT_PROPERTY, CSV_METADATA_PROPERTY, CatalogBundle,
            PACKAGE_REQUIRED_PROPERTY, Package, Property, field,
        },
    },
    property_shapes, quoted,
};
use crate::{
    limits::Limits,
    manifest::{conform::conform, yaml},
    problem::Problem,
    versions::Range,
};

/// Properties of known types have the fields that OLM reads, and all have a value.
pub(super) fn shapes_are_known(package: &Package, problems: &mut Vec<Problem>) {
    for (bundle, index, property) in properties(package) {
        let mut tell = |reason: String| {
            let kind = quoted(&property.kind);
            let message = format!("parse property[{index}] of type {kind}: {reason}");
            problems.push(bundle.problem(Problem::error("catalog-property", message)));
        };
        if property.value.is_null() {
            tell("value must be set".to_owned());
        } else if let Some(shape) = property_shapes::of(&property.kind) {
            let findings = conform(&mut property.value.clone(), shape);
            findings
                .errors
                .iter()
                .for_each(|finding| tell(finding.to_string()));
        }
    }
}

/// Embedded objects are YAML or JSON.
pub(super) fn objects_can_be_read(package: &Package, problems: &mut Vec<Problem>) {
    for (bundle, index, property) in properties(package) {
        if property.kind != BUNDLE_OBJECT_PROPERTY {
            continue;
        }
        // What has the wrong shape is told elsewhere.
        let Ok(object) = embedded::object(&property.value) else {
            continue;
        };
        if let Err(error) = yaml::read(&object, &Limits::DEFAULT) {
            let message =
                format!("convert bundle object property at index {index} to JSON: {error}");
            problems.push(bundle.problem(Problem::error("catalog-bundle-object", message)));
        }
    }
}

/// opm takes any text for a range; OLM gives up when it comes to choosing what the bundle requires.
pub(super) fn required_ranges_are_valid(package: &Package, problems: &mut Vec<Problem>) {
    for (bundle, index, property) in properties(package) {
        if property.kind != PACKAGE_REQUIRED_PROPERTY {
            continue;
        }
        if let Err(reason) = Range::parse(text(&property.value, "versionRange")) {
            let message = format!(
                "property[{index}] of type {PACKAGE_REQUIRED_PROPERTY:?}: OLM cannot resolve the bundle: {reason}"
            );
            problems.push(bundle.problem(Problem::warning("catalog-version-range", message)));
        }
    }
}

/// Without either property, consoles and searches have nothing to show.
pub(super) fn people_are_told(package: &Package, problems: &mut Vec<Problem>) {
    let for_people = [CSV_METADATA_PROPERTY, BUNDLE_OBJECT_PROPERTY];
    let silent = package.bundles.iter().filter(|bundle| {
        let mut properties = bundle.properties.iter();
        !properties.any(|property| for_people.contains(&property.kind.as_str()))
    });
    problems.extend(silent.map(|bundle| {
        let message = format!(
            "there is no {CSV_METADATA_PROPERTY:?} property, so that consoles and searches cannot describe the bundle: `opm render` adds it"
        );
        bundle.problem(Problem::warning("catalog-bundle-description", message))
    }));
}

/// The text of a field, found in any case as Go's JSON reader finds it; empty when there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    let value = value.as_object().and_then(|fields| field(fields, key));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Every property of every bundle, with its index.
fn properties(package: &Package) -> impl Iterator<Item = (&CatalogBundle, usize, &Property)> {
    package.bundles.iter().flat_map(|bundle| {
        let properties = bundle.properties.iter().enumerate();
        properties.map(move |(index, property)| (bundle, index, property))
    })
}
