//! What opens a repository, found out once and then used by all requests for it.
//!
//! The first request says nothing of who asks. When a registry wants to know, the credentials that match are tried in
//! turn, the best first, as the kubelet does; when none match, a token is asked for without any. Only one request at a
//! time finds out, the others wait for it and use the same.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use reqwest::{StatusCode, Url, header::HeaderValue};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

use super::{
    answer::{self, Answer},
    challenge::{self, Challenge},
    error::RegistryError,
    request::{self, Ask, Target},
    token,
    wanted::{Repository, Wanted},
    world::World,
};
use crate::source::credentials::Credential;

/// How often one request is sent with different credentials or tokens.
const TURNS: usize = 16;

/// What opens each repository.
#[derive(Debug, Default)]
pub(super) struct Access {
    doors: Mutex<BTreeMap<String, Arc<AsyncMutex<Door>>>>,
}

/// What shows a registry who asks.
#[derive(Debug)]
pub(super) struct Pass {
    /// The header that is sent.
    pub(super) header: HeaderValue,
    /// When it has to be renewed; nothing for a password.
    pub(super) renewal: Option<Instant>,
}

/// What is known of one repository.
#[derive(Debug, Default)]
struct Door {
    /// What requests show; nothing as long as nothing is wanted.
    pass: Option<Pass>,
    standing: Standing,
    /// What the registry wants, and its address.
    challenge: Option<(Challenge, Url)>,
    /// The credentials that match, once they were wanted.
    candidates: Option<Vec<Credential>>,
    /// Which of them is used.
    turn: usize,
}

/// What a registry has made of a pass so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    /// Nothing.
    #[default]
    New,
    /// It stands for one that the registry did not take, from the same credentials.
    Renewed,
    /// It was taken.
    Proven,
}

/// Asks for something of a repository, from a byte on, with whatever it takes.
///
/// # Errors
/// When there is no answer, or the answer is no success.
pub(super) async fn get(
    world: &World,
    repository: &Repository,
    wanted: &Wanted,
    from: u64,
) -> Result<Answer, RegistryError> {
    let door = world.access.door(repository);
    let mut sent = door.lock().await.current(world, repository).await?;
    let mut turns = 0;
    loop {
        let ask = Ask {
            target: Target::Registry(repository, wanted.path(&repository.name)),
            accept: wanted.accept(),
            authorization: sent.clone(),
            from,
            limit: wanted.limit(),
        };
        let answer = request::answer(&world.clients, &ask).await?;
        if answer.status.is_success() {
            door.lock().await.prove(&sent);
            return Ok(answer);
        }
        turns += 1;
        let may_be_about_rights = matches!(
            answer.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND
        );
        if !may_be_about_rights || turns == TURNS {
            return Err(answer::answered(&answer));
        }
        let mut door = door.lock().await;
        if sent == door.header() && !door.prepare(world, repository, &answer).await? {
            return Err(door.denied(world, repository, wanted, &answer));
        }
        // Either this has found out something else to send, or another request did in the meantime.
        sent = door.header();
    }
}

impl Access {
    fn door(&self, repository: &Repository) -> Arc<AsyncMutex<Door>> {
        let key = format!("{} {:?}", repository.full_name(), repository.checked);
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(doors.entry(key).or_default())
    }
}

impl Door {
    /// What a request sends now. A token that is about to end is renewed.
    async fn current(
        &mut self,
        world: &World,
        repository: &Repository,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let renewal = self.pass.as_ref().and_then(|pass| pass.renewal);
        if renewal.is_some_and(|renewal| renewal <= Instant::now()) {
            // When it is refused now, so will the request be, and others are tried then.
            self.open(world, repository).await?;
        }
        Ok(self.header())
    }

    fn header(&self) -> Option<HeaderValue> {
        self.pass.as_ref().map(|pass| pass.header.clone())
    }

    fn prove(&mut self, sent: &Option<HeaderValue>) {
        if *sent == self.header() {
            self.standing = Standing::Proven;
        }
    }

