//! The plan for each install of a run, all made before anything is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    super::{
        failure::{Class, Failure},
        output::{self, About, Output},
    },
    failures::{api_failure, stored_failure},
    rendering::Holding,
    session::Generations,
};
use crate::{
    cluster::{
        answer::RefusalKind,
        apply,
        connection::Connection,
        desired::{DesiredSet, Purpose},
        inventory::{Content, InstallName, State},
        live::{self, Asking},
        lock::{Lock, LockError},
        plan::{Ours, Plan},
        stored::{self, Stored, StoredError},
        survey::{self, Survey},
    },
    manifest::Manifest,
    problem::Problem,
    pull_secrets,
};

/// What is planned for one install.
pub(in crate::cli) struct Planned {
    /// What it is called.
    pub install: InstallName,
    /// What it is of.
    pub about: apply::About,
    /// Its inventory as it is.
    pub stored: Option<Stored>,
    /// What is to be done.
    pub plan: Plan,
    /// Its Lease, where it is to be changed and its namespace is there.
    pub lock: Option<Lock>,
    /// Whether its namespace is there.
    pub namespace: Namespace,
    /// The installs that messages call so need it, or are it.
    pub owners: BTreeSet<String>,
    /// Whether another run has changed it since what is wanted was rendered.
    pub is_stale: bool,
}

impl Planned {
    /// That an earlier run did not finish; nothing when it did.
    pub(in crate::cli) fn unfinished(&self) -> Option<String> {
        let inventory = &self.stored.as_ref()?.inventory;
        let State::Running { what, who } = &inventory.state else {
            return None;
        };
        Some(format!(
            "the {what} of {} by {who} (run {}) did not finish",
            self.install, inventory.generation
        ))
    }
}

/// Whether the namespace of an install is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Namespace {
    There,
    Missing,
}

/// How plans are made.
pub(in crate::cli) struct Planning<'p> {
    pub connection: &'p Arc<Connection>,
    /// How long another run is waited for.
    pub patience: Duration,
    /// The name that the user gives.
    pub name: Option<&'p str>,
    /// What is added to names: the scope of what is applied.
    pub suffix: &'static str,
    pub survey: &'p Survey,
    /// The runs that installs had had when what is wanted was rendered, where that is known.
    pub generations: Option<&'p Generations>,
    /// Whether it is for changes, for which each install is held.
    pub holding: Holding,
}

/// An object, and what the installs are called that need it.
type OwnedManifest = (BTreeSet<String>, Manifest);

/// Plans for all installs that were rendered.
///
/// # Errors
/// When the cluster does not tell what has to be known, or another run is changing an install. What a plan is refused for
/// is in the plan.
pub(in crate::cli) fn plan_all(
    output: Output,
    planning: &Planning<'_>,
) -> Result<Vec<Planned>, Failure> {
    let mut all = with_shared(output);
    all.retain(|(about, _)| !about.name.is_empty());
    let asked = all.into_iter();
    let asked = asked.map(|(about, objects)| asked_for(about, objects, planning));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let contents: Vec<_> = asked.iter().map(|one| content(one, &asked)).collect();
    let mut places = hold_all(&asked, planning)?;
    let mut planned = vec![];
    for (asked, content) in asked.into_iter().zip(contents) {
        let Some(place) = places.remove(&asked.install) else {
            let message = format!("two installs would be called {}", asked.install);
            let hint = "--name is for one install; give their objects different names";
            return Err(Failure::new(Class::Usage, message).with_hint(hint));
        };
        planned.push(plan_one(asked, content, place, planning)?);
    }
    Ok(planned)
}

/// What is asked for of one install.
struct Asked {
    install: InstallName,
    about: About,
    owners: BTreeSet<String>,
    desired: DesiredSet,
}

