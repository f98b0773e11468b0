//! The catalogs that have a package, in the order in which they are asked.
//!
//! Catalogs of a higher priority come first, and of two with one priority the one that the user named first. OLM takes
//! the one whose name sorts first; here a name is only what the user calls a catalog.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use super::{Candidate, Refusal, Wanted, channel_order::with_bundles, universe::Universe};
use crate::{
    catalog::{CatalogBundle, Channel, ChannelEntry, Package, package::BUNDLE_SCHEMA},
    near,
};

/// What one catalog has of the wanted package.
#[derive(Debug)]
pub(super) struct Offer<'c> {
    /// The position of the catalog among those asked.
    pub(super) position: usize,
    /// The name of the catalog.
    pub(super) catalog: &'c str,
    /// The priority of the catalog.
    pub(super) priority: i64,
    /// The package, which has a bundle at least.
    pub(super) package: Arc<Package>,
    /// The positions of its bundles, by name.
    bundles: Vec<usize>,
}

/// The catalogs that have the wanted package, preferred ones first; one at least.
///
/// # Errors
/// When the catalog that it is to come from is not there, or no catalog has it, or one cannot be read: what another
/// catalog has is never taken in place of something that could not be read.
pub(super) fn offers<'c>(
    universe: &Universe<'c>,
    wanted: &Wanted,
) -> Result<Vec<Offer<'c>>, Refusal> {
    let mut catalogs: Vec<_> = universe.catalogs.iter().enumerate().collect();
    if let Some(name) = &wanted.catalog {
        catalogs.retain(|(_, catalog)| catalog.name == *name);
        if catalogs.is_empty() {
            return Err(no_catalog(universe, name));
        }
    }
    catalogs.sort_by_key(|(_, catalog)| Reverse(catalog.priority));
    let mut offers = vec![];
    for (position, catalog) in &catalogs {
        let package = universe.package(*position, &wanted.package);
        let package = package.map_err(|problems| Refusal {
            message: format!(
                "cannot read package {} of catalog {}",
                wanted.package, catalog.name
            ),
            problems,
            ..Refusal::default()
        })?;
        let Some(package) = package.filter(|package| !package.bundles.is_empty()) else {
            continue;
        };
        let mut bundles: Vec<_> = (0..package.bundles.len()).collect();
        bundles.sort_by_key(|at| package.bundles.get(*at).map(|bundle| &bundle.name));
        offers.push(Offer {
            position: *position,
            catalog: &catalog.name,
            priority: catalog.priority,
            package,
            bundles,
        });
    }
    if offers.is_empty() {
        let names: Vec<_> = catalogs.iter().map(|(_, c)| c.name.as_str()).collect();
        let known = catalogs.iter().flat_map(|(_, catalog)| catalog.packages());
        let known: BTreeSet<_> = known.collect();
        let near = if known.contains(wanted.package.as_str()) {
            vec![]
        } else {
            near::names(&wanted.package, known.into_iter())
        };
        return Err(no_package(&wanted.package, &names, near));
    }
    Ok(offers)
}

impl Offer<'_> {
    /// The position of a bundle of the package; of the first, should there be several of this name.
    pub(super) fn bundle(&self, name: &str) -> Option<usize> {
        let name_at = |at: &usize| self.package.bundles.get(*at).map(|b| b.name.as_str());
        let first = self.bundles.partition_point(|at| name_at(at) < Some(name));
        let first = self.bundles.get(first).copied()?;
        (name_at(&first) == Some(name)).then_some(first)
    }

    /// The version of a bundle, in words of the catalog; empty when it has none.
    pub(super) fn version(&self, bundle: usize) -> &str {
        let bundle = self.package.bundles.get(bundle);
        bundle.and_then(CatalogBundle::version).unwrap_or_default()
    }

    /// The channels in OLM v0's order: the default one, then the others by name. Of two with one name, the first.
    pub(super) fn channels(&self) -> Vec<&Channel> {
        let default = self.package.default_channel();
        let mut channels: Vec<_> = self.package.channels.iter().collect();
        channels.sort_by_key(|channel| (channel.name != default, channel.name.as_str()));
        channels.dedup_by_key(|channel| channel.name.as_str());
        channels
    }

    /// The entries of a channel that have a bundle, with its position; of two with one name, the first.
    pub(super) fn entries<'p>(&self, channel: &'p Channel) -> Vec<(&'p ChannelEntry, usize)> {
        with_bundles(channel, |name| self.bundle(name))
    }

    /// The names of the bundles that are deprecated. Only the first blob of deprecations counts, as for OLM v1.
    pub(super) fn deprecated_bundles(&self) -> BTreeSet<&str> {
        let entries = self
            .package
            .deprecations
            .first()
            .map(|first| &first.entries);
        let bundles = entries
            .into_iter()
            .flatten()
            .filter(|entry| entry.schema == BUNDLE_SCHEMA);
        bundles.map(|entry| entry.name.as_str()).collect()
    }

    /// A bundle of the package as a candidate.
    pub(super) fn candidate(&self, channel: &str, bundle: usize) -> Candidate {
        Candidate {
            catalog: self.position,
            package: Arc::clone(&self.package),
            channel: channel.to_owned(),
            bundle,
        }
    }
}

fn no_catalog(universe: &Universe<'_>, name: &str) -> Refusal {
    let known: Vec<_> = universe.catalogs.iter().map(|c| c.name.as_str()).collect();
    Refusal {
        message: format!(
            "no operators found from catalog {name}: there is no catalog of that name"
        ),
        hint: (!known.is_empty()).then(|| format!("the catalogs are {}", known.join(", "))),
        ..Refusal::default()
    }
}

fn no_package(package: &str, catalogs: &[&str], near: Vec<&str>) -> Refusal {
    let message = match catalogs {
        [] => format!("no operators found in package {package}: there is no catalog"),
        [catalog] => format!("no operators found in package {package} in catalog {catalog}"),
        several => format!(
            "no operators found in package {package} in any of the catalogs {}",
            several.join(", ")
        ),
    };
    Refusal {
        message,
        hint: near::hint(&near),
        ..Refusal::default()
    }
}
