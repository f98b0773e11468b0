//! Writes one object.
//!
//! An object is created by server-side apply, never by POST: the API server takes fields of a POST for an update of ours,
//! with which our own apply is in conflict later. An answer of 200 to what should create says that somebody was faster.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::{
    super::{
        answer::{Answer, ApiError, RefusalKind, Repeated},
        desired::Claim,
        inventory::Hold,
        live, managed_fields, metadata,
        plan::{Action, Change},
        request::{Force, Mode, Request},
        wait::{self, NotReady},
    },
    Job, Waiting,
};
use crate::{
    manifest::{Manifest, Origin},
    problem::Problem,
};

/// How often an object of a new kind may be refused as unknown, after its definition is established.
const NEW_KIND: usize = 60;
/// How long an object that is being deleted is waited for, when nobody says how long.
const DELETION: Duration = Duration::from_secs(60);
/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(300);

/// What is known of an object that was written.
#[derive(Debug)]
pub(super) struct Written {
    /// Its uid.
    pub uid: String,
    /// The hash of our fields.
    pub managed: String,
    /// Whose it is.
    pub hold: Hold,
    /// What was done.
    pub action: Action,
}

/// Why an object was not written.
#[derive(Debug)]
pub(super) enum WriteError {
    Api(ApiError),
    Refused(Problem),
    NotGone(Box<NotReady>),
}

impl From<ApiError> for WriteError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// Writes an object as its change says.
///
/// # Errors
/// When it was not written, or is not there as asked for all the same.
pub(super) fn write(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    match change.action {
        Action::Create => create(job, change),
        Action::AfterDeletion => {
            let live = change.before.as_ref().unwrap_or(&Value::Null);
            gone(job, change, live)?;
            create(job, change)
        }
        Action::Recreate => recreate(job, change),
        _ => update(job, change),
    }
}

/// Takes our fields back from an object that is somebody else's: applying nothing but its name leaves it as it was.
///
/// # Errors
/// When the server does not do it.
pub(super) fn undo(job: &Job<'_>, change: &Change) -> Result<(), ApiError> {
    job.send(&bare(change)).map(drop)
}

/// The request that applies nothing but an object's name.
pub(super) fn bare(change: &Change) -> Request {
    let bare = json!({
        "apiVersion": change.asked.get("apiVersion"),
        "kind": change.asked.get("kind"),
        "metadata": {"name": change.key.name, "namespace": change.key.namespace},
    });
    Request::apply(&change.resource, &change.key, bare, Mode::Write, Force::No)
}

fn create(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let asked = change.asked.clone();
    // What is not there has no fields that could be taken from others.
    let request = Request::apply(&change.resource, &change.key, asked, Mode::Write, Force::No);
    let answer = match send_to_new_kind(job, &request) {
        Err(error) if error.kind() == Some(RefusalKind::FieldConflict) => {
            return taken(job, change);
        }
        answer => answer?,
    };
    let uid = metadata::uid(&answer.body);
    let is_created = answer.code == 201
        // Its kind was not known when the plan was made.
        || (uid.is_some() && uid == change.uid.as_deref())
        || (answer.repeated == Repeated::Perhaps && managed_fields::is_created_by_us(&answer.body));
    if !is_created {
        undo(job, change)?;
        return taken(job, change);
    }
    let action = match change.action {
        Action::Update | Action::Adopt => Action::Create,
        planned => planned,
    };
    Ok(written(&answer.body, action))
}

/// Somebody else has made the object since the plan was made.
fn taken(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let live = super::super::live::get(job.connection, &change.resource, &change.key)?;
    if let (Claim::Use, Some(live)) = (change.claim, live) {
        // Controllers make accounts and namespaces that are only used, and it does not matter who was first.
        return Ok(Written {
            managed: String::new(),
            hold: Hold::Used,
            ..written(&live, Action::Use)
        });
    }
    let message = "somebody else created it after the plan was made; it was left as it was. \
                   Run again: the plan will say whose it is";
    let problem = Problem::error("created-meanwhile", message);
    Err(WriteError::Refused(problem.on(&change.key)))
}

