//! Where passwords and tokens go, and what token servers answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use kubectl_olm::source::{
    credentials::Credentials,
    mirrors::Mirrors,
    registry::{ErrorClass::Network, RegistrySettings},
};

use super::{
    MANIFEST, PASSWORD, always, anonymous, answer, assert_error, authfile, basic, blob,
    credentials, descriptor, good, image, manifest, plain, with,
};
use crate::lying::{Act, Liar, Request};

/// Wants a token from a realm, and takes any.
fn wants_token(realm: String) -> impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static {
    move |request| match request.header("authorization") {
        Some(given) if given.starts_with("Bearer ") => good(),
        _ => {
            let challenge = format!("Bearer realm=\"{realm}\",service=\"the service&scope=evil\"");
            answer("401 Unauthorized", &[("WWW-Authenticate", &challenge)], "")
        }
    }
}

/// A registry whose token server is itself.
fn own_tokens(token: Vec<Act>) -> impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static {
    move |request| {
        if request.target.starts_with("/token") {
            return token.clone();
        }
        let realm = format!(
            "http://{}/token",
            request.header("host").unwrap_or_default()
        );
        wants_token(realm)(request)
    }
}

fn known(server: &Liar) -> (tempfile::TempDir, Credentials) {
    credentials(&[(&server.address(), "me", PASSWORD)])
}

