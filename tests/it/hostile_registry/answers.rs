//! Answers that are no success: which are tried again, and what the user is told.

use std::{thread, time::Instant};

use kubectl_olm::source::{
    credentials::Credentials,
    mirrors::Mirrors,
    registry::{ErrorClass::Network, RegistryError},
};

use super::{
    always, anonymous, answer, assert_error, authfile_path, basic, credentials, good, image,
    manifest, plain, reference, with,
};
use crate::lying::{Act, Liar};

/// Asks a server that always answers the same; gives the error, the server's address and how often it was asked.
fn storm(say: Vec<Act>) -> (RegistryError, String, usize) {
    let server = Liar::plain(always(say));
    let error = manifest(&anonymous(plain(&[&server])), &server).expect_err("an error");
    (error, server.address(), server.requests().len())
}

#[test]
fn storms_end_after_five_tries_with_the_real_status() {
    let binary = b"<html>\xff\xfe\x00\x01</html>";
    let cases: [(&str, &[u8], &str, usize); 9] = [
        (
            "408 Request Timeout",
            b"",
            "408 Request Timeout after 5 tries",
            5,
        ),
        (
            "429 Too Many Requests",
            br#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slow\ndown"}]}"#,
            "429 Too Many Requests after 5 tries: slow down",
            5,
        ),
        (
            "500 Oops",
            b"",
            "500 Internal Server Error after 5 tries",
            5,
        ),
        (
            "502 Bad Gateway",
            binary,
            "502 Bad Gateway after 5 tries",
            5,
        ),
        (
            "503 Busy",
            b"try later",
            "503 Service Unavailable after 5 tries: try later",
            5,
        ),
        (
            "504 Late",
            b"<html>x</html>",
            "504 Gateway Timeout after 5 tries",
            5,
        ),
        ("501 Never", b"", "501 Not Implemented", 1),
        ("418 Teapot", b"", "418 I'm a teapot", 1),
        ("304 Not Modified", b"", "304 Not Modified", 1),
    ];
    thread::scope(|scope| {
        for (status, body, words, count) in cases {
            scope.spawn(move || {
                let (error, host, asked) = storm(answer(status, &[], body));
                let message = format!("http://{host}/v2/org/app/manifests/v1 answered {words}");
                assert_error::<()>(Err(error), Network, &message);
                assert_eq!(asked, count, "{status}");
            });
        }
    });
}

