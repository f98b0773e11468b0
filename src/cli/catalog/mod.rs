//! `kubectl olm catalog`: what there is in catalogs, for people and for scripts.
//!
//! Catalogs are large, so they are gone through package by package, on all cores; only rows are kept.

mod check;
mod completion;
mod graph;
mod list;
mod listing;
mod search;
mod show;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use rayon::prelude::*;

use super::{
    failure::{Class, Failure},
    threads,
};
use crate::{catalog::Catalog, problem::Problem};

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

/// As many names are offered for one that was mistyped.
const OFFERED_NAMES: usize = 3;
/// How near a name must be to be offered, from 0 to 1.
const NEAR: f64 = 0.8;
/// Longer names are not compared; a package's has 63 characters at most.
const COMPARED_BYTES: usize = 253;

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
    let made: Vec<_> = threads::pool()?.install(|| packages.par_iter().map(make).collect());
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
    let near = near(name, catalogs.iter().flat_map(Catalog::packages));
    match near.split_last() {
        None => failure.with_hint("`kubectl olm catalog list` shows all packages"),
        Some((only, [])) => failure.with_hint(format!("did you mean {only}?")),
        Some((last, others)) => {
            failure.with_hint(format!("did you mean {} or {last}?", others.join(", ")))
        }
    }
}

/// The names that come nearest to one that was mistyped, the nearest first.
fn near<'n>(mistyped: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let is_short = |name: &&str| name.len().max(mistyped.len()) <= COMPARED_BYTES;
    let names: BTreeSet<_> = names.filter(is_short).collect();
    let names = names.into_iter();
    let mut near: Vec<_> = names
        .map(|name| (strsim::jaro_winkler(mistyped, name), name))
        .filter(|(nearness, _)| *nearness >= NEAR)
        .collect();
    near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    near.truncate(OFFERED_NAMES);
    near.into_iter().map(|(_, name)| name).collect()
}
