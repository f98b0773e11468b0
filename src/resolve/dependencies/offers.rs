//! Which bundles of the catalogs meet a requirement, in OLM's order of preference (`resolver.go` `sortBundles`,
//! `cache/cache.go` `sortableSnapshots`): the catalog of the bundle that needs it, then the other catalogs by priority,
//! highest first, and among equals in the order in which the user gave them (OLM takes their names); in a catalog the
//! default channels first, then by name of the package, then of the channel; in a channel from head to tail, without
//! what is skipped.
//!
//! A package is read only when a requirement can lead to it: one for a package or an API names where to look, one for a
//! label, a CEL rule or a `not` can be met anywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use super::{Stop, cel::Work, facts::Facts, predicate::Predicate, requirement::Requirement};
use crate::{
    catalog::{Channel, Gvk, Package},
    resolve::{
        Candidate,
        channel_order::{head_to_tail, with_bundles},
        universe::{Place, Universe},
    },
    versions::{self, Version},
};

/// The catalogs, with what was found out about them.
pub(super) struct Offers<'u, 'c> {
    /// The catalogs.
    pub(super) universe: &'u Universe<'c>,
    shelves: BTreeMap<Place, Option<Rc<Shelf>>>,
    sorted: BTreeMap<(Place, usize), Rc<Vec<usize>>>,
    everywhere: Option<Rc<BTreeSet<Place>>>,
    work: Work,
}

/// A package, with what is known of its bundles.
pub(super) struct Shelf {
    /// The package.
    pub(super) package: Arc<Package>,
    /// What is known of each bundle.
    pub(super) facts: Vec<Rc<Facts>>,
    positions: BTreeMap<String, usize>,
}

impl<'u, 'c> Offers<'u, 'c> {
    /// What these catalogs offer.
    pub(super) fn new(universe: &'u Universe<'c>) -> Self {
        Self {
            universe,
            shelves: BTreeMap::new(),
            sorted: BTreeMap::new(),
            everywhere: None,
            work: Work::LIMIT,
        }
    }

    /// The bundles that meet a requirement of a bundle of `own` catalog, best first.
    ///
    /// # Errors
    /// When a package cannot be read, a channel that matters has no order, or too much would have to be tested.
    pub(super) fn meeting(
        &mut self,
        requirement: &Requirement,
        own: usize,
    ) -> Result<Vec<(Candidate, Rc<Facts>)>, Stop> {
        let places = self.places(&requirement.predicate)?;
        let mut meeting = vec![];
        for catalog in self.order(own) {
            let mut channels = vec![];
            let first = (catalog, String::new());
            let of_catalog = places.range(first..).take_while(|place| place.0 == catalog);
            for place in of_catalog {
                self.add_channels(&requirement.predicate, place, &mut channels)?;
            }
            channels.sort_by(|one, other| one.rank().cmp(&other.rank()));
            for channel in channels {
                self.add_meeting(catalog, &channel, &mut meeting)?;
            }
        }
        Ok(meeting)
    }

    /// Whether something meets a requirement.
    ///
    /// # Errors
    /// When too much would have to be tested.
    pub(super) fn meets(&mut self, facts: &Facts, requirement: &Requirement) -> Result<bool, Stop> {
        Ok(requirement.predicate.test(facts, &mut self.work)?)
    }

