//! Takes a Lease, waiting while another run holds it.

use std::{thread, time::Duration};

use serde_json::Value;

use super::{
    super::{
        answer::{ApiError, RefusalKind},
        connection::{Connection, Turn},
        lease::{self, Holder, Take},
        metadata,
    },
    LockError,
    process::{clock, is_dead, now},
    requests::{Lease, State},
};

/// How long to wait before a Lease that is held is looked at again.
const PAUSE: Duration = Duration::from_millis(500);

/// Takes a Lease, waiting for at most `patience` while it is held; `tell` is told of whom is waited for.
///
/// # Errors
/// When it is still held then, or cannot be asked for.
pub(super) fn wait_for(
    connection: &Connection,
    lease: &Lease,
    patience: Duration,
    tell: &dyn Fn(&str),
) -> Result<State, LockError> {
    let begun = clock();
    let mut unchanged = Unchanged::default();
    let mut told: Option<Holder> = None;
    let mut written = None;
    loop {
        let asked = clock();
        let live = lease.get(connection, Turn::Queued);
        let live = live.map_err(|error| failed(lease, "get", error))?;
        let take = match (&live, written) {
            (None, _) => Take::Now,
            // The answer to our write was lost, and the write was not.
            (Some(live), Some(sent)) if lease::is_held_by(live, &lease.me) => {
                return Ok(State::stored(live.clone(), sent));
            }
            (Some(live), _) => {
                let seconds = unchanged.seconds(live, asked);
                lease::take(live, &lease.me, seconds, &is_dead)
            }
        };
        let is_over = clock().saturating_sub(begun) >= patience;
        match take {
            Take::Now => {
                let sent = clock();
                if let Some(stored) = write(connection, lease, live.as_ref())? {
                    return Ok(State::stored(stored, sent));
                }
                // The first time it may have been our own write whose answer was lost.
                if is_over && written.is_some() {
                    return Err(held(
                        lease,
                        "other runs are at work; try again when they have ended",
                    ));
                }
                written = Some(sent);
            }
            Take::Wait(holder) if is_over => {
                let reason =
                    format!("the run of {holder} is still at work; wait for it to end, or end it");
                return Err(held(lease, &reason));
            }
            Take::Wait(holder) => {
                if told.as_ref() != Some(&holder) {
                    tell(&format!("waiting for the run of {holder}, to end"));
                }
                told = Some(holder);
            }
        }
        thread::sleep(PAUSE);
    }
}

fn write(
    connection: &Connection,
    lease: &Lease,
    before: Option<&Value>,
) -> Result<Option<Value>, LockError> {
    let verb = if before.is_some() { "update" } else { "create" };
    let written = lease.write(connection, Turn::Queued, before, &now());
    written.map_err(|error| failed(lease, verb, error))
}

/// For how long a Lease has been seen not to change.
#[derive(Default)]
struct Unchanged {
    version: Option<String>,
    /// When the answer came that showed it so first.
    since: Duration,
}

impl Unchanged {
    /// For how many seconds a Lease that was `asked` for at a time has been so: from the answer that showed it first to
    /// before this question, at least.
    fn seconds(&mut self, live: &Value, asked: Duration) -> u64 {
        let version = metadata::text(live, "resourceVersion").map(str::to_owned);
        if self.version.is_none() || self.version != version {
            self.version = version;
            self.since = clock();
        }
        asked.saturating_sub(self.since).as_secs()
    }
}

fn held(lease: &Lease, reason: &str) -> LockError {
    LockError::Held(format!("{}: {reason}", lease.key))
}

fn failed(lease: &Lease, verb: &'static str, error: ApiError) -> LockError {
    if error.kind() != Some(RefusalKind::Forbidden) {
        return LockError::Api(error);
    }
    LockError::Forbidden {
        about: lease.key.to_string(),
        verb,
        namespace: lease.key.namespace.clone(),
    }
}
