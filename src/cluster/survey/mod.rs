//! Asks a cluster what a plan has to know, and makes the plan. Nothing is written here: with what it gives, a run may
//! show the plan, carry it out, or do neither.

mod definitions;
mod objects;
mod removals;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use self::{
    definitions::SAFETY,
    removals::{custom_resources, keeping, resource_of},
};
use self::{
    definitions::{RefusedDefinition, check_definitions},
    objects::{Known, Wanted, is_anothers, observe_all, with_kinds},
    removals::{Gone, ListedMember, members, removals},
};
use super::{
    answer::ApiError,
    asked,
    connection::Connection,
    desired::DesiredSet,
    inventory::{InstallName, Inventory},
    live::{self, Asking},
    plan::{self, Observed, Others, Plan, Policy, Refused},
    resource::Resource,
    rights,
    stored::{self, Stored},
};
use crate::manifest::ObjectKey;

/// How a plan is made.
#[derive(Debug, Clone)]
pub struct Survey {
    /// What the user allows.
    pub policy: Policy,
    /// How objects are asked about.
    pub asking: Asking,
    /// What is done about kinds that the cluster lacks.
    pub missing: Missing,
    /// Whether definitions may break what is there.
    pub safety: Safety,
    /// What may be deleted with what goes.
    pub deleting: Deleting,
}

/// What is done about objects of kinds that the cluster lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The install is refused.
    Refuse,
    /// They are left out.
    Skip,
}

/// Whether new versions of definitions are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// What breaks something refuses the install.
    Strict,
    /// It does not.
    None,
}

/// What may be deleted with what an install owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleting {
    /// Custom resources, with their definition.
    pub custom_resources: bool,
    /// Whatever is in a namespace, with it.
    pub namespaces: bool,
}

/// Makes the plan for an install.
///
/// # Errors
/// When the cluster does not tell what has to be known.
pub fn plan(
    connection: &Connection,
    install: &InstallName,
    desired: &DesiredSet,
    stored: Option<&Stored>,
    survey: &Survey,
) -> Result<Plan, ApiError> {
    let resources = connection.resources()?;
    let inventory = stored.map(|stored| &stored.inventory);
    let mut plan = Plan::default();
    let objects = with_kinds(&resources, desired, survey.missing, &mut plan.problems);
    let members = inventory.map(|inventory| members(&resources, inventory));
    let members = members.unwrap_or_default();
    let labelled = match inventory {
        None => BTreeMap::new(),
        Some(_) => labelled(connection, install, &objects, &members),
    };
    let known = Known {
        inventory,
        labelled: &labelled,
        wanted: plan::later(&desired.objects, install),
    };
    let observed = observe_all(connection, &objects, &known, survey.asking);
    let wanted: BTreeSet<_> = desired.objects.iter().map(|desired| &desired.key).collect();
    let home = live::namespace_key(&install.namespace);
    let mut gone = members;
    // Its own namespace stays as long as anything of it does, whether or not it is still asked for.
    gone.retain(|(key, _, _)| !wanted.contains(key) && (wanted.is_empty() || **key != home));
    let is_alone = gone.is_empty() && desired.entries.is_empty();
    let is_among_others = !is_alone || observed.iter().any(|seen| is_anothers(install, seen));
    let others = match is_among_others {
        true => stored::others(connection, install)?,
        false => Others::default(),
    };
    let (unasked, refused) = decide_all(
        &mut plan,
        install,
        (inventory, &others),
        (&objects, observed),
        &survey.policy,
    );
    check_definitions(connection, &mut plan, refused, survey.safety);
    plan.removals = removals(
        connection,
        install,
        &Gone {
            members: &gone,
            resources: &resources,
            labelled: &labelled,
        },
        (&others, survey.deleting),
    );
    decide_entries(&mut plan, connection, desired, inventory, &others)?;
    if matches!(survey.asking, Asking::DryRun(_)) {
        rights::to_apply(connection, &mut plan, &unasked)?;
    }
    Ok(plan)
}

/// The live objects that carry the label of an install, of the kinds of what it has and what is wanted.
fn labelled(
    connection: &Connection,
    install: &InstallName,
    objects: &[Wanted<'_>],
    members: &[ListedMember<'_>],
) -> BTreeMap<ObjectKey, Value> {
    let wanted = objects.iter().map(Wanted::listed);
    let known = members
        .iter()
        .map(|(key, _, resource)| (*key, resource.clone()));
    live::labelled(connection, install, wanted.chain(known))
}

/// Adds to a plan what is done with each object that is wanted; gives those that could not be asked about, and definitions
/// that are refused as they are.
fn decide_all(
    plan: &mut Plan,
    install: &InstallName,
    (inventory, others): (Option<&Inventory>, &Others),
    (objects, observed): (&[Wanted<'_>], Vec<Observed>),
    policy: &Policy,
) -> (Vec<(ObjectKey, Resource)>, Vec<RefusedDefinition>) {
    let (mut unasked, mut refused) = (vec![], vec![]);
    for (wanted, observed) in objects.iter().zip(observed) {
        let desired = wanted.desired;
        let resource = wanted.kind.resource().clone();
        match &observed {
            Observed::Compared { .. } => plan.compared += 1,
            Observed::Later => unasked.push((desired.key.clone(), resource.clone())),
            Observed::Refused {
                live: Some(before),
                forced,
                ..
            } => {
                let asked = desired.manifest.clone().into_value();
                let after = forced.clone();
                plan.refused.push(Refused {
                    key: desired.key.clone(),
                    after: after.unwrap_or_else(|| asked::laid_over(before, &asked)),
                    asked,
                    before: before.clone(),
                });
            }
            _ => {}
        }
        let definition = RefusedDefinition::of(desired, &observed);
        let decided = plan::decide(
            install,
            (desired, resource),
            (inventory, others),
            observed,
            policy,
        );
        match (decided, definition) {
            (Ok(change), _) => plan.changes.push(change),
            // What belongs to another owner is refused for that.
            (Err(problems), Some(definition))
                if problems.iter().all(|it| it.rule != plan::OWNER) =>
            {
                refused.push(definition.with(problems));
            }
            (Err(problems), _) => plan.problems.extend(problems),
        }
    }
    (unasked, refused)
}

/// Adds to a plan what becomes of entries of ServiceAccounts.
fn decide_entries(
    plan: &mut Plan,
    connection: &Connection,
    desired: &DesiredSet,
    inventory: Option<&Inventory>,
    others: &Others,
) -> Result<(), ApiError> {
    let ours = inventory.iter().flat_map(|inventory| &inventory.entries);
    let accounts = live::accounts(connection, desired.entries.iter().chain(ours))?;
    plan::entries(
        plan,
        &desired.entries,
        inventory,
        &accounts,
        &others.inventories,
    );
    Ok(())
}
