//! File-based catalogs: which packages there are, and what a catalog says of each.
//!
//! A [`Catalog`] knows where each document stands and what it belongs to; nothing is read of a package before it is
//! asked for. What the blobs mean together is decided elsewhere: `check` judges them, `resolve` chooses.

pub mod about;
mod brief;
pub mod channel;
pub mod check;
mod content;
pub mod embedded;
mod entry;
pub mod facts;
pub mod graph;
mod index;
mod index_ignore;
pub mod list;

pub mod package;
mod parse;
mod scan;
pub mod search;
pub mod show;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::OnceLock,
};

use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use self::{
    content::Content,
    entry::Entry,
    index::Index,
    package::{
        CatalogBundle, Channel, ChannelEntry, Deprecation, Deprecations, Detail, Gvk, OtherBlob,
        Package, PackageDefinition, Property, RelatedImage,
    },
    parse::Head,
};
use crate::{
    files,
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
    /// The digest of the image that it is from, where it is from one.
    pub image: Option<String>,
    content: Box<dyn Content>,
    index: Index,
    limits: Limits,
    providers: OnceLock<Result<Providers, Vec<Problem>>>,
}

/// The packages with a bundle that provides an API, by API.
type Providers = BTreeMap<Gvk, BTreeSet<String>>;

impl Catalog {
    /// Reads a catalog: lists its documents, but builds none.
    ///
    /// # Errors
    /// When a file cannot be read, a limit is reached, or documents are no blobs of a catalog; all of them are told.
    pub fn read(
        name: impl Into<String>,
        priority: i64,
        content: Box<dyn Content>,
        limits: &Limits,
    ) -> Result<Self, Vec<Problem>> {
        let index = Index::build(&*content, limits)?;
        Ok(Self::indexed(name, priority, content, index, limits))
    }

    /// A catalog whose documents are listed already.
    pub fn indexed(
        name: impl Into<String>,
        priority: i64,
        content: Box<dyn Content>,
        index: Index,
        limits: &Limits,
    ) -> Self {
        Self {
            name: name.into(),
            priority,
            image: None,
            content,
            index,
            limits: *limits,
            providers: OnceLock::new(),
        }
    }

