//! Which bundles are installed: what the catalogs offer for what is wanted.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::failure::{Class, Failure},
    Chosen, Content, Outcome,
    catalogs::Catalogs,
};
use crate::{
    catalog::{Catalog, CatalogBundle, Detail, check},
    install::{self, Install, PackageWish},
    problem::{Problem, Severity},
    resolve::{
        self, Candidate, InstalledBundle, Reason, Refusal, Request, Resolution, Rules, Wanted,
        lock::{Asked, LockedInstall},
    },
};

/// What a package is wanted for, and the position of its install.
type Wish<'w> = (usize, &'w PackageWish);

/// The bundles that the catalogs offer for what is wanted, those that others need before them. An install that cannot be
/// had fails, and the others go on.
pub(super) fn choose(
    installs: &[Install],
    catalogs: &mut Catalogs,
    outcome: &mut Outcome,
) -> Vec<Chosen> {
    let mut chosen = vec![];
    for mut group in groups(installs, outcome) {
        group.retain(|(root, wish)| match unavailable(wish, catalogs) {
            Some((id, class)) => {
                let failure = catalogs.failure(&id, class, installs.get(*root));
                outcome.fail(*root, failure);
                false
            }
            None => true,
        });
        chosen.extend(solve(&group, installs, catalogs, outcome));
    }
    chosen
}

/// What is wanted, by what is solved together.
fn groups<'w>(installs: &'w [Install], outcome: &Outcome) -> Vec<Vec<Wish<'w>>> {
    let mut groups: Vec<Vec<Wish<'w>>> = vec![];
    for (root, install) in installs.iter().enumerate() {
        let install::Content::Package(wish) = &install.content else {
            continue;
        };
        if outcome.has_failed(root) {
            continue;
        }
        let is_with = |group: &&mut Vec<Wish<'w>>| {
            group.first().is_some_and(|(_, other)| {
                wish.together.is_some()
                    && other.together == wish.together
                    && other.without_dependencies == wish.without_dependencies
            })
        };
        match groups.iter_mut().find(is_with) {
            Some(group) => group.push((root, wish)),
            None => groups.push(vec![(root, wish)]),
        }
    }
    groups
}

/// A catalog that has to be asked and cannot be: the one that is named, or where none is, any, as what another catalog
/// has is never taken in place of what could not be read.
fn unavailable(wish: &PackageWish, catalogs: &Catalogs) -> Option<(String, Class)> {
    let needed = match &wish.catalog {
        Some(named) => std::slice::from_ref(named),
        None => wish.scope.as_slice(),
    };
    needed
        .iter()
        .find_map(|id| Some((id.clone(), catalogs.class_of_failure(id)?)))
}

/// Solves a group; when it has no solution, what has none by itself fails, and the rest is solved without it.
fn solve(
    group: &[Wish<'_>],
    installs: &[Install],
    catalogs: &Catalogs,
    outcome: &mut Outcome,
) -> Vec<Chosen> {
    let mut group = group.to_vec();
    loop {
        let (there, missing) = scope(&group, catalogs);
        let refusal = match attempt(&group, &there) {
            Ok(solved) => return accept(&group, solved, (&there, &missing), outcome),
            Err(refusal) => refusal,
        };
        let alone = |wish: &Wish<'_>| attempt(&[*wish], &there).err();
        let refused: Vec<_> = match group.as_slice() {
            [] => return vec![],
            [_] => vec![Some(refusal)],
            several => {
                let alone: Vec<_> = several.iter().map(alone).collect();
                if alone.iter().all(Option::is_none) {
                    fail_together(several, refusal, installs, outcome);
                    return vec![];
                }
                alone
            }
        };
        let mut rest = vec![];
        for (wish, refusal) in group.into_iter().zip(refused) {
            match refusal {
                Some(refusal) => outcome.fail(wish.0, not_asked(refusal.into(), &missing)),
                None => rest.push(wish),
            }
        }
        group = rest;
    }
}

/// The catalogs that count for a group, and those of them that cannot be read.
fn scope<'c>(group: &[Wish<'_>], catalogs: &'c Catalogs) -> (Vec<&'c Catalog>, Vec<String>) {
    let (mut there, mut missing): (Vec<&Catalog>, Vec<String>) = (vec![], vec![]);
    for id in group.iter().flat_map(|(_, wish)| &wish.scope) {
        match catalogs.get(id) {
            Some(catalog) if there.iter().all(|other| other.name != *id) => there.push(catalog),
            None if !missing.contains(id) => missing.push(id.clone()),
            _ => {}
        }
    }
    (there, missing)
}

