//! A client for registries that only pulls, and that trusts nobody: not what a registry says of its content, not where
//! it sends to, and not how much it sends.
//!
//! It stands beside `oci-client`, whose types of error answers it uses ([`oci_client::errors`]), and on the same HTTP
//! client, reqwest. The three requests that pulling takes are made here, for what cannot be had of that crate (0.18):
//! - of all three: it makes its own HTTP client, and its `ClientConfig` has no word on redirects. So they are followed
//!   from https to http, and from any registry to this machine. What it reads whole, error answers too, has no bound;
//!   an answer's `Retry-After` is lost, and of a 401 the challenge.
//! - the token: `Client::auth` sends user and password to whatever `realm` the registry names, over http too. A token
//!   of ours could be put in its place (`TokenCache::insert`), but where the cache finds it expired, or a JWT that it
//!   cannot read, any request asks for another by itself, of whatever realm. Here `realm.rs` decides where a password
//!   may go.
//! - the manifest: `Client::pull_manifest_raw` does not give the media type that it was delivered as.
//! - the blob: `Client::pull_blob_stream_partial` does not give `Content-Range`. That an answer goes on at another byte
//!   than it was asked for would only come out at the end, by the digest. Here `download.rs` tells at once.
//!
//! The tests show on `oci-client` itself where a password goes, that a manifest has no bound and that https is left for
//! http, so that it will be noticed when that has changed.
//!
//! What is not done here: manifests are not read (that is [`crate::oci`]), nothing is kept ([`Registries`] forgets
//! everything but tokens), nothing is ever pushed.

mod access;
mod address;
mod answer;
mod broken;
mod challenge;
mod client;
mod download;
mod error;
mod manifest;
mod pace;
mod reader;
mod realm;
mod request;
mod retry;
mod runtime;
mod token;
mod wanted;
mod world;

use std::{
    fmt::Debug,
    io::Read,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::mpsc;

pub use self::error::{ErrorClass, RegistryError};
use self::{
    access::Access, address::HostPort, client::Clients, download::Piece, reader::BlobReader,
    runtime::Engine, wanted::Wanted, world::World,
};
use super::{credentials::Credentials, mirrors::Mirrors};
use crate::{
    image::ImageReference,
    oci::{
        digest::Digest,
        manifest::{Delivered, Descriptor},
    },
};

/// What the user sets about registries.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// Certificates of authorities, beside the system's.
    pub ca_files: Vec<CaFile>,
    /// Hosts, as `HOST` or `HOST:PORT`, whose certificate is not checked, and which may be asked without TLS when they
    /// do not answer with it.
    pub insecure: Vec<String>,
    /// Hosts, as `HOST` or `HOST:PORT`, that a registry may ask to send the password to.
    pub auth_hosts: Vec<String>,
    /// For how long nothing may come before a connection is given up.
    pub timeout: Duration,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self {
            ca_files: vec![],
            insecure: vec![],
            auth_hosts: vec![],
            timeout: Duration::from_secs(30),
        }
    }
}

/// A file of certificates of authorities.
#[derive(Debug, Clone)]
pub struct CaFile {
    /// The `HOST` or `HOST:PORT` that they are for; all hosts when there is none.
    pub host: Option<String>,
    /// What messages call the file.
    pub name: String,
    /// Its content, in PEM.
    pub pem: Vec<u8>,
}

/// Is told how downloads go, from several threads.
pub trait Progress: Send + Sync + Debug {
    /// A download begins, of as many bytes; gives a number to name it by.
    fn begin(&self, what: &str, bytes: Option<u64>) -> u64;
    /// More bytes have come.
    fn advance(&self, id: u64, bytes: u64);
    /// It is over, well or not.
    fn end(&self, id: u64);
}

/// Shows nothing.
impl Progress for () {
    fn begin(&self, _what: &str, _bytes: Option<u64>) -> u64 {
        0
    }

    fn advance(&self, _id: u64, _bytes: u64) {}

    fn end(&self, _id: u64) {}
}

