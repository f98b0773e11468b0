//! Why a version was chosen, and why each other one was not.

use std::{cmp::Ordering, fmt};

use super::{
    Candidate, Chosen, Installed, Rules, Wanted, candidate::Selection, offer::Offer,
    upgrade_graph::Link, verdict::Verdict,
};
use crate::{
    catalog::{
        Package,
        package::{BUNDLE_SCHEMA, CHANNEL_SCHEMA, PACKAGE_SCHEMA},
    },
    versions,
};

/// What became of one package that was asked for.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// The package.
    pub package: String,
    /// The rule that chose; nothing when nothing was chosen.
    pub rule: Option<Rule>,
    /// Every bundle in every channel of every catalog that has the package: catalogs in the order in which they are
    /// asked, the default channel first, newer versions before older ones.
    pub considered: Vec<Considered>,
    /// What is deprecated of what was chosen, as `olm.bundle/name: message`.
    pub deprecations: Vec<String>,
}

/// A bundle that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// The name of the catalog.
    pub catalog: String,
    /// The channel; empty under rules that know no channels.
    pub channel: String,
    /// The name of the bundle.
    pub bundle: String,
    /// Its version in words of the catalog; empty when it has none.
    pub version: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// The rule that chose a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// It is the head of the channel that was asked for.
    HeadOfChannel(String),
    /// It is the head of the default channel, and no channel was asked for.
    HeadOfDefaultChannel(String),
    /// It is the best that is left when others cannot be had, in this channel.
    BestPossible(String),
    /// It is the bundle to start from.
    StartingCsv,
    /// Of the channel's bundles that can be installed over `installed` it is the nearest to the head.
    SuccessorOf {
        /// The bundle that is installed.
        installed: String,
        /// What lets it be installed over that.
        link: Link,
    },
    /// It is installed, and nothing can be installed over it.
    AlreadyInstalled,
    /// It is the highest version, of those in this range if there is one.
    HighestVersion(Option<String>),
}

