//! The catalogs that a choice is made from, each package read once and only when it is asked for.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    catalog::{Catalog, Detail, Gvk, Package},
    problem::Problem,
};

/// What is known of a package once it was asked for: nothing when the catalog does not have it.
type Known = Option<Arc<Package>>;

/// The catalogs, and what was read of them.
#[derive(Debug)]
pub struct Universe<'c> {
    /// The catalogs, as the user named them.
    pub catalogs: &'c [&'c Catalog],
    packages: RefCell<BTreeMap<Place, Known>>,
}

/// The position of a catalog, and the name of a package.
pub type Place = (usize, String);

impl<'c> Universe<'c> {
    /// The universe of these catalogs.
    #[must_use]
    pub fn new(catalogs: &'c [&'c Catalog]) -> Self {
        let packages = RefCell::default();
        Self { catalogs, packages }
    }

    /// A package of the catalog at a position.
    ///
    /// # Errors
    /// As [`Catalog::package`].
    pub fn package(
        &self,
        catalog: usize,
        name: &str,
    ) -> Result<Option<Arc<Package>>, Vec<Problem>> {
        let key = (catalog, name.to_owned());
        if let Some(known) = self.packages.borrow().get(&key) {
            return Ok(known.clone());
        }
        let package = match self.catalogs.get(catalog) {
            Some(catalog) => catalog.package(name, Detail::Choice)?.map(Arc::new),
            None => None,
        };
        self.packages.borrow_mut().insert(key, package.clone());
        Ok(package)
    }

    /// The packages with a bundle that provides an API.
    ///
    /// # Errors
    /// As [`Catalog::providers`].
    pub fn providers(&self, api: &Gvk) -> Result<BTreeSet<Place>, Vec<Problem>> {
        let mut providers = BTreeSet::new();
        for (position, catalog) in self.catalogs.iter().enumerate() {
            let names = catalog.providers(api)?.into_iter();
            providers.extend(names.map(|name| (position, name)));
        }
        Ok(providers)
    }
}
