//! Who may read from a registry, and whom it is believed: passwords, tokens and certificates, on real registries.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{
    program::{Run, program, root},
    registry::{self, PASSWORD, Registry, USER, authfile, basic_auth, ca_file, file, tls},
    token_server::IDENTITY_TOKEN,
};

/// What no message may show.
const WRONG_PASSWORD: &str = "hunter2-9d2f";

/// Renders an image with more flags, with nothing kept from before.
fn render(image: &str, flags: &[&str]) -> Run {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let run: Run = program()
        .env("XDG_CACHE_HOME", cache.path())
        .args(["render", image, "-n", "ops"])
        .args(flags)
        .output()
        .expect("the program starts")
        .into();
    for secret in [PASSWORD, WRONG_PASSWORD, IDENTITY_TOKEN] {
        assert!(!run.stderr.contains(secret), "{}", run.stderr);
        assert!(!run.stdout.contains(secret), "{}", run.stdout);
    }
    run
}

/// A bundle, pushed to a repository; gives what it renders to.
fn pushed(repository: &str) -> String {
    let bundle = root().join("testdata/bundles/minimal");
    registry::push_bundle(&bundle, &format!("{repository}:v1"));
    let rendered = render(bundle.to_str().expect("a path"), &[]);
    assert_eq!(rendered.code, 0, "{}", rendered.stderr);
    rendered.stdout
}

fn path(file: &impl AsRef<Path>) -> &str {
    file.as_ref().to_str().expect("a path")
}

fn refused(run: &Run, expected: &[&str]) {
    assert_eq!(run.code, 4, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout, "");
    for text in expected {
        assert!(run.stderr.contains(text), "{text}: {}", run.stderr);
    }
}

fn image(registry: &Registry, repository: &str) -> String {
    registry.image(&format!("{repository}:v1"))
}

#[test]
fn a_password_opens_a_registry() {
    let expected = pushed("password/bundle");
    let (image, address) = (
        image(basic_auth(), "password/bundle"),
        basic_auth().address(),
    );
    let plain = ["--insecure-registry", &address];

    let right = authfile(&[(&address, USER, PASSWORD)]);
    let opened = render(
        &image,
        &[&plain[..], &["--authfile", path(&right)]].concat(),
    );
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);

    let wrong = authfile(&[(&address, USER, WRONG_PASSWORD)]);
    let closed = render(
        &image,
        &[&plain[..], &["--authfile", path(&wrong)]].concat(),
    );
    refused(&closed, &[&address, "password/bundle", path(&wrong)]);

    let none = file("{}");
    let closed = render(&image, &[&plain[..], &["--authfile", path(&none)]].concat());
    refused(&closed, &[&address, "password/bundle", "--authfile"]);
}

#[test]
fn the_password_for_the_closest_place_is_tried_first() {
    let expected = pushed("closest/team/bundle");
    let address = basic_auth().address();
    let place = format!("{address}/closest/team");
    let file = authfile(&[
        (&address, "nobody", WRONG_PASSWORD),
        (&place, USER, PASSWORD),
    ]);
    let flags = ["--insecure-registry", &address, "--authfile", path(&file)];
    let opened = render(&image(basic_auth(), "closest/team/bundle"), &flags);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
}

/// The flags for a registry whose tokens come from another port.
fn token_flags(registry: &Registry) -> [String; 4] {
    let tokens = registry.token_server().address().to_owned();
    let insecure = registry.address();
    [
        "--insecure-registry".to_owned(),
        insecure,
        "--auth-host".to_owned(),
        tokens,
    ]
}

/// Renders from the registry that gives tokens, by HTTP.
fn render_by_token(repository: &str, more: &[&str]) -> Run {
    let registry = registry::token_auth();
    let flags = token_flags(registry);
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    // The token server has no certificate either.
    let tokens = ["--insecure-registry", registry.token_server().address()];
    render(
        &image(registry, repository),
        &[&flags, &tokens[..], more].concat(),
    )
}