/// All registries. Its methods block; they may be called from several threads, but not from within a `tokio` runtime.
#[derive(Debug, Clone)]
pub struct Registries {
    world: Arc<World>,
    engine: Arc<Engine>,
}

impl Registries {
    /// Starts the threads that requests run on; nothing is asked yet.
    ///
    /// # Errors
    /// When a setting makes no sense, or there are no threads.
    pub fn new(
        settings: RegistrySettings,
        credentials: Credentials,
        mirrors: Mirrors,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, RegistryError> {
        let insecure = hosts(settings.insecure)?;
        let world = World {
            clients: Clients::new(settings.ca_files, insecure, settings.timeout)?,
            access: Access::default(),
            credentials: Arc::new(credentials),
            auth_hosts: hosts(settings.auth_hosts)?,
            mirrors,
            progress,
            found: Mutex::default(),
        };
        Ok(Self {
            world: Arc::new(world),
            engine: Engine::start()?,
        })
    }

    /// The manifest or index that a reference names, by its digest if it has one, else by its tag, else by `latest`,
    /// from the first place that has it.
    ///
    /// # Errors
    /// When no place gives it, or one gives something else.
    pub fn manifest(&self, image: &ImageReference) -> Result<Delivered, RegistryError> {
        self.document(&image.normalized(), None)
    }

    /// The manifest in the index that a reference names. It is asked for where the index is: which mirrors there are may
    /// depend on whether the reference has a digest.
    ///
    /// # Errors
    /// When no place gives it, or one gives something else.
    pub fn manifest_in(
        &self,
        image: &ImageReference,
        digest: &Digest,
    ) -> Result<Delivered, RegistryError> {
        self.document(&image.normalized(), Some(digest))
    }

    /// What a reference names, or what has this digest in the same repository.
    fn document(
        &self,
        image: &ImageReference,
        digest: Option<&Digest>,
    ) -> Result<Delivered, RegistryError> {
        let task = async {
            let mut reasons = vec![];
            for (place, reference) in self.world.places(image)? {
                let wanted = match digest {
                    Some(digest) => Wanted::Manifest(digest.clone()),
                    None => Wanted::manifest(&reference)?,
                };
                match manifest::fetch(&self.world, &place, &wanted).await {
                    Ok(delivered) => {
                        self.world.remember(image, &place);
                        return Ok(delivered);
                    }
                    Err(error) => error.pass_over(place.full_name(), &mut reasons)?,
                }
            }
            Err(RegistryError::of_places(image, reasons))
        };
        self.engine.handle().block_on(task)
    }

    /// A blob of an image's repository: its configuration or a layer. The download begins at once, and stops when the
    /// reader is dropped. Reading gives an error that holds a [`RegistryError`] when the download fails for good; the
    /// end is only given when size and digest are those of the descriptor.
    ///
    /// # Errors
    /// When it is not known where to ask.
    pub fn blob(
        &self,
        image: &ImageReference,
        blob: &Descriptor,
    ) -> Result<Box<dyn Read + Send>, RegistryError> {
        let image = image.normalized();
        let places = self.world.places(&image)?;
        let places: Vec<_> = places.into_iter().map(|(place, _)| place).collect();
        let (sender, pieces) = mpsc::channel(download::CHUNKS);
        let world = Arc::clone(&self.world);
        let blob = blob.clone();
        let task = self.engine.handle().spawn(async move {
            let done = download::download(&world, &image, &places, &blob, &sender).await;
            let last = match done {
                Ok(()) => Piece::End,
                Err(error) => Piece::Failed(Box::new(error)),
            };
            // Nobody may be there any more to be told.
            let _ = sender.send(last).await;
        });
        let engine = Arc::clone(&self.engine);
        let reader = BlobReader::new(pieces, task.abort_handle(), engine);
        Ok(Box::new(reader))
    }
}

fn hosts(texts: Vec<String>) -> Result<Vec<HostPort>, RegistryError> {
    let parsed = texts
        .into_iter()
        .map(|text| HostPort::parse(&text).ok_or(RegistryError::Host(text)));
    parsed.collect()
}