#[test]
fn a_password_goes_to_the_registry_s_own_token_server_and_the_token_to_the_registry() {
    let server = Liar::plain(own_tokens(answer("200 OK", &[], r#"{"token":"t0"}"#)));
    let (_folder, known) = known(&server);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    manifest(&registries, &server).expect("a manifest");
    let token = Some("Bearer t0".to_owned());
    assert_eq!(
        server.authorizations(),
        [None, basic("me", PASSWORD), token]
    );
    let asked = &server.requests()[1];
    let expected = "/token?scope=repository%3Aorg%2Fapp%3Apull&service=the+service%26scope%3Devil";
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("GET", expected)
    );
}

#[test]
fn a_password_never_goes_to_a_host_that_nobody_named() {
    let foreign = Liar::plain(always(answer("200 OK", &[], r#"{"token":"t0"}"#)));
    let server = Liar::plain(wants_token(format!("http://{}/token", foreign.address())));
    let (_folder, known) = known(&server);
    let settings = plain(&[&server, &foreign]);
    let registries = with(settings.clone(), known, Mirrors::none());
    let error = manifest(&registries, &server).expect_err("an error");
    let (registry, to) = (server.address(), foreign.address());
    let hint = format!("if that is where its passwords belong, allow it with --auth-host {to}");
    assert_eq!(error.hint(), Some(hint));
    let message = format!("registry {registry} asks to send the password to {to}");
    assert_error::<()>(Err(error), Network, &message);
    assert_eq!(foreign.requests().len(), 0);

    let (_folder, known) = self::known(&server);
    let settings = RegistrySettings {
        auth_hosts: vec![to],
        ..settings
    };
    manifest(&with(settings, known, Mirrors::none()), &server).expect("a manifest");
    assert_eq!(foreign.authorizations(), [basic("me", PASSWORD)]);
}

#[test]
fn what_a_server_says_is_not_shown_with_the_password_in_it() {
    for is_decoded in [false, true] {
        let server = Liar::plain(move |request| match request.header("authorization") {
            None => answer(
                "401 Unauthorized",
                &[("WWW-Authenticate", "Basic realm=\"x\"")],
                "",
            ),
            Some(_) if is_decoded => answer("403 Forbidden", &[], format!("me:{PASSWORD} may not")),
            Some(header) => answer("403 Forbidden", &[], format!("{header} may not")),
        });
        let (folder, known) = known(&server);
        let registries = with(plain(&[&server]), known, Mirrors::none());
        let host = server.address();
        let message = format!(
            "registry {host} does not allow to read org/app (403 Forbidden); tried with {host} in {}",
            super::authfile_path(&folder)
        );
        assert_error(manifest(&registries, &server), Network, &message);
    }
}

#[test]
fn realms_that_break_a_rule_are_told_without_what_is_secret() {
    for (realm, reason) in [
        (
            format!("http://u:{PASSWORD}@127.0.0.1/t?x={PASSWORD}"),
            "\"http://127.0.0.1/t\" as its token server: an address with a user in it is not used",
        ),
        (
            "gopher://127.0.0.1/t".to_owned(),
            "\"gopher://127.0.0.1/t\" as its token server: only https is allowed there",
        ),
        (
            "http://169.254.169.254/latest".to_owned(),
            "\"http://169.254.169.254/latest\" as its token server: a registry may not point into this machine or a private network",
        ),
        (
            "token".to_owned(),
            "\"\" as its token server: that is no address",
        ),
    ] {
        let server = Liar::plain(wants_token(realm));
        let given = manifest(&anonymous(plain(&[&server])), &server);
        assert_error(
            given,
            Network,
            &format!("registry {} names {reason}", server.address()),
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn token_servers_are_not_followed_elsewhere() {
    let foreign = Liar::plain(always(answer("200 OK", &[], r#"{"token":"t0"}"#)));
    let location = format!("http://{}/token", foreign.address());
    let server = Liar::plain(own_tokens(answer(
        "302 Found",
        &[("Location", &location)],
        "",
    )));
    let (_folder, known) = known(&server);
    let registries = with(plain(&[&server, &foreign]), known, Mirrors::none());
    let message = format!(
        "token server http://{}/token answered 302 Found",
        server.address()
    );
    assert_error(manifest(&registries, &server), Network, &message);
    assert_eq!(foreign.requests().len(), 0);
}

#[test]
fn token_servers_that_give_no_token() {
    let unusable = "gave no token that can be used:";
    let cases: [(Vec<Act>, String, usize); 7] = [
        (
            answer("503 Busy", &[], b"\xff\xfe"),
            "answered 503 Service Unavailable after 5 tries".to_owned(),
            5,
        ),
        (
            answer("404 Nope", &[], "no such thing"),
            "answered 404 Not Found: no such thing".to_owned(),
            1,
        ),
        (
            answer("200 OK", &[], "no json"),
            format!("{unusable} its answer is not the JSON of one"),
            1,
        ),
        (
            answer("200 OK", &[], "{}"),
            format!("{unusable} there is neither a `token` nor an `access_token` in its answer"),
            1,
        ),
        (
            answer("200 OK", &[], r#"{"token":"abc\ndef"}"#),
            format!("{unusable} there are other characters in it than visible ASCII"),
            1,
        ),
        (
            answer("200 OK", &[], r#"{"access_token":"a b\u0000"}"#),
            format!("{unusable} there are other characters in it than visible ASCII"),
            1,
        ),
        (
            answer("200 OK", &[], " ".repeat(5 << 20)),
            format!("{unusable} its answer is over the limit of 1048576 bytes"),
            1,
        ),
    ];
    thread::scope(|scope| {
        for (say, words, count) in cases {
            scope.spawn(move || {
                let server = Liar::plain(own_tokens(say));
                let given = manifest(&anonymous(plain(&[&server])), &server);
                let message = format!("token server http://{}/token {words}", server.address());
                assert_error(given, Network, &message);
                assert_eq!(server.requests().len(), 1 + count, "{words}");
            });
        }
    });
}

#[test]
fn credentials_that_a_token_server_refuses_are_told() {
    let server = Liar::plain(own_tokens(answer("401 Unauthorized", &[], "")));
    let (folder, known) = known(&server);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    let host = server.address();
    let message = format!(
        "registry {host} does not take the credentials for org/app (401 Unauthorized); tried with {host} in {}",
        super::authfile_path(&folder)
    );
    assert_error(manifest(&registries, &server), Network, &message);
}

#[test]
fn an_identity_token_is_exchanged_by_the_only_post_there_is() {
    let server = Liar::plain(own_tokens(answer(
        "200 OK",
        &[],
        r#"{"access_token":"t1"}"#,
    )));
    let entry = serde_json::json!({ "auth": "bWU6", "identitytoken": PASSWORD });
    let (_folder, known) = authfile(&serde_json::json!({ "auths": { server.address(): entry } }));
    let registries = with(plain(&[&server]), known, Mirrors::none());
    manifest(&registries, &server).expect("a manifest");
    let asked = &server.requests()[1];
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("POST", "/token")
    );
    assert_eq!(asked.header("authorization"), None);
    assert!(
        asked.body.contains(&format!("refresh_token={PASSWORD}")),
        "{}",
        asked.body
    );
    assert!(
        asked.body.contains("scope=repository%3Aorg%2Fapp%3Apull"),
        "{}",
        asked.body
    );
    assert_eq!(
        server.authorizations().pop(),
        Some(Some("Bearer t1".to_owned()))
    );
}

#[test]
fn an_authorization_stays_at_the_registry_s_own_port() {
    let elsewhere = Liar::plain(always(answer("200 OK", &[], MANIFEST)));
    let location = format!("http://{}/blob?signature=x", elsewhere.address());
    let server = Liar::plain(move |request| match request.header("authorization") {
        None => answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", "Basic realm=\"x\"")],
            "",
        ),
        Some(_) => answer("307 Elsewhere", &[("Location", &location)], ""),
    });
    let (_folder, known) = known(&server);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    let (content, ended) = blob(
        &registries,
        &image(&server),
        &descriptor(MANIFEST.as_bytes()),
    );
    ended.expect("a blob");
    assert_eq!(content, MANIFEST.as_bytes());
    assert_eq!(server.authorizations(), [None, basic("me", PASSWORD)]);
    assert_eq!(elsewhere.authorizations(), [None]);
    assert_eq!(elsewhere.requests()[0].target, "/blob?signature=x");
}

#[test]
fn a_server_that_a_registry_redirects_to_cannot_ask_for_the_password() {
    let elsewhere = Liar::plain(always(answer(
        "401 Unauthorized",
        &[("WWW-Authenticate", "Basic realm=\"x\"")],
        "",
    )));
    let location = format!("http://{}/blob", elsewhere.address());
    let server = Liar::plain(always(answer(
        "307 Elsewhere",
        &[("Location", &location)],
        "",
    )));
    let (_folder, known) = known(&server);
    let registries = with(plain(&[&server]), known, Mirrors::none());
    let error = manifest(&registries, &server).expect_err("an error");
    assert_eq!(error.class(), Network);
    assert_eq!(server.authorizations(), [None]);
    assert_eq!(elsewhere.authorizations(), [None]);
}

#[test]
fn a_token_that_ends_early_is_renewed_once() {
    let given = AtomicUsize::new(0);
    let taken = Arc::new(AtomicUsize::new(1));
    let limit = Arc::clone(&taken);
    let server = Liar::plain(move |request| {
        if request.target.starts_with("/token") {
            let number = 1 + given.fetch_add(1, Ordering::SeqCst);
            return answer(
                "200 OK",
                &[],
                format!(r#"{{"token":"t{number}","expires_in":3600}}"#),
            );
        }
        let current = format!("Bearer t{}", limit.load(Ordering::SeqCst));
        match request.header("authorization") {
            Some(header) if header == current => good(),
            _ => {
                let host = request.header("host").unwrap_or_default();
                let challenge = format!("Bearer realm=\"http://{host}/token\"");
                answer("401 Unauthorized", &[("WWW-Authenticate", &challenge)], "")
            }
        }
    });
    let registries = anonymous(plain(&[&server]));
    manifest(&registries, &server).expect("a manifest");
    taken.store(2, Ordering::SeqCst);
    manifest(&registries, &server).expect("a manifest with a new token");
    taken.store(9, Ordering::SeqCst);
    let before = server.requests().len();
    manifest(&registries, &server).expect_err("no token is good any more");
    // The old token, a new one, and that is all.
    assert_eq!(server.requests().len() - before, 3);
}

#[test]
fn many_requests_at_once_ask_for_one_token() {
    let server = Liar::plain(own_tokens(answer("200 OK", &[], r#"{"token":"t0"}"#)));
    let registries = anonymous(plain(&[&server]));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| manifest(&registries, &server).expect("a manifest"));
        }
    });
    let requests = server.requests();
    let tokens = requests
        .iter()
        .filter(|request| request.target.starts_with("/token"));
    assert_eq!(tokens.count(), 1);
}
