//! Holds the Lease of an install for the time of a run, and renews it on a thread of its own.
//!
//! Intervals are taken from a clock that goes on while the machine sleeps, so that a run that was stopped for a while knows
//! that its Lease may have run out; `lease.rs` says what is decided by them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

mod process;
mod requests;
mod waiting;

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

pub use self::process::this_process;
use self::{
    process::{clock, now},
    requests::{Lease, State},
    waiting::wait_for,
};
use super::{
    answer::{ApiError, RefusalKind},
    connection::{Connection, Turn},
    inventory::InstallName,
    lease::{self, Holder, RENEWED_EVERY, SECONDS},
    metadata,
    request::{Mode, Request},
};
/// The turn of what renews: it may not wait for what it is needed for, and is tried again while the Lease still holds.
const RENEWAL: Turn = Turn::Ahead(Duration::from_secs(4));
/// How long it may take to give a Lease back after the run was stopped.
const GIVING_BACK: Duration = Duration::from_secs(3);
/// How long before what could not be renewed is renewed again.
const PAUSE: Duration = Duration::from_secs(1);
/// For so long a Lease that has run out is asked for while the server does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Lease that is held. It is given back when it is dropped.
pub struct Lock {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no Lease.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it, for longer than we wait.
    #[error("{0}")]
    Held(String),
    /// It was held, and is not any more: another run may be at work.
    #[error("{0}")]
    Lost(String),
    /// The user may not do what it takes.
    #[error(
        "{about}: the user may not {verb} leases.coordination.k8s.io in namespace {namespace}, which keep two runs from changing one install; it takes get, create, update and delete"
    )]
    Forbidden {
        /// The Lease.
        about: String,
        /// What was refused.
        verb: &'static str,
        /// The namespace of the install.
        namespace: String,
    },
    /// It could not be asked for.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// What the run and the thread that renews both know.
struct Shared {
    connection: Arc<Connection>,
    lease: Lease,
    state: Mutex<State>,
    /// Held by whoever renews.
    renewing: Mutex<()>,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Lock {
    /// Takes the Lease of an install, waiting for at most `patience` while another run holds it; `tell` is told of whom is
    /// waited for, once for each.
    ///
    /// # Errors
    /// When it is still held then, or cannot be asked for, such as when its namespace is not there.
    pub fn take(
        connection: &Arc<Connection>,
        install: &InstallName,
        patience: Duration,
        tell: &dyn Fn(&str),
    ) -> Result<Self, LockError> {
        let lease = Lease::of(install);
        let state = wait_for(connection, &lease, patience, tell)?;
        let shared = Arc::new(Shared {
            connection: Arc::clone(connection),
            lease,
            state: Mutex::new(state),
            renewing: Mutex::new(()),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        });
        let renewed = Arc::clone(&shared);
        let thread = thread::Builder::new().name("lease".to_owned());
        // Without the thread the Lease holds for as long as it does, and each check renews it.
        let thread = thread.spawn(move || renewed.keep_renewing()).ok();
        Ok(Self { shared, thread })
    }

    /// Whether it is still held. Nothing may be written while it is not.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.shared.is_held()
    }

    /// Whether it is still held, or can be had back because nobody has taken it: the answer after the machine has slept, or
    /// the server has been away, for longer than a Lease holds. This may ask the server.
    ///
    /// # Errors
    /// When another run has it, or may have it.
    pub fn check(&self) -> Result<(), LockError> {
        let begun = clock();
        loop {
            let seen = lock(&self.shared.state).renewed;
            if self.is_held() {
                return Ok(());
            }
            let renewed = self.shared.renew(seen);
            if self.is_held() {
                return Ok(());
            }
            let may_pass = renewed.is_err_and(|error| error.may_pass());
            if !may_pass || clock().saturating_sub(begun) >= PATIENCE {
                break;
            }
            thread::sleep(PAUSE);
        }
        let lost = lock(&self.shared.state).lost.clone();
        let about = &self.shared.lease.key;
        Err(LockError::Lost(lost.unwrap_or_else(|| {
            format!("{about}: it could not be renewed for {SECONDS} seconds, so that another run may be at work")
        })))
    }

    /// Who holds it: this run.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.shared.lease.me
    }

    /// Gives it back.
    ///
    /// # Errors
    /// When the Lease could not be removed; it ends by itself then.
    pub fn release(mut self) -> Result<(), ApiError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ApiError> {
        if std::mem::replace(&mut *lock(&self.shared.is_over), true) {
            return Ok(());
        }
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A run that was stopped gets a little more time for it.
        if self.shared.connection.is_over() {
            self.shared.connection.end_after(GIVING_BACK);
        }
        self.shared.give_back()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody can be told, and the Lease ends by itself.
        let _ = self.end();
    }
}

