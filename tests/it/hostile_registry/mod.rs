//! Registries that lie, break off, stall, and ask for what is not theirs: what the client makes of each, with the class
//! of the error and its words, and what the server saw of it.

mod answers;
mod connections;
mod content;
mod downloads;
mod mirrors;
mod passwords;
mod proxies;
mod tags;

use std::{io::Read, path::Path, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubectl_olm::{
    image::ImageReference,
    oci::{
        digest::Digest,
        manifest::{Delivered, Descriptor},
    },
    source::{
        credentials::{Credentials, Environment},
        mirrors::Mirrors,
        registry::{ErrorClass, Registries, RegistryError, RegistrySettings},
    },
};
use tempfile::TempDir;

use super::lying::{Act, Liar, Request, answer};

/// Time without a byte that these tests allow, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(1);
/// What is behind the tag in most tests.
const MANIFEST: &str = r#"{"schemaVersion":2}"#;
/// A password that must not be seen where it does not belong.
const PASSWORD: &str = "canary-9f2e";

fn settings() -> RegistrySettings {
    RegistrySettings {
        timeout: TIMEOUT,
        ..RegistrySettings::default()
    }
}

/// Settings for servers that speak no TLS.
fn plain(servers: &[&Liar]) -> RegistrySettings {
    RegistrySettings {
        insecure: servers.iter().map(|server| server.address()).collect(),
        ..settings()
    }
}

fn anonymous(settings: RegistrySettings) -> Registries {
    with(settings, Credentials::none(), Mirrors::none())
}

fn with(settings: RegistrySettings, credentials: Credentials, mirrors: Mirrors) -> Registries {
    Registries::new(settings, credentials, mirrors, Arc::new(())).expect("settings that make sense")
}

/// An environment in which there is nothing.
fn environment() -> Environment {
    Environment::default()
}

/// A file of credentials, and what is read of it: for each key a user and a password.
fn credentials(entries: &[(&str, &str, &str)]) -> (TempDir, Credentials) {
    let entries = entries.iter().map(|(key, user, password)| {
        let auth = STANDARD.encode(format!("{user}:{password}"));
        (key.to_string(), serde_json::json!({ "auth": auth }))
    });
    let entries: serde_json::Map<_, _> = entries.collect();
    authfile(&serde_json::json!({ "auths": entries }))
}

fn authfile(content: &serde_json::Value) -> (TempDir, Credentials) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("auth.json");
    std::fs::write(&path, content.to_string()).expect("a file");
    let credentials = Credentials::read(Some(&path), &[], &environment());
    (folder, credentials.expect("credentials"))
}

fn authfile_path(folder: &TempDir) -> String {
    let path: &Path = &folder.path().join("auth.json");
    path.display().to_string()
}

/// The header that shows a user and a password.
fn basic(user: &str, password: &str) -> Option<String> {
    Some(format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{password}"))
    ))
}

fn reference(text: &str) -> ImageReference {
    ImageReference::parse(text).expect("a reference")
}

/// The image that most tests ask for.
fn image(server: &Liar) -> ImageReference {
    reference(&format!("{}/org/app:v1", server.address()))
}

fn manifest(registries: &Registries, server: &Liar) -> Result<Delivered, RegistryError> {
    registries.manifest(&image(server))
}

fn descriptor(content: &[u8]) -> Descriptor {
    Descriptor {
        media_type: "application/vnd.oci.image.layer.v1.tar".to_owned(),
        digest: Digest::of(content),
        size: content.len() as u64,
    }
}

/// Reads a blob to its end: what was handed out, and how it ended.
fn blob(
    registries: &Registries,
    image: &ImageReference,
    blob: &Descriptor,
) -> (Vec<u8>, Result<(), RegistryError>) {
    let mut content = vec![];
    let mut reader = registries.blob(image, blob).expect("a download");
    let ended = reader
        .read_to_end(&mut content)
        .map(|_| ())
        .map_err(|error| {
            let inner = error.into_inner().expect("an error of ours");
            *inner.downcast::<RegistryError>().expect("an error of ours")
        });
    (content, ended)
}

/// Bytes that are not alike anywhere.
fn bytes(count: usize) -> Vec<u8> {
    let mut random = super::random::Random::new(7);
    std::iter::repeat_with(|| random.below(256) as u8)
        .take(count)
        .collect()
}

/// Asserts what class an error has and what it says; no error shows a password.
#[track_caller]
fn assert_error<T: std::fmt::Debug>(
    result: Result<T, RegistryError>,
    class: ErrorClass,
    message: &str,
) {
    let error = result.expect_err("an error");
    assert_eq!(error.to_string(), message);
    assert_eq!(error.class(), class);
    assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
}

/// Answers every request for the manifest with the same.
fn always(say: Vec<Act>) -> impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static {
    move |_| say.clone()
}

fn good() -> Vec<Act> {
    answer("200 OK", &[], MANIFEST)
}