fn attempt(group: &[Wish<'_>], catalogs: &[&Catalog]) -> Result<(Request, Resolution), Refusal> {
    let wishes: Vec<_> = group.iter().map(|(_, wish)| *wish).collect();
    let request = request(&wishes, catalogs)?;
    let resolution = resolve::resolve(catalogs, &request)?;
    Ok((request, resolution))
}

/// What is asked of the catalogs.
///
/// # Errors
/// When it is not known of something that is installed what it is.
pub(in crate::cli) fn request(
    wishes: &[&PackageWish],
    catalogs: &[&Catalog],
) -> Result<Request, Refusal> {
    let mut request = Request::default();
    let mut names = BTreeSet::new();
    for wish in wishes {
        request.wanted.push(Wanted {
            package: wish.package.clone(),
            catalog: wish.catalog.clone(),
            rules: wish.rules.clone(),
        });
        request.without_dependencies |= wish.without_dependencies;
        request.provided.extend(wish.provided.iter().cloned());
        for there in wish.beside.iter() {
            if names.insert(&there.name) {
                request.installed.push(there.clone());
            }
        }
        for InstalledBundle { name, version } in &wish.installed {
            if names.insert(name) {
                let there =
                    resolve::installed_bundle(catalogs, &wish.package, name, version.as_ref())?;
                request.installed.push(there);
            }
        }
    }
    Ok(request)
}

fn fail_together(
    group: &[Wish<'_>],
    refusal: Refusal,
    installs: &[Install],
    outcome: &mut Outcome,
) {
    let names = group
        .iter()
        .filter_map(|(root, _)| Some(installs.get(*root)?.id.as_str()));
    let names: Vec<_> = names.collect();
    let message = format!("{} cannot be installed together", names.join(" and "));
    let mut roots = group.iter().map(|(root, _)| *root);
    if let Some(first) = roots.next() {
        outcome.fail(first, refusal.into());
    }
    for root in roots {
        outcome.fail(root, Failure::new(Class::Refused, message.clone()));
    }
}

/// The same failure, with the catalogs that might have helped.
fn not_asked(failure: Failure, missing: &[String]) -> Failure {
    if missing.is_empty() {
        return failure;
    }
    failure.with_detail(format!(
        "not asked, as they stopped: {}",
        missing.join(", ")
    ))
}

/// What was chosen for a group.
struct Solved<'s> {
    group: &'s [Wish<'s>],
    request: Request,
    chosen: &'s [resolve::Chosen],
    /// The catalogs that were asked.
    catalogs: &'s [&'s Catalog],
    /// Those that should have been.
    missing: &'s [String],
}

/// Takes what was chosen for a group, unless a catalog that was not asked might have come first.
fn accept(
    group: &[Wish<'_>],
    (request, resolution): (Request, Resolution),
    (catalogs, missing): (&[&Catalog], &[String]),
    outcome: &mut Outcome,
) -> Vec<Chosen> {
    let owners = owners(group, &resolution.chosen);
    let first = group.first().map(|(root, _)| *root);
    for note in resolution.notes {
        let root = owners.get(&note.object).and_then(BTreeSet::first).copied();
        outcome.tell(root.or(first), [note]);
    }
    let passed_over = resolution.passed_over.iter().map(Reason::to_string);
    let passed_over = passed_over.map(|sentence| Problem::warning("passed-over", sentence));
    outcome.tell(first, passed_over);
    let solved = Solved {
        group,
        request,
        chosen: &resolution.chosen,
        catalogs,
        missing,
    };
    let bundles = resolution.chosen.iter();
    bundles
        .filter_map(|chosen| solved.bundle(chosen, &owners, outcome))
        .collect()
}

impl Solved<'_> {
    /// One bundle that was chosen; nothing when it is there already and nobody asked for it.
    fn bundle(
        &self,
        chosen: &resolve::Chosen,
        owners: &BTreeMap<String, BTreeSet<usize>>,
        outcome: &mut Outcome,
    ) -> Option<Chosen> {
        let candidate = &chosen.candidate;
        let locked = locked_install(candidate, &chosen.required_by, self.catalogs);
        let mut wishes = self.group.iter();
        let asked = wishes.find(|(_, wish)| wish.package == locked.package);
        let installed = &self.request.installed;
        if asked.is_none() && installed.iter().any(|there| there.name == locked.bundle) {
            return None;
        }
        let roots = owners.get(&locked.bundle).cloned().unwrap_or_default();
        if let Some(missing) = self.missing.first()
            && asked.is_none()
            && is_from_elsewhere(candidate, &chosen.required_by, self.chosen)
        {
            let message = format!(
                "it needs {}, which the catalog {missing}, that stopped, may have",
                locked.package
            );
            outcome.fail_all(&roots, Failure::new(Class::Refused, message));
        }
        let rules = self.group.first().map(|(_, wish)| &wish.rules);
        match judge(candidate, self.catalogs, rules) {
            Ok(found) => outcome.tell(roots.iter().copied(), found),
            Err(problems) => {
                let message = format!("package {} cannot be read", locked.package);
                outcome.fail_all(&roots, Failure::refused(problems, message));
            }
        }
        let mut before = installed
            .iter()
            .filter(|there| there.package == locked.package);
        let before = before.next().map(|there| there.name.clone());
        Some(Chosen {
            locked: LockedInstall {
                asked: asked.map(|(_, wish)| asked_by(wish)),
                replaces: before.filter(|name| *name != locked.bundle),
                ..locked
            },
            asked: asked.map(|(root, _)| *root),
            roots,
            content: Content::Catalog,
        })
    }
}

