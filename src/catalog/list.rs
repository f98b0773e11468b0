//! What a catalog has, as rows: packages, channels, and bundles in channels.
//!
//! The rows are the shapes that `kubectl olm catalog` prints as JSON and YAML: keys in camel case, nothing renamed or
//! given another meaning once it is there, and a field that has nothing to say is left out. What is listed equals
//! `opm alpha list` of operator-registry (`alpha/action/list.go`), whose columns have the same names; but a package or
//! channel that opm would refuse, and with it the catalog, is listed here as it is.

use std::{cmp::Reverse, collections::BTreeMap};

use semver::Version;
use serde::Serialize;

use super::{
    Catalog,
    about::{self, About},
    channel,
    package::{
        BUNDLE_SCHEMA, CHANNEL_SCHEMA, CatalogBundle, Channel, ChannelEntry, Detail,
        PACKAGE_SCHEMA, Package,
    },
};
use crate::{problem::Problem, versions};

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

/// What there is to say of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelFacts {
    /// Its name.
    pub name: String,
    /// Whether it is taken when none is asked for.
    pub default: bool,
    /// The bundle at its head.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// The version of that bundle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Why it has no head.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Why it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
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

/// What there is to say of a bundle in a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleFacts {
    /// Its name.
    pub name: String,
    /// Its version, as the catalog has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The bundle that it replaces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replaces: String,
    /// Bundles that it can be installed over, and that are not installed any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// The range of versions that it can be installed over.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skip_range: String,
    /// The image with its files; none when the catalog has them itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Why it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
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
    let Some(found) = catalog.package(name, Detail::Choice)? else {
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

/// A package with its parts by name, so that each is found at once.
pub(super) struct Facts<'p> {
    package: &'p Package,
    bundles: BTreeMap<&'p str, &'p CatalogBundle>,
    deprecations: BTreeMap<(&'p str, &'p str), &'p str>,
}

impl<'p> Facts<'p> {
    /// The parts of a package; of two with one name the first counts, as everywhere.
    pub(super) fn of(package: &'p Package) -> Self {
        let bundles = package.bundles.iter().rev();
        let deprecations = package.deprecations.first().map(|blob| &blob.entries);
        let deprecations = deprecations.into_iter().flatten().rev();
        Self {
            package,
            bundles: bundles
                .map(|bundle| (bundle.name.as_str(), bundle))
                .collect(),
            deprecations: deprecations
                .map(|entry| {
                    let reference = (entry.schema.as_str(), entry.name.as_str());
                    (reference, entry.message.as_str())
                })
                .collect(),
        }
    }

    /// The channels by name.
    pub(super) fn channels(&self) -> Vec<&'p Channel> {
        let mut channels: Vec<_> = self.package.channels.iter().collect();
        channels.sort_by(|a, b| a.name.cmp(&b.name));
        channels
    }

    /// The version of a bundle, when it has one that is one.
    pub(super) fn version(&self, bundle: &str) -> Option<Version> {
        let bundle = self.bundles.get(bundle)?;
        versions::parse(bundle.version()?).ok()
    }

    /// Why something is deprecated, as [`Package::deprecation`] has it.
    pub(super) fn deprecation(&self, schema: &str, name: &str) -> Option<&'p str> {
        self.deprecations.get(&(schema, name)).copied()
    }

    /// The entries of a channel from the newest version to the oldest; what has no version comes last, by name.
    pub(super) fn entries(&self, channel: &'p Channel) -> Vec<&'p ChannelEntry> {
        let mut entries: Vec<_> = channel
            .entries
            .iter()
            .map(|entry| (self.version(&entry.name), entry))
            .collect();
        entries.sort_by(|(a, an_entry), (b, another)| {
            let by_version = match (a, b) {
                (Some(a), Some(b)) => versions::compare(b, a),
                (a, b) => Reverse(a.is_some()).cmp(&Reverse(b.is_some())),
            };
            by_version.then_with(|| an_entry.name.cmp(&another.name))
        });
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    /// What there is to say of a channel.
    pub(super) fn channel(&self, channel: &Channel) -> ChannelFacts {
        let (head, error) = match channel::head(channel) {
            Ok(head) => (head.name.clone(), String::new()),
            Err(error) => (String::new(), error.to_string()),
        };
        ChannelFacts {
            name: channel.name.clone(),
            default: channel.name == self.package.default_channel(),
            version: self.version_text(&head),
            head,
            error,
            deprecation: self.message(CHANNEL_SCHEMA, &channel.name),
        }
    }

    /// What there is to say of the bundles of a channel, in the order of [`Facts::entries`].
    pub(super) fn bundles(&self, channel: &'p Channel) -> Vec<BundleFacts> {
        let entries = self.entries(channel).into_iter();
        entries.map(|entry| self.bundle(entry)).collect()
    }

    fn bundle(&self, entry: &ChannelEntry) -> BundleFacts {
        let bundle = self.bundles.get(entry.name.as_str());
        BundleFacts {
            name: entry.name.clone(),
            version: self.version_text(&entry.name),
            replaces: entry.replaces.clone(),
            skips: entry.skips.clone(),
            skip_range: entry.skip_range.clone(),
            image: bundle.map_or_else(String::new, |bundle| bundle.image.clone()),
            deprecation: self.message(BUNDLE_SCHEMA, &entry.name),
        }
    }

    fn version_text(&self, bundle: &str) -> String {
        let bundle = self.bundles.get(bundle);
        let version = bundle.and_then(|bundle| bundle.version());
        version.unwrap_or_default().to_owned()
    }

    fn message(&self, schema: &str, name: &str) -> Option<String> {
        self.deprecation(schema, name).map(str::to_owned)
    }
}
