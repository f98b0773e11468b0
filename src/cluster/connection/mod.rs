//! Sends requests to an API server: on behalf of the user that the kubeconfig and flags say, again where that helps and
//! does no harm, and never for longer than the run may take.
//!
//! The connection itself is kube's, without its retries: they wait for as long as a server says. Which kubeconfig and which
//! part of it count is decided as k8s.io/client-go `tools/clientcmd` does.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "I/O edge"
)]

mod chosen;
mod discovery;
mod ending;
mod error;
mod exchange;
mod kubeconfig;
mod login;
mod plugin;
mod proxy;
mod retry;
mod runtime;
mod sending;
mod session;
mod settings;
mod transport;
mod warnings;

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::sync::Semaphore;

use self::{
    ending::Ending, kubeconfig::Kubeconfig, login::Logins, runtime::Engine, session::Session,
    transport::Transport, warnings::Warnings,
};
pub use self::{error::ConnectionError, settings::ConnectionSettings};
use super::{
    AT_ONCE,
    answer::{Answer, ApiError},
    request::{Accept, Request},
    resource::Resources,
};

/// When a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// When fewer than [`AT_ONCE`] others are on their way.
    Queued,
    /// At once, however many others are, for so long at most, and only once: what is worth nothing when it comes late.
    Ahead(Duration),
}

/// Tells a person a line.
type Tell = dyn Fn(&str) + Send + Sync;

/// What is told of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The context of the kubeconfig.
    pub context: String,
    /// The address of the server, without a password.
    pub server: String,
    /// The namespace of the context, if it has one.
    pub namespace: Option<String>,
}

/// A connection. It may be used by several threads at once; each call waits until its answer is there.
pub struct Connection {
    // Dropped before the threads that it runs on.
    session: Session,
    engine: Engine,
    about: About,
    request_timeout: Option<Duration>,
    ending: Ending,
    permits: Semaphore,
    warnings: Mutex<Warnings>,
    /// What the server serves, and when that was asked.
    resources: Mutex<Option<(Instant, Arc<Resources>)>>,
    /// Whether the server has served one thing and listed another for longer than that is waited for.
    is_at_odds: AtomicBool,
    /// Whether the server has answered in this run.
    is_known: AtomicBool,
    /// Whom to tell that something is waited for, and when that was done last.
    on_wait: OnceLock<Box<Tell>>,
    told: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects as the settings say. Nothing is sent yet, but a credential plugin is run.
    ///
    /// # Errors
    /// When the kubeconfig, a certificate or a credential plugin cannot be used.
    pub fn open(settings: &ConnectionSettings) -> Result<Self, ConnectionError> {
        let kubeconfig = Kubeconfig::read(settings.kubeconfig.as_deref())?;
        let chosen = chosen::choose(kubeconfig, settings)?;
        let transport = Transport::new(&chosen, settings.request_timeout)?;
        let authority = transport.authority.as_deref();
        let identity = transport.identity.clone();
        let logins = Logins::of(&chosen, authority, identity, settings.plugin_timeout)?;
        let engine = Engine::start();
        let engine = engine.map_err(|error| ConnectionError::Config(error.to_string()))?;
        let session = Session::start(transport, logins, engine.handle().clone())?;
        Ok(Self {
            about: About {
                context: super::answer::clean(&chosen.context, 300),
                server: session.server().to_owned(),
                namespace: chosen.namespace,
            },
            session,
            engine,
            request_timeout: settings.request_timeout.filter(|time| !time.is_zero()),
            ending: Ending::default(),
            permits: Semaphore::new(AT_ONCE),
            warnings: Mutex::default(),
            resources: Mutex::default(),
            is_at_odds: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
            on_wait: OnceLock::new(),
            told: Mutex::default(),
        })
    }

    /// Where it leads to, for messages.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether the run has ended, so that nothing more is sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ending.left().is_err()
    }

    /// Sends a request and waits for the answer. What a server could not do for now is asked for again; after a change that
    /// may have been made by a try before, a refusal that it is there already or has been changed may be our own doing.
    ///
    /// # Errors
    /// When it was refused, or there was no answer.
    pub fn send(&self, request: &Request) -> Result<Answer, ApiError> {
        self.send_while(request, &|| true)
    }

    /// Sends a request as [`Connection::send`] does, as long as it may be: that is asked before each try, as much can have
    /// happened since the last one.
    ///
    /// # Errors
    /// As [`Connection::send`], and when it may not be sent (any more).
    pub fn send_while(
        &self,
        request: &Request,
        may: &dyn Fn() -> bool,
    ) -> Result<Answer, ApiError> {
        self.send_patiently(request, Turn::Queued, may)
    }

    /// Sends a request as [`Connection::send`] does, when its turn is.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_in(&self, request: &Request, turn: Turn) -> Result<Answer, ApiError> {
        self.send_patiently(request, turn, &|| true)
    }

    /// Asks for all parts of a list, and gives its objects, each with its `apiVersion` and `kind`. A list that is too old to
    /// be continued is asked for anew.
    ///
    /// # Errors
    /// As [`Connection::send`], and when it does not end.
    pub fn list_all(&self, request: &Request) -> Result<Vec<Value>, ApiError> {
        self.list_parts(request)
    }

    /// What the server serves. It is asked once; `refresh_resources` asks again, as after a definition was applied.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn resources(&self) -> Result<Arc<Resources>, ApiError> {
        self.recent_resources(Duration::MAX)
    }

    /// Asks again what the server serves.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn refresh_resources(&self) -> Result<Arc<Resources>, ApiError> {
        self.recent_resources(Duration::ZERO)
    }

    /// What the server serves, asked again when what is known is older than this. Who asks meanwhile gets the same answer.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn recent_resources(&self, age: Duration) -> Result<Arc<Resources>, ApiError> {
        let mut known = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, resources)) = &*known
            && asked.elapsed() < age
        {
            return Ok(Arc::clone(resources));
        }
        let resources = Arc::new(self.discover()?);
        *known = Some((Instant::now(), Arc::clone(&resources)));
        Ok(resources)
    }

    /// Whether the server has served one thing and listed another for long, so that it is waited for no more.
    pub fn is_at_odds(&self) -> bool {
        self.is_at_odds.load(Ordering::SeqCst)
    }

    /// Remembers that it has.
    pub fn set_at_odds(&self) {
        self.is_at_odds.store(true, Ordering::SeqCst);
    }

    /// The version of the server, such as `v1.36.1`.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn version(&self) -> Result<String, ApiError> {
        let request = Request::read("/version", Accept::Whole, "the version of the server");
        let answer = self.send(&request)?;
        let version = answer.body.get("gitVersion").and_then(Value::as_str);
        let version = version.ok_or_else(|| ApiError::NotKubernetes {
            about: request.about,
            reason: "it names no version".to_owned(),
        })?;
        Ok(super::answer::clean(version, 100))
    }

    /// The warnings that the server gave since this was called last, each once in a run, clean.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Sets whom to tell, in a line, that the server is waited for. Only the first one counts.
    pub fn on_wait(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.on_wait.set(Box::new(tell));
    }

    /// Sends nothing more from now on, and waits for nothing that is not on its way.
    pub fn stop(&self) {
        self.ending.stop();
    }

    /// Gives up what is not done at a point in time from now. After [`Connection::stop`], requests are sent again until
    /// then, so that a run that was interrupted can leave things in order.
    pub fn end_after(&self, time: Duration) {
        self.ending.after(time);
    }
}