    /// A package; nothing when the catalog has none of this name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn shelf(&mut self, place: &Place) -> Result<Option<Rc<Shelf>>, Stop> {
        if let Some(shelf) = self.shelves.get(place) {
            return Ok(shelf.clone());
        }
        let package = self.universe.package(place.0, &place.1)?;
        let shelf = package.map(|package| Rc::new(Shelf::new(package)));
        self.shelves.insert(place.clone(), shelf.clone());
        Ok(shelf)
    }

    /// The version of a bundle, as the first catalog that has it knows it.
    ///
    /// # Errors
    /// When the package cannot be read.
    pub(super) fn version(&mut self, package: &str, bundle: &str) -> Result<Option<Version>, Stop> {
        for catalog in 0..self.universe.catalogs.len() {
            let shelf = self.shelf(&(catalog, package.to_owned()))?;
            let facts = shelf.as_ref().and_then(|shelf| {
                let position = shelf.positions.get(bundle)?;
                shelf.facts.get(*position)
            });
            if let Some(facts) = facts {
                return Ok(facts.version().cloned());
            }
        }
        Ok(None)
    }

    /// The APIs that a version of a package provides, or any of its versions when none is given, as the catalogs have it.
    ///
    /// # Errors
    /// When the package cannot be read.
    pub(super) fn apis(
        &mut self,
        package: &str,
        version: Option<&Version>,
    ) -> Result<BTreeSet<Gvk>, Stop> {
        let mut apis = BTreeSet::new();
        for catalog in 0..self.universe.catalogs.len() {
            let shelf = self.shelf(&(catalog, package.to_owned()))?;
            for facts in shelf.iter().flat_map(|shelf| &shelf.facts) {
                if version.is_none_or(|version| facts.version() == Some(version)) {
                    apis.extend(facts.apis.iter().cloned());
                }
            }
        }
        Ok(apis)
    }

    /// What the catalogs know about a requirement that nothing meets: for each catalog with the package that it names,
    /// or with bundles that would do but are not offered, which and in which versions.
    ///
    /// # Errors
    /// When a package cannot be read.
    pub(super) fn known(
        &mut self,
        requirement: &Requirement,
    ) -> Result<BTreeMap<usize, Known>, Stop> {
        let mut known: BTreeMap<usize, Known> = BTreeMap::new();
        for place in self.places(&requirement.predicate)?.iter() {
            let Some(shelf) = self.shelf(place)? else {
                continue;
            };
            let of_catalog = known.entry(place.0).or_default();
            for (facts, bundle) in shelf.facts.iter().zip(&shelf.package.bundles) {
                if requirement.predicate.test(facts, &mut self.work)? {
                    of_catalog.would_do.push(bundle.name.clone());
                }
            }
            of_catalog.versions.extend(shelf.versions());
        }
        Ok(known)
    }

    /// The positions of the catalogs, the best first.
    fn order(&self, own: usize) -> Vec<usize> {
        let mut order: Vec<_> = self.universe.catalogs.iter().enumerate().collect();
        order.sort_by_key(|(position, catalog)| (*position != own, -i128::from(catalog.priority)));
        order.into_iter().map(|(position, _)| position).collect()
    }

    /// Where to look for bundles that meet a predicate.
    fn places(&mut self, predicate: &Predicate) -> Result<Rc<BTreeSet<Place>>, Stop> {
        match self.known_places(predicate)? {
            Some(places) => Ok(Rc::new(places)),
            None => Ok(self.everywhere()),
        }
    }

    /// The places that a predicate names; nothing when it could hold anywhere.
    fn known_places(&self, predicate: &Predicate) -> Result<Option<BTreeSet<Place>>, Stop> {
        Ok(match predicate {
            Predicate::Package { name, .. } => {
                let catalogs = 0..self.universe.catalogs.len();
                Some(catalogs.map(|catalog| (catalog, name.clone())).collect())
            }
            Predicate::Api(api) => Some(self.universe.providers(api)?),
            Predicate::Label(_) | Predicate::Cel(_) | Predicate::Not(_) => None,
            Predicate::All(parts) => {
                let mut common: Option<BTreeSet<Place>> = None;
                for part in parts {
                    if let Some(places) = self.known_places(part)? {
                        common = Some(match common {
                            Some(common) => common.intersection(&places).cloned().collect(),
                            None => places,
                        });
                    }
                }
                common
            }
            Predicate::Any(parts) => {
                let mut all = BTreeSet::new();
                for part in parts {
                    match self.known_places(part)? {
                        Some(places) => all.extend(places),
                        None => return Ok(None),
                    }
                }
                Some(all)
            }
        })
    }

    fn everywhere(&mut self) -> Rc<BTreeSet<Place>> {
        let catalogs = self.universe.catalogs.iter().enumerate();
        let all = || {
            let places = catalogs.flat_map(|(position, catalog)| {
                catalog
                    .packages()
                    .map(move |name| (position, name.to_owned()))
            });
            Rc::new(places.collect())
        };
        Rc::clone(self.everywhere.get_or_insert_with(all))
    }

    /// Adds the channels of a package that have a bundle for which the predicate holds.
    fn add_channels(
        &mut self,
        predicate: &Predicate,
        place: &Place,
        channels: &mut Vec<Matching>,
    ) -> Result<(), Stop> {
        let Some(shelf) = self.shelf(place)? else {
            return Ok(());
        };
        let mut meets = vec![];
        for facts in &shelf.facts {
            meets.push(predicate.test(facts, &mut self.work)?);
        }
        if !meets.contains(&true) {
            return Ok(());
        }
        let meets = Rc::new(meets);
        for (position, channel) in shelf.package.channels.iter().enumerate() {
            let holds = |bundle: usize| meets.get(bundle).is_some_and(|meets| *meets);
            if shelf.bundles_of(channel).any(holds) {
                channels.push(Matching {
                    shelf: Rc::clone(&shelf),
                    channel: position,
                    meets: Rc::clone(&meets),
                });
            }
        }
        Ok(())
    }

    /// Adds the bundles of a channel that meet the requirement, head to tail.
    fn add_meeting(
        &mut self,
        catalog: usize,
        matching: &Matching,
        meeting: &mut Vec<(Candidate, Rc<Facts>)>,
    ) -> Result<(), Stop> {
        let shelf = &matching.shelf;
        let Some(channel) = shelf.package.channels.get(matching.channel) else {
            return Ok(());
        };
        for bundle in self.sorted(catalog, matching, channel)?.iter().copied() {
            let meets = matching.meets.get(bundle).is_some_and(|meets| *meets);
            if let (true, Some(facts)) = (meets, shelf.facts.get(bundle)) {
                let candidate = Candidate {
                    catalog,
                    package: Arc::clone(&shelf.package),
                    channel: channel.name.clone(),
                    bundle,
                };
                meeting.push((candidate, Rc::clone(facts)));
            }
        }
        Ok(())
    }

    /// The bundles of a channel, head to tail.
    fn sorted(
        &mut self,
        catalog: usize,
        matching: &Matching,
        channel: &Channel,
    ) -> Result<Rc<Vec<usize>>, Stop> {
        let shelf = &matching.shelf;
        let key = ((catalog, shelf.package.name.clone()), matching.channel);
        if let Some(sorted) = self.sorted.get(&key) {
            return Ok(Rc::clone(sorted));
        }
        let entries = with_bundles(channel, |name| shelf.positions.get(name));
        let entries: Vec<_> = entries.into_iter().map(|(entry, _)| entry).collect();
        let order = head_to_tail(&shelf.package.name, &channel.name, &entries);
        let order = order.map_err(Stop::Invalid)?.into_iter();
        let bundles = order.filter_map(|entry| shelf.positions.get(&entry.name).copied());
        let sorted: Rc<Vec<_>> = Rc::new(bundles.collect());
        self.sorted.insert(key, Rc::clone(&sorted));
        Ok(sorted)
    }
}

