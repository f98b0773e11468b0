//! Connections: TLS that is no good, redirects that lead astray, and silence.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use kubectl_olm::source::{
    credentials::Credentials,
    mirrors::Mirrors,
    registry::{
        CaFile,
        ErrorClass::{Network, Usage},
        Registries, RegistrySettings,
    },
};
use std::sync::Arc;

use super::{
    MANIFEST, TIMEOUT, always, anonymous, answer, assert_error, good, manifest, plain, reference,
    settings,
};
use crate::{
    lying::{
        Act, Liar,
        certificates::{Authority, Flaw},
        head,
    },
    program::root,
};

/// Settings that know an authority, for one host or for all.
fn knowing(authority: &Authority, host: Option<String>) -> RegistrySettings {
    let file = CaFile {
        host,
        name: "ca.pem".to_owned(),
        pem: authority.pem.clone().into_bytes(),
    };
    RegistrySettings {
        ca_files: vec![file],
        ..settings()
    }
}

#[test]
fn certificates_are_checked_and_what_is_wrong_is_told() {
    let authority = Authority::new("ours");
    let other = Authority::new("other");
    for (flaw, known, reason, hint) in [
        (
            Flaw::WrongName,
            &authority,
            "its certificate is for another name",
            None,
        ),
        (
            Flaw::Expired,
            &authority,
            "its certificate has expired",
            Some("clock"),
        ),
        (
            Flaw::NotYetValid,
            &authority,
            "its certificate is not valid yet",
            Some("clock"),
        ),
        (
            Flaw::None,
            &other,
            "its certificate is of an authority that is not known here",
            Some("--ca-file"),
        ),
    ] {
        let server = Liar::tls(authority.server(flaw), always(good()));
        let registries = anonymous(knowing(known, None));
        let error = manifest(&registries, &server).expect_err("an error");
        let given = error.hint();
        assert_eq!(given.is_some(), hint.is_some(), "{error}");
        assert!(given.unwrap_or_default().contains(hint.unwrap_or_default()));
        let message = format!("cannot reach https://{}: {reason}", server.address());
        assert_error::<()>(Err(error), Network, &message);
        assert_eq!(server.requests().len(), 0);
        // The user may want it all the same.
        manifest(&anonymous(plain(&[&server])), &server).expect("a manifest");
    }
}

#[test]
fn an_authority_counts_for_the_hosts_it_was_given_for() {
    let authority = Authority::new("ours");
    let server = Liar::tls(authority.server(Flaw::None), always(good()));
    manifest(&anonymous(knowing(&authority, None)), &server).expect("a manifest");
    manifest(
        &anonymous(knowing(&authority, Some(server.address()))),
        &server,
    )
    .expect("a manifest");
    let elsewhere = knowing(&authority, Some("127.0.0.1".to_owned()));
    manifest(&anonymous(elsewhere), &server).expect_err("the authority is for another port");
}

#[test]
fn files_without_certificates_are_told_before_anything_is_asked() {
    for (pem, reason) in [
        ("", "it holds no certificate in PEM"),
        ("hello", "it holds no certificate in PEM"),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "it is no PEM",
        ),
        (
            "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
            "certificate 1: invalid peer certificate: BadEncoding",
        ),
    ] {
        let file = CaFile {
            host: None,
            name: "ca.pem".to_owned(),
            pem: pem.into(),
        };
        let settings = RegistrySettings {
            ca_files: vec![file],
            ..settings()
        };
        let made = Registries::new(settings, Credentials::none(), Mirrors::none(), Arc::new(()));
        assert_error(
            made,
            Usage,
            &format!("cannot take the certificates of ca.pem: {reason}"),
        );
    }
    let settings = RegistrySettings {
        insecure: vec!["https://quay.io".to_owned()],
        ..settings()
    };
    let made = Registries::new(settings, Credentials::none(), Mirrors::none(), Arc::new(()));
    assert_error(
        made,
        Usage,
        "\"https://quay.io\" is no host: use HOST or HOST:PORT",
    );
}

