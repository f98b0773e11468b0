//! Which bundle of which catalog is installed, and what it brings along.
//!
//! Choosing takes catalogs, what is wanted and what there is already, and gives bundles; nothing is fetched.
//! [`resolve`] reads as the whole does: the candidates for each package that is wanted, then what goes together.

mod candidate;
mod channel_order;
mod cluster_extension;
mod dependencies;
pub mod explain;
mod installed;
pub mod lock;
mod offer;
mod refusal;
mod request;
mod subscription;
pub mod universe;
pub mod upgrade_graph;
pub mod upgrade_path;
pub mod verdict;

use self::{
    candidate::Selection,
    cluster_extension::ClusterExtension,
    dependencies::Solution,
    explain::Explanation,
    offer::{Offer, offers},
    refusal::together,
    subscription::Subscription,
    universe::Universe,
};

pub use self::{
    candidate::{Candidate, Chosen},
    installed::installed_bundle,
    refusal::{Reason, Refusal},
    request::{Installed, InstalledBundle, Provided, Request, Rules, UpgradePolicy, Wanted},
};
use crate::{
    catalog::{Catalog, CatalogBundle},
    problem::Problem,
    versions,
};

/// The rule of the warnings about what is deprecated.
const DEPRECATED_RULE: &str = "deprecated";
/// The rule of the notes on what was chosen.
const CHOSEN_RULE: &str = "chosen";

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// The bundles in the order in which they are installed: what others need comes before them. A bundle that is
    /// installed already, and stays, is among them.
    pub chosen: Vec<Chosen>,
    /// What is deprecated of it as warnings, and as notes by which rule each bundle was chosen.
    pub notes: Vec<Problem>,
    /// Where the best bundle of a wanted package was passed over because it cannot be had with all that it needs: which
    /// one is chosen instead of which, and why.
    pub passed_over: Vec<Reason>,
}

/// Chooses the bundles that are wanted and what they need.
///
/// # Errors
/// When a package has no bundle that can be chosen, or the bundles cannot be had together. Everything that is wrong
/// with what is wanted is told at once; what goes together is only looked at when nothing is.
pub fn resolve(catalogs: &[&Catalog], request: &Request) -> Result<Resolution, Refusal> {
    let universe = Universe::new(catalogs);
    let asked = asked(&universe, request);
    let solution = solve(&universe, &asked, request)?;
    Ok(resolution(&universe, &asked, solution))
}

/// What [`resolve`] answers, and what became of each package that is wanted and of every version of it.
pub fn explain(
    catalogs: &[&Catalog],
    request: &Request,
) -> (Vec<Explanation>, Result<Resolution, Refusal>) {
    let universe = Universe::new(catalogs);
    let asked = asked(&universe, request);
    let resolution =
        solve(&universe, &asked, request).map(|solution| resolution(&universe, &asked, solution));
    let chosen = match &resolution {
        Ok(resolution) => resolution.chosen.as_slice(),
        Err(_) => &[],
    };
    let explanations = asked.iter().map(|asked| asked.explain(chosen)).collect();
    (explanations, resolution)
}

fn asked<'r, 'c>(universe: &Universe<'c>, request: &'r Request) -> Vec<Asked<'r, 'c>> {
    let wanted = request.wanted.iter();
    let asked = wanted.map(|wanted| Asked::of(universe, wanted, request));
    asked.collect()
}

fn resolution(universe: &Universe<'_>, asked: &[Asked<'_, '_>], solution: Solution) -> Resolution {
    Resolution {
        notes: notes(universe, asked, &solution.chosen),
        passed_over: solution.passed_over,
        chosen: solution.chosen,
    }
}

/// One wanted package, and what the catalogs have for it.
struct Asked<'r, 'c> {
    wanted: &'r Wanted,
    offers: Vec<Offer<'c>>,
    selection: Selection,
    installed: Option<Installed>,
}

impl<'r, 'c> Asked<'r, 'c> {
    fn of(universe: &Universe<'c>, wanted: &'r Wanted, request: &Request) -> Self {
        let mut asked = Self {
            wanted,
            offers: vec![],
            selection: Selection::default(),
            installed: None,
        };
        if let Err(refusal) = asked.consider(universe, request) {
            asked.selection.refusal = Some(refusal);
        }
        asked
    }

    fn consider(&mut self, universe: &Universe<'c>, request: &Request) -> Result<(), Refusal> {
        self.offers = offers(universe, self.wanted)?;
        self.installed = installed(self.wanted, &self.offers, request)?;
        self.selection = select(&self.offers, self.wanted, self.installed.as_ref())?;
        Ok(())
    }

