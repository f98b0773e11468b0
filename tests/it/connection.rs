//! Connections as kubectl users expect them: kubeconfigs, flags, credential plugins, proxies, and a real API server.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use kubectl_olm::{
    cluster::{
        answer::{ApiError, RefusalKind},
        connection::{Connection, ConnectionSettings},
        request::{Accept, Force, Mode, Request},
        resource::Served,
    },
    manifest::ObjectKey,
};
use serde_json::{Value, json};

use super::{
    cluster::cluster,
    lying::{Liar, answer},
};

const OBJECT: &str = r#"{"kind":"Status","apiVersion":"v1"}"#;
const PLUGIN_V1: &str = "client.authentication.k8s.io/v1";

/// A folder with kubeconfigs and programs.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// A program, written by another process: nobody here may have it open for writing when it is run.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.write(name, &format!("#!/bin/sh\n{script}\n"));
        let (mode, copy) = (
            fs::Permissions::from_mode(0o755),
            self.0.path().join("copy"),
        );
        fs::set_permissions(&path, mode).expect("a mode");
        let moved = Command::new("/bin/sh")
            .args(["-c", r#"cp -p "$0" "$1" && mv "$1" "$0""#])
            .arg(&path)
            .arg(&copy)
            .status();
        assert!(moved.expect("a shell").success());
        path
    }

    /// A kubeconfig for a server and a user.
    fn kubeconfig(&self, server: &str, user: Value) -> PathBuf {
        let content = json!({"current-context": "first",
            "contexts": [{"name": "first", "context": {"cluster": "one", "user": "me", "namespace": "ops"}},
                {"name": "second", "context": {"cluster": "two", "user": "me"}}],
            "clusters": [{"name": "one", "cluster": {"server": server, "unheard-of": {"a": [1]}}},
                {"name": "two", "cluster": {"server": "https://two.invalid:6443/k8s/c-1"}}],
            "users": [{"name": "me", "user": user}, {"name": "other", "user": {"token": "other"}}]});
        self.write("config", &content.to_string())
    }
}

fn settings(kubeconfig: PathBuf) -> ConnectionSettings {
    ConnectionSettings {
        kubeconfig: Some(kubeconfig),
        ..ConnectionSettings::default()
    }
}

fn open(kubeconfig: PathBuf) -> Result<Connection, String> {
    Connection::open(&settings(kubeconfig)).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    })
}

fn ping() -> Request {
    Request::read("/version", Accept::Whole, "a ping")
}