#[test]
fn only_a_host_that_is_named_is_asked_without_tls() {
    let server = Liar::plain(always(good()));
    let error = manifest(&anonymous(settings()), &server).expect_err("an error");
    let hint = format!(
        "if it is meant to be asked without TLS, allow it with --insecure-registry {}",
        server.address()
    );
    assert_eq!(error.hint(), Some(hint));
    let message = format!(
        "cannot reach https://{}: it does not speak TLS",
        server.address()
    );
    assert_error::<()>(Err(error), Network, &message);
    assert_eq!(server.requests().len(), 0);

    let other_port = RegistrySettings {
        insecure: vec!["127.0.0.1".to_owned()],
        ..settings()
    };
    manifest(&anonymous(other_port), &server).expect_err("that is another port");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn https_is_never_left_for_http() {
    let authority = Authority::new("ours");
    let server = Liar::plain(always(good()));
    let location = format!("http://{}/v2/?token=secret", server.address());
    let secure = Liar::tls(
        authority.server(Flaw::None),
        always(answer("302 Found", &[("Location", &location)], "")),
    );
    // Not even where both may be asked without TLS.
    for settings in [knowing(&authority, None), plain(&[&secure, &server])] {
        let message = format!(
            "https://{}/v2/org/app/manifests/v1 redirects to http://{}/v2/: https is never left for http",
            secure.address(),
            server.address()
        );
        assert_error(manifest(&anonymous(settings), &secure), Network, &message);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn redirects_lead_somewhere_and_come_to_an_end() {
    for (location, words, count) in [
        (
            "/v2/again",
            "/v2/again redirects to HOST/v2/again: that is one redirect too many",
            6,
        ),
        (
            "",
            "/v2/org/app/manifests/v1 redirects to nowhere: that is no address",
            1,
        ),
        (
            "ftp://127.0.0.1/x",
            "/v2/org/app/manifests/v1 redirects to ftp://127.0.0.1/x: only https and http are followed",
            1,
        ),
        (
            "http://me:pw@127.0.0.1/x",
            "/v2/org/app/manifests/v1 redirects to http://127.0.0.1/x: an address with a user in it is not used",
            1,
        ),
    ] {
        let server = Liar::plain(always(answer("301 Moved", &[("Location", location)], "")));
        let host = format!("http://{}", server.address());
        let words = words.replace("/v2/again redirects", "/v2/org/app/manifests/v1 redirects");
        let message = format!("{host}{}", words.replace("HOST", &host));
        assert_error(
            manifest(&anonymous(plain(&[&server])), &server),
            Network,
            &message,
        );
        assert_eq!(server.requests().len(), count);
    }
}

#[test]
fn silence_ends_after_the_timeout_twice() {
    let authority = Authority::new("ours");
    // It accepts connections, and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = mute.local_addr().expect("an address").to_string();
    let image = reference(&format!("{address}/org/app:v1"));
    let begun = Instant::now();
    let given = anonymous(knowing(&authority, None)).manifest(&image);
    let message = format!("cannot reach https://{address}: nothing came for 1 s after 2 tries");
    assert_error(given, Network, &message);
    assert!(begun.elapsed() < 4 * TIMEOUT, "took {:?}", begun.elapsed());
}

#[test]
fn a_body_that_stalls_or_trickles_ends_after_the_timeout_twice() {
    let length = ("Content-Length", "100000");
    let begins = || Act::Send(head("200 OK", &[length]));
    let trickle = Act::Trickle(Duration::from_millis(50), 100);
    for say in [vec![begins(), Act::Wait], vec![begins(), trickle]] {
        let server = Liar::plain(always(say));
        let message = format!(
            "cannot reach http://{}: its answer was not whole after 1 s after 2 tries",
            server.address()
        );
        // A registry that was reached without TLS before is not asked with TLS first.
        assert_error(
            manifest(&anonymous(plain(&[&server])), &server),
            Network,
            &message,
        );
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_registry_that_is_not_there() {
    let gone = Liar::plain(always(answer("200 OK", &[], MANIFEST)));
    let address = gone.address();
    let image = reference(&format!("{address}/org/app:v1"));
    drop(gone);
    // The port is free once the server has noticed.
    while std::net::TcpStream::connect(&address).is_ok() {}
    let given = anonymous(settings()).manifest(&image);
    assert_error(
        given,
        Network,
        &format!("cannot reach https://{address}: connection refused after 5 tries"),
    );
}

/// Two of them in one binary, and neither is chosen.
#[test]
fn there_is_one_provider_of_tls() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let has = |name: &str| lock.contains(&format!("name = \"{name}\"\n"));
    assert!(has("ring") && has("rustls"));
    for other in [
        "aws-lc-rs",
        "aws-lc-sys",
        "openssl",
        "openssl-sys",
        "native-tls",
        "boring",
        "mbedtls",
    ] {
        assert!(!has(other), "{other} is in the tree");
    }
}
