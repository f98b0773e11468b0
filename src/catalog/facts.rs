//! What there is to say of the channels and bundles of one package, each found by its name at once.
//!
//! Nothing is judged here: where there are two of one name the first counts, and a version that is none is told as it
//! is and sorts last. The facts are part of the shapes of [`list`](super::list) and [`show`](super::show).

use std::collections::BTreeMap;

use semver::Version;
use serde::Serialize;

use super::{
    channel,
    package::{BUNDLE_SCHEMA, CHANNEL_SCHEMA, CatalogBundle, Channel, ChannelEntry, Package},
};
use crate::versions;

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
            let by_version = versions::newest_first(a.as_ref(), b.as_ref());
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
