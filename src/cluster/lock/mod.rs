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

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

pub use self::process::this_process;
use self::process::{clock, is_dead};
use super::{
    answer::{ApiError, RefusalKind},
    connection::Connection,
    inventory::InstallName,
    lease::{self, Holder, RENEWED_EVERY, SECONDS, Take},
    request::{Mode, Request},
    resource::{Resource, Scope},
};
use crate::manifest::ObjectKey;

/// How long to wait before a Lease that is held is looked at again.
const PAUSE: Duration = Duration::from_millis(500);

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

/// A Lease, and who wants it.
struct Lease {
    resource: Resource,
    key: ObjectKey,
    me: Holder,
}

struct State {
    /// The Lease, as it was stored last.
    live: Value,
    /// When the request was sent that renewed it last.
    renewed: Duration,
    /// Why it is lost, once it is.
    lost: Option<String>,
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
        if !self.is_held() {
            self.shared.renew();
        }
        if self.is_held() {
            return Ok(());
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
        self.shared.give_back()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody can be told, and the Lease ends by itself.
        let _ = self.end();
    }
}

impl Lease {
    fn of(install: &InstallName) -> Self {
        let text = str::to_owned;
        Self {
            resource: Resource {
                group: text("coordination.k8s.io"),
                version: text("v1"),
                kind: text("Lease"),
                plural: text("leases"),
                scope: Scope::Namespaced,
            },
            key: ObjectKey {
                group: text("coordination.k8s.io"),
                kind: text("Lease"),
                namespace: install.namespace.clone(),
                name: install.secret(),
            },
            me: this_process(),
        }
    }

    /// The Lease as it is stored; nothing when there is none.
    fn get(&self, connection: &Connection) -> Result<Option<Value>, LockError> {
        match connection.send(&Request::get(&self.resource, &self.key)) {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) if error.kind() == Some(RefusalKind::NotFound) => Ok(None),
            Err(error) => Err(self.failed("get", error)),
        }
    }

    /// Writes it for this process, in place of `before`; nothing when another one was faster.
    fn write(
        &self,
        connection: &Connection,
        before: Option<&Value>,
    ) -> Result<Option<State>, LockError> {
        let ObjectKey {
            namespace, name, ..
        } = &self.key;
        let now = process::now();
        let body = lease::held(name, namespace, &self.me, &now, before);
        let (verb, request) = match before {
            None => ("create", Request::create(&self.resource, &self.key, body)),
            Some(_) => ("update", Request::replace(&self.resource, &self.key, body)),
        };
        let renewed = clock();
        match connection.send(&request) {
            Ok(answer) => Ok(Some(State {
                live: answer.body,
                renewed,
                lost: None,
            })),
            Err(error) => match (error.kind(), before) {
                (Some(RefusalKind::Changed | RefusalKind::AlreadyExists), _)
                | (Some(RefusalKind::NotFound), Some(_)) => Ok(None),
                _ => Err(self.failed(verb, error)),
            },
        }
    }

    fn failed(&self, verb: &'static str, error: ApiError) -> LockError {
        if error.kind() != Some(RefusalKind::Forbidden) {
            return LockError::Api(error);
        }
        LockError::Forbidden {
            about: self.key.to_string(),
            verb,
            namespace: self.key.namespace.clone(),
        }
    }
}

/// Takes a Lease, waiting while it is held.
fn wait_for(
    connection: &Connection,
    lease: &Lease,
    patience: Duration,
    tell: &dyn Fn(&str),
) -> Result<State, LockError> {
    let begun = clock();
    let mut seen: (Value, Duration) = (Value::Null, begun);
    let mut told: Option<Holder> = None;
    let mut written = None;
    loop {
        // It has stayed the same from the answer that showed it first to before this question, at least.
        let asked = clock();
        let live = lease.get(connection)?;
        let is_mine = |live: &Value| lease::is_held_by(live, &lease.me);
        let take = match (&live, written) {
            // The answer to our write was lost, and the write was not.
            (Some(live), Some(renewed)) if is_mine(live) => {
                return Ok(State {
                    live: live.clone(),
                    renewed,
                    lost: None,
                });
            }
            (None, _) => Take::Now,
            (Some(live), _) => {
                let version = live
                    .pointer("/metadata/resourceVersion")
                    .cloned()
                    .unwrap_or_default();
                if seen.0 != version {
                    seen = (version, clock());
                }
                let unchanged = asked.saturating_sub(seen.1).as_secs();
                lease::take(live, &lease.me, unchanged, &is_dead)
            }
        };
        let is_over = clock().saturating_sub(begun) >= patience;
        match take {
            Take::Now => {
                written = Some(clock());
                if let Some(state) = lease.write(connection, live.as_ref())? {
                    return Ok(state);
                }
                if is_over {
                    let message = format!(
                        "{}: other runs are at work; try again when they have ended",
                        lease.key
                    );
                    return Err(LockError::Held(message));
                }
            }
            Take::Wait(holder) if is_over => {
                let message = format!(
                    "{}: the run of {holder} is still at work; wait for it to end, or end it",
                    lease.key
                );
                return Err(LockError::Held(message));
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
            self.renew();
            let renewed = lock(&self.state).renewed;
            // An answer that took long says little about now.
            let since = clock().saturating_sub(renewed);
            pause = match renewed > before {
                true => Duration::from_secs(RENEWED_EVERY).saturating_sub(since),
                false => Duration::from_secs(1),
            };
        }
    }

    /// Renews the Lease; what comes of it is in the state. As only the state that we stored last is replaced, it succeeds
    /// only where nobody has had the Lease in between, however long that was.
    fn renew(&self) {
        let _one = lock(&self.renewing);
        // The second try is for an earlier write of ours whose answer was lost, or a label that somebody has set.
        for _ in 0..2 {
            let live = {
                let state = lock(&self.state);
                if state.lost.is_some() {
                    return;
                }
                state.live.clone()
            };
            match self.lease.write(&self.connection, Some(&live)) {
                Ok(Some(renewed)) => {
                    *lock(&self.state) = renewed;
                    return;
                }
                Ok(None) => self.look_again(&live),
                Err(_) => return,
            }
        }
    }

    /// Finds out what has become of a Lease that is not as we stored it.
    fn look_again(&self, before: &Value) {
        let Ok(live) = self.lease.get(&self.connection) else {
            return;
        };
        let mut state = lock(&self.state);
        let key = &self.lease.key;
        let uid = |lease: &Value| lease.pointer("/metadata/uid").cloned();
        match live {
            Some(live) if lease::is_held_by(&live, &self.lease.me) && uid(&live) == uid(before) => {
                state.live = live;
            }
            Some(live) => {
                let identity = live.pointer("/spec/holderIdentity").and_then(Value::as_str);
                let holder = Holder::of_identity(identity.unwrap_or_default());
                state.lost = Some(format!("{key}: another run took over, that of {holder}"));
            }
            None => {
                state.lost = Some(format!(
                    "{key}: it was deleted, so that another run may be at work"
                ))
            }
        }
    }

    /// Removes the Lease, unless it is another's by now.
    fn give_back(&self) -> Result<(), ApiError> {
        let state = lock(&self.state);
        if state.lost.is_some() {
            return Ok(());
        }
        let of = |field: &str| {
            state
                .live
                .get("metadata")
                .and_then(|metadata| metadata.get(field)?.as_str())
        };
        let (uid, version) = (
            of("uid").unwrap_or_default(),
            of("resourceVersion").unwrap_or_default(),
        );
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