/// A kind may be established and not be known to each API server yet.
fn send_to_new_kind(job: &Job<'_>, request: &Request) -> Result<Answer, ApiError> {
    for _ in 0..NEW_KIND {
        match job.send(request) {
            Err(error)
                if error.kind() == Some(RefusalKind::NotFound) && !error.is_missing_namespace() =>
            {
                thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
    job.send(request)
}

fn update(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let mut asked = change.asked.clone();
    let uid = change.before.as_ref().and_then(metadata::uid);
    if let (Some(uid), Some(metadata)) = (uid, asked.get_mut("metadata")) {
        // It is refused when somebody has put another object in its place.
        metadata["uid"] = uid.into();
    }
    let request = Request::apply(&change.resource, &change.key, asked, Mode::Write, job.force);
    let answer = match job.send(&request) {
        Err(error) if error.kind() == Some(RefusalKind::Changed) => {
            // Nobody has put another one in its place: it was deleted after the plan was made.
            return match live::get(job.connection, &change.resource, &change.key)? {
                None => create(job, change),
                Some(_) => Err(error.into()),
            };
        }
        answer => answer?,
    };
    if metadata::is_going(&answer.body) {
        gone(job, change, &answer.body)?;
        return create(job, change);
    }
    Ok(written(&answer.body, change.action))
}

/// Deletes an object and creates it. When it cannot be created, the one that was there is put back.
fn recreate(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let live = change.before.as_ref().unwrap_or(&Value::Null);
    let uid = metadata::uid(live).unwrap_or_default();
    // What the server would never take is found out before anything is lost.
    let mut probe = change.asked.clone();
    let mut key = change.key.clone();
    key.name = format!("{:.40}-kubectl-olm-check", key.name);
    probe["metadata"]["name"] = key.name.as_str().into();
    let probe = Request::apply(&change.resource, &key, probe, Mode::DryRun, Force::No);
    job.send(&probe)?;
    let delete = Request::delete(&change.resource, &change.key, uid, Mode::Write);
    match job.send(&delete) {
        Err(error) if error.kind() == Some(RefusalKind::NotFound) => {}
        deleted => drop(deleted?),
    }
    gone(job, change, live)?;
    create(job, change).map_err(|error| match error {
        WriteError::Api(error) => {
            let state = match restore(job, change, live) {
                Ok(()) => "the one that was there was put back".to_owned(),
                Err(failed) => {
                    format!(
                        "the one that was there could not be put back: {}",
                        failed.reason()
                    )
                }
            };
            let reason = error.reason();
            let message =
                format!("it was deleted, and could not be created anew: {reason}; {state}");
            WriteError::Refused(Problem::error("recreate", message).on(&change.key))
        }
        // Somebody else has put another one in its place, which is not ours to change.
        error => error,
    })
}

fn restore(job: &Job<'_>, change: &Change, live: &Value) -> Result<(), ApiError> {
    let mut manifest = Manifest::new(live.clone(), Origin::Generated("the cluster"));
    let metadata = manifest.metadata_mut();
    metadata.retain(|field, _| {
        [
            "name",
            "namespace",
            "labels",
            "annotations",
            "ownerReferences",
        ]
        .contains(&field.as_str())
    });
    manifest.object_mut().remove("status");
    let asked = manifest.into_value();
    let request = Request::apply(&change.resource, &change.key, asked, Mode::Write, Force::No);
    job.send(&request).map(drop)
}

/// Waits until an object that is being deleted is gone.
fn gone(job: &Job<'_>, change: &Change, live: &Value) -> Result<(), WriteError> {
    let uid = metadata::uid(live).unwrap_or_default().to_owned();
    let time = match job.waiting {
        Waiting::For(time) => time,
        Waiting::No => DELETION,
    };
    job.report
        .progress(&format!("waiting until the old {} is gone", change.key));
    let object = (change.resource.clone(), change.key.clone(), uid);
    match wait::until_gone(job.connection, &[object], time).pop() {
        None => Ok(()),
        Some(not_gone) => Err(WriteError::NotGone(Box::new(not_gone))),
    }
}

fn written(live: &Value, action: Action) -> Written {
    Written {
        uid: metadata::uid(live).unwrap_or_default().to_owned(),
        managed: managed_fields::ours(live),
        hold: Hold::Owned,
        action,
    }
}
