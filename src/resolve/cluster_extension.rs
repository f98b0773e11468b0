//! The bundle that OLM v1 would choose for one ClusterExtension.
//!
//! Reproduces `CatalogResolver.Resolve` of operator-controller (`internal/operator-controller/resolve/catalog.go`, with
//! `catalogmetadata/filter`, `catalogmetadata/compare` and `bundleutil`): the highest version in range that is an
//! upgrade of what is installed, deprecated bundles last. There are no heads of channels and no default channel, and a
//! bundle that another one skips counts as any other.
//!
//! As in OLM v1, one bundle is chosen and nothing else tried when it cannot be installed. OLM v1 then refuses a bundle
//! that has dependencies; here they are solved afterwards. Of bundles with equal versions OLM takes the first of the
//! catalog; here the first by name.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeSet,
};

use semver::{BuildMetadata, Prerelease, Version};

use super::{
    Candidate, Installed, Refusal, UpgradePolicy, candidate::Selection, offer::Offer,
    upgrade_graph::Link, verdict::Verdict,
};
use crate::{
    catalog::{CatalogBundle, package::PACKAGE_PROPERTY},
    near,
    versions::{self, Constraint},
};

/// The longest text that is read as the release of a bundle.
const RELEASE_LENGTH: usize = 20;

/// What a ClusterExtension says of a version.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClusterExtension<'w> {
    /// The package.
    pub(super) package: &'w str,
    /// The channels; all when there are none.
    pub(super) channels: &'w [String],
    /// The versions that will do; all when there is none.
    pub(super) version: Option<&'w Constraint>,
    /// Whether the catalog's upgrade edges count.
    pub(super) upgrades: UpgradePolicy,
    /// The bundle of the package that is installed.
    pub(super) installed: Option<&'w Installed>,
}

/// What OLM v1 chooses, as the only candidate.
pub(super) fn select<'o>(offers: &'o [Offer<'_>], wanted: ClusterExtension<'o>) -> Selection {
    let mut selection = Selection::default();
    let mut best: Vec<(&Offer<'_>, Ranked<'_>)> = vec![];
    for offer in offers {
        let (mut matching, excluded) = matching(offer, wanted);
        selection.excluded.extend(excluded);
        matching.sort();
        let mut matching = matching.into_iter();
        let Some(first) = matching.next() else {
            continue;
        };
        let candidate = |ranked: &Ranked<'_>| offer.candidate("", ranked.bundle);
        selection
            .excluded
            .extend(matching.map(|later| (candidate(&later), first.verdict_of(&later))));
        best.push((offer, first));
    }
    choose(&mut selection, offers, wanted, best);
    selection
}