fn echo() -> Liar {
    Liar::plain(|_| answer("200 OK", &[], OBJECT))
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_told_without_its_secrets() {
    let folder = Folder::new();
    let with = |cluster: Value, user: Value| {
        json!({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": user}]})
        .to_string()
    };
    let server = || json!({"server": "https://127.0.0.1:1"});
    for (content, expected) in [
        ("", "no current context"),
        ("a: [hunter2", "no valid YAML"),
        ("[hunter2]", "no map of fields"),
        ("kind: Pod", "kind is not Config"),
        ("users: hunter2", "users are no list"),
        (
            "users: [{name: a, user: {token: [hunter2]}}]",
            "user \"a\" has a field",
        ),
        ("users: [{name: a}, {name: a}]", "twice"),
        ("current-context: gone", "no context \"gone\""),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: gone}}]}",
            "no cluster \"gone\"",
        ),
        (&with(json!({"server": "ftp://h"}), json!({})), "no URL"),
        (
            &with(
                json!({"server": "https://h", "certificate-authority-data": "hunter2!"}),
                json!({}),
            ),
            "no base64",
        ),
        (
            &with(
                json!({"server": "https://h", "certificate-authority-data": "aHVudGVyMg=="}),
                json!({}),
            ),
            "no certificate in PEM",
        ),
        (
            &with(
                json!({"server": "https://h", "proxy-url": "gopher://hunter2"}),
                json!({}),
            ),
            "proxy-url is none of",
        ),
        (
            &with(server(), json!({"client-key-data": "aHVudGVyMg=="})),
            "without a client-certificate",
        ),
        (
            &with(server(), json!({"client-certificate": "gone"})),
            "gone cannot be read",
        ),
        (
            &with(server(), json!({"tokenFile": "gone"})),
            "gone cannot be read",
        ),
        (
            &with(server(), json!({"token": "hunter2\n"})),
            "cannot be sent",
        ),
        (
            &with(server(), json!({"as-groups": ["a"]})),
            "without a user to act as",
        ),
        (
            &with(
                server(),
                json!({"auth-provider": {"name": "gcp", "config": {"access-token": "hunter2"}}}),
            ),
            "auth-provider \"gcp\"",
        ),
    ] {
        let error = open(folder.write("config", content)).expect_err(content);
        assert!(error.contains(expected), "{content}\n{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let error = open(folder.0.path().join("missing")).expect_err("no file");
    assert!(error.contains("missing cannot be read"), "{error}");
}

#[test]
fn flags_say_more_than_the_kubeconfig() {
    let (folder, liar) = (Folder::new(), echo());
    let server = format!("http://{}", liar.address());
    let plugin = folder.program("never", "exit 1");
    let user = json!({"exec": {"apiVersion": PLUGIN_V1, "command": plugin}});
    let kubeconfig = folder.kubeconfig("http://127.0.0.1:1", user);
    let connection = Connection::open(&ConnectionSettings {
        server: Some(server.clone()),
        token: Some("mine".into()),
        impersonate: Some("jane".to_owned()),
        impersonate_uid: Some("7".to_owned()),
        impersonate_groups: vec!["a".to_owned(), "b".to_owned()],
        impersonate_extra: vec![("k/x".to_owned(), "v".to_owned())],
        disable_compression: Some(true),
        ..settings(kubeconfig.clone())
    });
    let connection = connection.expect("the plugin is not asked");
    connection.send(&ping()).expect("an answer");
    assert_eq!(connection.about().server, server);
    assert_eq!(connection.about().context, "first");
    assert_eq!(connection.about().namespace.as_deref(), Some("ops"));
    let request = liar.requests().remove(0);
    for (name, value) in [
        ("authorization", "Bearer mine"),
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "a"),
        ("impersonate-extra-k%2fx", "v"),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!(request.header("accept-encoding"), None);
    assert!(
        request
            .header("user-agent")
            .is_some_and(|agent| agent.starts_with("kubectl-olm/"))
    );
    // A cluster and a user of their own.
    let chosen = Connection::open(&ConnectionSettings {
        context: Some("second".to_owned()),
        cluster: Some("one".to_owned()),
        user: Some("other".to_owned()),
        ..settings(folder.kubeconfig(&server, json!({})))
    });
    chosen
        .expect("a connection")
        .send(&ping())
        .expect("an answer");
    assert_eq!(
        liar.authorizations().last(),
        Some(&Some("Bearer other".to_owned()))
    );
    let second = Connection::open(&ConnectionSettings {
        context: Some("second".to_owned()),
        user: Some("other".to_owned()),
        ..settings(kubeconfig)
    });
    let second = second.expect("a connection");
    assert_eq!(second.about().server, "https://two.invalid:6443/k8s/c-1");
}

#[test]
fn paths_start_at_the_folder_of_their_kubeconfig() {
    let (folder, liar) = (Folder::new(), echo());
    folder.write("token", " of-file\n");
    let user = json!({"tokenFile": "token"});
    let kubeconfig = folder.kubeconfig(&format!("http://{}", liar.address()), user);
    open(kubeconfig)
        .expect("a connection")
        .send(&ping())
        .expect("an answer");
    assert_eq!(liar.authorizations(), [Some("Bearer of-file".to_owned())]);
    // Without a scheme, it is asked without TLS where nothing speaks of TLS, as by kubectl.
    let kubeconfig = folder.kubeconfig(&liar.address(), json!({"username": "a", "password": "b"}));
    open(kubeconfig)
        .expect("a connection")
        .send(&ping())
        .expect("an answer");
    assert_eq!(
        liar.authorizations().last(),
        Some(&Some("Basic YTpi".to_owned()))
    );
}

/// A plugin that answers with this status.
fn answering(status: &str) -> String {
    format!(
        "echo '{{\"kind\":\"ExecCredential\",\"apiVersion\":\"{PLUGIN_V1}\",\"status\":{status}}}'"
    )
}

#[test]
fn a_plugin_is_told_what_it_needs_and_gives_the_token() {
    let (folder, liar) = (Folder::new(), echo());
    let script = format!(
        "echo \"$KUBERNETES_EXEC_INFO $EXTRA $1\" > \"$(dirname \"$0\")/told\"\n{}",
        answering(r#"{"token":"of-plugin"}"#)
    );
    folder.program("plugin", &script);
    let user = json!({"exec": {"apiVersion": PLUGIN_V1, "command": "./plugin", "args": ["word"],
        "env": [{"name": "EXTRA", "value": "more"}], "interactiveMode": "Never", "provideClusterInfo": true}});
    let server = format!("http://{}", liar.address());
    let connection = open(folder.kubeconfig(&server, user)).expect("a connection");
    connection.send(&ping()).expect("an answer");
    assert_eq!(liar.authorizations(), [Some("Bearer of-plugin".to_owned())]);
    let told = fs::read_to_string(folder.0.path().join("told")).expect("it was run");
    let (info, more) = told.trim().split_once("} more ").expect("what it was told");
    assert_eq!(more, "word");
    let info: Value = serde_json::from_str(&format!("{info}}}")).expect("JSON");
    let expected = json!({"interactive": false, "cluster": {"server": server}});
    assert_eq!(info["spec"], expected);
}

#[test]
fn a_plugin_that_fails_is_ended_and_named() {
    let folder = Folder::new();
    for (script, reason) in [
        ("sleep 1000", "longer than 1 seconds"),
        ("yes hunter2", "more than 1048576 bytes"),
        ("echo hunter2; exit 1", "exit status: 1"),
        ("echo hunter2", "no JSON"),
    ] {
        let plugin = folder.program("plugin", script);
        let user = json!({"exec": {"apiVersion": PLUGIN_V1, "command": plugin}});
        let settings = ConnectionSettings {
            plugin_timeout: Duration::from_secs(1),
            ..settings(folder.kubeconfig("http://127.0.0.1:1", user))
        };
        let begun = Instant::now();
        let error = Connection::open(&settings).expect_err(script).to_string();
        assert!(begun.elapsed() < Duration::from_secs(5), "{script}");
        assert!(
            error.contains("/plugin\"") && error.contains(reason),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
    for (exec, reason) in [
        (
            json!({"command": "gone-7", "apiVersion": PLUGIN_V1, "installHint": "brew\u{1b} install"}),
            "kubeconfig says: brew install",
        ),
        (
            json!({"command": "a", "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
            "its apiVersion",
        ),
        (json!({"apiVersion": PLUGIN_V1}), "without a command"),
    ] {
        let kubeconfig = folder.kubeconfig("http://127.0.0.1:1", json!({"exec": exec}));
        let error = open(kubeconfig).expect_err(reason);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn credentials_that_are_not_accepted_any_more_are_fetched_again_once() {
    let folder = Folder::new();
    let script = format!(
        "echo x >> \"$(dirname \"$0\")/runs\"\nn=$(wc -l < \"$(dirname \"$0\")/runs\")\n{}",
        answering(r#"{"token":"t'$n'"}"#)
    );
    let plugin = folder.program("plugin", &script);
    let user =
        json!({"exec": {"apiVersion": PLUGIN_V1, "command": plugin, "interactiveMode": "Never"}});
    let liar = Liar::plain(|request| match request.header("authorization") {
        Some("Bearer t2") => answer("200 OK", &[], OBJECT),
        _ => answer(
            "401 Unauthorized",
            &[],
            r#"{"kind":"Status","message":"Unauthorized"}"#,
        ),
    });
    let server = format!("http://{}", liar.address());
    let connection = open(folder.kubeconfig(&server, user)).expect("a connection");
    connection.send(&ping()).expect("an answer");
    let never = Liar::plain(|_| answer("401 Unauthorized", &[], ""));
    let server = format!("http://{}", never.address());
    for (user, tries) in [
        (
            json!({"exec": {"apiVersion": PLUGIN_V1, "command": plugin}}),
            2,
        ),
        (json!({"token": "fixed"}), 3),
    ] {
        let connection = open(folder.kubeconfig(&server, user)).expect("a connection");
        let error = connection.send(&ping()).expect_err("not accepted");
        assert_eq!(error.kind(), Some(RefusalKind::Credentials));
        assert!(
            error
                .to_string()
                .contains("credentials for context first are not accepted"),
            "{error}"
        );
        assert_eq!(never.requests().len(), tries);
    }
}

/// Runs a test of this file again in a process of its own, with these variables; whether this is that process.
fn is_alone_with(test: &str, variables: &[(&str, &str)]) -> bool {
    const MARK: &str = "ALONE_WITH_VARIABLES";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(["--exact", &format!("connection::{test}"), "--nocapture"]);
    program
        .env_clear()
        .env(MARK, "1")
        .envs(variables.iter().copied());
    let ended = program.output().expect("this program");
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    false
}

#[test]
fn the_first_of_several_kubeconfigs_wins_and_missing_ones_are_passed_over() {
    let folder = Folder::new();
    folder.write(
        "a",
        "{current-context: a, users: [{name: u, user: {token: one}}]}",
    );
    let second = "{current-context: b, users: [{name: u, user: {token: two}}],
        contexts: [{name: a, context: {cluster: c, user: u, namespace: 7}}], clusters: [{name: c, cluster: {server: 'http://h'}}]}";
    folder.write("b", second);
    let path = |name: &str| folder.0.path().join(name).display().to_string();
    let list = ["", &path("missing"), &path("a"), &path("b")].join(":");
    let test = "the_first_of_several_kubeconfigs_wins_and_missing_ones_are_passed_over";
    if is_alone_with(test, &[("KUBECONFIG", &list)]) {
        let connection = Connection::open(&ConnectionSettings::default()).expect("a connection");
        assert_eq!(connection.about().server, "http://h");
        assert_eq!(connection.about().namespace.as_deref(), Some("7"));
    }
}

#[test]
fn without_a_kubeconfig_it_is_told_where_one_was_looked_for() {
    let test = "without_a_kubeconfig_it_is_told_where_one_was_looked_for";
    if is_alone_with(test, &[("HOME", "/nonexistent")]) {
        let error = Connection::open(&ConnectionSettings::default()).expect_err("no kubeconfig");
        let text = error.to_string();
        assert!(
            text.contains("(/nonexistent/.kube/config, which is not there)"),
            "{text}"
        );
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("--kubeconfig"))
        );
    }
}

#[test]
fn a_proxy_is_asked_for_a_way_to_the_server() {
    let (folder, proxy) = (Folder::new(), Liar::plain(|_| answer("407 No", &[], "")));
    let content = json!({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://server.invalid:6443",
            "proxy-url": format!("http://me:p%40ss@{}", proxy.address())}}]});
    let connection = open(folder.write("config", &content.to_string())).expect("a connection");
    let error = connection.send(&ping()).expect_err("no way").to_string();
    assert!(!error.contains("ss@"), "{error}");
    let request = proxy.requests().remove(0);
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("CONNECT", "server.invalid:6443")
    );
    assert_eq!(
        request.header("proxy-authorization"),
        Some("Basic bWU6cEBzcw==")
    );
}

/// A connection to the real server as its administrator.
fn administrator() -> Connection {
    open(cluster().kubeconfig()).expect("a connection")
}

fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
    ObjectKey {
        group,
        kind,
        namespace,
        name,
    }
}

/// Applies an object on a real server, and gives the code of the answer.
fn apply(connection: &Connection, object: &Value, mode: Mode) -> Result<(u16, Value), ApiError> {
    let text = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = text("/apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let key = key(
        group,
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    );
    let resources = connection.resources()?;
    let Served::As(resource) = resources.find(&key, text("/apiVersion")) else {
        panic!("{key} is not served")
    };
    let request = Request::apply(resource, &key, object.clone(), mode, Force::No);
    connection
        .send(&request)
        .map(|answer| (answer.code, answer.body))
}

#[test]
fn a_real_server_serves_kinds_lists_and_objects_and_judges_writes() {
    let connection = administrator();
    assert!(connection.version().expect("a version").starts_with("v1."));
    let namespace = "connection-objects";
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    apply(&connection, &made, Mode::Write).expect("a namespace");
    let config = |data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace},
            "data": {"a": data}})
    };
    let code = |mode| apply(&connection, &config("1"), mode).expect("an answer").0;
    assert_eq!(
        [Mode::DryRun, Mode::Write, Mode::DryRun, Mode::Write].map(code),
        [201, 201, 200, 200]
    );
    let resources = connection.resources().expect("resources");
    let config_key = key("", "ConfigMap", namespace, "a");
    let Served::As(maps) = resources.find(&config_key, "v1") else {
        panic!("no config maps")
    };
    let listed = connection.list_all(&Request::list_metadata(maps, Some(namespace), ""));
    let listed = listed.expect("a list");
    let ours = listed
        .iter()
        .find(|object| object["metadata"]["name"] == "a")
        .expect("ours");
    assert_eq!(ours.get("data"), None);
    let uid = ours["metadata"]["uid"].as_str().expect("a uid");
    let wrong = connection.send(&Request::delete(maps, &config_key, "another", Mode::Write));
    assert_eq!(
        wrong.expect_err("another uid").kind(),
        Some(RefusalKind::Changed)
    );
    connection
        .send(&Request::delete(maps, &config_key, uid, Mode::DryRun))
        .expect("a dry run");
    connection
        .send(&Request::get(maps, &config_key))
        .expect("it is still there");
    connection
        .send(&Request::delete(maps, &config_key, uid, Mode::Write))
        .expect("it goes");
    let gone = connection
        .send(&Request::get(maps, &config_key))
        .expect_err("it is gone");
    assert_eq!(gone.kind(), Some(RefusalKind::NotFound));
    // What would be no name is never a collection.
    for name in ["", ".", ".."] {
        let nothing = key("", "ConfigMap", namespace, name);
        let error = connection.send(&Request::delete(maps, &nothing, uid, Mode::Write));
        assert!(error.is_err(), "{name}");
    }
    let missing = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "connection-missing"}});
    let error = apply(&connection, &missing, Mode::DryRun).expect_err("no namespace");
    assert_eq!(error.kind(), Some(RefusalKind::NotFound));
}