    /// Where each document stands.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The names of all packages, sorted. Blobs that belong to none stand under the empty name, which is not given.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.index.packages().filter(|name| !name.is_empty())
    }

    /// What the catalog says of one package; nothing when no document belongs to it.
    ///
    /// # Errors
    /// When documents of it cannot be read, or a field has the wrong type; all of them are told.
    pub fn package(&self, name: &str, detail: Detail) -> Result<Option<Package>, Vec<Problem>> {
        let mut entries = self.index.entries(name);
        if entries.is_empty() {
            return Ok(None);
        }
        if detail == Detail::Outline {
            entries.retain(|entry| entry.head.schema != package::BUNDLE_SCHEMA);
        }
        let mut package = Package::default();
        name.clone_into(&mut package.name);
        self.add(&mut package, &entries, detail)?;
        Ok(Some(package))
    }

    /// One bundle of a package, with everything that the catalog says of it; the first, should there be several.
    ///
    /// # Errors
    /// As [`Catalog::package`], for this bundle.
    pub fn bundle(&self, package: &str, name: &str) -> Result<Option<CatalogBundle>, Vec<Problem>> {
        let is_bundle =
            |entry: &&Entry| entry.head.schema == package::BUNDLE_SCHEMA && entry.head.name == name;
        let mut found = Package::default();
        if let Some(entry) = self.index.entries(package).iter().find(is_bundle) {
            self.add(&mut found, std::slice::from_ref(entry), Detail::Full)?;
        }
        Ok(found.bundles.pop())
    }

    /// The SHA-256 digest of the files that count, their paths among it, as `sha256:…`. All of them are read.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self) -> Result<String, Vec<Problem>> {
        let digests = self.index.files.par_iter().map(|path| {
            let mut digest = Sha256::new();
            let mut reader = self.content.open(path, 0..u64::MAX)?;
            let mut piece = vec![0; 1 << 16];
            loop {
                match reader.read(&mut piece)? {
                    0 => return Ok((path, digest.finalize())),
                    count => digest.update(piece.get(..count).unwrap_or_default()),
                }
            }
        });
        let digests = digests.collect::<io::Result<Vec<_>>>();
        let digests =
            digests.map_err(|error| vec![Problem::error(parse::BLOB_RULE, error.to_string())])?;
        Ok(files::digest_of(
            digests
                .iter()
                .map(|(path, digest)| (path.as_str(), digest.as_slice())),
        ))
    }

    /// Whether a package has a bundle of this name. Nothing is read.
    #[must_use]
    pub fn has_bundle(&self, package: &str, name: &str) -> bool {
        let entries = self.index.entries(package);
        let mut bundles = entries
            .iter()
            .map(|entry| &entry.head)
            .filter(|head| head.schema == package::BUNDLE_SCHEMA);
        bundles.any(|head| head.name == name)
    }

    /// The packages with a bundle that provides an API, sorted. Every bundle is looked at when it is first asked.
    ///
    /// # Errors
    /// As [`Catalog::package`], for every package.
    pub fn providers(&self, api: &Gvk) -> Result<BTreeSet<String>, Vec<Problem>> {
        let providers = self.providers.get_or_init(|| self.all_providers());
        match providers {
            Ok(providers) => Ok(providers.get(api).cloned().unwrap_or_default()),
            Err(problems) => Err(problems.clone()),
        }
    }

    fn all_providers(&self) -> Result<Providers, Vec<Problem>> {
        let names: Vec<_> = self.packages().collect();
        let provided = names.par_iter().map(|name| {
            let package = self.package(name, Detail::Choice)?.unwrap_or_default();
            let provided = package.bundles.iter().flat_map(CatalogBundle::provided);
            Ok((package.name.clone(), provided.collect::<BTreeSet<_>>()))
        });
        let mut providers = Providers::new();
        for provided in provided.collect::<Vec<Result<_, Vec<Problem>>>>() {
            let (name, apis) = provided?;
            for api in apis {
                providers.entry(api).or_default().insert(name.clone());
            }
        }
        Ok(providers)
    }

    /// Builds documents. One that turns out to belong elsewhere is left out.
    fn add(
        &self,
        package: &mut Package,
        entries: &[Entry],
        detail: Detail,
    ) -> Result<(), Vec<Problem>> {
        let mut problems = vec![];
        for run in entries.chunk_by(|one, next| one.is_near(next)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let path = self.index.files.get(first.file).map_or("", String::as_str);
            let place = |line| Place {
                path: path.to_owned(),
                line,
            };
            let text = match self.content.read(path, first.start..last.end) {
                Ok(text) => text,
                Err(error) => {
                    problems.push(Problem::error(parse::BLOB_RULE, error.to_string()).at(place(0)));
                    continue;
                }
            };
            for entry in run {
                let text = entry.part_of(&text, first.start);
                let added = match document(text, entry, detail, &self.limits) {
                    Ok(Some((value, line))) => {
                        parse::add(package, entry.head.clone(), value, place(line), detail)
                    }
                    Ok(None) => Ok(()),
                    Err(problem) => {
                        let line = problem.place.line;
                        Err(vec![problem.at(place(line))])
                    }
                };
                problems.extend(added.err().into_iter().flatten());
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// Builds a document, with the line that it begins on; nothing when it is not what the quick way took it for.
fn document(
    text: &[u8],
    entry: &Entry,
    detail: Detail,
    limits: &Limits,
) -> Result<Option<(Value, usize)>, Problem> {
    let is_brief = detail == Detail::Choice && entry.head.schema == package::BUNDLE_SCHEMA;
    let is_entry = |value: &Value| parse::head(value).is_ok_and(|head| head == entry.head);
    if is_brief
        && text.starts_with(b"{")
        && let Some(value) = brief::read(text, limits).filter(is_entry)
    {
        return Ok(Some((value, entry.line)));
    }
    let documents = yaml::read(text, limits).map_err(|error| {
        let line = entry.line + error.line().unwrap_or(1) - 1;
        let path = String::new();
        Problem::error(parse::BLOB_RULE, error.message()).at(Place { path, line })
    })?;
    let document = documents.into_iter().nth(entry.ordinal);
    let document = document.filter(|document| is_entry(&document.value));
    Ok(document.map(|document| (document.value, entry.line + document.line - 1)))
}
