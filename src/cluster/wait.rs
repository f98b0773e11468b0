//! Until what was applied is ready, and until what was deleted is gone.
//!
//! It asks again and again, for less and less: one request for each object that is still waited for, or one list where
//! there are many of a kind in a namespace. What the answers mean is decided in `health/`; how an object that was made
//! anew by somebody is told from the one that is waited for is cli-utils's way (`pkg/apply/taskrunner/task.go`,
//! `handleChangedUID`).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

mod around;
mod look;

use std::{
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::Value;

use self::look::{Form, Named, Seen, look};
use super::{
    answer::{Answer, ApiError},
    connection::Connection,
    health::{self, Health},
    metadata,
    request::Request,
    resource::Resource,
};
use crate::manifest::ObjectKey;

/// The pause before what is not there yet is asked for again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// An object that is not ready, or not gone, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// The object.
    pub key: ObjectKey,
    /// Why, one line each: conditions, events, what its pods say of their images.
    pub reasons: Vec<String>,
    /// Whether it will not get there by itself.
    pub is_failed: bool,
}

/// Waits until all objects are ready, one has failed for good, or time is up. `tell` is told of progress: how many are
/// ready, of how many, and what is waited for.
///
/// # Errors
/// Those that are not ready, and those that could not be read; those first that have failed.
pub fn until_ready(
    connection: &Connection,
    objects: &[(Resource, ObjectKey)],
    time: Duration,
    tell: &dyn Fn(usize, usize, &str),
) -> Result<(), Vec<NotReady>> {
    let mut pauses = Pauses::until(time);
    let send = |request: &Request| connection.send(request);
    ready(&send, objects, &mut || pauses.pause(), tell)
}

/// Waits until objects, each known by its uid, are gone or time is up; gives those that are not gone. One that was made
/// anew is another one.
pub fn until_gone(
    connection: &Connection,
    objects: &[(Resource, ObjectKey, String)],
    time: Duration,
) -> Vec<NotReady> {
    let mut pauses = Pauses::until(time);
    let send = |request: &Request| connection.send(request);
    gone(&send, objects, &mut || pauses.pause())
}

/// What sends requests.
type Sender<'s> = dyn Fn(&Request) -> Result<Answer, ApiError> + Sync + 's;

/// What waits between questions; it says whether there may be another one.
type Pause<'p> = dyn FnMut() -> bool + 'p;

fn ready(
    send: &Sender<'_>,
    objects: &[(Resource, ObjectKey)],
    pause: &mut Pause<'_>,
    tell: &dyn Fn(usize, usize, &str),
) -> Result<(), Vec<NotReady>> {
    let asked_for = objects
        .iter()
        .filter(|(_, key)| !health::is_ready_when_written(&key.group, &key.kind));
    let mut pending: Vec<_> = asked_for
        .map(|(resource, key)| Watched::new(resource, key, ""))
        .collect();
    loop {
        ask(send, &mut pending, Form::Whole, Watched::see);
        pending.retain(|watched| watched.state != State::Done);
        let next = pending.first().map(Watched::told).unwrap_or_default();
        tell(objects.len() - pending.len(), objects.len(), &next);
        if pending.is_empty() {
            return Ok(());
        }
        let has_failed = pending.iter().any(|watched| watched.state == State::Failed);
        if has_failed || is_vain(&pending) || !pause() {
            return Err(around::not_ready(send, pending));
        }
    }
}

fn gone(
    send: &Sender<'_>,
    objects: &[(Resource, ObjectKey, String)],
    pause: &mut Pause<'_>,
) -> Vec<NotReady> {
    let objects = objects.iter();
    let mut pending: Vec<_> = objects
        .map(|(resource, key, uid)| Watched::new(resource, key, uid))
        .collect();
    loop {
        ask(send, &mut pending, Form::Metadata, Watched::see_going);
        pending.retain(|watched| watched.state != State::Done);
        if pending.is_empty() || is_vain(&pending) || !pause() {
            return around::not_gone(send, pending, Timestamp::now());
        }
    }
}

