//! The client that is in use and the login that it goes with, both replaced when the login ends or is not accepted any more.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::runtime::Handle;

use super::{
    ConnectionError,
    login::{Login, Logins},
    transport::Transport,
};

/// A login that ends so soon is not used any more.
const TOO_SOON: SignedDuration = SignedDuration::from_secs(10);
/// Logins that end at once are not asked for more often than this.
const PAUSE: Duration = Duration::from_secs(10);

/// What requests are sent with.
pub(super) struct Session {
    transport: Transport,
    logins: Logins,
    handle: Handle,
    current: Mutex<Current>,
}

/// What is in use.
struct Current {
    client: Client,
    login: Login,
    number: u64,
    since: Instant,
}

/// What one request is sent with.
pub(super) struct Pass {
    pub(super) client: Client,
    pub(super) authorization: Option<HeaderValue>,
    /// Which login it is, to tell whether it has been replaced since.
    pub(super) number: u64,
}

impl Session {
    /// Logs in.
    ///
    /// # Errors
    /// When there is no login, or no client can be made with it.
    pub(super) fn start(
        transport: Transport,
        logins: Logins,
        handle: Handle,
    ) -> Result<Self, ConnectionError> {
        let login = logins.get(Timestamp::now())?;
        let client = make(&transport, &login, &handle)?;
        let current = Mutex::new(Current {
            client,
            login,
            number: 0,
            since: Instant::now(),
        });
        Ok(Self {
            transport,
            logins,
            handle,
            current,
        })
    }

    /// What to send a request with now. The others wait while somebody logs in.
    ///
    /// # Errors
    /// When the login has ended and there is no other.
    pub(super) fn pass(&self) -> Result<Pass, ConnectionError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Timestamp::now();
        let ends = current.login.expires;
        let is_ending = ends.is_some_and(|end| end.duration_since(now) < TOO_SOON);
        if is_ending && current.since.elapsed() > PAUSE {
            self.replace(&mut current)?;
        }
        Ok(Pass {
            client: current.client.clone(),
            authorization: current.login.authorization.clone(),
            number: current.number,
        })
    }

    /// Logs in again after a login was not accepted; whether there is another one now.
    ///
    /// # Errors
    /// When there is no other.
    pub(super) fn renew(&self, number: u64) -> Result<bool, ConnectionError> {
        if !self.logins.can_change() {
            return Ok(false);
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been faster.
        if current.number == number {
            self.replace(&mut current)?;
        }
        Ok(true)
    }

    /// The server, for messages.
    pub(super) fn server(&self) -> &str {
        &self.transport.server
    }

    fn replace(&self, current: &mut Current) -> Result<(), ConnectionError> {
        let login = self.logins.get(Timestamp::now())?;
        // Connections stay open as long as the certificate is the same: it is what they were made with.
        if login.identity.is_some() {
            current.client = make(&self.transport, &login, &self.handle)?;
        }
        current.login = login;
        current.number += 1;
        current.since = Instant::now();
        Ok(())
    }
}

fn make(transport: &Transport, login: &Login, handle: &Handle) -> Result<Client, ConnectionError> {
    let _guard = handle.enter();
    transport.client(login)
}
