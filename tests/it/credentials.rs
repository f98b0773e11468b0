//! Where logins for a registry are found, and that none of them ever shows.
//!
//! `testdata/credentials/cases/<situation>.yaml` is what a home folder holds and what is found in it,
//! `testdata/credentials/keys.yaml` which keys cover an image, `testdata/credentials/broken.yaml` what is told of files
//! that are broken. In all of them `base64(user:password)` stands for itself in base64, `~` for the home folder, and
//! every secret has CANARY in it.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubectl_olm::{
    image::ImageReference,
    limits::Limits,
    manifest::yaml,
    source::credentials::{
        Credential, CredentialError, Credentials, Environment, PullSecret,
        matching::{Key, ranked},
    },
};
use secrecy::ExposeSecret;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tempfile::TempDir;

use super::program::root;

/// A home folder and what is looked up in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Who says that this is right.
    #[serde(default, rename = "oracle")]
    _oracle: Option<String>,
    /// Files below the home folder.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Variables by the names of the fields of [`Environment`], below the home folder.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// `--authfile`, below the home folder.
    authfile: Option<String>,
    /// A manifest of a Secret that comes with the input.
    #[serde(default)]
    secrets: Vec<Value>,
    /// What is told when that is read.
    error: Option<String>,
    #[serde(default)]
    ask: Vec<Ask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    image: String,
    /// `USER by ORIGIN`, in order.
    #[serde(default)]
    found: Vec<String>,
    error: Option<String>,
}

