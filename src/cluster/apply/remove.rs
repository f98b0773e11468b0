//! Removes objects, phase after phase from the last to the first, and leaves in the inventory what did not go.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{
        AT_ONCE,
        answer::{ApiError, RefusalKind},
        inventory::{InstallName, Inventory},
        live::{self, Going},
        metadata,
        plan::{self, Fate, Removal},
        request::{Mode, Request},
        resource::Resource,
        served, survey, wait,
    },
    Job, Outcome, Waiting, go_on,
};
use crate::{concurrent::concurrently_in_order, manifest::order, problem::Problem};

/// How long objects may take until they are gone, when nobody says how long to wait.
const GOING: Duration = Duration::from_secs(30);

/// What became of an object.
enum Removed {
    /// It is gone.
    Gone,
    /// It goes when its finalizers are done; it is asked for like this.
    Going(Resource),
    /// Another one has its name.
    Replaced,
    /// Something has come that keeps it. Why, in a few words.
    Kept(String),
    Failed(ApiError),
}

/// Removes what is to be removed, and takes out of the inventory what is gone or was never ours.
pub(super) fn remove(
    job: &Job<'_>,
    removals: &[Removal],
    inventory: &mut Inventory,
    outcome: &mut Outcome,
) {
    forget(job, removals, inventory, outcome);
    let mut phases: BTreeMap<_, Vec<(&Removal, &str)>> = BTreeMap::new();
    for removal in removals {
        if let Fate::Delete { uid } = &removal.fate {
            let (rank, _) = order::phase(&removal.key);
            // What is created beside an operator is the operator's to see to, and goes before it.
            let is_beside = removal.key.kind != "Deployment";
            // Kubernetes would make a role that collects rules anew, empty, when those that it collects go with it.
            phases
                .entry((rank, is_beside, removal.collects))
                .or_default()
                .push((removal, uid));
        }
    }
    for phase in phases.into_values().rev() {
        // What may not be deleted keeps nothing else. What is on its way may need what comes after it.
        let may_go_on = go_on(job, outcome) || !outcome.failed.is_empty();
        if !may_go_on || outcome.stopped.is_some() || !outcome.not_ready.is_empty() {
            return;
        }
        remove_phase(job, &phase, inventory, outcome);
    }
}

/// Takes out of the inventory what needs no request, and tells of what stays.
pub(super) fn forget(
    job: &Job<'_>,
    removals: &[Removal],
    inventory: &mut Inventory,
    outcome: &mut Outcome,
) {
    for removal in removals {
        match &removal.fate {
            Fate::Delete { .. } => {}
            Fate::Gone => drop(inventory.objects.remove(&removal.key)),
            Fate::Forget(reason) => {
                job.report.object(&removal.key, "left alone", reason);
                inventory.objects.remove(&removal.key);
            }
            Fate::Foreign => {
                let place = match removal.key.namespace.as_str() {
                    "" => String::new(),
                    namespace => format!(" in {namespace}"),
                };
                let message = format!(
                    "the inventory lists it{place}, and it never was this install's: it is left alone, and somebody may have edited the inventory"
                );
                let problem = Problem::error("foreign", message).on(&removal.key);
                outcome.failed.push(problem);
                inventory.objects.remove(&removal.key);
            }
            Fate::Keep(reason) => job.report.object(&removal.key, "kept", reason),
            Fate::Unverifiable(reason) => {
                let message =
                    format!("it could not be checked, and stays in the inventory: {reason}");
                outcome
                    .failed
                    .push(Problem::error("unverifiable", message).on(&removal.key));
            }
        }
    }
}

