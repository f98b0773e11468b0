//! Content that is not what it should be.

use kubectl_olm::{oci::digest::Digest, source::registry::ErrorClass::Refused};

use super::{
    MANIFEST, always, anonymous, answer, assert_error, blob, descriptor, good, image, manifest,
    plain, reference,
};
use crate::lying::{Act, Liar, head};

/// A digest that nothing here has.
const OTHER: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn a_manifest_is_what_was_asked_for_and_its_digest_is_ours() {
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let typed = format!("{kind}; charset=utf-8");
    let server = Liar::plain(always(answer(
        "200 OK",
        &[("Content-Type", &typed)],
        MANIFEST,
    )));
    let delivered = manifest(&anonymous(plain(&[&server])), &server).expect("a manifest");
    assert_eq!(delivered.body, MANIFEST.as_bytes());
    assert_eq!(delivered.digest, Digest::of(MANIFEST.as_bytes()));
    assert_eq!(delivered.media_type.as_deref(), Some(kind));
    let requests = server.requests();
    let [request] = requests.as_slice() else {
        panic!("one request, not {requests:?}");
    };
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/v2/org/app/manifests/v1")
    );
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("accept-encoding"), None);
    for kind in [
        "oci.image.index",
        "oci.image.manifest",
        "distribution.manifest.list.v2",
        "distribution.manifest.v2",
    ] {
        assert!(
            request
                .header("accept")
                .is_some_and(|accept| accept.contains(kind))
        );
    }
}

#[test]
fn a_reference_with_neither_tag_nor_digest_means_latest() {
    let server = Liar::plain(always(good()));
    let image = reference(&format!("{}/app", server.address()));
    anonymous(plain(&[&server]))
        .manifest(&image)
        .expect("a manifest");
    assert_eq!(server.requests()[0].target, "/v2/app/manifests/latest");
}

#[test]
fn a_manifest_with_another_digest_is_asked_for_once_more() {
    let server = Liar::plain(always(good()));
    let image = reference(&format!("{}/app:v1@{OTHER}", server.address()));
    let given = anonymous(plain(&[&server])).manifest(&image);
    let message = format!(
        "digest mismatch: manifest app@{OTHER} from {} should be {OTHER} but is {}",
        server.address(),
        Digest::of(MANIFEST.as_bytes())
    );
    assert_error(given, Refused, &message);
    assert_eq!(server.requests().len(), 2);

    let damaged_once = Liar::plain(|request| match request.before {
        0 => answer("200 OK", &[], "damaged"),
        _ => good(),
    });
    let digest = Digest::of(MANIFEST.as_bytes());
    let image = reference(&format!("{}/app@{digest}", damaged_once.address()));
    let given = anonymous(plain(&[&damaged_once])).manifest(&image);
    assert_eq!(given.expect("a manifest").digest, digest);
}

#[test]
fn what_a_registry_says_of_a_digest_has_to_be_true() {
    let actual = Digest::of(MANIFEST.as_bytes());
    for (header, words) in [
        (
            OTHER,
            format!(
                "digest mismatch: manifest org/app:v1 from HOST should be {OTHER} but is {actual}"
            ),
        ),
        (
            "sha256:../../../../etc/cron.d/x",
            format!(
                "HOST gave manifest org/app:v1 with a digest that is none: \"sha256:../../../../etc/cron.d/x\"; it is {actual}"
            ),
        ),
        (
            "",
            format!(
                "HOST gave manifest org/app:v1 with a digest that is none: \"\"; it is {actual}"
            ),
        ),
    ] {
        let say = answer("200 OK", &[("Docker-Content-Digest", header)], MANIFEST);
        let server = Liar::plain(always(say));
        let given = manifest(&anonymous(plain(&[&server])), &server);
        assert_error(given, Refused, &words.replace("HOST", &server.address()));
    }
}

#[test]
fn a_manifest_without_end_is_not_read_to_its_end() {
    let server = Liar::plain(always(vec![
        Act::Send(head("200 OK", &[])),
        Act::Flood(64 << 10),
    ]));
    let given = manifest(&anonymous(plain(&[&server])), &server);
    let message = format!(
        "http://{}/v2/org/app/manifests/v1 answered with more than the limit of 4194304 bytes",
        server.address()
    );
    assert_error(given, Refused, &message);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_blob_with_another_digest_ends_in_an_error_and_not_in_an_end() {
    let server = Liar::plain(always(answer("200 OK", &[], "wrong")));
    let expected = descriptor(b"right");
    let registries = anonymous(plain(&[&server]));
    let (content, ended) = blob(&registries, &image(&server), &expected);
    assert_eq!(content, b"wrong");
    let message = format!(
        "digest mismatch: blob {} of org/app from {} should be {} but is {}",
        expected.digest,
        server.address(),
        expected.digest,
        Digest::of(b"wrong"),
    );
    assert_error(ended, Refused, &message);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn no_byte_of_a_blob_is_read_beyond_its_size() {
    let expected = descriptor(b"right");
    let message = |server: &Liar, actual| {
        let digest = &expected.digest;
        let host = server.address();
        format!(
            "size mismatch: blob {digest} of org/app from {host} should have 5 bytes but has {actual}"
        )
    };
    let told = Liar::plain(always(answer("200 OK", &[], "right and more")));
    let (content, ended) = blob(&anonymous(plain(&[&told])), &image(&told), &expected);
    assert_eq!(content, b"");
    assert_error(ended, Refused, &message(&told, "14"));

    let untold = Liar::plain(always(vec![
        Act::Send(head("200 OK", &[])),
        Act::Flood(64 << 10),
    ]));
    let (content, ended) = blob(&anonymous(plain(&[&untold])), &image(&untold), &expected);
    assert_eq!(content, b"");
    assert_error(ended, Refused, &message(&untold, "more"));
}
