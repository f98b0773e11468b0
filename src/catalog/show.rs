//! All that a catalog says of one package.
//!
//! As in [`list`], these are the shapes of JSON and YAML output. What the package offers and
//! needs is what the head of its default channel does.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;
use serde_json::Value;

use super::{
    Catalog,
    facts::{BundleFacts, ChannelFacts, Facts},
    list::{self, ListedPackage},
    package::{
        CONSTRAINT_PROPERTY, CatalogBundle, Detail, GVK_REQUIRED_PROPERTY, Gvk,
        LABEL_REQUIRED_PROPERTY, PACKAGE_REQUIRED_PROPERTY,
    },
};
use crate::problem::Problem;

/// A package, and what can be said of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownPackage {
    /// The package at a glance.
    #[serde(flatten)]
    pub package: ListedPackage,
    /// What it does, in Markdown: in the words of the bundle, else of the package.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words that it wants to be found by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The oldest Kubernetes that it runs on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// The install modes that it supports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install_modes: Vec<String>,
    /// The APIs that it provides, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<Gvk>,
    /// What it needs from other packages, in the order in which it says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requirement>,
    /// The channels, by name.
    pub channels: Vec<ShownChannel>,
}

/// A channel with its bundles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownChannel {
    /// The channel.
    #[serde(flatten)]
    pub channel: ChannelFacts,
    /// Its bundles from the newest version to the oldest.
    pub bundles: Vec<BundleFacts>,
}

/// Something that a bundle needs from others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Requirement {
    /// An API.
    Api(Gvk),
    /// A package.
    #[serde(rename_all = "camelCase")]
    Package {
        /// Its name.
        name: String,
        /// The versions that will do, in blang's syntax.
        version_range: String,
    },
    /// A label.
    Label(String),
    /// A constraint, as the bundle has it.
    Constraint(Value),
}

/// What there is to say of a package; nothing when the catalog has none of this name.
///
/// # Errors
/// As [`Catalog::package`].
pub fn package(catalog: &Catalog, name: &str) -> Result<Option<ShownPackage>, Vec<Problem>> {
    let Some(package) = catalog.package(name, Detail::Choice)? else {
        return Ok(None);
    };
    let (listed, about) = list::package(catalog, &package)?;
    let facts = Facts::of(&package);
    let channels = facts.channels().into_iter().map(|channel| ShownChannel {
        channel: facts.channel(channel),
        bundles: facts.bundles(channel),
    });
    let channels = channels.collect();
    let head = package.bundle(&listed.head);
    let mut provides: Vec<_> = head.into_iter().flat_map(CatalogBundle::provided).collect();
    provides.sort();
    provides.dedup();
    let mut description = about.description;
    if description.is_empty() {
        let definition = package.definitions.first();
        description = definition.map_or_else(String::new, |it| it.description.clone());
    }
    Ok(Some(ShownPackage {
        package: listed,
        description,
        keywords: about.keywords,
        min_kube_version: about.min_kube_version,
        install_modes: about.install_modes,
        provides,
        requires: head.map(requirements).unwrap_or_default(),
        channels,
    }))
}

/// What a bundle needs, each once; a property whose value has the wrong shape is left out.
fn requirements(bundle: &CatalogBundle) -> Vec<Requirement> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut seen = BTreeSet::new();
    let properties = bundle.properties.iter();
    let found = properties.filter_map(|property| match property.kind.as_str() {
        GVK_REQUIRED_PROPERTY => Some((property, Requirement::Api(Gvk::parse(&property.value)?))),
        PACKAGE_REQUIRED_PROPERTY => {
            let name = text(&property.value, "packageName");
            let version_range = text(&property.value, "versionRange");
            Some((
                property,
                Requirement::Package {
                    name,
                    version_range,
                },
            ))
        }
        LABEL_REQUIRED_PROPERTY => {
            Some((property, Requirement::Label(text(&property.value, "label"))))
        }
        CONSTRAINT_PROPERTY => Some((property, Requirement::Constraint(property.value.clone()))),
        _ => None,
    });
    let new = found
        .filter(|(property, _)| seen.insert((property.kind.as_str(), property.value.to_string())));
    new.map(|(_, requirement)| requirement).collect()
}

/// In words; a constraint in those of its author, where there are any.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(api) => api.fmt(f),
            Self::Package {
                name,
                version_range,
            } => write!(f, "package {name} {version_range}"),
            Self::Label(label) => write!(f, "label {label}"),
            Self::Constraint(value) => match value["failureMessage"].as_str() {
                Some(message) if !message.is_empty() => f.write_str(message),
                _ => write!(f, "constraint {value}"),
            },
        }
    }
}
