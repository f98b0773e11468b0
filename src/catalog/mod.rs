//! File-based catalogs: which packages there are, and what a catalog says of each.
//!
//! A [`Catalog`] knows where each document stands and what it belongs to; nothing is read of a package before it is
//! asked for. What the blobs mean together is decided elsewhere: [`check`] judges them, `resolve` chooses.

mod content;
pub mod package;
mod parse;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::{
    content::Content,
    package::{
        CatalogBundle, Channel, ChannelEntry, Deprecation, Deprecations, Detail, Gvk, OtherBlob,
        Package, PackageDefinition, Property, RelatedImage,
    },
    parse::Head,
};
use crate::{
    limits::Limits,
    manifest::yaml,
    problem::{Place, Problem},
};

/// One catalog.
#[derive(Debug)]
pub struct Catalog {
    /// Its name, which messages use.
    pub name: String,
    /// Of two catalogs that have what is wanted, the one with the higher priority is taken.
    pub priority: i64,
    blobs: BTreeMap<String, Vec<(Head, Place, Value)>>,
}

impl Catalog {
    /// Reads a catalog.
    ///
    /// # Errors
    /// When a file cannot be read, or a document of it is no blob of a catalog; all of them are told.
    pub fn read(
        name: impl Into<String>,
        priority: i64,
        content: &dyn Content,
        limits: &Limits,
    ) -> Result<Self, Vec<Problem>> {
        let mut blobs: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (path, size) in content.files() {
            let problem = |message: String, line| {
                let place = Place {
                    path: path.clone(),
                    line,
                };
                vec![Problem::error(parse::BLOB_RULE, message).at(place)]
            };
            let text = content.read(&path, 0..size);
            let text = text.map_err(|error| problem(error.to_string(), 0))?;
            let documents = yaml::read(&text, limits).map_err(|error| {
                problem(error.message().to_owned(), error.line().unwrap_or_default())
            })?;
            for document in documents {
                let head = parse::head(&document.value);
                let head = head.map_err(|message| problem(message, document.line))?;
                let place = Place {
                    path: path.clone(),
                    line: document.line,
                };
                let owner = head.owner().to_owned();
                blobs
                    .entry(owner)
                    .or_default()
                    .push((head, place, document.value));
            }
        }
        Ok(Self {
            name: name.into(),
            priority,
            blobs,
        })
    }

    /// The names of all packages, sorted. Blobs that belong to none stand under the empty name, which is not given.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        let names = self.blobs.keys().map(String::as_str);
        names.filter(|name| !name.is_empty())
    }

    /// What the catalog says of one package; nothing when no document belongs to it.
    ///
    /// # Errors
    /// When documents of it cannot be read, or a field has the wrong type; all of them are told.
    pub fn package(&self, name: &str, detail: Detail) -> Result<Option<Package>, Vec<Problem>> {
        let Some(blobs) = self.blobs.get(name) else {
            return Ok(None);
        };
        let mut package = Package {
            name: name.to_owned(),
            ..Package::default()
        };
        let mut problems = vec![];
        for (head, place, value) in blobs {
            let added = parse::add(
                &mut package,
                head.clone(),
                value.clone(),
                place.clone(),
                detail,
            );
            problems.extend(added.err().into_iter().flatten());
        }
        if problems.is_empty() {
            Ok(Some(package))
        } else {
            Err(problems)
        }
    }

    /// The packages with a bundle that provides an API, sorted. Every bundle is looked at when it is first asked.
    ///
    /// # Errors
    /// As [`Catalog::package`], for every package.
    pub fn providers(&self, api: &Gvk) -> Result<BTreeSet<String>, Vec<Problem>> {
        let mut providers = BTreeSet::new();
        for name in self.packages() {
            let package = self.package(name, Detail::Choice)?.unwrap_or_default();
            let mut provided = package.bundles.iter().flat_map(CatalogBundle::provided);
            if provided.any(|provided| provided == *api) {
                providers.insert(name.to_owned());
            }
        }
        Ok(providers)
    }
}