/// What became of one wanted package.
pub(super) fn explain(
    wanted: &Wanted,
    offers: &[Offer<'_>],
    selection: &Selection,
    chosen: Option<&Chosen>,
    installed: Option<&Installed>,
) -> Explanation {
    let chosen = chosen.map(|chosen| &chosen.candidate);
    let place = chosen.and_then(|chosen| selection.candidates.iter().position(|c| c.is(chosen)));
    let candidates = selection.candidates.iter().enumerate();
    let candidates = candidates.map(|(at, candidate)| {
        let verdict = after(offers, candidate, (at, place), chosen, installed);
        (candidate, verdict)
    });
    let excluded = selection.excluded.iter();
    let excluded = excluded.map(|(candidate, verdict)| (candidate, verdict.clone()));
    let deprecations = chosen.map(|chosen| deprecations(chosen, Some(&wanted.rules)));
    Explanation {
        package: wanted.package.clone(),
        rule: chosen.map(|chosen| rule(wanted, selection, chosen, installed)),
        considered: in_order(offers, candidates.chain(excluded)),
        deprecations: deprecations.unwrap_or_default(),
    }
}

/// What was considered, in the order of [`Explanation::considered`].
fn in_order<'s>(
    offers: &[Offer<'_>],
    considered: impl Iterator<Item = (&'s Candidate, Verdict)>,
) -> Vec<Considered> {
    let rows = considered.filter_map(|(candidate, verdict)| {
        let catalog = offers
            .iter()
            .position(|offer| offer.position == candidate.catalog)?;
        let bundle = candidate.bundle()?;
        let version = bundle.version().unwrap_or_default();
        let considered = Considered {
            catalog: offers.get(catalog)?.catalog.to_owned(),
            channel: candidate.channel.clone(),
            bundle: bundle.name.clone(),
            version: version.to_owned(),
            verdict,
        };
        let default = candidate.channel == candidate.package.default_channel();
        Some((
            (catalog, !default),
            versions::parse_tolerant(version).ok(),
            considered,
        ))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(
        |(place, version, row), (other_place, other_version, other)| {
            let by_channel = place
                .cmp(other_place)
                .then_with(|| row.channel.cmp(&other.channel));
            let by_version = || versions::newest_first(version.as_ref(), other_version.as_ref());
            by_channel
                .then_with(by_version)
                .then_with(|| row.bundle.cmp(&other.bundle))
        },
    );
    rows.into_iter().map(|(_, _, row)| row).collect()
}

/// What became of a candidate, by where it stands beside the one that was chosen.
fn after(
    offers: &[Offer<'_>],
    candidate: &Candidate,
    (at, place): (usize, Option<usize>),
    chosen: Option<&Candidate>,
    installed: Option<&Installed>,
) -> Verdict {
    let (Some(chosen), Some(place)) = (chosen, place) else {
        return Verdict::PassedOver;
    };
    let name = |candidate: &Candidate| {
        candidate
            .bundle()
            .map(|b| b.name.clone())
            .unwrap_or_default()
    };
    let catalog = offers.iter().find(|offer| offer.position == chosen.catalog);
    match at.cmp(&place) {
        Ordering::Equal => Verdict::Chosen,
        Ordering::Less => Verdict::PassedOver,
        Ordering::Greater
            if installed.is_some_and(|installed| installed.name == name(candidate)) =>
        {
            Verdict::Installed
        }
        Ordering::Greater if candidate.catalog != chosen.catalog => {
            Verdict::OtherCatalog(catalog.map(|c| c.catalog.to_owned()).unwrap_or_default())
        }
        Ordering::Greater if candidate.channel != chosen.channel => {
            Verdict::OtherChannel(chosen.channel.clone())
        }
        Ordering::Greater => Verdict::OlderThan(name(chosen)),
    }
}

/// The rule that led to a choice.
pub(super) fn rule(
    wanted: &Wanted,
    selection: &Selection,
    chosen: &Candidate,
    installed: Option<&Installed>,
) -> Rule {
    let (channel, starting_csv) = match &wanted.rules {
        Rules::ClusterExtension { version, .. } => {
            return Rule::HighestVersion(version.as_ref().map(ToString::to_string));
        }
        Rules::Subscription {
            channel,
            starting_csv,
        } => (channel, starting_csv),
    };
    if let Some(installed) = installed {
        return successor(chosen, installed);
    }
    let first = selection
        .candidates
        .first()
        .is_some_and(|first| first.is(chosen));
    let name = chosen.channel.clone();
    match (starting_csv, channel) {
        (Some(_), _) => Rule::StartingCsv,
        (None, _) if !first => Rule::BestPossible(name),
        (None, None) if name == chosen.package.default_channel() => {
            Rule::HeadOfDefaultChannel(name)
        }
        (None, _) => Rule::HeadOfChannel(name),
    }
}

fn successor(chosen: &Candidate, installed: &Installed) -> Rule {
    let name = chosen.bundle().map_or("", |bundle| &bundle.name);
    let channel = chosen.package.channel(&chosen.channel);
    let entry = channel.and_then(|channel| channel.entries.iter().find(|entry| entry.name == name));
    let link =
        entry.and_then(|entry| Link::over(entry, &installed.name, installed.version.as_ref()));
    match link {
        Some(link) if name != installed.name => Rule::SuccessorOf {
            installed: installed.name.clone(),
            link,
        },
        _ => Rule::AlreadyInstalled,
    }
}

/// What is deprecated of a choice, in the words of OLM's conditions: the package, its channel, the bundle.
pub(super) fn deprecations(chosen: &Candidate, rules: Option<&Rules>) -> Vec<String> {
    let package: &Package = &chosen.package;
    let asked: &[String] = match rules {
        Some(Rules::ClusterExtension { channels, .. }) => channels,
        _ => std::slice::from_ref(&chosen.channel),
    };
    let bundle = chosen.bundle().map_or("", |bundle| &bundle.name);
    let of_package = package.deprecation(PACKAGE_SCHEMA, "");
    let of_package = of_package.map(|message| format!("olm.package/{}: {message}", package.name));
    let of_channels = asked.iter().filter_map(|channel| {
        let message = package.deprecation(CHANNEL_SCHEMA, channel)?;
        Some(format!("olm.channel/{channel}: {message}"))
    });
    let of_bundle = package.deprecation(BUNDLE_SCHEMA, bundle);
    let of_bundle = of_bundle.map(|message| format!("olm.bundle/{bundle}: {message}"));
    of_package
        .into_iter()
        .chain(of_channels)
        .chain(of_bundle)
        .collect()
}

/// As what the chosen bundle is.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeadOfChannel(channel) => write!(f, "the head of channel {channel}"),
            Self::HeadOfDefaultChannel(channel) => {
                write!(f, "the head of the default channel {channel}")
            }
            Self::BestPossible(channel) => {
                write!(
                    f,
                    "the best of channel {channel} for which everything needed can be had"
                )
            }
            Self::StartingCsv => f.write_str("the starting CSV that was asked for"),
            Self::SuccessorOf {
                installed,
                link: Link::Replaces,
            } => write!(f, "it replaces the installed {installed}"),
            Self::SuccessorOf {
                installed,
                link: Link::Skips,
            } => write!(f, "it skips the installed {installed}"),
            Self::SuccessorOf {
                installed,
                link: Link::SkipRange(range),
            } => {
                write!(
                    f,
                    "its skipRange {range} holds the version of the installed {installed}"
                )
            }
            Self::AlreadyInstalled => {
                f.write_str("it is installed, and nothing can be installed over it")
            }
            Self::HighestVersion(None) => f.write_str("the highest version"),
            Self::HighestVersion(Some(range)) => write!(f, "the highest version in range {range}"),
        }
    }
}