#[test]
fn what_passes_is_waited_for() {
    let server = Liar::plain(|request| match request.before {
        0 => answer("503 Busy", &[], ""),
        1 => vec![Act::Reset],
        2 => answer("429 Too Many", &[("Retry-After", "1")], ""),
        _ => good(),
    });
    let begun = Instant::now();
    manifest(&anonymous(plain(&[&server])), &server).expect("a manifest");
    assert!(begun.elapsed().as_secs() >= 1, "it did not wait");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_server_that_asks_for_more_time_than_there_is_is_left_alone() {
    let most = "18446744073709551615";
    for (asked, seconds) in [
        ("3600", "3600"),
        (most, most),
        ("Tue, 01 Jan 2030 01:00:00 GMT", "DATE"),
    ] {
        // The date of the answer is the one that the other is compared with.
        let date = ("Date", "Tue, 01 Jan 2030 00:00:00 GMT");
        let headers = [("Retry-After", asked), date];
        let (error, host, count) = storm(answer("429 Too Many", &headers, "limit reached"));
        let seconds = seconds.replace("DATE", "3600");
        let message = format!(
            "http://{host}/v2/org/app/manifests/v1 answered 429 Too Many Requests and asks to wait {seconds} s, \
             more than the 30 s that are waited: limit reached"
        );
        assert_error::<()>(Err(error), Network, &message);
        assert_eq!(count, 1);
    }
}

#[test]
fn a_refusal_is_told_in_words() {
    let error = |code: &str| {
        format!(r#"{{"errors":[{{"code":"{code}","message":"as the registry says"}}]}}"#)
    };
    let free = "it was asked without credentials, and wanted none";
    for (status, code, words) in [
        (
            "404 Not Found",
            "MANIFEST_UNKNOWN",
            "has no manifest org/app:v1 (404 Not Found)",
        ),
        (
            "404 Not Found",
            "NAME_UNKNOWN",
            "has no repository org/app, or hides it (404 Not Found)",
        ),
        (
            "403 Forbidden",
            "DENIED",
            "does not allow to read org/app (403 Forbidden)",
        ),
        (
            "401 Unauthorized",
            "UNAUTHORIZED",
            "wants credentials for org/app (401 Unauthorized)",
        ),
    ] {
        let (given, host, count) = storm(answer(status, &[], error(code)));
        let message = format!("registry {host} {words}; {free}: as the registry says");
        assert_error::<()>(Err(given), Network, &message);
        assert_eq!(count, 1);
    }
    let long = error("DENIED").replace("says", &"x".repeat(10_000));
    let (given, ..) = storm(answer("403 Forbidden", &[], long));
    assert!(given.to_string().len() < 500, "{given}");
}

#[test]
fn a_refusal_names_the_credentials_that_were_tried() {
    let challenge = [("WWW-Authenticate", "Basic realm=\"x\"")];
    let server = Liar::plain(always(answer("401 Unauthorized", &challenge, "")));
    let host = server.address();
    let (broad, narrow) = (host.clone(), format!("{host}/org"));
    let (folder, known) = credentials(&[(&broad, "all", "one"), (&narrow, "org", "two")]);
    let file = authfile_path(&folder);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    let message = format!(
        "registry {host} does not take the credentials for org/app (401 Unauthorized); \
         tried with {narrow} in {file}, then with {broad} in {file}"
    );
    assert_error(registries.manifest(&image(&server)), Network, &message);
    assert_eq!(
        server.authorizations(),
        [None, basic("org", "two"), basic("all", "one")]
    );

    let (_folder, unrelated) = credentials(&[("elsewhere.example", "all", "one")]);
    let places = unrelated.places();
    let registries = with(plain(&[&server]), unrelated, Mirrors::none());
    let message = format!(
        "registry {host} wants credentials for org/app (401 Unauthorized); no credentials matched; looked in {places}"
    );
    assert_error(registries.manifest(&image(&server)), Network, &message);

    let registries = with(plain(&[&server]), Credentials::none(), Mirrors::none());
    let error = registries.manifest(&image(&server)).expect_err("an error");
    assert!(
        error.to_string().contains("wants credentials for org/app"),
        "{error}"
    );
}

#[test]
fn the_second_credentials_open_what_the_first_do_not() {
    let right = basic("all", "one");
    let server = Liar::plain(move |request| match request.header("authorization") {
        None => answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", "Basic realm=\"x\"")],
            "",
        ),
        Some(given) if Some(given) == right.as_deref() => good(),
        Some(_) => answer("403 Forbidden", &[], ""),
    });
    let (broad, narrow) = (server.address(), format!("{}/org", server.address()));
    let (_folder, known) = credentials(&[(&broad, "all", "one"), (&narrow, "org", "two")]);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    manifest(&registries, &server).expect("a manifest");
    manifest(&registries, &server).expect("a manifest");
    // What was found out is not found out again.
    let (none, first, second) = (None, basic("org", "two"), basic("all", "one"));
    assert_eq!(
        server.authorizations(),
        [none, first, second.clone(), second]
    );
}

/// What is not there is not there for any credentials; what comes next is opened by the first again.
#[test]
fn what_is_missing_does_not_use_up_the_credentials() {
    let right = basic("org", "two");
    let server = Liar::plain(move |request| match request.header("authorization") {
        None => answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", "Basic realm=\"x\"")],
            "",
        ),
        Some(given) if Some(given) == right.as_deref() && request.target.ends_with("/v1") => good(),
        Some(_) => answer("404 Not Found", &[], ""),
    });
    let (broad, narrow) = (server.address(), format!("{}/org", server.address()));
    let (_folder, known) = credentials(&[(&broad, "all", "one"), (&narrow, "org", "two")]);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    let missing = reference(&format!("{}/org/app:missing", server.address()));
    let error = registries.manifest(&missing).expect_err("an error");
    assert!(
        error
            .to_string()
            .contains("has no manifest org/app:missing"),
        "{error}"
    );
    manifest(&registries, &server).expect("a manifest");
}