/// Chooses among the best of each catalog: one that is not deprecated before one that is, then by priority.
fn choose(
    selection: &mut Selection,
    offers: &[Offer<'_>],
    wanted: ClusterExtension<'_>,
    best: Vec<(&Offer<'_>, Ranked<'_>)>,
) {
    let supported = best.iter().any(|(_, ranked)| !ranked.deprecated);
    let beaten = |(_, ranked): &(_, Ranked<'_>)| supported && ranked.deprecated;
    let (deprecated, mut best): (Vec<_>, Vec<_>) = best.into_iter().partition(beaten);
    let candidate = |(offer, ranked): (&Offer<'_>, Ranked<'_>)| offer.candidate("", ranked.bundle);
    let deprecated = deprecated.into_iter().map(candidate);
    let deprecated = deprecated.map(|candidate| (candidate, Verdict::Deprecated));
    selection.excluded.extend(deprecated);
    best.sort_by_key(|(offer, _)| Reverse(offer.priority));
    let Some((first, _)) = best.first() else {
        selection.refusal = Some(nothing_found(offers, wanted));
        return;
    };
    let first = *first;
    let tied = best.iter().map(|(offer, _)| *offer);
    let tied = tied.take_while(|offer| offer.priority == first.priority);
    let tied: Vec<_> = tied.map(|offer| offer.catalog).collect();
    if tied.len() > 1 {
        selection.refusal = Some(ambiguous(wanted, tied));
        return;
    }
    let mut best = best.into_iter().map(candidate);
    selection.candidates.extend(best.next());
    let other = Verdict::OtherCatalog(first.catalog.to_owned());
    selection
        .excluded
        .extend(best.map(|candidate| (candidate, other.clone())));
}

/// A bundle and what decides its place; the order is from best to worst.
#[derive(Debug, PartialEq, Eq)]
struct Ranked<'o> {
    deprecated: bool,
    version: Option<Released>,
    name: &'o str,
    bundle: usize,
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_version = match (&self.version, &other.version) {
            (Some(one), Some(other)) => newest_first(one, other),
            (one, other) => one.is_none().cmp(&other.is_none()),
        };
        let by_deprecation = self.deprecated.cmp(&other.deprecated);
        by_deprecation
            .then(by_version)
            .then_with(|| self.name.cmp(other.name))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ranked<'_> {
    /// Why `later` was not chosen.
    fn verdict_of(&self, later: &Self) -> Verdict {
        if later.deprecated && !self.deprecated {
            Verdict::Deprecated
        } else if later.version.is_none() {
            Verdict::NoVersion
        } else {
            Verdict::OlderThan(self.name.to_owned())
        }
    }
}

/// A version with a release stands above the same version without.
fn newest_first(
    (version, release): &Released,
    (other_version, other_release): &Released,
) -> Ordering {
    let by_version = versions::compare(other_version, version);
    by_version.then_with(|| other_release.cmp(release))
}

/// The version of a bundle and its release. Bundles of registry+v1 have the release in the version's build metadata,
/// unless that cannot be one; a `release` beside the version, also an empty one, leaves
/// build metadata as they are, as OLM v1 does where its gate `BundleReleaseSupport` is open.
fn version_and_release(bundle: &CatalogBundle) -> Option<Released> {
    let property = bundle.properties_of(PACKAGE_PROPERTY).next()?;
    let version = versions::parse(bundle.version()?).ok()?;
    match property.get("release").and_then(serde_json::Value::as_str) {
        Some(release) => Some((version, as_release(release))),
        None => Some(legacy_release(version)),
    }
}

fn legacy_release(mut version: Version) -> Released {
    let release = as_release(version.build.as_str());
    if release.is_some() {
        version.build = BuildMetadata::EMPTY;
    }
    (version, release)
}

fn as_release(text: &str) -> Option<Prerelease> {
    let fits = !text.is_empty() && text.len() <= RELEASE_LENGTH;
    fits.then(|| Prerelease::new(text).ok()).flatten()
}

type Excluded = Vec<(Candidate, Verdict)>;

/// The bundles of a catalog that meet every condition, and what the others fail first.
fn matching<'o>(offer: &'o Offer<'_>, wanted: ClusterExtension<'o>) -> (Vec<Ranked<'o>>, Excluded) {
    let conditions = Conditions::of(offer, wanted);
    let deprecated = offer.deprecated_bundles();
    let (mut matching, mut excluded) = (vec![], vec![]);
    for (position, bundle) in offer.package.bundles.iter().enumerate() {
        let (name, version) = (bundle.name.as_str(), version_and_release(bundle));
        match conditions.failed_by(name, version.as_ref()) {
            Some(verdict) => excluded.push((offer.candidate("", position), verdict)),
            None => matching.push(Ranked {
                deprecated: deprecated.contains(name),
                version,
                name,
                bundle: position,
            }),
        }
    }
    (matching, excluded)
}

/// What a bundle of one catalog must meet to be chosen.
struct Conditions<'o> {
    wanted: ClusterExtension<'o>,
    /// The bundles in the channels that count.
    in_channels: BTreeSet<&'o str>,
    /// What must be upgraded.
    installed: Option<&'o Installed>,
    /// The bundles that an edge of those channels leads to from there.
    upgrades: BTreeSet<&'o str>,
}