#[test]
fn logins_are_found_where_people_have_them() {
    let mut wrong = vec![];
    let folder = root().join("testdata/credentials/cases");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "cases are missing");
    for path in paths {
        let home = Home::new();
        let told = home.tell(&read::<Case>(&path));
        wrong.extend(
            told.into_iter()
                .map(|difference| format!("{}: {difference}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<String>,
    image: String,
    /// Those that cover the image, in order.
    #[serde(default)]
    found: Vec<String>,
    /// What the kubelet finds, where that is something else, and why.
    #[serde(default, rename = "kubelet")]
    _kubelet: Option<Vec<String>>,
    #[serde(default, rename = "because")]
    _because: Option<String>,
}

#[test]
fn keys_cover_what_they_cover_for_the_kubelet() {
    let table: Vec<Keys> = read(&root().join("testdata/credentials/keys.yaml"));
    assert!(table.len() > 30, "keys are missing");
    let mut wrong = vec![];
    for row in table {
        let entries: Vec<_> = row
            .keys
            .iter()
            .filter_map(|text| Some((Key::parse(text)?, text)))
            .collect();
        let (registry, repository) = row.image.split_once('/').expect("an image");
        let found = ranked(&entries, |(key, _)| key, registry, repository);
        let found: Vec<_> = found.into_iter().map(|(_, text)| (*text).clone()).collect();
        if found != row.found {
            wrong.push(format!("{}: {found:?} of {:?}", row.image, row.keys));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Broken {
    text: Option<String>,
    /// For what YAML cannot hold.
    base64: Option<String>,
    error: String,
}

#[test]
fn broken_files_are_told_of_without_their_content() {
    let table: Vec<Broken> = read(&root().join("testdata/credentials/broken.yaml"));
    assert!(table.len() > 20, "broken files are missing");
    let mut wrong = vec![];
    for row in table {
        let home = Home::new();
        let text = match (&row.text, &row.base64) {
            (Some(text), _) => encoded(text).into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).expect("base64"),
            (None, None) => vec![],
        };
        fs::write(home.path("auth.json"), text).expect("a file");
        let authfile = home.path("auth.json");
        let error = Credentials::read(Some(&authfile), &[], &Environment::default())
            .expect_err("it is broken");
        let told = home.shown(&error.to_string());
        assert_silent(&error);
        if told != row.error {
            wrong.push(format!(
                "{:?}\n  told     {told}\n  expected {}",
                row.text, row.error
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever is lost of a file, nothing of the rest shows.
#[test]
fn damaged_files_show_nothing() {
    let home = Home::new();
    let path = home.path("auth.json");
    for whole in [
        r#"{"auths": {"quay.io/org": {"auth": "base64(ann:CANARY)", "password": "CANARY"}}, "credsStore": "x"}"#,
        "kind: Secret\nmetadata:\n  name: pull\ntype: kubernetes.io/dockercfg\nstringData:\n  .dockercfg: '{\"quay.io\": {\"auth\": \"base64(ann:CANARY)\"}}'\n",
    ] {
        let whole = encoded(whole).into_bytes();
        let mut refused = 0;
        for at in 0..whole.len() {
            let cut = whole[..at].to_vec();
            let missing = [&whole[..at], &whole[at + 1..]].concat();
            let other = [&whole[..at], b"\"", &whole[at + 1..]].concat();
            for damaged in [cut, missing, other] {
                fs::write(&path, damaged).expect("a file");
                let read = Credentials::read(Some(&path), &[], &Environment::default());
                assert_silent(&read);
                if let Err(error) = read {
                    refused += 1;
                    assert!(!error.to_string().contains("CANARY"), "{error}");
                }
            }
        }
        assert!(refused > whole.len(), "{refused} of {}", 3 * whole.len());
    }
}

#[test]
fn a_file_that_is_none_is_refused_at_once() {
    let home = Home::new();
    let (pipe, huge) = (home.path("pipe"), home.path("huge"));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo runs")
            .success()
    );
    fs::File::create(&huge)
        .expect("a file")
        .set_len(3 << 30)
        .expect("a sparse file");
    for (path, reason) in [
        (pipe, "it is not a plain file"),
        (home.path(""), "it is not a plain file"),
        (huge, "it is larger than 1048576 bytes"),
    ] {
        let error =
            Credentials::read(Some(&path), &[], &Environment::default()).expect_err("no auth file");
        assert_eq!(error.source().expect("a cause").to_string(), reason);
    }
}

#[test]
fn a_helper_is_asked_for_its_registry_alone_and_once() {
    let home = Home::new();
    home.helper(
        "mine",
        r#"read server; echo "$server" >> "$0.log"; echo '{"Username":"ann","Secret":"CANARY"}'"#,
    );
    home.helper(
        "store",
        r#"cat >> "$0.log"; echo '{"Username":"<token>","Secret":"CANARY"}'"#,
    );
    home.auth_file(
        r#"{"credHelpers": {"quay.io": "mine", "plain.io": ""}, "credsStore": "store",
        "auths": {"gcr.io": {"auth": "base64(joe:CANARY)"}, "docker.io": {}}}"#,
    );
    let credentials = home.credentials();
    assert_eq!(
        home.ask(&credentials, "quay.io/org/app"),
        ["ann by quay.io from docker-credential-mine, named in ~/.docker/config.json"]
    );
    assert_eq!(
        home.ask(&credentials, "quay.io/other"),
        ["ann by quay.io from docker-credential-mine, named in ~/.docker/config.json"]
    );
    assert_eq!(
        home.ask(&credentials, "gcr.io/app"),
        ["joe by gcr.io in ~/.docker/config.json"]
    );
    assert_eq!(home.ask(&credentials, "plain.io/app"), [""; 0]);
    assert_eq!(
        home.ask(&credentials, "nginx"),
        [
            "(identity token) by docker.io from docker-credential-store, named in ~/.docker/config.json"
        ]
    );
    assert_eq!(home.log("mine"), "quay.io\n");
    assert_eq!(home.log("store"), "https://index.docker.io/v1/");
}

#[test]
fn a_helper_that_keeps_nothing_is_no_error() {
    let home = Home::new();
    home.helper(
        "none",
        "echo credentials not found in native keychain; exit 1",
    );
    home.auth_file(r#"{"credsStore": "none"}"#);
    assert_eq!(home.ask(&home.credentials(), "quay.io/app"), [""; 0]);
}

#[test]
fn a_helper_that_misbehaves_is_told_of_without_its_words() {
    for (name, script, reason) in [
        (
            "fails",
            "echo CANARY; echo CANARY >&2; exit 1",
            "it failed: exit status: 1",
        ),
        (
            "floods",
            "exec yes CANARY",
            "it answered more than 65536 bytes",
        ),
        (
            "rambles",
            "echo CANARY",
            "its answer is no JSON with a user and a secret",
        ),
        (
            "numbers",
            r#"echo '{"Username":"ann","Secret":7}'"#,
            "its answer is no JSON with a user and a secret",
        ),
        (
            "breaks",
            r#"printf %s '{"Username":"ann","Secret":"CANARY\n"}'"#,
            "the secret that it answered has a control character in it",
        ),
    ] {
        let home = Home::new();
        home.helper(name, script);
        home.auth_file(&format!(r#"{{"credsStore": "{name}"}}"#));
        let error = home
            .credentials()
            .of("quay.io", "app")
            .expect_err("no answer");
        let message = format!(
            "the credential helper docker-credential-{name} that ~/.docker/config.json names for quay.io gives no login"
        );
        assert_eq!(home.shown(&error.to_string()), message);
        assert_eq!(error.source().expect("a cause").to_string(), reason);
        assert_silent(&error);
    }
}

#[test]
fn no_other_program_can_be_named_as_a_helper() {
    let home = Home::new();
    let mark = home.path("mark");
    for name in ["../../run", "a/b", "x;y", "X", "", "ä"] {
        let script = format!("touch {}", mark.display());
        home.program("run", &script);
        home.helper("b", &script);
        home.auth_file(&format!(r#"{{"credHelpers": {{"quay.io": "{name}"}}}}"#));
        let answer = home.credentials().of("quay.io", "app");
        // An empty name says that no helper is to be asked.
        assert_eq!(answer.is_err(), !name.is_empty(), "{name}");
        if let Err(error) = answer {
            assert_eq!(
                error.source().expect("a cause").to_string(),
                "its name has more in it than a-z, 0-9, `.`, `_` and `-`"
            );
        }
    }
    home.auth_file(r#"{"credHelpers": {"quay.io": "missing"}}"#);
    let error = home
        .credentials()
        .of("quay.io", "app")
        .expect_err("not installed");
    assert_eq!(
        error.source().expect("a cause").to_string(),
        "there is no such program in the folders of PATH"
    );
    assert!(
        error
            .hint()
            .expect("a hint")
            .contains("install docker-credential-missing")
    );
    assert!(!mark.exists());
}

#[test]
fn helpers_are_left_alone_where_a_login_is_stored() {
    let home = Home::new();
    home.helper("store", r#"touch "$0.log"; exit 1"#);
    home.auth_file(r#"{"credsStore": "store"}"#);
    fs::create_dir_all(home.path(".config/containers")).expect("a folder");
    let stored = encoded(r#"{"auths": {"quay.io": {"auth": "base64(ann:CANARY)"}}}"#);
    fs::write(home.path(".config/containers/auth.json"), stored).expect("a file");
    assert_eq!(
        home.ask(&home.credentials(), "quay.io/app"),
        ["ann by quay.io in ~/.config/containers/auth.json"]
    );
    assert!(!home.path("bin/docker-credential-store.log").exists());
}

/// A folder that stands for somebody's home.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn shown(&self, text: &str) -> String {
        text.replace(&self.0.path().display().to_string(), "~")
    }

    fn program(&self, name: &str, script: &str) {
        let (text, path) = (self.path("script"), self.path(name));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a script");
        // Another process writes the program: while this one has a file open for writing, a child that another test is
        // just starting holds it, too, and what is being written to cannot be run.
        let status = Command::new("install")
            .args(["-m", "755"])
            .args([&text, &path])
            .status();
        assert!(status.expect("install runs").success());
    }

    fn helper(&self, name: &str, script: &str) {
        self.program(&format!("bin/docker-credential-{name}"), script);
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("bin/docker-credential-{name}.log"))).expect("a log")
    }

    fn auth_file(&self, text: &str) {
        fs::create_dir_all(self.path(".docker")).expect("a folder");
        fs::write(self.path(".docker/config.json"), encoded(text)).expect("a file");
    }

    fn environment(&self) -> Environment {
        Environment {
            home: Some(self.0.path().to_owned()),
            path: self.path("bin").into(),
            ..Environment::default()
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials::read(None, &[], &self.environment()).expect("nothing is read yet")
    }

    /// What is found, as cases write it.
    fn ask(&self, credentials: &Credentials, image: &str) -> Vec<String> {
        match self.try_ask(credentials, image) {
            Ok(found) => found,
            Err(error) => panic!("{image}: {error}"),
        }
    }

    fn try_ask(
        &self,
        credentials: &Credentials,
        image: &str,
    ) -> Result<Vec<String>, CredentialError> {
        let image = ImageReference::parse(image).expect("an image").normalized();
        let found = credentials.of(
            image.registry.as_deref().expect("a registry"),
            &image.repository,
        );
        assert_silent(&(&found, credentials));
        let found = found?;
        Ok(found
            .iter()
            .map(|credential| self.shown(&line(credential)))
            .collect())
    }

    /// What is otherwise than the case says.
    fn tell(&self, case: &Case) -> Vec<String> {
        for (path, text) in &case.files {
            let path = self.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, encoded(text)).expect("a file");
        }
        let credentials = match self.read(case) {
            Ok(credentials) => credentials,
            Err(error) => {
                assert_silent(&error);
                let told = self.whole(&error);
                return (Some(&told) != case.error.as_ref())
                    .then_some(told)
                    .into_iter()
                    .collect();
            }
        };
        let mut wrong = vec![];
        if let Some(error) = &case.error {
            wrong.push(format!("nothing is told, not even {error}"));
        }
        for ask in &case.ask {
            let (found, error) = match self.try_ask(&credentials, &ask.image) {
                Ok(found) => (found, None),
                Err(error) => (vec![], Some(self.whole(&error))),
            };
            if found != ask.found || error != ask.error {
                wrong.push(format!("{}: {found:?} {error:?}", ask.image));
            }
        }
        wrong
    }

    fn read(&self, case: &Case) -> Result<Credentials, CredentialError> {
        let mut environment = self.environment();
        for (name, below) in &case.environment {
            let path = Some(self.path(below));
            match name.as_str() {
                "registry_auth_file" => environment.registry_auth_file = path,
                "docker_config" => environment.docker_config = path,
                "xdg_runtime_dir" => environment.xdg_runtime_dir = path,
                "xdg_config_home" => environment.xdg_config_home = path,
                _ => panic!("there is no variable {name}"),
            }
        }
        let secrets = case.secrets.iter().map(|secret| {
            let text = encoded(&secret.to_string());
            match serde_json::from_str(&text) {
                Ok(Value::Object(object)) => PullSecret::from_manifest(object),
                _ => panic!("a manifest"),
            }
        });
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        assert_silent(&secrets);
        let authfile = case.authfile.as_ref().map(|below| self.path(below));
        Credentials::read(authfile.as_deref(), &secrets, &environment)
    }

    /// A message with its causes.
    fn whole(&self, error: &CredentialError) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        self.shown(&text)
    }
}

fn line(credential: &Credential) -> String {
    let user = credential.user.expose_secret();
    let secrets = [
        (Some(&credential.password), user),
        (credential.identity_token.as_ref(), "(identity token)"),
    ];
    // Each has its secret, and each secret is there whole.
    let shown: Vec<_> = secrets
        .iter()
        .filter(|(secret, _)| {
            secret.is_some_and(|secret| secret.expose_secret().contains("CANARY"))
        })
        .map(|(_, name)| *name)
        .collect();
    format!("{} by {}", shown.join(" "), credential.origin)
}

/// Neither an error nor what is printed for debugging holds a secret, in whatever form.
pub(crate) fn assert_silent(value: &impl Debug) {
    let text = format!("{value:?} {value:#?}");
    for canary in ["CANARY", "Q0FOQVJZ", "NBTkFSW", "DQU5BUl"] {
        assert!(!text.contains(canary), "a secret shows: {text}");
    }
}

/// Replaces `base64(…)`, the innermost first.
pub(crate) fn encoded(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.rfind("base64(") {
        let inner = start + "base64(".len();
        let end = inner + text[inner..].find(')').expect("a closing parenthesis");
        let code = STANDARD.encode(&text[inner..end]);
        text.replace_range(start..=end, &code);
    }
    text
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read(path).expect("a case");
    let documents = yaml::read(&text, &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
