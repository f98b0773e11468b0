//! What the answer to a dry run means for an object.

use serde_json::Value;

use super::{
    super::{
        answer::{ApiError, Refusal, RefusalKind},
        desired::{Claim, Desired, PART_OF},
        inventory::{Hold, InstallName, Inventory, Member},
        managed_fields, metadata,
        owner::{self, Owner},
        request::Force,
        resource::Resource,
    },
    Action, Change, Others, Ours, Policy, Recreate,
};
use crate::{manifest::ObjectKey, problem::Problem};

/// What was seen of an object that is wanted, which may be a Secret.
#[derive(Clone)]
pub enum Observed {
    /// It is proven to be as it should be.
    Unchanged,
    /// It is not there, and would be made like this.
    New(Value),
    /// It is there.
    There {
        /// As it is.
        live: Value,
        /// As it would be.
        after: Value,
    },
    /// It is there and ours, and is taken once fields have given way that the server filled in.
    Released {
        /// As it is.
        live: Value,
        /// As it would be.
        after: Value,
        /// What has to be applied before.
        releasing: Value,
    },
    /// It is there, and the server was not asked what it would be.
    Compared {
        /// As it is.
        live: Value,
        /// The fields that are asked for and differ, as JSON pointers.
        fields: Vec<String>,
    },
    /// The server refuses it as it would be, or does not say what it would be or what is there.
    Refused {
        /// As it is; nothing when it is not there or cannot be read.
        live: Option<Value>,
        /// As it would be if fields were taken from others; nothing when that is not known.
        forced: Option<Value>,
        /// Why.
        error: ApiError,
    },
    /// It cannot be asked about before something else of the install is there.
    Later,
}

/// The rule of objects that belong to others.
pub const OWNER: &str = "owner";

/// Kinds whose objects hold data, or hold others, and are never deleted to be created anew.
const NEVER_RECREATED: [&str; 5] = [
    "CustomResourceDefinition",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
];

/// Decides what is done with an object.
///
/// # Errors
/// Why the install is refused for it.
pub fn decide(
    install: &InstallName,
    (desired, resource): (&Desired, Resource),
    (inventory, others): (Option<&Inventory>, &Others),
    observed: Observed,
    policy: &Policy,
) -> Result<Change, Vec<Problem>> {
    let member = inventory.and_then(|inventory| inventory.objects.get(&desired.key));
    let mut change = creation(desired, resource, member);
    let is_alike = is_alike(&observed);
    let (live, after, refusal) = match observed {
        Observed::Later => return Ok(change),
        Observed::New(after) => {
            let after = Some(after);
            return Ok(Change { after, ..change });
        }
        Observed::Unchanged => {
            change.action = Action::Unchanged;
            return Ok(change);
        }
        Observed::Refused {
            live: None, error, ..
        } => {
            return Err(refused(&change.key, &error, policy));
        }
        Observed::There { live, after } => (live, Some(after), None),
        Observed::Released {
            live,
            after,
            releasing,
        } => {
            change.releasing = Some(releasing);
            (live, Some(after), None)
        }
        Observed::Compared { live, fields } => {
            let after = fields.is_empty().then(|| live.clone());
            (live, after, None)
        }
        Observed::Refused {
            live: Some(live),
            error,
            ..
        } => (live, None, Some(error)),
    };
    let known = (member, others);
    let claimed = shared(install, desired, known, &live, is_alike)
        .unwrap_or_else(|| claim(install, desired, known, &live, after.as_ref(), policy));
    change.before = Some(live);
    change.after = after;
    match claimed {
        Claimed::Ours => {}
        Claimed::Taken => change.action = Action::Adopt,
        Claimed::Used(hold) => {
            change.action = Action::Use;
            change.hold = hold;
            change.after = change.before.clone();
            return Ok(change);
        }
        Claimed::Refused(problem) => return Err(vec![problem]),
    }
    settle(change, refusal.as_ref(), policy)
}

/// The change for an object as long as nothing is known of a live one.
fn creation(desired: &Desired, resource: Resource, member: Option<&Member>) -> Change {
    Change {
        key: desired.key.clone(),
        resource,
        action: Action::Create,
        hold: Hold::Owned,
        asked: desired.manifest.clone().into_value(),
        hash: desired.asked.clone(),
        uid: member.and_then(|member| member.uid.clone()),
        claim: desired.claim,
        before: None,
        after: None,
        releasing: None,
    }
}

