//! Sends a request until there is an answer to it, or trying again does not help.

use std::{
    sync::{PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use http::{HeaderValue, header};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value;

use super::super::{
    answer::{Again, Answer, ApiError, Refusal, RefusalKind},
    request::{Accept, Method, Request, escape},
};
use super::{
    Connection, ConnectionError, Turn,
    exchange::{Broken, Reply, exchange},
    retry::{Patience, Server, Trouble, retry_after},
    session::Pass,
};

/// The longest time that a server is asked to try for. It has 34 seconds for changes itself.
const LONGEST_FOR_SERVER: Duration = Duration::from_secs(34);
/// Waits that are longer than this are told.
const WORTH_TELLING: Duration = Duration::from_millis(900);
/// How often it is told that the server is waited for.
const TELLING_PAUSE: Duration = Duration::from_secs(5);

/// A try that failed.
struct Failure {
    error: Box<ApiError>,
    trouble: Trouble,
    /// Whether what was asked for may have been done.
    is_perhaps_done: bool,
    /// The login that was not accepted.
    rejected: Option<u64>,
}

/// Whether an earlier try may have done what was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    /// It was sent once, or the server said that it did nothing.
    No,
    /// An earlier try may have been carried out.
    Perhaps,
}

impl Connection {
    pub(super) fn send_patiently(
        &self,
        request: &Request,
        turn: Turn,
        may: &dyn Fn() -> bool,
    ) -> Result<Answer, ApiError> {
        let begun = Instant::now();
        let mut patience = Patience::default();
        let mut repeated = Repeated::No;
        let mut has_renewed = false;
        loop {
            if !may() {
                let stopped = ApiError::Stopped {
                    about: request.about.clone(),
                };
                return Err(self.give_up(stopped, &patience, begun, repeated));
            }
            let failure = match self.try_once(request, turn) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if failure.is_perhaps_done && request.is_write() {
                repeated = Repeated::Perhaps;
            }
            if let Some(number) = failure.rejected
                && !std::mem::replace(&mut has_renewed, true)
                && self.renew(request, number)?
            {
                continue;
            }
            let server = match self.is_known.load(Ordering::Relaxed) {
                true => Server::Known,
                false => Server::Unknown,
            };
            let wait = match turn {
                Turn::Queued => patience.after(failure.trouble, server, fastrand::f64()),
                Turn::Ahead(_) => None,
            };
            let failed =
                || self.give_up(ApiError::clone(&failure.error), &patience, begun, repeated);
            let Some(wait) = wait else {
                return Err(failed());
            };
            self.tell_of(wait, &failure.error);
            let paused = self.engine.handle().block_on(self.ending.pause(wait));
            if paused.is_err() {
                return Err(failed());
            }
        }
    }

    fn try_once(&self, request: &Request, turn: Turn) -> Result<Answer, Failure> {
        let stopped = || Failure {
            error: Box::new(ApiError::Stopped {
                about: request.about.clone(),
            }),
            trouble: Trouble::Lasting,
            is_perhaps_done: false,
            rejected: None,
        };
        self.ending.left().map_err(|_| stopped())?;
        let pass = self.session.pass().map_err(|error| Failure {
            error: Box::new(self.no_login(request, &error)),
            trouble: Trouble::Lasting,
            is_perhaps_done: false,
            rejected: None,
        })?;
        let number = pass.number;
        let reply = self.engine.handle().block_on(async {
            let permit = async {
                match turn {
                    Turn::Queued => Some(self.permits.acquire().await),
                    Turn::Ahead(_) => None,
                }
            };
            let _permit = self
                .ending
                .unless_over(permit)
                .await
                .map_err(|_| stopped())?;
            let time = self.time_for_a_try(turn).map_err(|_| stopped())?;
            let message = self
                .message(request, &pass, time)
                .map_err(|reason| Failure {
                    error: Box::new(ApiError::Unreachable {
                        about: request.about.clone(),
                        reason,
                    }),
                    ..stopped()
                })?;
            let exchange = exchange(&pass.client, message);
            let reply = match time {
                None => Ok(exchange.await),
                Some(time) => tokio::time::timeout(time, exchange).await,
            };
            let reply = reply.unwrap_or_else(|_| Err(silence(time)));
            reply.map_err(|broken| self.not_answered(request, broken))
        })?;
        self.is_known.store(true, Ordering::Relaxed);
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for header in reply.headers.get_all(header::WARNING) {
            warnings.add(header.as_bytes(), request);
        }
        drop(warnings);
        read(request, &reply, number)
    }

    /// How long a try may take.
    fn time_for_a_try(&self, turn: Turn) -> Result<Option<Duration>, super::ending::Over> {
        let worth = match turn {
            Turn::Queued => None,
            Turn::Ahead(time) => Some(time),
        };
        let limits = [self.ending.left()?, self.request_timeout, worth];
        Ok(limits.into_iter().flatten().min())
    }

    /// The request as it goes over the wire. The server is told how long it may try, a little less than is waited for.
    fn message(
        &self,
        request: &Request,
        pass: &Pass,
        time: Option<Duration>,
    ) -> Result<http::Request<Body>, String> {
        let for_server = time.map_or(LONGEST_FOR_SERVER, |time| time.mul_f64(0.9));
        let for_server = for_server.min(LONGEST_FOR_SERVER).as_millis().max(1);
        let mut uri = format!("{}?timeout={for_server}ms", request.path);
        for (name, value) in &request.query {
            uri.push_str(&format!("&{name}={}", escape(value)));
        }
        let (method, content_type) = match request.method {
            Method::Get => (http::Method::GET, "application/json"),
            Method::Post => (http::Method::POST, "application/json"),
            Method::Put => (http::Method::PUT, "application/json"),
            // JSON is YAML.
            Method::Apply => (http::Method::PATCH, "application/apply-patch+yaml"),
            Method::Merge => (http::Method::PATCH, "application/merge-patch+json"),
            Method::Delete => (http::Method::DELETE, "application/json"),
        };
        let mut message = http::Request::builder()
            .method(method)
            .uri(uri)
            .header(header::ACCEPT, accept(request.accept));
        if let Some(authorization) = &pass.authorization {
            message = message.header(header::AUTHORIZATION, authorization);
        }
        let body = match &request.body {
            None => Body::empty(),
            Some(body) => {
                message = message.header(header::CONTENT_TYPE, content_type);
                Body::from(serde_json::to_vec(body).map_err(|error| error.to_string())?)
            }
        };
        message.body(body).map_err(|error| error.to_string())
    }

    fn not_answered(&self, request: &Request, broken: Broken) -> Failure {
        let error = ApiError::Unreachable {
            about: request.about.clone(),
            reason: format!("{}: {}", self.about.server, broken.reason),
        };
        Failure {
            error: Box::new(error),
            is_perhaps_done: broken.trouble != Trouble::NotConnected,
            trouble: broken.trouble,
            rejected: None,
        }
    }

    /// Logs in again; whether there is another login now.
    fn renew(&self, request: &Request, number: u64) -> Result<bool, ApiError> {
        let renewed = self.session.renew(number);
        renewed.map_err(|error| self.no_login(request, &error))
    }

    fn no_login(&self, request: &Request, error: &ConnectionError) -> ApiError {
        ApiError::Refused(Refusal {
            about: request.about.clone(),
            code: 401,
            reason: "Unauthorized".to_owned(),
            message: format!(
                "there are no new credentials for context {}: {error}",
                self.about.context
            ),
            causes: vec![],
            kind: RefusalKind::Credentials,
        })
    }

    /// The error of a request that is not sent again, with how long it was tried.
    fn give_up(
        &self,
        error: ApiError,
        patience: &Patience,
        begun: Instant,
        repeated: Repeated,
    ) -> ApiError {
        let mut more = String::new();
        if patience.tries() > 1 {
            let seconds = begun.elapsed().as_secs();
            more.push_str(&format!(
                " (tried {} times in {seconds} s)",
                patience.tries()
            ));
        }
        if repeated == Repeated::Perhaps {
            more.push_str("; the change may have been made all the same");
        }
        match error {
            ApiError::Unreachable { about, reason } => ApiError::Unreachable {
                about,
                reason: reason + &more,
            },
            ApiError::NotKubernetes { about, reason } => ApiError::NotKubernetes {
                about,
                reason: reason + &more,
            },
            ApiError::Refused(mut refusal) if refusal.kind == RefusalKind::Credentials => {
                let context = &self.about.context;
                refusal.message = format!(
                    "the credentials for context {context} are not accepted (any more): {}",
                    refusal.message
                );
                ApiError::Refused(refusal)
            }
            ApiError::Refused(mut refusal) => {
                refusal.message += &more;
                ApiError::Refused(refusal)
            }
            // It was sent before, so it cannot be said that it was not.
            ApiError::Stopped { about } if patience.tries() > 1 => ApiError::Unreachable {
                about,
                reason: format!("the run ended before there was an answer{more}"),
            },
            ApiError::Stopped { about } => ApiError::Stopped { about },
        }
    }

    /// Tells that the server is waited for, not too often.
    fn tell_of(&self, wait: Duration, error: &ApiError) {
        let Some(tell) = self.on_wait.get().filter(|_| wait >= WORTH_TELLING) else {
            return;
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < TELLING_PAUSE) {
            return;
        }
        *told = Some(Instant::now());
        drop(told);
        tell(&format!("waiting for the API server: {error}"));
    }
}

fn silence(time: Option<Duration>) -> Broken {
    let seconds = time.unwrap_or_default().as_secs_f32();
    Broken {
        trouble: Trouble::Silence,
        reason: format!("no whole answer in {seconds} seconds"),
    }
}

fn accept(accept: Accept) -> HeaderValue {
    HeaderValue::from_static(match accept {
        Accept::Whole => "application/json",
        Accept::Metadata => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
        Accept::MetadataList => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        Accept::Discovery => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
        }
    })
}