/// Asks for all objects that may be read, and takes note of the answers.
fn ask<'o>(
    send: &Sender<'_>,
    pending: &mut [Watched<'o>],
    form: Form,
    note: impl Fn(&mut Watched<'o>, Seen),
) {
    let mut readable: Vec<_> = pending
        .iter_mut()
        .filter(|watched| watched.state != State::Unreadable)
        .collect();
    let names: Vec<_> = readable.iter().map(|watched| watched.named()).collect();
    for (watched, seen) in readable.iter_mut().zip(look(send, &names, form)) {
        note(watched, seen);
    }
}

/// Whether to ask again would tell nothing more.
fn is_vain(pending: &[Watched<'_>]) -> bool {
    let is_over = |watched: &Watched<'_>| watched.state == State::Stopped;
    let is_hidden = |watched: &Watched<'_>| watched.state == State::Unreadable;
    pending.iter().any(is_over) || pending.iter().all(is_hidden)
}

/// An object that is waited for.
struct Watched<'o> {
    resource: &'o Resource,
    key: &'o ObjectKey,
    /// Its uid; empty until it is known.
    uid: String,
    state: State,
    /// Why it is not there yet, in a line.
    reason: String,
    /// As it was seen last.
    live: Option<Value>,
}

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is ready, or gone.
    Done,
    /// It is not.
    Waiting,
    /// It will not be.
    Failed,
    /// The user may not read it.
    Unreadable,
    /// The run has ended.
    Stopped,
}

impl<'o> Watched<'o> {
    fn new(resource: &'o Resource, key: &'o ObjectKey, uid: &str) -> Self {
        Self {
            resource,
            key,
            uid: uid.to_owned(),
            state: State::Waiting,
            reason: String::new(),
            live: None,
        }
    }

    fn named(&self) -> Named<'o> {
        (self.resource, self.key)
    }

    /// The object and why it is not there yet, in a line.
    fn told(&self) -> String {
        let reason = &self.reason;
        match self.key.namespace.as_str() {
            "" => format!("{}: {reason}", self.key),
            namespace => format!("{} in {namespace}: {reason}", self.key),
        }
    }

    /// Takes note of an answer about an object that is to become ready.
    fn see(&mut self, seen: Seen) {
        let (state, reason) = match &seen {
            Seen::There(live) => self.judge(live),
            Seen::Missing if self.uid.is_empty() => {
                (State::Waiting, "it is not there yet".to_owned())
            }
            Seen::Missing => (
                State::Failed,
                "it was deleted by somebody while it was waited for".to_owned(),
            ),
            Seen::Not(state, reason) => (*state, reason.clone()),
        };
        (self.state, self.reason) = (state, reason);
        if let Seen::There(live) = seen {
            self.live = Some(live);
        }
    }

    /// The state of a live object that is to become ready.
    fn judge(&mut self, live: &Value) -> (State, String) {
        let uid = metadata::uid(live).unwrap_or_default();
        if self.uid.is_empty() {
            uid.clone_into(&mut self.uid);
        } else if self.uid != uid {
            let reason = "it was deleted and made anew by somebody while it was waited for";
            return (State::Failed, reason.to_owned());
        }
        let health = health::of(live);
        let reason = health.reason().unwrap_or_default().to_owned();
        let state = match health {
            Health::Current => State::Done,
            Health::InProgress(_) | Health::Terminating => State::Waiting,
            Health::Failed(_) => State::Failed,
        };
        (state, reason)
    }

    /// Takes note of an answer about an object that is to go.
    fn see_going(&mut self, seen: Seen) {
        self.reason.clear();
        self.state = match seen {
            Seen::Missing => State::Done,
            Seen::There(live) if metadata::uid(&live).unwrap_or_default() != self.uid => {
                State::Done
            }
            Seen::There(live) => {
                self.live = Some(live);
                State::Waiting
            }
            Seen::Not(state, reason) => {
                self.reason = reason;
                state
            }
        };
    }
}

/// The pauses between questions.
struct Pauses {
    end: Option<Instant>,
    next: Duration,
}

impl Pauses {
    /// Pauses that end after a time.
    fn until(time: Duration) -> Self {
        Self {
            // More than the clock holds is for ever.
            end: Instant::now().checked_add(time),
            next: FIRST_PAUSE,
        }
    }

    /// Waits, each time for longer; false, at once, when time is up.
    fn pause(&mut self) -> bool {
        let left = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        thread::sleep(left.map_or(self.next, |left| left.min(self.next)));
        self.next = (self.next * 3 / 2).min(LAST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests;