/// Decides what is done with an object that is there and ours, or becomes ours.
fn settle(
    mut change: Change,
    refusal: Option<&ApiError>,
    policy: &Policy,
) -> Result<Change, Vec<Problem>> {
    let goes = change.before.as_ref().is_some_and(metadata::is_going);
    if let Some(error) = refusal {
        let is_immutable = error.kind() == Some(RefusalKind::Immutable);
        if is_immutable && policy.recreate == Recreate::Yes && may_be_recreated(&change.key) {
            change.action = Action::Recreate;
            return Ok(change);
        }
        return Err(refused(&change.key, error, policy));
    }
    if goes {
        change.action = Action::AfterDeletion;
    } else if change.action != Action::Adopt {
        let is_same = match (&change.before, &change.after) {
            (Some(before), Some(after)) => is_same(before, after),
            _ => false,
        };
        change.action = if is_same {
            Action::Unchanged
        } else {
            Action::Update
        };
    }
    Ok(change)
}

/// Whether an object would be written to no effect: all its fields are the same, and those that we set are ours.
fn is_same(before: &Value, after: &Value) -> bool {
    managed_fields::ours(before) == managed_fields::ours(after) && bare(before) == bare(after)
}

/// An object without what the server counts and what controllers report.
fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    bare
}

fn may_be_recreated(key: &ObjectKey) -> bool {
    !NEVER_RECREATED.contains(&key.kind.as_str())
}

/// Whose an object that is there becomes.
enum Claimed {
    Ours,
    Taken,
    Used(Hold),
    Refused(Problem),
}

/// Whose an object becomes that is in our inventory, and that another install of ours has taken over as the user asked:
/// as long as both want the same of it they share it, and when the other is gone it is ours again.
fn shared(
    install: &InstallName,
    desired: &Desired,
    (member, others): (Option<&Member>, &Others),
    live: &Value,
    is_alike: bool,
) -> Option<Claimed> {
    let is_listed = member.is_some_and(|member| {
        member.hold != Hold::Used
            && member.uid.is_some()
            && member.uid.as_deref() == metadata::uid(live)
    });
    let Owner::Install(id) = owner::of(live) else {
        return None;
    };
    if desired.claim != Claim::Own || !is_listed || id == install.applyset_id() {
        return None;
    }
    if others.owner_is_gone(&id, live) {
        return Some(Claimed::Ours);
    }
    (is_alike && others.named(&id).is_some()).then_some(Claimed::Used(Hold::Shared))
}

/// Whether an object would be the same but for the label that says which install it is of.
fn is_alike(observed: &Observed) -> bool {
    let without_label = |object: &Value| {
        let mut bare = bare(object);
        if let Some(labels) = bare.pointer_mut("/metadata/labels")
            && let Some(labels) = labels.as_object_mut()
        {
            labels.remove(PART_OF);
        }
        bare
    };
    match observed {
        Observed::There { live, after } => without_label(live) == without_label(after),
        Observed::Compared { fields, .. } => {
            let label = format!("/metadata/labels/{}", PART_OF.replace('/', "~1"));
            fields.iter().all(|field| *field == label)
        }
        _ => false,
    }
}

fn claim(
    install: &InstallName,
    desired: &Desired,
    (member, others): (Option<&Member>, &Others),
    live: &Value,
    after: Option<&Value>,
    policy: &Policy,
) -> Claimed {
    let owner = owner::of(live);
    let is_listed = member.is_some_and(|member| {
        member.hold == Hold::Owned
            && match &member.uid {
                Some(known) => Some(known.as_str()) == metadata::uid(live),
                // A run that was interrupted meant to create it: only what we have written to is ours.
                None => !managed_fields::ours(live).is_empty(),
            }
    });
    let is_own_label = matches!(&owner, Owner::Install(id) if *id == install.applyset_id());
    // A namespace is made before there can be an inventory in it.
    let is_own_namespace =
        desired.claim == Claim::Use && is_own_label && managed_fields::is_created_by_us(live);
    let is_anothers = match &owner {
        Owner::Install(_) => !is_own_label,
        Owner::Other(_) => true,
        Owner::Nobody => false,
    };
    let is_trusted = policy.ours == Ours::Labelled && is_own_label;
    if (is_listed && !is_anothers) || is_own_namespace || is_trusted {
        return Claimed::Ours;
    }
    match desired.claim {
        Claim::Use => return Claimed::Used(held(&owner, member)),
        Claim::UseIfSame if is_held_same(live, after, desired) => {
            return Claimed::Used(held(&owner, member));
        }
        // All installs have copies of the same Secret, and whoever comes first after it has changed brings it to all.
        Claim::UseIfSame
            if matches!(owner, Owner::Install(_)) && managed_fields::sets_label(live) =>
        {
            return Claimed::Taken;
        }
        _ => {}
    }
    if policy.adopt.takes(&desired.key) {
        return Claimed::Taken;
    }
    Claimed::Refused(foreign(desired, &owner, others, is_own_label))
}