/// What is asked for of an install, which the cluster has no say in.
fn asked_for(
    about: About,
    objects: Vec<OwnedManifest>,
    planning: &Planning<'_>,
) -> Result<Asked, Failure> {
    let install = name(&about, planning)?;
    let owners = objects.iter().flat_map(|(owners, _)| owners.clone());
    let owners = owners.collect();
    let manifests = objects.into_iter().map(|(_, manifest)| manifest).collect();
    let desired = DesiredSet::of(manifests, &install, &purpose).map_err(|problems| {
        let message = format!("{install} was not applied");
        Failure::refused(problems, message)
    })?;
    Ok(Asked {
        install,
        about,
        owners,
        desired,
    })
}

/// What an install is called in the cluster.
fn name(about: &About, planning: &Planning<'_>) -> Result<InstallName, Failure> {
    // What is needed keeps its package's name.
    let given = planning.name.filter(|_| about.id.is_some());
    let name = given.unwrap_or(&about.name);
    InstallName::new(&about.namespace, &format!("{name}{}", planning.suffix)).map_err(|reason| {
        Failure::new(Class::Usage, reason).with_hint("give the install another name by --name")
    })
}

/// Where an install is made, and what holds it.
struct Place {
    namespace: Namespace,
    lock: Option<Lock>,
    /// The rights that are missing for that.
    lacking: Vec<Problem>,
}

/// Holds installs, where they are to be held and their namespaces are there: always in the same order, so that two runs
/// never wait for each other.
fn hold_all(
    asked: &[Asked],
    planning: &Planning<'_>,
) -> Result<BTreeMap<InstallName, Place>, Failure> {
    let connection = planning.connection;
    let mut places = BTreeMap::new();
    let names: BTreeSet<_> = asked.iter().map(|asked| &asked.install).collect();
    for install in names {
        let namespace = namespace(connection, &install.namespace)?;
        let (mut lock, mut lacking) = (None, vec![]);
        if namespace == Namespace::There && planning.holding == Holding::Lease {
            match Lock::take(connection, install, planning.patience, &output::tell) {
                Ok(taken) => lock = Some(taken),
                Err(error @ LockError::Forbidden { .. }) => lacking.push(lacking_right(&error)),
                Err(error) => return Err(not_held(&error)),
            }
        }
        let place = Place {
            namespace,
            lock,
            lacking,
        };
        places.insert(install.clone(), place);
    }
    Ok(places)
}

/// Each install with its objects, those included that stand with another one.
pub(in crate::cli) fn with_shared(output: Output) -> Vec<(About, Vec<OwnedManifest>)> {
    let mut all: BTreeMap<usize, (About, Vec<_>)> = BTreeMap::new();
    let mut objects = vec![];
    for install in output.installs {
        if let Some(about) = install.about {
            all.insert(about.position, (about, vec![]));
        }
        objects.extend(install.objects);
    }
    for owned in objects {
        for position in &owned.brought_by {
            if let Some((_, list)) = all.get_mut(position) {
                list.push((owned.owners.clone(), owned.manifest.clone()));
            }
        }
    }
    all.into_values().collect()
}

fn plan_one(
    asked: Asked,
    about: apply::About,
    place: Place,
    planning: &Planning<'_>,
) -> Result<Planned, Failure> {
    let connection = planning.connection;
    let Asked {
        install,
        owners,
        desired,
        ..
    } = asked;
    let Place {
        namespace,
        lock,
        mut lacking,
    } = place;
    let mut stored = None;
    let mut survey = planning.survey.clone();
    if namespace == Namespace::There {
        match stored::inventory(connection, &install) {
            Ok(found) => stored = found,
            Err(StoredError::Api(error)) if error.kind() == Some(RefusalKind::Forbidden) => {
                lacking.push(match survey.asking {
                    Asking::DryRunOrRead(_) => unread(&error),
                    _ => lacking_right(&error),
                });
                survey.policy.ours = Ours::Labelled;
            }
            Err(error) => return Err(stored_failure(&error)),
        }
    }
    let is_stale = planning.generations.is_some_and(|before| {
        let now = stored.as_ref().map(|stored| stored.inventory.generation);
        before.get(&install).copied() != now
    });
    let mut plan = survey::plan(connection, &install, &desired, stored.as_ref(), &survey)
        .map_err(|error| api_failure(&error))?;
    plan.problems.extend(lacking);
    if namespace == Namespace::Missing && !makes(&desired, &install.namespace) {
        plan.problems = vec![no_namespace(&install)];
    }
    Ok(Planned {
        about,
        install,
        stored,
        plan,
        lock,
        namespace,
        owners,
        is_stale,
    })
}

