//! The Lease of an install, as it is read and written. What it says is in `lease.rs`; nothing is decided here.

use std::time::Duration;

use serde_json::Value;

use super::{
    super::{
        answer::{ApiError, RefusalKind},
        connection::{Connection, Turn},
        inventory::InstallName,
        lease::{self, Holder},
        request::Request,
        resource::{Resource, Scope},
    },
    process::this_process,
};
use crate::manifest::ObjectKey;

/// A Lease, and who wants it.
pub(super) struct Lease {
    pub(super) resource: Resource,
    pub(super) key: ObjectKey,
    pub(super) me: Holder,
}

/// What is known of a Lease that was taken.
pub(super) struct State {
    /// The Lease, as it was stored last.
    pub(super) live: Value,
    /// When the request was sent that renewed it last.
    pub(super) renewed: Duration,
    /// Why it is lost, once it is.
    pub(super) lost: Option<String>,
}

impl State {
    /// Of a Lease that a request has stored.
    pub(super) fn stored(live: Value, sent: Duration) -> Self {
        Self {
            live,
            renewed: sent,
            lost: None,
        }
    }
}

impl Lease {
    /// The Lease of an install, for this process.
    pub(super) fn of(install: &InstallName) -> Self {
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
    ///
    /// # Errors
    /// When the server does not say.
    pub(super) fn get(
        &self,
        connection: &Connection,
        turn: Turn,
    ) -> Result<Option<Value>, ApiError> {
        match connection.send_in(&Request::get(&self.resource, &self.key), turn) {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) if error.kind() == Some(RefusalKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores the Lease, held by this process from a time on (RFC 3339), in place of exactly `before`, and gives it as it is
    /// stored; nothing when it was changed since, or deleted, or another one was faster.
    ///
    /// # Errors
    /// When the server does not take it.
    pub(super) fn write(
        &self,
        connection: &Connection,
        turn: Turn,
        before: Option<&Value>,
        time: &str,
    ) -> Result<Option<Value>, ApiError> {
        let ObjectKey {
            namespace, name, ..
        } = &self.key;
        let body = lease::held(name, namespace, &self.me, time, before);
        let request = match before {
            None => Request::create(&self.resource, &self.key, body),
            Some(_) => Request::replace(&self.resource, &self.key, body),
        };
        match connection.send_in(&request, turn) {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) => match (error.kind(), before) {
                (Some(RefusalKind::Changed | RefusalKind::AlreadyExists), _)
                | (Some(RefusalKind::NotFound), Some(_)) => Ok(None),
                _ => Err(error),
            },
        }
    }
}