/// Whose an object is that is used: another install's, or nobody's of ours.
fn held(owner: &Owner, member: Option<&Member>) -> Hold {
    match (owner, member.map(|member| member.hold)) {
        (Owner::Install(_), _) => Hold::Shared,
        (_, Some(hold @ Hold::Shared)) => hold,
        _ => Hold::Used,
    }
}

/// Whether an object holds what is wanted of it already.
fn is_held_same(live: &Value, after: Option<&Value>, desired: &Desired) -> bool {
    let asked = desired.manifest.object();
    let held = after.unwrap_or(live);
    ["data", "type"].iter().all(|field| {
        let asked = asked.get(*field);
        live.get(*field) == asked && held.get(*field) == asked
    })
}

/// Why an object that is not ours refuses the install.
fn foreign(desired: &Desired, owner: &Owner, others: &Others, is_own_label: bool) -> Problem {
    let key = &desired.key;
    let adopt = format!("--adopt {key} takes it over");
    let message = match owner {
        _ if desired.claim == Claim::UseIfSame => format!(
            "it is there with other data, and belongs to {}; give the pull Secret another name, or {adopt}",
            whose(owner, others)
        ),
        Owner::Install(_) if is_own_label => format!(
            "it carries the label of this install, whose inventory does not list it; if it is really this install's, {adopt}"
        ),
        Owner::Nobody => format!(
            "it is there already, and nothing says whose it is; {adopt}, and cleanup removes it then"
        ),
        owner => format!("it belongs to {}; {adopt}", whose(owner, others)),
    };
    Problem::error(OWNER, message).on(described(key))
}

fn whose(owner: &Owner, others: &Others) -> String {
    match owner {
        Owner::Install(id) => match others.named(id) {
            Some(install) => format!("the install {install}"),
            None => format!("the install {id}"),
        },
        Owner::Other(owner) => owner.clone(),
        Owner::Nobody => "nobody that it names".to_owned(),
    }
}

/// What a refusal of the server means, as errors: one for each field that somebody else has set.
fn refused(key: &ObjectKey, error: &ApiError, policy: &Policy) -> Vec<Problem> {
    let ApiError::Refused(refusal) = error else {
        return vec![Problem::error("unreachable", error.to_string()).on(described(key))];
    };
    let (rule, advice) = match refusal.kind {
        RefusalKind::FieldConflict => return conflicts(key, refusal, policy),
        RefusalKind::Forbidden => ("rights", ""),
        RefusalKind::Immutable if may_be_recreated(key) => {
            ("immutable", "; --recreate deletes it and creates it anew")
        }
        RefusalKind::Immutable => (
            "immutable",
            "; it is never deleted for that: remove it yourself if nothing is lost with it",
        ),
        RefusalKind::NamespaceTerminating => ("terminating", "; run again when it is gone"),
        RefusalKind::NotFound if key.kind.ends_with("RoleBinding") => (
            "rights",
            "; it binds a role that is not there yet, for which you need the verb `bind` on clusterroles and roles",
        ),
        RefusalKind::NotFound if !error.is_missing_namespace() => ("missing", ""),
        RefusalKind::NotFound => (
            "missing",
            "; --create-namespace makes the namespace of an install",
        ),
        RefusalKind::TooLarge => ("size", ""),
        RefusalKind::Admission => ("admission", ""),
        RefusalKind::Credentials => ("credentials", ""),
        _ => ("refused", ""),
    };
    let causes: Vec<_> = refusal
        .causes
        .iter()
        .filter(|cause| !refusal.message.contains(&cause.message))
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    let mut message = refusal.message.clone();
    if !causes.is_empty() {
        message = format!("{message} ({})", causes.join("; "));
    }
    vec![Problem::error(rule, format!("{message}{advice}")).on(described(key))]
}

/// An error for each field that others have set to other values.
fn conflicts(key: &ObjectKey, refusal: &Refusal, policy: &Policy) -> Vec<Problem> {
    let advice = match policy.force {
        Force::No => "; --force-conflicts takes the field",
        Force::Yes => "",
    };
    let causes = refusal.causes.iter().map(|cause| {
        let message = format!("{}: {}{advice}", cause.field, cause.message);
        Problem::error("conflict", message).on(described(key))
    });
    let causes: Vec<_> = causes.collect();
    if causes.is_empty() {
        let message = format!("{}{advice}", refusal.message);
        return vec![Problem::error("conflict", message).on(described(key))];
    }
    causes
}

/// An object, with its namespace where it has one.
fn described(key: &ObjectKey) -> String {
    match key.namespace.as_str() {
        "" => key.to_string(),
        namespace => format!("{key} in {namespace}"),
    }
}
