//! What `oci-client` itself does with a registry that lies. Each test shows why one request is ours; one that fails
//! says that the crate has changed, and that the request may be left to it.

use oci_client::{
    Client, Reference, RegistryOperation,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    manifest::OciDescriptor,
    secrets::RegistryAuth,
};
use tokio::runtime::{Builder, Runtime};

use super::lying::{
    Act, Liar, answer,
    certificates::{Authority, Flaw},
    head,
};

fn runtime() -> Runtime {
    // This crate would otherwise find no TLS at all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn plain() -> Client {
    Client::new(ClientConfig {
        protocol: ClientProtocol::Http,
        ..ClientConfig::default()
    })
}

fn image(server: &Liar) -> Reference {
    let text = format!("{}/org/app:v1", server.address());
    text.parse().expect("a reference")
}

#[test]
fn a_password_goes_to_any_host_that_a_registry_names() {
    let foreign = Liar::plain(|_| answer("200 OK", &[], r#"{"token":"t0"}"#));
    let realm = format!(
        "Bearer realm=\"http://{}/token\",service=\"x\"",
        foreign.address()
    );
    let server = Liar::plain(move |_| {
        let challenge = [("WWW-Authenticate", realm.as_str())];
        answer("401 Unauthorized", &challenge, "")
    });
    let login = RegistryAuth::Basic("me".to_owned(), "secret".to_owned());
    let client = plain();
    let image = image(&server);
    let given = runtime().block_on(client.auth(&image, &login, RegistryOperation::Pull));
    given.expect("a token");
    let seen = foreign.authorizations();
    assert_eq!(seen, [Some("Basic bWU6c2VjcmV0".to_owned())]);
}

#[test]
fn a_manifest_without_end_is_read_to_its_end() {
    // Twice what containers/image reads at most, and the server is what ends it.
    const KIBIBYTES: usize = 8 << 10;
    let server = Liar::plain(|_| vec![Act::Send(head("200 OK", &[])), Act::Flood(KIBIBYTES)]);
    let client = plain();
    let (image, login) = (image(&server), RegistryAuth::Anonymous);
    let given = runtime().block_on(client.pull_manifest_raw(&image, &login, &["*/*"]));
    let (body, _digest) = given.expect("whatever it is");
    assert_eq!(body.len(), KIBIBYTES << 10);
}

#[test]
fn a_blob_is_fetched_without_tls_when_a_registry_with_tls_says_so() {
    let authority = Authority::new("ours");
    let elsewhere = Liar::plain(|_| answer("200 OK", &[], "content"));
    let location = format!("http://{}/blob", elsewhere.address());
    let server = Liar::tls(authority.server(Flaw::None), move |request| {
        if request.target == "/v2/" {
            return answer("200 OK", &[], "");
        }
        answer("307 Elsewhere", &[("Location", &location)], "")
    });
    let runtime = self::runtime();
    let client = Client::new(ClientConfig {
        extra_root_certificates: vec![Certificate {
            encoding: CertificateEncoding::Pem,
            data: authority.pem.clone().into_bytes(),
        }],
        ..ClientConfig::default()
    });
    let digest = kubectl_olm::oci::digest::Digest::of(b"content").to_string();
    let blob = OciDescriptor {
        digest,
        size: 7,
        ..OciDescriptor::default()
    };
    let image = image(&server);
    let given = runtime.block_on(client.pull_blob_stream(&image, &blob));
    assert!(given.is_ok(), "it was not fetched");
    assert_eq!(elsewhere.requests().len(), 1);
}
