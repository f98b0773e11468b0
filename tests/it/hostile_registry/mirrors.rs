//! Mirrors: asked first, passed over when they do not have it, and not trusted more than the registry.

use std::fs;

use kubectl_olm::{
    oci::digest::Digest,
    source::{
        credentials::{Credentials, Environment},
        mirrors::Mirrors,
        registry::ErrorClass::{Network, Refused},
    },
};

use super::{
    MANIFEST, PASSWORD, always, answer, assert_error, basic, blob, credentials, descriptor,
    environment, good, image, plain, reference, with,
};
use crate::lying::Liar;

/// What `registries.conf` says when one server is the mirror of another.
fn mirror_of(server: &Liar, mirror: &Liar) -> Mirrors {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("registries.conf");
    let (server, mirror) = (server.address(), mirror.address());
    let text = format!(
        "[[registry]]\nlocation = \"{server}\"\n[[registry.mirror]]\nlocation = \"{mirror}/copy\"\ninsecure = true\n"
    );
    fs::write(&path, text).expect("a file");
    let environment = Environment {
        containers_registries_conf: Some(path),
        ..environment()
    };
    Mirrors::read(&environment).expect("mirrors")
}

#[test]
fn a_mirror_that_does_not_have_it_is_passed_over() {
    for status in [
        "404 Not Found",
        "403 Forbidden",
        "401 Unauthorized",
        "502 Bad",
    ] {
        let mirror = Liar::plain(always(answer(status, &[], "")));
        let server = Liar::plain(always(good()));
        let registries = with(
            plain(&[&server]),
            Credentials::none(),
            mirror_of(&server, &mirror),
        );
        let delivered = registries.manifest(&image(&server)).expect("a manifest");
        assert_eq!(delivered.body, MANIFEST.as_bytes());
        assert_eq!(mirror.requests()[0].target, "/v2/copy/org/app/manifests/v1");
        let asked_before = mirror.requests().len();
        // What comes next is asked for where this was.
        let (_, ended) = blob(
            &registries,
            &image(&server),
            &descriptor(MANIFEST.as_bytes()),
        );
        ended.expect("a blob");
        assert_eq!(mirror.requests().len(), asked_before);
    }
}

#[test]
fn a_mirror_with_other_content_is_an_error() {
    let mirror = Liar::plain(always(answer("200 OK", &[], "wrong")));
    let server = Liar::plain(always(good()));
    let registries = with(
        plain(&[&server]),
        Credentials::none(),
        mirror_of(&server, &mirror),
    );
    let expected = descriptor(MANIFEST.as_bytes());
    let wrong = Digest::of(b"wrong");
    let (digest, host) = (&expected.digest, mirror.address());
    let image = reference(&format!("{}/org/app@{digest}", server.address()));
    let message = format!(
        "digest mismatch: manifest copy/org/app@{digest} from {host} should be {digest} but is {wrong}"
    );
    assert_error(registries.manifest(&image), Refused, &message);
    let (_, ended) = blob(
        &registries,
        &image,
        &super::Descriptor {
            size: 5,
            ..expected.clone()
        },
    );
    let message = format!(
        "digest mismatch: blob {digest} of copy/org/app from {host} should be {digest} but is {wrong}"
    );
    assert_error(ended, Refused, &message);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn each_place_gets_its_own_credentials() {
    let wants = || {
        always(answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", "Basic realm=\"x\"")],
            "",
        ))
    };
    let (mirror, server) = (Liar::plain(wants()), Liar::plain(wants()));
    let (_folder, known) = credentials(&[
        (&server.address(), "origin", PASSWORD),
        (&format!("{}/copy", mirror.address()), "mirror", "other"),
    ]);
    let registries = with(plain(&[&server]), known, mirror_of(&server, &mirror));
    let error = registries.manifest(&image(&server)).expect_err("an error");
    assert_eq!(mirror.authorizations(), [None, basic("mirror", "other")]);
    assert_eq!(server.authorizations(), [None, basic("origin", PASSWORD)]);
    assert_eq!(error.class(), Network);
}

#[test]
fn when_no_place_has_it_all_are_told() {
    let nothing = || always(answer("404 Not Found", &[], ""));
    let (mirror, server) = (Liar::plain(nothing()), Liar::plain(nothing()));
    let registries = with(
        plain(&[&server]),
        Credentials::none(),
        mirror_of(&server, &mirror),
    );
    let (first, second) = (mirror.address(), server.address());
    let free = "(404 Not Found); it was asked without credentials, and wanted none";
    let message = format!(
        "no place gives {second}/org/app:v1: \
         {first}/copy/org/app: registry {first} has no manifest copy/org/app:v1 {free}; \
         {second}/org/app: registry {second} has no manifest org/app:v1 {free}"
    );
    assert_error(registries.manifest(&image(&server)), Network, &message);
}

#[test]
fn a_blob_that_breaks_off_at_a_mirror_goes_on_at_the_registry() {
    let content = super::bytes(1000);
    let mirror = Liar::plain(always(vec![crate::lying::Act::Send(
        [
            crate::lying::head("200 OK", &[("Content-Length", "1000")]),
            content[..400].to_vec(),
        ]
        .concat(),
    )]));
    let given = content.clone();
    let server = Liar::plain(move |request| {
        let range = format!("bytes {}-999/1000", request.from());
        answer(
            "206 Part",
            &[("Content-Range", &range)],
            &given[request.from()..],
        )
    });
    let registries = with(
        plain(&[&server]),
        Credentials::none(),
        mirror_of(&server, &mirror),
    );
    let (read, ended) = blob(&registries, &image(&server), &descriptor(&content));
    ended.expect("the whole blob");
    assert!(read == content, "the content differs");
    assert_eq!(server.requests()[0].from(), 400);
}