#[test]
fn a_real_server_refuses_in_the_ways_that_are_told_apart() {
    let connection = administrator();
    let namespace = "connection-refusals";
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    apply(&connection, &made, Mode::Write).expect("a namespace");
    let deployment = |selector: &str, env: &[&str], replicas: u32| {
        let env: Vec<_> = env
            .iter()
            .map(|name| json!({"name": name, "value": "1"}))
            .collect();
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": namespace},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": selector}}, "template": {
                "metadata": {"labels": {"a": selector}},
                "spec": {"containers": [{"name": "a", "image": "a", "env": env}]}}}})
    };
    let kind = |object: &Value| {
        apply(&connection, object, Mode::Write)
            .expect_err("it is refused")
            .kind()
    };
    apply(&connection, &deployment("a", &["A"], 0), Mode::Write).expect("a deployment");
    assert_eq!(
        kind(&deployment("b", &["A"], 0)),
        Some(RefusalKind::Immutable)
    );
    assert_eq!(
        kind(&deployment("a", &["A", "A"], 0)),
        Some(RefusalKind::Invalid)
    );
    let scaled = cluster()
        .kubectl()
        .args(["-n", namespace, "scale", "deployment/a", "--replicas", "2"])
        .status();
    assert!(scaled.expect("kubectl").success());
    let Err(ApiError::Refused(conflict)) =
        apply(&connection, &deployment("a", &["A"], 0), Mode::DryRun)
    else {
        panic!("no conflict")
    };
    assert_eq!(conflict.kind, RefusalKind::FieldConflict);
    let cause = conflict.causes.first().expect("a cause");
    assert_eq!(
        (cause.field.as_str(), cause.manager()),
        (".spec.replicas", Some("kubectl"))
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": namespace},
        "stringData": {"a": {"b": "hunter2"}}});
    let error = apply(&connection, &secret, Mode::Write).expect_err("no text");
    assert_eq!(error.kind(), Some(RefusalKind::Invalid));
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": namespace},
        "data": {"a": "x".repeat(1_100_000)}});
    assert_eq!(kind(&large), Some(RefusalKind::TooLarge));
    let weak = Connection::open(&ConnectionSettings {
        impersonate: Some("nobody-in-particular".to_owned()),
        ..settings(cluster().kubeconfig())
    });
    let weak = weak.expect("a connection");
    let error = apply(&weak, &made, Mode::DryRun).expect_err("no rights");
    assert_eq!(error.kind(), Some(RefusalKind::Forbidden));
    assert!(
        error.to_string().contains("nobody-in-particular"),
        "{error}"
    );
    let stranger = Connection::open(&ConnectionSettings {
        token: Some("unknown".into()),
        ..settings(cluster().kubeconfig())
    });
    let error = stranger
        .expect("a connection")
        .send(&ping())
        .expect_err("no login");
    assert_eq!(error.kind(), Some(RefusalKind::Credentials));
}

#[test]
fn the_certificate_of_a_server_is_checked() {
    let text = fs::read_to_string(cluster().kubeconfig()).expect("a kubeconfig");
    let folder = Folder::new();
    let certificates = cluster().kubeconfig();
    let certificates = certificates
        .parent()
        .unwrap_or(Path::new("/"))
        .display()
        .to_string();
    let absolute = text.replace(
        "certificate-authority: ",
        &format!("certificate-authority: {certificates}/"),
    );
    let trusting = folder.write("trusting", &absolute);
    assert!(
        open(trusting.clone())
            .expect("a connection")
            .version()
            .is_ok()
    );
    let wrong_name = Connection::open(&ConnectionSettings {
        tls_server_name: Some("elsewhere.example".to_owned()),
        ..settings(trusting.clone())
    });
    let begun = Instant::now();
    let error = wrong_name
        .expect("a connection")
        .version()
        .expect_err("another name")
        .to_string();
    assert!(error.contains("certificate"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    let careless = Connection::open(&ConnectionSettings {
        tls_server_name: Some("elsewhere.example".to_owned()),
        insecure_skip_tls_verify: Some(true),
        ..settings(trusting)
    });
    assert!(careless.expect("a connection").version().is_ok());
}