/// Removes objects of a phase, and tells of each as it is done.
fn remove_phase(
    job: &Job<'_>,
    phase: &[(&Removal, &str)],
    inventory: &mut Inventory,
    outcome: &mut Outcome,
) {
    let mut going = vec![];
    let mut listed: Vec<_> = inventory.objects.keys().cloned().collect();
    let InstallName { namespace, .. } = &inventory.install;
    listed.push(live::secret_key(namespace, &inventory.install.secret()));
    let listed = Going {
        keys: listed.iter().collect(),
        ..Going::default()
    };
    let work = |(removal, uid): &(&Removal, &str)| delete(job, (removal, uid), &listed);
    concurrently_in_order(
        phase,
        AT_ONCE,
        work,
        |(removal, uid), removed| match removed {
            Removed::Gone => {
                outcome.done += 1;
                job.report.object(&removal.key, "deleted", "");
                inventory.objects.remove(&removal.key);
            }
            Removed::Going(resource) => going.push((*removal, (resource, (*uid).to_owned()))),
            Removed::Replaced => {
                let reason = "somebody has put another one in its place";
                job.report.object(&removal.key, "left alone", reason);
                inventory.objects.remove(&removal.key);
            }
            Removed::Kept(reason) => job.report.object(&removal.key, "kept", &reason),
            Removed::Failed(error) => outcome.fail(&removal.key, &error),
        },
    );
    if job.waiting == Waiting::No {
        // Nothing comes after a namespace that would have to wait for it, and its end is the cluster's business.
        going.retain(|(removal, _)| {
            let is_waited_for = !removal.key.is_namespace();
            if !is_waited_for {
                outcome.done += 1;
                let note = "it is going, and is not waited for";
                job.report.object(&removal.key, "deleted", note);
                inventory.objects.remove(&removal.key);
            }
            is_waited_for
        });
    }
    if !going.is_empty() && outcome.stopped.is_none() {
        wait_for(job, going, inventory, outcome);
    }
}

/// Waits until objects that are on their way, each known by its uid, are gone.
fn wait_for(
    job: &Job<'_>,
    going: Vec<(&Removal, (Resource, String))>,
    inventory: &mut Inventory,
    outcome: &mut Outcome,
) {
    let time = match job.waiting {
        Waiting::For(time) => time,
        Waiting::No => GOING,
    };
    let objects: Vec<_> = going
        .iter()
        .map(|(removal, (resource, uid))| (resource.clone(), removal.key.clone(), uid.clone()))
        .collect();
    job.report
        .progress(&format!("waiting until {} objects are gone", objects.len()));
    let not_gone = wait::until_gone(job.connection, &objects, time);
    for (removal, _) in going {
        if !not_gone.iter().any(|left| left.key == removal.key) {
            outcome.done += 1;
            job.report.object(&removal.key, "deleted", "");
            inventory.objects.remove(&removal.key);
        }
    }
    outcome.not_ready.extend(not_gone);
}

fn delete(job: &Job<'_>, (removal, uid): (&Removal, &str), listed: &Going<'_>) -> Removed {
    // Much may have come since the plan was made: a question was asked, and objects were waited for.
    let keeping = survey::keeping(
        job.connection,
        (&removal.key, &removal.resource),
        listed,
        job.deleting,
    );
    match keeping.map(|keeping| plan::kept(&removal.key, &keeping)) {
        Ok(None) => send(job, removal, uid),
        Ok(Some(reason)) => Removed::Kept(reason),
        Err(error) => Removed::Failed(error),
    }
}

fn send(job: &Job<'_>, removal: &Removal, uid: &str) -> Removed {
    let send =
        |resource: &Resource| job.send(&Request::delete(resource, &removal.key, uid, Mode::Write));
    match served::as_served(job.connection, (&removal.key, &removal.resource), send) {
        Ok(None) => Removed::Gone,
        // Of what is gone the server gives a Status, or what it was; of what is not, when it began to go.
        Ok(Some((answer, resource))) => match metadata::is_going(&answer.body) {
            true => Removed::Going(resource),
            false => Removed::Gone,
        },
        Err(error) if error.is_missing_object() => Removed::Gone,
        Err(error) => match error.kind() {
            // Its uid is another one; but a server may have other reasons for a conflict.
            Some(RefusalKind::Changed) if !is_there(job, removal, uid) => Removed::Replaced,
            _ => Removed::Failed(error),
        },
    }
}

/// Whether an object is still the one with this uid, as far as can be told.
fn is_there(job: &Job<'_>, removal: &Removal, uid: &str) -> bool {
    match served::get(job.connection, &removal.resource, &removal.key) {
        Ok(live) => live.as_ref().and_then(metadata::uid) == Some(uid),
        Err(_) => true,
    }
}
