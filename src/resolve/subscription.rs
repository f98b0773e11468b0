//! The bundles that OLM v0 would consider for one Subscription, best first.
//!
//! Reproduces `getSubscriptionVariables` of operator-lifecycle-manager
//! (`pkg/controller/registry/resolver/resolver.go`): the filters in its order, what an installed bundle or
//! `startingCSV` leaves of them, the order of channels and of the bundles in each.
//!
//! A Subscription names one catalog; here none need be named, and then the catalogs follow each other in the order of
//! [`offers`](super::offer::offers). Of a bundle in several channels OLM takes any; here the first channel is taken.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Candidate, Installed, Refusal, candidate::Selection, channel_order::head_to_tail, offer::Offer,
    refusal::refuse, upgrade_graph::Link, verdict::Verdict,
};
use crate::{
    catalog::{CatalogBundle, Channel, ChannelEntry},
    near,
};

/// What a Subscription says of a version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription<'w> {
    /// The package.
    pub(super) package: &'w str,
    /// The channel, if it names one.
    pub(super) channel: Option<&'w str>,
    /// The bundle to start from; without effect when one is installed.
    pub(super) starting_csv: Option<&'w str>,
    /// The bundle of the package that is installed.
    pub(super) installed: Option<&'w Installed>,
}

/// What OLM v0 considers, of all catalogs that have the package.
///
/// # Errors
/// When the bundles of a channel cannot be ordered.
pub(super) fn select(offers: &[Offer<'_>], wanted: Subscription<'_>) -> Result<Selection, Refusal> {
    let starting_csv = wanted.starting_csv.filter(|_| wanted.installed.is_none());
    let wanted = Subscription {
        starting_csv,
        ..wanted
    };
    let (mut selection, mut missing) = (Selection::default(), vec![]);
    for offer in offers {
        match missing_from(offer, wanted) {
            Some(sentence) => missing.push(sentence),
            None => add_candidates(&mut selection, offer, wanted)?,
        }
    }
    if missing.len() == offers.len() {
        let hint = missing_hint(offers, wanted);
        selection.refusal = Some(refuse(wanted.package, missing, hint));
        return Ok(selection);
    }
    if let Some(installed) = wanted.installed {
        add_installed(&mut selection, offers, installed, wanted.channel);
    }
    if selection.candidates.is_empty() {
        selection.refusal = Some(refusal(&selection, offers, wanted));
    }
    Ok(selection)
}

/// OLM's sentence for the first filter that leaves nothing of a catalog.
fn missing_from(offer: &Offer<'_>, wanted: Subscription<'_>) -> Option<String> {
    let (package, catalog) = (wanted.package, offer.catalog);
    let place = wanted.channel.map(|channel| format!("channel {channel}"));
    let place = place.unwrap_or_else(|| "any channel".to_owned());
    let mut channels = considered(offer, wanted).peekable();
    if channels.peek().is_none() {
        return Some(format!(
            "no operators found in {place} of package {package} in catalog {catalog}"
        ));
    }
    let name = wanted.starting_csv?;
    let named = channels.any(|(_, entries)| entries.iter().any(|(entry, _)| entry.name == name));
    (!named).then(|| {
        format!("no operators found with name {name} in {place} of package {package} in catalog {catalog}")
    })
}

type Entries<'o> = Vec<(&'o ChannelEntry, usize)>;

/// The channels that count, each with its entries; only those that have some.
fn considered<'o>(
    offer: &'o Offer<'_>,
    wanted: Subscription<'_>,
) -> impl Iterator<Item = (&'o Channel, Entries<'o>)> {
    let wanted = wanted.channel.map(str::to_owned);
    let asked = move |channel: &&Channel| wanted.as_ref().is_none_or(|w| *w == channel.name);
    let channels = offer.channels().into_iter().filter(asked);
    let channels = channels.map(|channel| (channel, offer.entries(channel)));
    channels.filter(|(_, entries)| !entries.is_empty())
}