/// Takes the Lease of an install.
pub(in crate::cli) fn hold(
    connection: &Arc<Connection>,
    install: &InstallName,
    patience: Duration,
) -> Result<Lock, Failure> {
    Lock::take(connection, install, patience, &output::tell).map_err(|error| not_held(&error))
}

fn not_held(error: &LockError) -> Failure {
    if let LockError::Api(error) = error {
        return api_failure(error);
    }
    let failure = Failure::of(Class::ClusterRefused, error);
    match error {
        LockError::Forbidden { .. } => {
            failure.with_hint("`kubectl olm rbac` prints what an account needs")
        }
        _ => failure.with_hint("wait until it has ended, and run again"),
    }
}

/// A right that the user lacks, to be told with the others.
fn lacking_right(error: &dyn std::error::Error) -> Problem {
    Problem::error("rights", error.to_string())
}

/// What cannot be told without the inventory.
fn unread(error: &dyn std::error::Error) -> Problem {
    let message = format!(
        "{error}; so what is labelled counts as this install's, and what apply would delete is not shown"
    );
    Problem::warning("rights", message)
}

/// Whether a namespace is there. Who may not look is told by what comes next.
pub(in crate::cli) fn namespace(connection: &Connection, name: &str) -> Result<Namespace, Failure> {
    let key = live::namespace_key(name);
    match live::get(connection, &live::namespaces(), &key) {
        Ok(None) => Ok(Namespace::Missing),
        Ok(Some(_)) => Ok(Namespace::There),
        Err(error) if error.kind() == Some(RefusalKind::Forbidden) => Ok(Namespace::There),
        Err(error) => Err(api_failure(&error)),
    }
}

fn makes(desired: &DesiredSet, namespace: &str) -> bool {
    let objects = desired.objects.iter().map(|desired| &desired.key);
    let mut namespaces = objects.filter(|key| key.group.is_empty() && key.kind == "Namespace");
    namespaces.any(|key| key.name == namespace)
}

fn no_namespace(install: &InstallName) -> Problem {
    let message = format!(
        "the namespace {} is not there; --create-namespace makes it, and cleanup removes it again",
        install.namespace
    );
    Problem::error("missing", message)
}

/// What an object is for, which only the one who rendered it knows.
fn purpose(manifest: &Manifest) -> Purpose {
    if pull_secrets::is_copy(manifest) {
        Purpose::Copy
    } else if pull_secrets::is_for_entries(manifest) {
        Purpose::Entries
    } else {
        Purpose::Install
    }
}

/// What an install of a run is of, and which of the run need it: dependencies are met in one namespace, and named by
/// their bundles.
fn content(of: &Asked, all: &[Asked]) -> apply::About {
    let bundle = &of.about.bundle;
    let needs = |other: &&Asked| {
        other.about.namespace == of.about.namespace
            && bundle.required_by.contains(&other.about.bundle.bundle)
    };
    let needing = all.iter().filter(needs);
    let image = match &bundle.image_digest {
        Some(digest) if !bundle.image.contains('@') => format!("{}@{digest}", bundle.image),
        _ => bundle.image.clone(),
    };
    apply::About {
        content: Content {
            package: bundle.package.clone(),
            bundle: bundle.bundle.clone(),
            version: bundle.version.clone(),
            image,
            catalog: bundle.catalog.clone(),
        },
        required_by: needing.map(|other| other.install.clone()).collect(),
        beside: all.iter().map(|other| other.install.clone()).collect(),
    }
}