    /// Prepares what is sent after a refusal; false when there is nothing left to try.
    async fn prepare(
        &mut self,
        world: &World,
        repository: &Repository,
        answer: &Answer,
    ) -> Result<bool, RegistryError> {
        // Another server, that the registry sent to, has no say in who asks the registry.
        if answer.url.origin() != answer.asked.origin() {
            return Ok(false);
        }
        let is_unknown = answer.status == StatusCode::UNAUTHORIZED;
        if is_unknown && let Some(challenge) = challenge::parse(&answer.headers) {
            self.challenge = Some((challenge, answer.url.clone()));
        }
        if self.challenge.is_none() {
            return Ok(false);
        }
        self.look_up(world, repository).await?;
        let is_token = self
            .pass
            .as_ref()
            .is_some_and(|pass| pass.renewal.is_some());
        let is_unknown_token = is_unknown && is_token;
        match self.standing {
            _ if self.pass.is_none() => self.standing = Standing::New,
            // It was good, and has ended earlier than was said.
            Standing::Proven if is_unknown_token => self.standing = Standing::Renewed,
            // What opens the repository does not lack rights to a part of it.
            Standing::Proven => return Ok(false),
            Standing::New if is_unknown_token && challenge::refuses_token(&answer.headers) => {
                self.standing = Standing::Renewed;
            }
            Standing::New | Standing::Renewed => self.take_turn(),
        }
        self.open_in_turn(world, repository).await
    }

    /// Prepares what the first credentials that are of any use open the repository with, from those on whose turn it is.
    async fn open_in_turn(
        &mut self,
        world: &World,
        repository: &Repository,
    ) -> Result<bool, RegistryError> {
        while self.has_turn() {
            if self.open(world, repository).await? {
                return Ok(true);
            }
            self.take_turn();
        }
        Ok(false)
    }

    /// Credentials are found out when somebody wants them, because that may run other programs.
    async fn look_up(
        &mut self,
        world: &World,
        repository: &Repository,
    ) -> Result<(), RegistryError> {
        if self.candidates.is_some() {
            return Ok(());
        }
        let credentials = Arc::clone(&world.credentials);
        let Repository { registry, name, .. } = repository.clone();
        let found = tokio::task::spawn_blocking(move || credentials.of(&registry, &name)).await;
        let found = found.map_err(|error| RegistryError::Setup(error.to_string()))?;
        self.candidates = Some(found.map_err(|source| RegistryError::Credentials {
            name: repository.full_name(),
            source,
        })?);
        Ok(())
    }

    /// Whether there is something to try: the credentials that match, or a token without any when none do.
    fn has_turn(&self) -> bool {
        let count = self.candidates.as_ref().map_or(0, Vec::len);
        let is_bearer = matches!(self.challenge, Some((Challenge::Bearer { .. }, _)));
        self.turn < count || (count == 0 && self.turn == 0 && is_bearer)
    }

    fn take_turn(&mut self) {
        self.turn += 1;
        self.standing = Standing::New;
    }

    /// Prepares what the credentials whose turn it is open the repository with; false when they are of no use.
    async fn open(
        &mut self,
        world: &World,
        repository: &Repository,
    ) -> Result<bool, RegistryError> {
        let candidates = self.candidates.as_ref();
        let credential = candidates.and_then(|all| all.get(self.turn));
        let pass = match &self.challenge {
            None => None,
            Some((Challenge::Basic, _)) => credential.and_then(token::basic).map(|header| Pass {
                header,
                renewal: None,
            }),
            Some((Challenge::Bearer { realm, service }, registry)) => {
                let service = service.as_deref();
                token::fetch(world, repository, registry, realm, service, credential).await?
            }
        };
        let is_open = pass.is_some();
        self.pass = pass.or(self.pass.take());
        Ok(is_open)
    }

    /// The error for a refusal after which nothing is left to try. The next request begins with the best credentials
    /// again: what this one wanted may not be there at all, and the last ones may open less than the first.
    fn denied(
        &mut self,
        world: &World,
        repository: &Repository,
        wanted: &Wanted,
        answer: &Answer,
    ) -> RegistryError {
        let candidates = self.candidates.as_deref().unwrap_or_default();
        let tried = candidates.iter().take(self.turn.saturating_add(1));
        let tried: Vec<_> = tried.map(|credential| credential.origin.as_str()).collect();
        let places = self.candidates.as_ref().map(|_| world.credentials.places());
        let error = answer::denied(answer, repository, wanted, &tried, places.as_deref());
        if !self.has_turn() {
            if candidates.len() > 1 {
                self.pass = None;
            }
            self.turn = 0;
        }
        error
    }
}
