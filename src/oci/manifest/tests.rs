//! Manifests that are too large to be data; the others are in `testdata/oci/manifests`.

use std::error::Error;

use super::*;

const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

#[test]
fn what_is_too_large_is_not_even_read() {
    let large = vec![b' '; 5 << 20];
    assert_eq!(parse(&large, None), Err(ManifestError::TooLarge));
    let entry =
        format!(r#"{{"mediaType": "{OCI_IMAGE_MEDIA_TYPE}", "digest": "{DIGEST}", "size": 1}}"#);
    let entries = vec![entry; 1_001].join(",");
    let index = format!(r#"{{"schemaVersion": 2, "manifests": [{entries}]}}"#);
    let error = parse(index.as_bytes(), None).expect_err("lists too many");
    assert_eq!(
        error.to_string(),
        "the manifest has 1001 entries, over the limit of 1000"
    );
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = parse(nested.as_bytes(), None).expect_err("is nested too deeply");
    assert!(error.to_string().contains("recursion limit"), "{error}");
}

#[test]
fn a_bad_digest_is_shown_cut() {
    let long = "a".repeat(1 << 20);
    let body = format!(
        r#"{{"schemaVersion": 2, "layers": [], "config": {{"mediaType": "{IMAGE_CONFIG_MEDIA_TYPE}", "digest": "{long}", "size": 1}}}}"#
    );
    let error = parse(body.as_bytes(), None).expect_err("has a bad digest");
    let cause = error.source().expect("what is wrong").to_string();
    assert!(cause.len() < 400, "{cause}");
}