impl<'o> Conditions<'o> {
    fn of(offer: &'o Offer<'_>, wanted: ClusterExtension<'o>) -> Self {
        let asked = |name| wanted.channels.is_empty() || wanted.channels.contains(name);
        let channels = offer.package.channels.iter();
        let channels = channels.filter(|channel| asked(&channel.name));
        let entries: Vec<_> = channels.flat_map(|channel| &channel.entries).collect();
        let installed = wanted.installed;
        let installed = installed.filter(|_| wanted.upgrades == UpgradePolicy::CatalogProvided);
        let upgrades = entries.iter().filter(|entry| {
            let link = |of: &Installed| Link::over(entry, &of.name, of.version.as_ref());
            installed.and_then(link).is_some()
        });
        Self {
            wanted,
            upgrades: upgrades.map(|entry| entry.name.as_str()).collect(),
            in_channels: entries.iter().map(|entry| entry.name.as_str()).collect(),
            installed,
        }
    }

    fn failed_by(&self, name: &str, version: Option<&Released>) -> Option<Verdict> {
        let channels = self.wanted.channels;
        if !channels.is_empty() && !self.in_channels.contains(name) {
            return Some(Verdict::NotInChannels(channels.to_vec()));
        }
        let range = self.wanted.version;
        let outside = range.and_then(|range| out_of_range(range, version));
        let stays = || not_an_upgrade(self.installed?, name, version, &self.upgrades);
        outside.or_else(stays)
    }
}

/// A version with its release.
type Released = (Version, Option<Prerelease>);

fn out_of_range(range: &Constraint, version: Option<&Released>) -> Option<Verdict> {
    match version {
        None => Some(Verdict::NoVersion),
        Some((version, _)) if range.matches(version) => None,
        Some(_) => Some(Verdict::OutsideRange(range.to_string())),
    }
}

/// An upgrade is what an edge leads to, or what has the very version that is installed.
fn not_an_upgrade(
    installed: &Installed,
    name: &str,
    version: Option<&Released>,
    upgrades: &BTreeSet<&str>,
) -> Option<Verdict> {
    let same = match (&installed.version, version) {
        (Some(installed), Some(version)) => {
            newest_first(&legacy_release(installed.clone()), version).is_eq()
        }
        _ => installed.name == name,
    };
    (!same && !upgrades.contains(name)).then(|| Verdict::NotAnUpgradeOf(installed.name.clone()))
}

fn nothing_found(offers: &[Offer<'_>], wanted: ClusterExtension<'_>) -> Refusal {
    Refusal {
        message: message(wanted, "no bundles found for"),
        hint: hint(offers, wanted),
        ..Refusal::default()
    }
}

fn ambiguous(wanted: ClusterExtension<'_>, mut catalogs: Vec<&str>) -> Refusal {
    catalogs.sort_unstable();
    Refusal {
        message: format!(
            "{} in multiple catalogs with the same priority [{}]",
            message(wanted, "found bundles for"),
            catalogs.join(" ")
        ),
        hint: Some("name the catalog to take it from, or give one a higher priority".to_owned()),
        ..Refusal::default()
    }
}

/// The sentence of `resolutionError.Error`.
fn message(wanted: ClusterExtension<'_>, found: &str) -> String {
    let mut message = String::new();
    if let Some(installed) = wanted.installed {
        let version = installed.version.as_ref().map(ToString::to_string);
        let version = version.unwrap_or_default();
        message = format!("error upgrading from currently installed version {version:?}: ");
    }
    message += &format!("{found} package {:?}", wanted.package);
    if let Some(range) = wanted.version {
        message += &format!(" matching version {:?}", range.to_string());
    }
    if !wanted.channels.is_empty() {
        message += &format!(" in channels [{}]", wanted.channels.join(" "));
    }
    message
}

/// The channels there are, when one that is named is not among them.
fn hint(offers: &[Offer<'_>], wanted: ClusterExtension<'_>) -> Option<String> {
    let channels = offers.iter().flat_map(|offer| &offer.package.channels);
    let channels: BTreeSet<_> = channels.map(|channel| channel.name.as_str()).collect();
    let unknown = wanted
        .channels
        .iter()
        .find(|name| !channels.contains(name.as_str()));
    let names: Vec<_> = channels.into_iter().collect();
    if let Some(unknown) = unknown {
        let near = near::hint(&near::names(unknown, names.iter().copied()));
        return near.or_else(|| Some(format!("the channels are {}", names.join(", "))));
    }
    None
}