fn add_candidates(
    selection: &mut Selection,
    offer: &Offer<'_>,
    wanted: Subscription<'_>,
) -> Result<(), Refusal> {
    for channel in offer.channels() {
        let entries = offer.entries(channel);
        if wanted.channel.is_some_and(|wanted| wanted != channel.name) {
            let verdict =
                Verdict::NotInChannels(wanted.channel.map(str::to_owned).into_iter().collect());
            let other = |(_, bundle)| (offer.candidate(&channel.name, bundle), verdict.clone());
            selection.excluded.extend(entries.into_iter().map(other));
        } else {
            add_channel(selection, offer, channel, entries, wanted)?;
        }
    }
    Ok(())
}

/// Adds the bundles of one channel: the candidates from head to tail, and what keeps the others from being one.
fn add_channel(
    selection: &mut Selection,
    offer: &Offer<'_>,
    channel: &Channel,
    entries: Entries<'_>,
    wanted: Subscription<'_>,
) -> Result<(), Refusal> {
    let candidate = |bundle| offer.candidate(&channel.name, bundle);
    let starts = |entry: &ChannelEntry| wanted.starting_csv.is_none_or(|name| entry.name == name);
    let (entries, others): (Entries<'_>, Entries<'_>) =
        entries.into_iter().partition(|(entry, _)| starts(entry));
    let all: Vec<_> = entries.iter().map(|(entry, _)| *entry).collect();
    let order = head_to_tail(wanted.package, &channel.name, &all);
    let order = order.map_err(|sentence| disordered(offer, &sentence))?;
    let bundles = entries
        .iter()
        .map(|(entry, bundle)| (entry.name.as_str(), *bundle));
    let mut bundles: BTreeMap<_, _> = bundles.collect();
    for entry in order {
        let bundle = bundles.remove(entry.name.as_str()).unwrap_or_default();
        match obstacle(offer, entry, bundle, wanted.installed) {
            Some(verdict) => selection.excluded.push((candidate(bundle), verdict)),
            None => selection.candidates.push(candidate(bundle)),
        }
    }
    let left_out = left_out(&all, bundles);
    let left_out = left_out.map(|(bundle, verdict)| (candidate(bundle), verdict));
    selection.excluded.extend(left_out);
    let starting_csv = wanted.starting_csv.unwrap_or_default();
    let others = others.into_iter().map(|(_, bundle)| {
        let verdict = Verdict::NotStartingCsv(starting_csv.to_owned());
        (candidate(bundle), verdict)
    });
    selection.excluded.extend(others);
    Ok(())
}

/// Why bundles are not on the chain of a channel, by name.
fn left_out(
    entries: &[&ChannelEntry],
    bundles: BTreeMap<&str, usize>,
) -> impl Iterator<Item = (usize, Verdict)> {
    let skips = entries
        .iter()
        .flat_map(|by| by.skips.iter().map(|skip| (skip.as_str(), by.name.clone())));
    let skips: BTreeMap<_, _> = skips.collect();
    let left_out = bundles.into_iter().map(|(name, bundle)| {
        let by = skips.get(name).cloned();
        (bundle, by.map_or(Verdict::Stranded, Verdict::SkippedBy))
    });
    left_out.collect::<Vec<_>>().into_iter()
}

fn disordered(offer: &Offer<'_>, sentence: &str) -> Refusal {
    Refusal {
        message: format!("catalog {}: {sentence}", offer.catalog),
        hint: Some(
            "another channel, or another version of the catalog, may be in order".to_owned(),
        ),
        ..Refusal::default()
    }
}

