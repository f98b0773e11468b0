//! `kubectl olm catalog`: what there is in catalogs, for people and for scripts.
//!
//! Catalogs are large, so they are gone through package by package, on all cores; only rows are kept.

mod check;
pub(super) mod completion;
mod graph;
mod list;
pub(super) mod listing;
mod search;
mod show;

use std::{cmp::Reverse, collections::BTreeSet};

use clap::{Args, Subcommand};
use rayon::prelude::*;

use super::failure::{Class, Failure};
use crate::{
    catalog::{Catalog, Detail, Package},
    near,
    problem::Problem,
};

/// List, search, show, draw and check what catalogs have
///
/// Reads file-based catalogs, as the Operator Lifecycle Manager does from catalog images. No cluster is contacted.
#[derive(Debug, Args)]
pub(super) struct CatalogCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::ListArgs),
    Search(search::SearchArgs),
    Show(show::ShowArgs),
    Graph(graph::GraphArgs),
    Check(check::CheckArgs),
}

/// Runs the command.
///
/// # Errors
/// When a catalog cannot be read, has not what is asked for, or is refused.
pub(super) fn run(command: &CatalogCommand) -> Result<(), Failure> {
    match &command.verb {
        Verb::List(args) => list::run(args),
        Verb::Search(args) => search::run(args),
        Verb::Show(args) => show::run(args),
        Verb::Graph(args) => graph::run(args),
        Verb::Check(args) => check::run(args),
    }
}

/// The rows that were made of a package, or why it cannot be read.
type Made<T> = Result<Vec<T>, Vec<Problem>>;

/// Rows about packages, and why others could not be read.
struct Rows<T> {
    rows: Vec<T>,
    problems: Vec<Problem>,
}

/// Makes rows of every package in every catalog, or of some packages: in the order of the catalogs, then of the names.
/// A package that cannot be read does not keep the others from being shown.
///
/// # Errors
/// When no catalog has one of the packages asked for.
fn each_package<T: Send>(
    catalogs: &[Catalog],
    asked: &[String],
    make: impl Fn(&Catalog, &str) -> Made<T> + Sync,
) -> Result<Rows<T>, Failure> {
    let asked: BTreeSet<_> = asked.iter().map(String::as_str).collect();
    let mut missing = asked.clone();
    let mut packages = vec![];
    for catalog in catalogs {
        let names = catalog.packages();
        for name in names.filter(|name| asked.is_empty() || asked.contains(name)) {
            missing.remove(name);
            packages.push((catalog, name));
        }
    }
    if let Some(name) = missing.first() {
        return Err(no_package(catalogs, name));
    }
    let make = |(catalog, name): &(&Catalog, &str)| make(catalog, name);
    let made: Vec<_> = packages.par_iter().map(make).collect();
    let (mut rows, mut problems) = (vec![], vec![]);
    for made in made {
        match made {
            Ok(made) => rows.extend(made),
            Err(found) => problems.extend(found),
        }
    }
    Ok(Rows { rows, problems })
}

impl<T> Rows<T> {
    /// The failure to end with, after what could be read is printed.
    fn conclude(self) -> Result<(), Failure> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let message = "packages with errors are left out";
        Err(Failure::refused(self.problems, message)
            .with_hint("`kubectl olm catalog check` shows all that is wrong with a catalog"))
    }
}

/// A package that no catalog has, with the names that come near.
fn no_package(catalogs: &[Catalog], name: &str) -> Failure {
    let asked: Vec<_> = catalogs.iter().map(|it| it.name.as_str()).collect();
    let message = format!("there is no package {name:?} in {}", asked.join(", "));
    let failure = Failure::new(Class::Refused, message);
    let near = near::names(name, catalogs.iter().flat_map(Catalog::packages));
    let hint = near::hint(&near);
    failure.with_hint(hint.unwrap_or("`kubectl olm catalog list` shows all packages".to_owned()))
}

/// The package of the preferred catalog that has it.
///
/// # Errors
/// When none has it, or it cannot be read.
pub(super) fn preferred(catalogs: &[Catalog], name: &str) -> Result<Package, Failure> {
    let mut in_order: Vec<_> = catalogs.iter().collect();
    in_order.sort_by_key(|catalog| Reverse(catalog.priority));
    for catalog in in_order {
        let package = catalog.package(name, Detail::Choice).map_err(|problems| {
            Failure::refused(problems, format!("package {name} cannot be read"))
        })?;
        if let Some(package) = package {
            return Ok(package);
        }
    }
    Err(no_package(catalogs, name))
}

/// A channel that a package does not have, with the names that come near.
pub(super) fn no_channel(package: &Package, name: &str) -> Failure {
    let message = format!("package {} has no channel {name:?}", package.name);
    let failure = Failure::new(Class::Refused, message);
    let names = package.channels.iter().map(|channel| channel.name.as_str());
    let hint = near::hint(&near::names(name, names));
    failure.with_hint(
        hint.unwrap_or("`kubectl olm catalog show` lists the channels of a package".to_owned()),
    )
}