/// What an answer says.
fn read(request: &Request, reply: &Reply, number: u64) -> Result<Answer, Failure> {
    let strange = |reason: String, trouble| Failure {
        error: Box::new(ApiError::NotKubernetes {
            about: request.about.clone(),
            reason,
        }),
        trouble,
        is_perhaps_done: true,
        rejected: None,
    };
    let code = reply.code;
    match code {
        200..300 => match serde_json::from_slice(&reply.body) {
            Ok(body @ Value::Object(_)) => Ok(Answer {
                code,
                body,
                bytes: reply.body.len(),
            }),
            // Where nothing says how long an answer is, it may end anywhere.
            Err(error) if error.is_eof() && reply.body.starts_with(b"{") => {
                Err(strange("it broke off".to_owned(), Trouble::Broken))
            }
            _ => Err(strange(
                format!("{code} with {}", shape(reply)),
                Trouble::Lasting,
            )),
        },
        ..400 => Err(strange(
            format!("{code}, which leads elsewhere"),
            Trouble::Lasting,
        )),
        _ => Err(refused(request, reply, number)),
    }
}

/// What an answer is that is none, without repeating it.
fn shape(reply: &Reply) -> &'static str {
    let body = reply.body.trim_ascii_start();
    match body.first() {
        None => "nothing in it",
        Some(b'<') => "a web page",
        _ => "something that is no JSON object",
    }
}

fn refused(request: &Request, reply: &Reply, number: u64) -> Failure {
    let refusal = Refusal::read(request, reply.code, &reply.body);
    let again = refusal.again();
    let asked = reply.headers.get(header::RETRY_AFTER);
    let asked = asked.and_then(|asked| asked.to_str().ok());
    let asked = asked.and_then(|asked| retry_after(asked, Timestamp::now()));
    Failure {
        trouble: match again {
            Again::Never => Trouble::Lasting,
            Again::NotDone | Again::PerhapsDone => Trouble::Refused(asked),
        },
        is_perhaps_done: again == Again::PerhapsDone,
        rejected: (refusal.kind == RefusalKind::Credentials).then_some(number),
        error: Box::new(ApiError::Refused(refusal)),
    }
}
