//! Removes an install: what its inventory lists, its entries, and the inventory itself when nothing is left.

use super::{
    super::{
        answer::{ApiError, RefusalKind},
        connection::Connection,
        inventory::{InstallName, Inventory, State},
        live::{self, Going},
        managed_fields, metadata,
        owner::{self, Owner},
        plan::{Fate, Plan, Removal},
        resource::Scope,
        stored::Stored,
        survey,
    },
    Job, Outcome, entries, go_on, remove, store,
};
use crate::manifest::ObjectKey;

/// Carries out a plan in which nothing is wanted any more, after `first` is gone.
///
/// # Errors
/// When the inventory could not be written before anything is deleted.
pub fn clean(
    job: &Job<'_>,
    first: &[Removal],
    plan: &Plan,
    stored: Stored,
) -> Result<Outcome, ApiError> {
    let mut inventory = stored.inventory.clone();
    inventory.generation += 1;
    inventory.state = State::Running {
        what: "cleanup".to_owned(),
        who: job.who.clone(),
    };
    let mut outcome = Outcome::default();
    let goes = |removal: &Removal| matches!(removal.fate, Fate::Delete { .. });
    let before = stored.inventory.clone();
    let stored = if plan.removals.iter().any(goes) || !plan.removing.is_empty() {
        match store::save(job.connection, &inventory, Some(&stored)) {
            // It goes with its namespace, which is deleted last: nothing more can be written down, or has to be.
            Err(error) if error.kind() == Some(RefusalKind::NotFound) => None,
            saved => Some(saved?),
        }
    } else {
        Some(stored)
    };
    remove::remove(job, first, &mut inventory, &mut outcome);
    if !outcome.is_complete() || !outcome.not_ready.is_empty() {
        // Their operator has to be there until they are gone.
        go_on(job, &mut outcome);
        return Ok(outcome);
    }
    entries::remove(job, &plan.removing, &mut outcome);
    let (with_inventory, removals): (Vec<_>, Vec<_>) = plan
        .removals
        .iter()
        .cloned()
        .partition(|removal| goes(removal) && holds(&removal.key, &inventory.install));
    remove::remove(job, &removals, &mut inventory, &mut outcome);
    if outcome.failed.is_empty() {
        inventory.entries.clear();
    }
    if go_on(job, &mut outcome) {
        settle(
            job,
            (inventory, &before),
            stored,
            with_inventory,
            &mut outcome,
        );
    }
    Ok(outcome)
}

/// Writes down what is left, or removes the inventory, or the namespace that takes it along.
fn settle(
    job: &Job<'_>,
    (mut inventory, before): (Inventory, &Inventory),
    stored: Option<Stored>,
    with_inventory: Vec<Removal>,
    outcome: &mut Outcome,
) {
    let is_left = |key: &&ObjectKey| !with_inventory.iter().any(|removal| removal.key == **key);
    let left = inventory.objects.keys().filter(is_left).count();
    if left == 0 && outcome.is_complete() {
        // Its namespace takes the inventory along; and if that stays after all, nothing is left to remember but it.
        if with_inventory.is_empty() {
            let discarded = stored.map_or(Ok(()), |stored| store::discard(job.connection, &stored));
            note(discarded, &inventory, outcome);
        } else {
            remove::remove(job, &with_inventory, &mut inventory, outcome);
            let is_kept = !inventory.objects.is_empty() && outcome.not_ready.is_empty();
            if is_kept && outcome.is_complete() {
                inventory.state = State::Removed;
                let saved = store::save(job.connection, &inventory, stored.as_ref());
                note(saved.map(drop), &inventory, outcome);
            }
        }
        return;
    }
    let is_settled = outcome.is_complete() && outcome.not_ready.is_empty();
    if is_settled {
        inventory.state = State::Removed;
    }
    if !is_settled || inventory.objects != before.objects || inventory.state != before.state {
        let saved = store::save(job.connection, &inventory, stored.as_ref());
        note(saved.map(drop), &inventory, outcome);
    }
}

/// Notes what became of an inventory after something was deleted.
fn note(done: Result<(), ApiError>, inventory: &Inventory, outcome: &mut Outcome) {
    if let Err(error) = done {
        let InstallName { namespace, .. } = &inventory.install;
        let key = live::secret_key(namespace, &inventory.install.secret());
        outcome.fail(&key, &error);
    }
}

/// Whether an object is the namespace that the inventory is in.
fn holds(key: &ObjectKey, install: &InstallName) -> bool {
    key.is_namespace() && key.name == install.namespace
}

/// The custom resources of definitions that go. They have to go first, while their operator is there to see to them.
///
/// # Errors
/// When they cannot be listed.
pub fn custom_resources(connection: &Connection, plan: &Plan) -> Result<Vec<Removal>, ApiError> {
    let mut added = vec![];
    for removal in &plan.removals {
        if !removal.key.is_definition() || !matches!(removal.fate, Fate::Delete { .. }) {
            continue;
        }
        let Some(live) = live::get(connection, &removal.resource, &removal.key)? else {
            continue;
        };
        let (resource, objects) = survey::custom_resources(connection, &live)?;
        for object in objects {
            let key = live::key_of(&resource, &object);
            let uid = metadata::uid(&object);
            let mut resource = resource.clone();
            if !key.namespace.is_empty() {
                resource.scope = Scope::Namespaced;
            }
            added.push(Removal {
                fate: Fate::Delete {
                    uid: uid.unwrap_or_default().to_owned(),
                },
                key,
                resource,
                collects: false,
            });
        }
    }
    Ok(added)
}

/// The namespace that a run made for an install and could not write down, with its uid; nothing when it holds anything.
///
/// # Errors
/// When the cluster does not tell.
pub fn left_namespace(
    connection: &Connection,
    install: &InstallName,
) -> Result<Option<(ObjectKey, String)>, ApiError> {
    let key = live::namespace_key(&install.namespace);
    let Some(live) = live::get(connection, &live::namespaces(), &key)? else {
        return Ok(None);
    };
    let is_own = owner::of(&live) == Owner::Install(install.applyset_id());
    let goes = metadata::is_going(&live);
    if !is_own || goes || !managed_fields::is_created_by_us(&live) {
        return Ok(None);
    }
    if live::strangers(connection, &key.name, &Going::default())? > 0 {
        return Ok(None);
    }
    Ok(metadata::uid(&live).map(|uid| (key, uid.to_owned())))
}
