//! Completes the names of packages, from the catalogs that the command line names so far.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    str::FromStr,
};

use clap_complete::{ArgValueCompleter, CompletionCandidate};

use super::super::catalog_args::CatalogSource;
use crate::{
    catalog::Catalog,
    source::{Settings, Sources},
};

/// The names of packages that start as the word does. Where a catalog cannot be read, it has none to offer.
pub(in crate::cli) fn packages() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let Some(word) = word.to_str() else {
            return vec![];
        };
        // Nobody waits for a registry while typing.
        let offline = Sources::new(Settings::offline());
        let opened = sources(std::env::args_os());
        let opened = opened.filter_map(|source| source.open(&offline).ok());
        let catalogs: Vec<Catalog> = opened.collect();
        let names = catalogs.iter().flat_map(Catalog::packages);
        let names: BTreeSet<_> = names.filter(|name| name.starts_with(word)).collect();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// What stands behind each `--catalog`.
fn sources(words: impl Iterator<Item = OsString>) -> impl Iterator<Item = CatalogSource> {
    let mut is_source = false;
    let sources = words.filter_map(move |word| {
        let word = word.into_string().ok()?;
        let was_source = std::mem::replace(&mut is_source, word == "--catalog");
        match word.strip_prefix("--catalog=") {
            Some(source) => Some(source.to_owned()),
            None => was_source.then_some(word),
        }
    });
    sources.filter_map(|source| CatalogSource::from_str(&source).ok())
}
