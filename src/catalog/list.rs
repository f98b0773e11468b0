//! What a catalog has, as rows: packages, channels, and bundles in channels.
//!
//! The rows are the shapes that `kubectl olm catalog` prints as JSON and YAML: keys in camel case, nothing renamed or
//! given another meaning once it is there, and a field that has nothing to say is left out. What is listed equals
//! `opm alpha list` of operator-registry (`alpha/action/list.go`), whose columns have the same names; but a package or
//! channel that opm would refuse, and with it the catalog, is listed here as it is.

use serde::Serialize;

use super::{
    Catalog,
    about::{self, About},
    channel,
    facts::{BundleFacts, ChannelFacts, Facts},
    package::{CatalogBundle, Detail, PACKAGE_SCHEMA, Package},
};
use crate::problem::Problem;

/// A package at a glance. What it says for people is from the head of its default channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPackage {
    /// The catalog that has it.
    pub catalog: String,
    /// Its name.
    pub name: String,
    /// What people call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The channel that is taken when none is asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_channel: String,
    /// The bundle at the head of the default channel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// The version of that bundle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Who provides it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// What it does, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Why it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
}

/// A channel of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedChannel {
    /// The catalog that has it.
    pub catalog: String,
    /// Its package.
    pub package: String,
    /// The channel itself.
    #[serde(flatten)]
    pub channel: ChannelFacts,
}

/// A bundle in a channel: one that is in several channels is listed for each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedBundle {
    /// The catalog that has it.
    pub catalog: String,
    /// Its package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The bundle itself.
    #[serde(flatten)]
    pub bundle: BundleFacts,
}

/// A package, its glance and all that the head of its default channel says.
///
/// # Errors
/// As [`Catalog::package`].
pub fn package(
    catalog: &Catalog,
    package: &Package,
) -> Result<(ListedPackage, About), Vec<Problem>> {
    let default_channel = package.default_channel();
    let head = package.channel(default_channel).map(channel::head);
    let head = head.and_then(Result::ok);
    let bundle = match head {
        Some(head) => catalog.bundle(&package.name, &head.name)?,
        None => None,
    };
    let about = bundle.as_ref().map(About::of).unwrap_or_default();
    let mut summary = about.summary.clone();
    if summary.is_empty() {
        let definition = package.definitions.first();
        summary = about::summary(definition.map_or("", |definition| &definition.description));
    }
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let listed = ListedPackage {
        catalog: catalog.name.clone(),
        name: package.name.clone(),
        display_name: about.display_name.clone(),
        default_channel: default_channel.to_owned(),
        head: text(head.map(|head| head.name.as_str())),
        version: text(bundle.as_ref().and_then(CatalogBundle::version)),
        provider: about.provider.clone(),
        summary,
        deprecation: package.deprecation(PACKAGE_SCHEMA, "").map(str::to_owned),
    };
    Ok((listed, about))
}

/// The glance at a package; nothing when the catalog has none of this name.
///
/// # Errors
/// As [`Catalog::package`].
pub fn packages(catalog: &Catalog, name: &str) -> Result<Vec<ListedPackage>, Vec<Problem>> {
    let Some(found) = catalog.package(name, Detail::Outline)? else {
        return Ok(vec![]);
    };
    Ok(vec![package(catalog, &found)?.0])
}

/// The channels of a package, by name.
///
/// # Errors
/// As [`Catalog::package`].
pub fn channels(catalog: &Catalog, name: &str) -> Result<Vec<ListedChannel>, Vec<Problem>> {
    let package = catalog.package(name, Detail::Choice)?.unwrap_or_default();
    let facts = Facts::of(&package);
    let channels = facts.channels().into_iter().map(|channel| ListedChannel {
        catalog: catalog.name.clone(),
        package: name.to_owned(),
        channel: facts.channel(channel),
    });
    Ok(channels.collect())
}

/// The bundles of a package, by channel and then from the newest version to the oldest.
///
/// # Errors
/// As [`Catalog::package`].
pub fn bundles(catalog: &Catalog, name: &str) -> Result<Vec<ListedBundle>, Vec<Problem>> {
    let package = catalog.package(name, Detail::Choice)?.unwrap_or_default();
    let facts = Facts::of(&package);
    let mut bundles = vec![];
    for channel in facts.channels() {
        let of_channel = facts.bundles(channel).into_iter();
        bundles.extend(of_channel.map(|bundle| ListedBundle {
            catalog: catalog.name.clone(),
            package: name.to_owned(),
            channel: channel.name.clone(),
            bundle,
        }));
    }
    Ok(bundles)
}