    /// What became of this package, when these bundles are chosen.
    fn explain(&self, chosen: &[Chosen]) -> Explanation {
        let chosen = self.chosen(chosen);
        explain::explain(
            self.wanted,
            &self.offers,
            &self.selection,
            chosen,
            self.installed.as_ref(),
        )
    }

    /// The chosen bundle of this package.
    fn chosen<'s>(&self, chosen: &'s [Chosen]) -> Option<&'s Chosen> {
        let is_mine = |chosen: &&Chosen| {
            self.selection
                .candidates
                .iter()
                .any(|c| c.is(&chosen.candidate))
        };
        chosen.iter().find(is_mine)
    }
}

fn select(
    offers: &[Offer<'_>],
    wanted: &Wanted,
    installed: Option<&Installed>,
) -> Result<Selection, Refusal> {
    match &wanted.rules {
        Rules::Subscription {
            channel,
            starting_csv,
        } => {
            let subscription = Subscription {
                package: &wanted.package,
                channel: channel.as_deref(),
                starting_csv: starting_csv.as_deref(),
                installed,
            };
            subscription::select(offers, subscription)
        }
        Rules::ClusterExtension {
            channels,
            version,
            upgrades,
        } => {
            let extension = ClusterExtension {
                package: &wanted.package,
                channels,
                version: version.as_ref(),
                upgrades: *upgrades,
                installed,
            };
            Ok(cluster_extension::select(offers, extension))
        }
    }
}

/// The installed bundle of a package, with the version that a catalog knows when the user told none.
fn installed(
    wanted: &Wanted,
    offers: &[Offer<'_>],
    request: &Request,
) -> Result<Option<Installed>, Refusal> {
    let mut all = request.installed.iter();
    let mut next = || all.find(|installed| installed.package == wanted.package);
    let Some(installed) = next() else {
        return Ok(None);
    };
    if let Some(another) = next() {
        let (package, one, another) = (&wanted.package, &installed.name, &another.name);
        return Err(Refusal {
            message: format!("package {package} is installed twice, as {one} and as {another}"),
            hint: Some("say which of them is to be upgraded".to_owned()),
            ..Refusal::default()
        });
    }
    let of_catalog = |offer: &Offer<'_>| {
        let bundle = offer.bundle(&installed.name)?;
        versions::parse_tolerant(offer.version(bundle)).ok()
    };
    let version = installed.version.clone();
    Ok(Some(Installed {
        version: version.or_else(|| offers.iter().find_map(of_catalog)),
        ..installed.clone()
    }))
}

/// What goes together.
fn solve(
    universe: &Universe<'_>,
    asked: &[Asked<'_, '_>],
    request: &Request,
) -> Result<Solution, Refusal> {
    let refusals: Vec<_> = asked
        .iter()
        .filter_map(|asked| asked.selection.refusal.clone())
        .collect();
    if let Some(refusal) = together(refusals) {
        return Err(refusal);
    }
    let roots: Vec<_> = asked
        .iter()
        .map(|asked| asked.selection.candidates.clone())
        .collect();
    dependencies::solve(universe, &roots, request)
}

/// What the user is told of a choice.
fn notes(universe: &Universe<'_>, asked: &[Asked<'_, '_>], chosen: &[Chosen]) -> Vec<Problem> {
    let mut notes = vec![];
    for chosen in chosen {
        let candidate = &chosen.candidate;
        let wanted = asked
            .iter()
            .find(|asked| asked.selection.candidates.iter().any(|of| of.is(candidate)));
        let name = candidate.bundle().map_or("", |bundle| &bundle.name);
        let rules = wanted.map(|asked| &asked.wanted.rules);
        let deprecated = explain::deprecations(candidate, rules).into_iter();
        notes.extend(deprecated.map(|text| Problem::warning(DEPRECATED_RULE, text).on(name)));
        let why = match wanted {
            Some(asked) => explain::rule(
                asked.wanted,
                &asked.selection,
                candidate,
                asked.installed.as_ref(),
            )
            .to_string(),
            None => needed_by(chosen),
        };
        let catalog = universe
            .catalogs
            .get(candidate.catalog)
            .map_or("", |catalog| &catalog.name);
        let version = candidate
            .bundle()
            .and_then(CatalogBundle::version)
            .unwrap_or_default();
        let text = format!("version {version} of catalog {catalog}: {why}");
        notes.push(Problem::note(CHOSEN_RULE, text).on(name));
    }
    notes.sort();
    notes
}

fn needed_by(chosen: &Chosen) -> String {
    let needs = chosen
        .required_by
        .iter()
        .map(|(bundle, what)| format!("{bundle} requires {what}"));
    needs.collect::<Vec<_>>().join(", ")
}