impl Shared {
    fn is_held(&self) -> bool {
        let state = lock(&self.state);
        let since = clock().saturating_sub(state.renewed);
        state.lost.is_none() && since < Duration::from_secs(SECONDS)
    }

    /// Renews until the run is over, sooner again after a failure.
    fn keep_renewing(&self) {
        let mut pause = Duration::from_secs(RENEWED_EVERY);
        loop {
            let is_over = lock(&self.is_over);
            let waited = self
                .over
                .wait_timeout_while(is_over, pause, |is_over| !*is_over);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 || lock(&self.state).lost.is_some()
            {
                return;
            }
            let before = lock(&self.state).renewed;
            // Why it was not renewed matters only to who has to know whether it is held.
            drop(self.renew(before));
            let renewed = lock(&self.state).renewed;
            // An answer that took long says little about now.
            let since = clock().saturating_sub(renewed);
            pause = match renewed > before {
                true => Duration::from_secs(RENEWED_EVERY).saturating_sub(since),
                false => PAUSE,
            };
        }
    }

    /// Renews the Lease, unless that was done since it was `seen` as renewed last; what comes of it is in the state. As only
    /// the state that we stored last is replaced, it succeeds only where nobody has had the Lease in between, however long
    /// that was.
    ///
    /// # Errors
    /// When the server does not renew it, or does not say what has become of it.
    fn renew(&self, seen: Duration) -> Result<(), ApiError> {
        let _one = lock(&self.renewing);
        // The second try is for an earlier write of ours whose answer was lost, or a label that somebody has set.
        for _ in 0..2 {
            let live = {
                let state = lock(&self.state);
                if state.lost.is_some() || state.renewed > seen {
                    return Ok(());
                }
                state.live.clone()
            };
            let (time, sent) = (now(), clock());
            let lease = &self.lease;
            match lease.write(&self.connection, RENEWAL, Some(&live), &time) {
                Ok(Some(stored)) => *lock(&self.state) = State::stored(stored, sent),
                Ok(None) => self.look_again(&live, &time, sent)?,
                Err(error) if error.may_pass() => {
                    self.look_again(&live, &time, sent)?;
                    if lock(&self.state).renewed != sent {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finds out what has become of a Lease that is perhaps not as we stored it: it was written at `time`, or was not, by a
    /// request that was `sent`.
    fn look_again(&self, before: &Value, time: &str, sent: Duration) -> Result<(), ApiError> {
        let live = self.lease.get(&self.connection, RENEWAL)?;
        let mut state = lock(&self.state);
        let key = &self.lease.key;
        match live {
            Some(live)
                if lease::is_held_by(&live, &self.lease.me)
                    && metadata::uid(&live) == metadata::uid(before) =>
            {
                // The answer was lost, and the write was not: it holds from then on.
                if lease::is_renewed_at(&live, time) {
                    state.renewed = sent;
                }
                state.live = live;
            }
            Some(live) => {
                let holder = lease::holder(&live);
                state.lost = Some(format!("{key}: another run took over, that of {holder}"));
            }
            None => {
                state.lost = Some(format!(
                    "{key}: it was deleted, so that another run may be at work"
                ));
            }
        }
        Ok(())
    }

    /// Removes the Lease, unless it is another's by now.
    fn give_back(&self) -> Result<(), ApiError> {
        let state = lock(&self.state);
        if state.lost.is_some() {
            return Ok(());
        }
        let uid = metadata::uid(&state.live).unwrap_or_default();
        let version = metadata::text(&state.live, "resourceVersion").unwrap_or_default();
        let Lease { resource, key, .. } = &self.lease;
        let mut request = Request::delete(resource, key, uid, Mode::Write);
        // Whoever takes a Lease over keeps its uid, so that this takes the version too.
        let preconditions = request
            .body
            .as_mut()
            .and_then(|body| body.get_mut("preconditions")?.as_object_mut());
        if let Some(preconditions) = preconditions {
            preconditions.insert("resourceVersion".to_owned(), version.into());
        }
        match self.connection.send(&request) {
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                Some(RefusalKind::NotFound | RefusalKind::Changed) => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// What is behind a mutex; a thread that panicked leaves nothing half-written here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
