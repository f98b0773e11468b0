//! What requirements are tested on: what is known of a bundle of a catalog, of an installed operator, or of something
//! that the cluster has from elsewhere.
//!
//! The properties are read once, as leniently as OLM reads them (`cache/predicates.go` skips a property that does not
//! parse): a property of the wrong shape says nothing.

use std::{collections::BTreeSet, sync::Arc};

use semver::Version;
use serde_json::{Value, json};

use crate::{
    catalog::{
        CatalogBundle, Gvk, Package, Property,
        package::{DEPRECATED_PROPERTY, GVK_PROPERTY, PACKAGE_PROPERTY},
    },
    resolve::{Installed, Provided},
    versions::{self, Range},
};

const LABEL_PROPERTY: &str = "olm.label";

/// What is known of one thing that may meet requirements.
#[derive(Debug)]
pub(super) struct Facts {
    /// Its package; empty when it has none.
    pub(super) package: String,
    /// The APIs that it provides.
    pub(super) apis: BTreeSet<Gvk>,
    /// Whether OLM may not install it.
    pub(super) deprecated: bool,
    labels: BTreeSet<String>,
    versions: Versions,
    properties: Properties,
}

#[derive(Debug)]
enum Versions {
    Known(Vec<Version>),
    Any,
}

#[derive(Debug)]
enum Properties {
    OfBundle(Arc<Package>, usize),
    Made(Vec<Property>),
}

impl Facts {
    /// What a catalog says of the bundle at a position of a package.
    pub(super) fn of_bundle(package: &Arc<Package>, position: usize) -> Self {
        let properties = Properties::OfBundle(Arc::clone(package), position);
        let bundle = package.bundles.get(position);
        let versions = bundle.map(versions_of).unwrap_or_default();
        Self::new(&package.name, Versions::Known(versions), properties)
    }

    /// What is known of an installed operator: what OLM would read from its ClusterServiceVersion. Without a version,
    /// no range has it.
    pub(super) fn of_installed(installed: &Installed) -> Self {
        let mut properties: Vec<_> = installed.provides.iter().map(api_property).collect();
        if !installed.package.is_empty() {
            let version = installed.version.as_ref();
            properties.push(package_property(&installed.package, version));
        }
        let versions = Versions::Known(installed.version.iter().cloned().collect());
        Self::new(&installed.package, versions, Properties::Made(properties))
    }

    /// What is known of something that the cluster has from elsewhere.
    pub(super) fn of_provided(provided: &Provided) -> Self {
        match provided {
            Provided::Api(api) => {
                let properties = Properties::Made(vec![api_property(api)]);
                Self::new("", Versions::Known(vec![]), properties)
            }
            Provided::Package { name, version } => {
                let property = package_property(name, version.as_ref());
                let versions = match version {
                    Some(version) => Versions::Known(vec![version.clone()]),
                    None => Versions::Any,
                };
                Self::new(name, versions, Properties::Made(vec![property]))
            }
        }
    }

    fn new(package: &str, versions: Versions, properties: Properties) -> Self {
        let list = properties.list();
        let values = |kind| list.iter().filter(move |property| property.kind == kind);
        let label = |property: &Property| Some(property.value.get("label")?.as_str()?.to_owned());
        Self {
            package: package.to_owned(),
            apis: values(GVK_PROPERTY)
                .filter_map(|property| Gvk::parse(&property.value))
                .collect(),
            deprecated: values(DEPRECATED_PROPERTY).next().is_some(),
            labels: values(LABEL_PROPERTY).filter_map(label).collect(),
            versions,
            properties,
        }
    }

    /// Whether one of its versions is inside a range.
    pub(super) fn is_within(&self, range: &Range) -> bool {
        match &self.versions {
            Versions::Known(versions) => versions.iter().any(|version| range.contains(version)),
            Versions::Any => true,
        }
    }

    /// Whether it has a label.
    pub(super) fn has_label(&self, label: &str) -> bool {
        self.labels.contains(label)
    }

    /// The version that it is known by.
    pub(super) fn version(&self) -> Option<&Version> {
        match &self.versions {
            Versions::Known(versions) => versions.first(),
            Versions::Any => None,
        }
    }

    /// Its properties, as the catalog has them.
    pub(super) fn properties(&self) -> &[Property] {
        self.properties.list()
    }
}

impl Properties {
    fn list(&self) -> &[Property] {
        match self {
            Self::Made(properties) => properties,
            Self::OfBundle(package, position) => package
                .bundles
                .get(*position)
                .map_or(&[], |bundle| &bundle.properties),
        }
    }
}

/// OLM tests a property's version read strictly and, should that be outside, the first one's read leniently.
fn versions_of(bundle: &CatalogBundle) -> Vec<Version> {
    let lenient = bundle.version().map(versions::parse_tolerant);
    let version = |value: &Value| versions::parse(value.get("version")?.as_str()?).ok();
    let strict = bundle.properties_of(PACKAGE_PROPERTY).filter_map(version);
    let mut versions: Vec<_> = strict.chain(lenient.and_then(Result::ok)).collect();
    versions.dedup();
    versions
}

fn api_property(api: &Gvk) -> Property {
    Property {
        kind: GVK_PROPERTY.to_owned(),
        value: json!({"group": api.group, "version": api.version, "kind": api.kind}),
    }
}

fn package_property(package: &str, version: Option<&Version>) -> Property {
    let version = version.map(Version::to_string).unwrap_or_default();
    Property {
        kind: PACKAGE_PROPERTY.to_owned(),
        value: json!({"packageName": package, "version": version}),
    }
}