/// What a catalog knows about a requirement that nothing meets.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The bundles that meet it but are not offered.
    pub(super) would_do: Vec<String>,
    /// The versions of the bundles that were looked at, newest first.
    pub(super) versions: Vec<String>,
}

/// A channel with a bundle that meets a requirement.
struct Matching {
    shelf: Rc<Shelf>,
    channel: usize,
    meets: Rc<Vec<bool>>,
}

impl Matching {
    /// Default channels first, then by package and channel.
    fn rank(&self) -> (bool, &str, &str) {
        let package = &self.shelf.package;
        let channel = package.channels.get(self.channel);
        let channel = channel.map_or("", |channel| &channel.name);
        (channel != package.default_channel(), &package.name, channel)
    }
}

impl Shelf {
    fn new(package: Arc<Package>) -> Self {
        let bundles = package.bundles.iter().enumerate();
        let facts = |position| Rc::new(Facts::of_bundle(&package, position));
        Self {
            facts: (0..package.bundles.len()).map(facts).collect(),
            // The first of a name counts, as everywhere.
            positions: bundles
                .rev()
                .map(|(position, bundle)| (bundle.name.clone(), position))
                .collect(),
            package: Arc::clone(&package),
        }
    }

    fn versions(&self) -> Vec<String> {
        let mut versions: Vec<_> = self
            .facts
            .iter()
            .filter_map(|facts| facts.version())
            .collect();
        versions.sort_by(|one, other| versions::compare(other, one));
        versions.into_iter().map(ToString::to_string).collect()
    }

    /// The positions of the bundles that a channel has.
    fn bundles_of(&self, channel: &Channel) -> impl Iterator<Item = usize> {
        let entries = channel.entries.iter();
        entries.filter_map(|entry| self.positions.get(&entry.name).copied())
    }
}
