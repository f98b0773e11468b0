//! Writes one object.
//!
//! An object is created by server-side apply, never by POST: the API server takes fields of a POST for an update of ours,
//! with which our own apply is in conflict later. It carries a version that no object has, so that it never changes one.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    super::{
        answer::{Answer, ApiError, RefusalKind},
        desired::{Claim, PART_OF},
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

/// The version of nothing: the first object that a store holds has a later one.
const NO_VERSION: &str = "1";
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

/// The request that creates an object, and refuses to change one: no object that is there has this version, so that the
/// server answers 409 for one that somebody has made meanwhile, without looking at its fields.
pub(super) fn creating(change: &Change) -> Request {
    create_only(change, change.asked.clone())
}

fn create_only(change: &Change, mut object: Value) -> Request {
    if let Some(metadata) = object.get_mut("metadata") {
        metadata["resourceVersion"] = NO_VERSION.into();
    }
    // What is not there has no fields that could be taken from others.
    Request::apply(
        &change.resource,
        &change.key,
        object,
        Mode::Write,
        Force::No,
    )
}

/// Whether an object that is there is the one that a change makes: the answer to a request was lost, and it was sent again.
/// Nobody else makes objects with the install's label while its Lease is held.
pub(super) fn is_made(change: &Change, live: &Value) -> bool {
    let label = |object: &Value| {
        let labels = object.pointer("/metadata/labels");
        labels.and_then(|labels| Some(labels.get(PART_OF)?.as_str()?.to_owned()))
    };
    let asked = label(&change.asked);
    asked.is_some() && asked == label(live) && managed_fields::sets_label(live)
}

fn create(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    match send_to_new_kind(job, &creating(change)) {
        Ok(answer) if answer.code == 201 => {
            let action = match change.action {
                Action::Update | Action::Adopt => Action::Create,
                planned => planned,
            };
            Ok(written(&answer.body, action))
        }
        Err(error) if !is_there(&error) => Err(error.into()),
        _ => found(job, change),
    }
}

fn is_there(error: &ApiError) -> bool {
    matches!(
        error.kind(),
        Some(RefusalKind::Changed | RefusalKind::FieldConflict)
    )
}

/// What should be created is there.
fn found(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let live = live::get(job.connection, &change.resource, &change.key)?;
    let Some(live) = live else {
        return Err(taken(change));
    };
    if is_made(change, &live) {
        return Ok(written(&live, Action::Create));
    }
    // Its kind was not known when the plan was made.
    if let Some(uid) = metadata::uid(&live).filter(|uid| change.uid.as_deref() == Some(uid)) {
        let answer = job.send(&updating(job, change, &change.asked, Some(uid)))?;
        return Ok(written(&answer.body, Action::Update));
    }
    // Controllers make accounts and namespaces that are only used, and it does not matter who was first.
    if change.claim == Claim::Use {
        return Ok(Written {
            managed: String::new(),
            hold: Hold::Used,
            ..written(&live, Action::Use)
        });
    }
    Err(taken(change))
}

/// That somebody else has made the object since the plan was made.
fn taken(change: &Change) -> WriteError {
    let message = "somebody else created it after the plan was made; it was left as it was. \
                   Run again: the plan will say whose it is";
    WriteError::Refused(Problem::error("created-meanwhile", message).on(&change.key))
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

fn updating(job: &Job<'_>, change: &Change, asked: &Value, uid: Option<&str>) -> Request {
    let mut asked = asked.clone();
    if let (Some(uid), Some(metadata)) = (uid, asked.get_mut("metadata")) {
        // It is refused when somebody has put another object in its place.
        metadata["uid"] = uid.into();
    }
    Request::apply(&change.resource, &change.key, asked, Mode::Write, job.force)
}

fn update(job: &Job<'_>, change: &Change) -> Result<Written, WriteError> {
    let uid = change.before.as_ref().and_then(metadata::uid);
    let send = |asked| job.send(&updating(job, change, asked, uid));
    let sent = match &change.releasing {
        Some(releasing) => send(releasing).and_then(|_| send(&change.asked)),
        None => send(&change.asked),
    };
    let answer = match sent {
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
    job.send(&probe(change))?;
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

/// The dry run of an object as it is asked for under another name, as the server would only compare it with the one that is
/// there under its own. What the server gives to one object at a time belongs to that one, and is not asked for.
fn probe(change: &Change) -> Request {
    let mut key = change.key.clone();
    let begin = format!("{:.40}", key.name);
    key.name = format!("{}-kubectl-olm-check", begin.trim_end_matches(['.', '-']));
    let mut asked = change.asked.clone();
    asked["metadata"]["name"] = key.name.as_str().into();
    if let ("", "Service", Some(spec)) = (
        key.group.as_str(),
        key.kind.as_str(),
        asked.get_mut("spec").and_then(Value::as_object_mut),
    ) {
        spec.remove("healthCheckNodePort");
        // A Service without an address has other rules for its ports.
        if spec
            .get("clusterIP")
            .is_none_or(|address| address != "None")
        {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
    Request::apply(&change.resource, &key, asked, Mode::DryRun, Force::No)
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
    job.send(&create_only(change, manifest.into_value()))
        .map(drop)
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