/// What keeps an entry of the chain from being a candidate.
fn obstacle(
    offer: &Offer<'_>,
    entry: &ChannelEntry,
    bundle: usize,
    installed: Option<&Installed>,
) -> Option<Verdict> {
    let of = offer.package.bundles.get(bundle);
    if of.is_some_and(CatalogBundle::is_prohibited) {
        return Some(Verdict::Prohibited);
    }
    let installed = installed?;
    let link = Link::over(entry, &installed.name, installed.version.as_ref());
    link.is_none()
        .then(|| Verdict::NotAnUpgradeOf(installed.name.clone()))
}

/// Adds the installed bundle as the last candidate, unless its own range holds its version: OLM takes that for an
/// upgrade to itself, which comes before any bundle further down.
fn add_installed(
    selection: &mut Selection,
    offers: &[Offer<'_>],
    installed: &Installed,
    channel: Option<&str>,
) {
    let known = selection.candidates.iter().filter_map(Candidate::bundle);
    if known
        .into_iter()
        .any(|bundle| bundle.name == installed.name)
    {
        return;
    }
    let last = offers
        .iter()
        .find_map(|offer| as_candidate(installed, channel, offer));
    let is_last = |candidate: &Candidate| last.as_ref().is_some_and(|last| last.is(candidate));
    selection
        .excluded
        .retain(|(excluded, _)| !is_last(excluded));
    selection.candidates.extend(last);
}

/// The installed bundle, when the catalog has it: in the channel that is asked for, or else in the first that has it.
fn as_candidate(
    installed: &Installed,
    channel: Option<&str>,
    offer: &Offer<'_>,
) -> Option<Candidate> {
    let bundle = offer.bundle(&installed.name)?;
    let mut channels = offer.channels();
    channels.retain(|channel| {
        channel
            .entries
            .iter()
            .any(|entry| entry.name == installed.name)
    });
    let asked = channels
        .iter()
        .find(|candidate| channel == Some(candidate.name.as_str()));
    let channel = asked
        .or(channels.first())
        .map_or("", |channel| &channel.name);
    Some(offer.candidate(channel, bundle))
}

/// What to ask for instead of what no catalog has.
fn missing_hint(offers: &[Offer<'_>], wanted: Subscription<'_>) -> Option<String> {
    let channels = offers.iter().flat_map(Offer::channels);
    let names: BTreeSet<_> = channels
        .clone()
        .map(|channel| channel.name.as_str())
        .collect();
    if let Some(channel) = wanted.channel.filter(|channel| !names.contains(channel)) {
        let names: Vec<_> = names.iter().copied().collect();
        let near = near::hint(&near::names(channel, names.iter().copied()));
        let all = (!names.is_empty()).then(|| format!("the channels are {}", names.join(", ")));
        return near.or(all);
    }
    let asked = channels.filter(|channel| wanted.channel.is_none_or(|name| name == channel.name));
    let bundles = asked.flat_map(|channel| channel.entries.iter().map(|entry| entry.name.as_str()));
    near::hint(&near::names(wanted.starting_csv?, bundles))
}

/// Why there is nothing to choose although the catalogs have what the Subscription names.
fn refusal(selection: &Selection, offers: &[Offer<'_>], wanted: Subscription<'_>) -> Refusal {
    let of_channel = wanted
        .channel
        .map_or_else(String::new, |c| format!(" in channel {c}"));
    if let Some(installed) = wanted.installed {
        let (name, package) = (&installed.name, wanted.package);
        let message = format!(
            "no bundle of package {package}{of_channel} can be installed over {name}, and no catalog has {name} itself"
        );
        return refuse(package, vec![message], None);
    }
    let prohibited = selection
        .excluded
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Prohibited);
    let sentences = prohibited.filter_map(|(candidate, _)| {
        let catalog = offers
            .iter()
            .find(|offer| offer.position == candidate.catalog)?
            .catalog;
        let name = &candidate.bundle()?.name;
        Some(format!(
            "bundle {catalog}/{}/{name} is deprecated",
            candidate.channel
        ))
    });
    refuse(wanted.package, sentences.collect(), None)
}