#[test]
fn a_token_is_asked_for_with_the_password_and_only_to_pull() {
    let expected = pushed("private/bundle");
    let registry = registry::token_auth();
    let file = authfile(&[(&registry.address(), USER, PASSWORD)]);
    let opened = render_by_token("private/bundle", &["--authfile", path(&file)]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
    let asked = registry.token_server().asked("private/bundle");
    let [asked] = asked.as_slice() else {
        panic!("one token is enough: {asked:?}");
    };
    let credential = (USER.to_owned(), PASSWORD.to_owned());
    assert_eq!(asked.credential.as_ref(), Some(&credential));
    assert_eq!(asked.scope, "repository:private/bundle:pull");
}

#[test]
fn a_public_repository_needs_no_password() {
    let expected = pushed("public/bundle");
    let opened = render_by_token("public/bundle", &[]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
}

#[test]
fn a_private_repository_says_that_nobody_was_named() {
    pushed("private/nameless");
    let closed = render_by_token("private/nameless", &[]);
    let address = registry::token_auth().address();
    refused(&closed, &[&address, "private/nameless", "--authfile"]);
}

#[test]
fn a_wrong_password_and_a_repository_of_others_say_which_password_was_used() {
    pushed("private/wrong");
    pushed("forbidden/bundle");
    let address = registry::token_auth().address();
    for (repository, password) in [
        ("private/wrong", WRONG_PASSWORD),
        ("forbidden/bundle", PASSWORD),
    ] {
        let file = authfile(&[(&address, USER, password)]);
        let closed = render_by_token(repository, &["--authfile", path(&file)]);
        refused(&closed, &[&address, repository, path(&file)]);
    }
}

#[test]
fn an_identity_token_stands_for_a_password() {
    let expected = pushed("private/identity");
    let address = registry::token_auth().address();
    // Beside the token stands a user that is nobody, as `az acr login` writes it.
    let nobody = STANDARD.encode("00000000-0000-0000-0000-000000000000:");
    let entry = json!({"auth": nobody, "identitytoken": IDENTITY_TOKEN});
    let file = file(&json!({"auths": {address: entry}}).to_string());
    let opened = render_by_token("private/identity", &["--authfile", path(&file)]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
}

#[test]
fn a_token_that_has_expired_is_asked_for_again() {
    let expected = pushed("stale/bundle");
    let registry = registry::token_auth();
    let file = authfile(&[(&registry.address(), USER, PASSWORD)]);
    let opened = render_by_token("stale/bundle", &["--authfile", path(&file)]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
    assert_eq!(registry.token_server().asked("stale/bundle").len(), 2);
}

#[test]
fn no_password_goes_to_another_server_unless_it_is_named() {
    let expected = pushed("private/elsewhere");
    let registry = registry::tls_token_auth();
    let (address, tokens) = (registry.address(), registry.token_server().address());
    let (ca, passwords) = (ca_file(), authfile(&[(&address, USER, PASSWORD)]));
    let flags = ["--ca-file", path(&ca), "--authfile", path(&passwords)];
    let image = image(registry, "private/elsewhere");

    let closed = render(&image, &flags);
    refused(&closed, &[&address, tokens, "--auth-host"]);
    let asked = registry.token_server().asked("private/elsewhere");
    assert!(
        asked.iter().all(|asked| asked.credential.is_none()),
        "{asked:?}"
    );

    let opened = render(&image, &[&flags[..], &["--auth-host", tokens]].concat());
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
}

#[test]
fn a_certificate_is_believed_when_its_authority_is_named() {
    let expected = pushed("tls/bundle");
    let (image, ca) = (image(tls(), "tls/bundle"), ca_file());
    let opened = render(&image, &["--ca-file", path(&ca)]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
    let unknown = render(&image, &[]);
    refused(&unknown, &[&tls().address(), "certificate", "--ca-file"]);
}

#[test]
fn an_insecure_registry_is_the_one_that_is_named() {
    let expected = pushed("insecure/bundle");
    let (image, address) = (image(tls(), "insecure/bundle"), tls().address());
    let opened = render(&image, &["--insecure-registry", &address]);
    assert_eq!(opened.stdout, expected, "{}", opened.stderr);
    let other = registry::plain().address();
    let closed = render(&image, &["--insecure-registry", &other]);
    refused(&closed, &[&address, "certificate"]);
}

#[test]
fn nothing_is_sent_in_clear_unless_that_is_allowed() {
    pushed("clear/bundle");
    let closed = render(&image(registry::plain(), "clear/bundle"), &[]);
    let address = registry::plain().address();
    refused(&closed, &[&address, "--insecure-registry"]);
}

#[test]
fn an_authority_that_is_none_is_refused_before_anything_is_asked() {
    let no_certificate =
        file("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n");
    let refused = render(
        &image(tls(), "tls/bundle"),
        &["--ca-file", path(&no_certificate)],
    );
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(path(&no_certificate)),
        "{}",
        refused.stderr
    );
}