/// Whether a bundle that others need is from another catalog than all of them.
fn is_from_elsewhere(
    candidate: &Candidate,
    required_by: &BTreeSet<(String, String)>,
    chosen: &[resolve::Chosen],
) -> bool {
    let needs = |other: &&resolve::Chosen| {
        let name = other.candidate.bundle().map(|bundle| bundle.name.as_str());
        required_by.iter().any(|(by, _)| Some(by.as_str()) == name)
    };
    let mut needing = chosen.iter().filter(needs);
    needing.all(|other| other.candidate.catalog != candidate.catalog)
}

/// The installs that each bundle is installed for.
fn owners(group: &[Wish<'_>], chosen: &[resolve::Chosen]) -> BTreeMap<String, BTreeSet<usize>> {
    let name = |candidate: &Candidate| candidate.bundle().map(|bundle| bundle.name.clone());
    let mut owners: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for chosen in chosen {
        let package = &chosen.candidate.package.name;
        let asked = group.iter().filter(|(_, wish)| wish.package == *package);
        let roots: BTreeSet<_> = asked.map(|(root, _)| *root).collect();
        owners.extend(name(&chosen.candidate).map(|name| (name, roots)));
    }
    // What an install needs may be chosen before or after it, and needs more.
    let mut grows = true;
    while grows {
        grows = false;
        for chosen in chosen {
            let Some(name) = name(&chosen.candidate) else {
                continue;
            };
            let needing = chosen.required_by.iter();
            let needing = needing.filter_map(|(by, _)| owners.get(by));
            let needing: BTreeSet<_> = needing.flatten().copied().collect();
            let known = owners.entry(name).or_default();
            let before = known.len();
            known.extend(needing);
            grows |= known.len() > before;
        }
    }
    owners
}

/// Looks for what opm would refuse a chosen package for: OLM v0 never gets to see such a catalog, OLM v1 goes on.
///
/// # Errors
/// When the package cannot be read.
pub(in crate::cli) fn judge(
    candidate: &Candidate,
    catalogs: &[&Catalog],
    rules: Option<&Rules>,
) -> Result<Vec<Problem>, Vec<Problem>> {
    let Some(catalog) = catalogs.get(candidate.catalog) else {
        return Ok(vec![]);
    };
    let package = catalog.package(&candidate.package.name, Detail::Full)?;
    let mut found = package.as_ref().map(check::check).unwrap_or_default();
    found.retain(Problem::is_error);
    if matches!(rules, Some(Rules::ClusterExtension { .. })) {
        for problem in &mut found {
            problem.severity = Severity::Warning;
        }
    }
    Ok(found)
}

/// What is asked for, for a lock.
pub(super) fn asked_by(wish: &PackageWish) -> Asked {
    let (channels, version, starting_csv, self_certified) = match &wish.rules {
        Rules::Subscription {
            channel,
            starting_csv,
        } => (
            channel.iter().cloned().collect(),
            None,
            starting_csv.clone(),
            false,
        ),
        Rules::ClusterExtension {
            channels,
            version,
            upgrades,
        } => (
            channels.clone(),
            version.as_ref().map(ToString::to_string),
            None,
            *upgrades == resolve::UpgradePolicy::SelfCertified,
        ),
    };
    let beside = wish.beside.iter().map(|installed| installed.name.clone());
    let installed = wish.installed.iter().map(ToString::to_string);
    Asked {
        catalog: wish.catalog.clone(),
        channels,
        version,
        starting_csv,
        self_certified,
        installed: installed.chain(beside).collect(),
        provided: wish.provided.iter().map(ToString::to_string).collect(),
        without_dependencies: wish.without_dependencies,
    }
}

fn locked_install(
    candidate: &Candidate,
    required_by: &BTreeSet<(String, String)>,
    catalogs: &[&Catalog],
) -> LockedInstall {
    let default = CatalogBundle::default();
    let bundle = candidate.bundle().unwrap_or(&default);
    let catalog = catalogs.get(candidate.catalog);
    let required_by: BTreeSet<_> = required_by
        .iter()
        .map(|(bundle, _)| bundle.clone())
        .collect();
    LockedInstall {
        package: candidate.package.name.clone(),
        bundle: bundle.name.clone(),
        version: bundle.version().unwrap_or_default().to_owned(),
        catalog: catalog.map_or_else(String::new, |catalog| catalog.name.clone()),
        channel: candidate.channel.clone(),
        image: bundle.image.clone(),
        required_by: required_by.into_iter().collect(),
        ..LockedInstall::default()
    }
}
