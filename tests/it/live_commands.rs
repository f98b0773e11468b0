//! What the commands about a cluster say and do, each as a user types it: dry runs, differences, what is installed, and
//! pull Secrets that are only in the cluster.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    kill_matrix::Stage,
    program::{Run, program},
};

/// How long what has to happen soon may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A command of the program in the namespace of a stage.
pub(crate) fn command(stage: &Stage, word: &str, arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg(word).args(arguments);
    command.args(["-n", &stage.namespace]);
    command.arg("--kubeconfig").arg(stage.kubeconfig());
    command
}

/// A command about a version of the bundle.
fn of_bundle(stage: &Stage, word: &str, version: &str, arguments: &[&str]) -> Command {
    let mut command = command(stage, word, arguments);
    command.arg(stage.copy(&format!("bundles/twelve-operator-{version}")));
    command
}

/// Names the catalog, and what its images hold.
pub(crate) fn with_catalog(stage: &Stage, command: &mut Command, prefix: &str) {
    let catalog = stage.copy("catalogs/twelve");
    command
        .arg("--catalog")
        .arg(format!("{prefix}{}", catalog.display()));
    for version in ["v1", "v2"] {
        let name = format!("twelve-operator-{version}");
        let files = stage.copy(&format!("bundles/{name}"));
        let image = stage.rename(&format!("example.com/{name}"));
        command
            .arg("--image-source")
            .arg(format!("{image}={}", files.display()));
    }
}

pub(crate) fn run(mut command: Command) -> Run {
    command.output().expect("the program starts").into()
}

/// Runs a command that ends with this exit code and says all of this; gives its standard output.
pub(crate) fn ends(command: Command, code: i32, said: &[&str]) -> String {
    let words = format!("{command:?}");
    let run = run(command);
    let all = said
        .iter()
        .all(|words| run.stderr.contains(words) || run.stdout.contains(words));
    assert!(
        run.code == code && all,
        "{words}\nexit code {} is to be {code}, saying {said:?}:\n{}{}",
        run.code,
        run.stderr,
        run.stdout
    );
    run.stdout
}

pub(crate) fn cleanup(stage: &Stage, name: &str) -> Command {
    command(stage, "cleanup", &[&stage.rename(name), "--yes"])
}

/// An object in the namespace of a stage.
fn object(stage: &Stage, kind: &str, name: &str) -> Value {
    let (kind, name) = (kind.to_owned(), stage.rename(name));
    let arguments = ["get", &kind, &name, "-n", &stage.namespace, "-o", "json"];
    serde_json::from_str(&cluster().get(&arguments)).expect("JSON")
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn dry_runs_write_nothing_and_tell_what_a_run_would() {
    let stage = Stage::new();
    let lines = |text: &str, end: &str| {
        let mut lines: Vec<_> = text
            .lines()
            .map(|line| line.trim_end_matches(end).to_owned())
            .collect();
        lines.sort();
        lines
    };
    let dry = |word: &str, version: &str| {
        let client = ends(
            of_bundle(&stage, word, version, &["--dry-run=client"]),
            0,
            &[],
        );
        let server = ends(
            of_bundle(&stage, word, version, &["--dry-run=server"]),
            0,
            &[],
        );
        assert_eq!(stage.proxy.writes().len(), 0, "{:?}", stage.proxy.writes());
        assert_eq!(
            lines(&client, " (dry run)"),
            lines(&server, " (server dry run)")
        );
        lines(&server, " (server dry run)")
    };
    let told = dry("apply", "v1");
    let done = ends(of_bundle(&stage, "apply", "v1", &[]), 0, &[]);
    assert_eq!(lines(&done, ""), told);
    stage.proxy.settle();
    let told = dry("apply", "v2").join("\n");
    let done = ends(of_bundle(&stage, "apply", "v2", &["--yes"]), 0, &[]);
    assert_eq!(lines(&done, "").join("\n"), told);
    stage.proxy.settle();
    let clean = |how: &str| {
        ends(
            command(&stage, "cleanup", &[&stage.rename("twelve-operator"), how]),
            0,
            &[],
        )
    };
    let (client, server) = (clean("--dry-run=client"), clean("--dry-run=server"));
    assert_eq!(stage.proxy.writes().len(), 0);
    let done = ends(cleanup(&stage, "twelve-operator"), 0, &[]);
    assert_eq!(lines(&client, " (dry run)"), lines(&done, ""));
    assert_eq!(lines(&server, " (server dry run)"), lines(&done, ""));
}

#[test]
fn a_namespace_that_is_missing_is_told_made_and_removed_again() {
    let stage = Stage::new();
    let namespace = stage.rename("twelve-new");
    let with = |word: &str, arguments: &[&str]| {
        let mut command = program();
        command
            .arg(word)
            .arg(stage.copy("bundles/twelve-operator-v1"))
            .args(arguments);
        command
            .args(["-n", &namespace, "--kubeconfig"])
            .arg(stage.kubeconfig());
        command
    };
    let missing = format!("the namespace {namespace} is not there; --create-namespace makes it");
    ends(with("apply", &[]), 5, &[&missing, "nothing was changed"]);
    ends(with("diff", &["--summary"]), 5, &[&missing, "12 to create"]);
    // Neither it nor the kinds of the definition are there yet.
    let summary = ends(with("diff", &["--create-namespace", "--summary"]), 1, &[]);
    assert!(
        summary.contains("13 to create, 0 to update, 0 to delete"),
        "{summary}"
    );
    ends(
        with("apply", &["--create-namespace", "--dry-run=server"]),
        0,
        &[],
    );
    assert!(stage.proxy.writes().is_empty());
    ends(with("apply", &["--create-namespace", "--wait"]), 0, &[]);
    for flags in [&["--create-namespace"][..], &[]] {
        assert_eq!(ends(with("diff", flags), 0, &[]), "");
    }
    // Its namespace stays with it, even where it is not asked for any more and all may go.
    let again = ends(with("apply", &["--delete-namespaces", "--yes"]), 0, &[]);
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    // A custom resource in it goes before it does.
    let group = stage.rename("twelve.example.com");
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/dozens");
    let eggs =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Dozen", "metadata": {"name": "eggs"}});
    let (code, answer) = cluster().send("POST", &path, ("application/json", &eggs.to_string()));
    assert_eq!(code, 201, "{answer}");
    let mut cleanup = program();
    cleanup.args([
        "cleanup",
        &stage.rename("twelve-operator"),
        "-n",
        &namespace,
        "--yes",
        "--delete-custom-resources",
    ]);
    cleanup.arg("--kubeconfig").arg(stage.kubeconfig());
    ends(cleanup, 0, &[&format!("namespace/{namespace} deleted")]);
    let (code, _) = cluster().send("GET", &format!("/api/v1/namespaces/{namespace}"), NOTHING);
    assert_eq!(code, 404);
}

#[test]
fn drift_is_shown_in_every_form_and_by_status() {
    let stage = Stage::new();
    ends(of_bundle(&stage, "apply", "v1", &["--wait"]), 0, &[]);
    let name = stage.rename("twelve-operator");
    let version = |stage: &Stage| {
        ends(
            command(stage, "status", &[]),
            0,
            &["installed", "ready", "none"],
        )
    };
    assert!(version(&stage).contains("1.0.0"));
    let namespace = ["-n", &stage.namespace];
    cluster().get(
        &[
            &["delete", "service", &stage.rename("twelve-metrics")],
            &namespace[..],
        ]
        .concat(),
    );
    // What others take away is put back; for what they set, they are asked first.
    let settings = [
        "patch",
        "configmap",
        &stage.rename("twelve-settings"),
        "--type=json",
    ];
    let patch = ["-p", r#"[{"op": "remove", "path": "/data"}]"#];
    cluster().get(&[&settings[..], &patch, &namespace].concat());

    let text = ends(of_bundle(&stage, "diff", "v1", &[]), 1, &[]);
    for line in ["+data:", "+  type: ClusterIP"] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let summary = ends(of_bundle(&stage, "diff", "v1", &["--summary"]), 1, &[]);
    assert!(
        summary.contains("1 to create, 1 to update, 0 to delete"),
        "{summary}"
    );
    let json = ends(of_bundle(&stage, "diff", "v1", &["-o", "json"]), 1, &[]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let changes: Vec<_> = json.as_array().into_iter().flatten().collect();
    let words: Vec<_> = changes
        .iter()
        .map(|change| (&change["object"]["kind"], &change["change"]))
        .collect();
    assert_eq!(
        words,
        [
            (&json!("ConfigMap"), &json!("update")),
            (&json!("Service"), &json!("create"))
        ]
    );
    // An own program gets two folders, with what is there and what would be.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = folder.path().join("differ");
    let text = "#!/bin/sh\necho two folders: $#\ndiff -r \"$1\" \"$2\" | grep data:\nexit 1\n";
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    let mut external = of_bundle(&stage, "diff", "v1", &[]);
    external.env("KUBECTL_EXTERNAL_DIFF", &script);
    let printed = ends(external, 1, &["two folders: 2", "> data:"]);
    assert!(!printed.contains("+++"), "{printed}");

    ends(
        command(&stage, "status", &[]),
        0,
        &[
            "2 objects",
            "missing since it was applied",
            "changed since it was applied",
        ],
    );
    let status = ends(command(&stage, "status", &[&name, "-o", "json"]), 0, &[]);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let drift = status["installs"][0]["drift"].as_array().expect("a list");
    let reasons: Vec<_> = drift
        .iter()
        .map(|drift| drift["reason"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(reasons, ["changed", "missing"]);

    ends(
        of_bundle(&stage, "apply", "v1", &["--wait"]),
        0,
        &["created", "configured"],
    );
    assert_eq!(ends(of_bundle(&stage, "diff", "v1", &[]), 0, &[]), "");
    ends(cleanup(&stage, "twelve-operator"), 0, &[]);
    ends(
        command(&stage, "status", &[]),
        0,
        &["nothing is installed in namespace"],
    );
    ends(cleanup(&stage, "twelve-operator"), 0, &["is not installed"]);
}

#[test]
fn a_watch_changes_back_what_others_change_until_it_is_interrupted() {
    let stage = Stage::new();
    let mut watch = of_bundle(&stage, "apply", "v1", &["--watch"]);
    watch.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = watch.spawn().expect("the program starts");
    let lease = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        stage.namespace
    );
    let inventory = format!("secrets/{}", stage.rename("kubectl-olm.twelve-operator"));
    let is_done = || {
        let requests = stage.proxy.requests();
        let mut requests = requests.iter();
        // It is released, and so is the Lease, before the next look.
        requests.any(|request| request.path.ends_with(&inventory) && request.method == "PUT")
    };
    until("it is never applied", is_done);
    let name = stage.rename("twelve-operator");
    let namespace = ["-n", &stage.namespace];
    cluster().get(
        &[
            &["scale", "deployment", &name, "--replicas=3"],
            &namespace[..],
        ]
        .concat(),
    );
    cluster().get(
        &[
            &["delete", "service", &stage.rename("twelve-metrics")],
            &namespace[..],
        ]
        .concat(),
    );
    until("it is never changed back", || {
        let replicas = &object(&stage, "deployment", "twelve-operator")["spec"]["replicas"];
        let service = format!(
            "/api/v1/namespaces/{}/services/{}",
            stage.namespace,
            stage.rename("twelve-metrics")
        );
        *replicas == 1 && cluster().send("GET", &service, NOTHING).0 == 200
    });
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let ended = Run::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("watching; Ctrl-C ends it"),
        "{}",
        ended.stderr
    );
    let (_, leases) = cluster().send("GET", &lease, NOTHING);
    let leases = leases["items"].as_array().into_iter().flatten();
    let held: Vec<_> = leases
        .filter(|lease| {
            lease["spec"]["holderIdentity"]
                .as_str()
                .is_some_and(|holder| !holder.is_empty())
        })
        .collect();
    assert_eq!(held, Vec::<&Value>::new());
    ends(cleanup(&stage, "twelve-operator"), 0, &[]);
}

#[test]
fn a_watch_ends_when_what_it_watches_is_cleaned_up() {
    let stage = Stage::new();
    let mut watch = of_bundle(&stage, "apply", "v1", &["--watch"]);
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = watch.spawn().expect("the program starts");
    let status = || run(command(&stage, "status", &[])).stdout;
    until("it is never applied", || status().contains("installed"));
    ends(cleanup(&stage, "twelve-operator"), 0, &[]);
    let ended = Run::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for words in [
        "was removed; it is not installed again",
        "nothing is left to watch",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert!(!ended.stdout.contains(" unchanged"), "{}", ended.stdout);
    ends(command(&stage, "status", &[]), 0, &["nothing is installed"]);
}

/// Makes the Secret of the catalog anew, with this password.
fn make_login(namespace: &str, name: &str, password: &str) {
    let content =
        json!({"auths": {"registry.example.com": {"username": "robot", "password": password}}});
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": content.to_string()},
    });
    let path =
        format!("/api/v1/namespaces/{namespace}/secrets/{name}?fieldManager=alice&force=true");
    let (code, answer) = cluster().send(
        "PATCH",
        &path,
        ("application/apply-patch+yaml", &secret.to_string()),
    );
    assert!(code < 300, "{answer}");
}

#[test]
fn the_pull_secret_of_a_catalog_is_copied_kept_up_to_date_and_removed() {
    let stage = Stage::new();
    let catalogs = cluster().namespace("catalogs");
    let login = stage.rename("twelve-login");
    let manifests = stage.copy("manifests/twelve").join("install.yaml");
    let text = fs::read_to_string(&manifests).expect("manifests");
    let text = text
        .replace("NAMESPACE", &stage.namespace)
        .replace("CATALOGS", &catalogs);
    fs::write(&manifests, text).expect("manifests");
    let with = |word: &str| {
        let mut command = program();
        command.arg(word).arg("-f").arg(&manifests);
        with_catalog(&stage, &mut command, "team=");
        command.arg("--kubeconfig").arg(stage.kubeconfig());
        command
    };
    let names = || {
        let account = object(&stage, "serviceaccount", "twelve-operator");
        let entries = account["imagePullSecrets"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        entries
            .iter()
            .map(|entry| entry["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    make_login(&catalogs, &login, "canary-one");
    let printed = ends(with("apply"), 0, &[]);
    assert!(!printed.contains("canary"), "{printed}");
    let account = format!(
        "serviceaccount/{} patched (Secrets: {login})",
        stage.rename("twelve-operator")
    );
    assert!(printed.contains(&account), "{printed}");
    assert_eq!(names(), [login.as_str()]);
    let copied = || object(&stage, "secret", "twelve-login")["data"].clone();
    let before = copied();
    assert_eq!(ends(with("diff"), 0, &[]), "");

    let foreign = r#"[{"op": "add", "path": "/imagePullSecrets/-", "value": {"name": "foreign"}}]"#;
    let patch = [
        "patch",
        "serviceaccount",
        &stage.rename("twelve-operator"),
        "-n",
        &stage.namespace,
    ];
    cluster().get(&[&patch[..], &["--type=json", "-p", foreign]].concat());
    make_login(&catalogs, &login, "canary-two");
    stage.proxy.settle();
    let differs = ends(
        with("diff"),
        1,
        &[&format!("secret/{login}"), "*** (before)", "*** (after)"],
    );
    assert!(!differs.contains("canary"), "{differs}");
    ends(with("apply"), 0, &[&format!("secret/{login} configured")]);
    assert_ne!(copied(), before);
    assert_eq!(names(), [login.as_str(), "foreign"]);
    ends(
        cleanup(&stage, "twelve"),
        0,
        &[&format!("secret/{login} deleted")],
    );
    let (code, _) = cluster().send(
        "GET",
        &format!("/api/v1/namespaces/{}/secrets/{login}", stage.namespace),
        NOTHING,
    );
    assert_eq!(code, 404);
    let (code, _) = cluster().send(
        "GET",
        &format!("/api/v1/namespaces/{catalogs}/secrets/{login}"),
        NOTHING,
    );
    assert_eq!(code, 200);
}

#[test]
fn a_definition_with_custom_resources_stays_unless_they_are_to_go() {
    let stage = Stage::new();
    let bundle = stage.copy("bundles/twelve-operator-v1");
    let bundle = bundle.to_str().expect("Unicode");
    ends(command(&stage, "apply", &[bundle]), 0, &[]);
    let (group, kind) = (stage.rename("twelve.example.com"), "Dozen");
    let resource = json!({
        "apiVersion": format!("{group}/v1"), "kind": kind,
        "metadata": {"name": "eggs", "namespace": stage.namespace},
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("dozen.json");
    fs::write(&file, resource.to_string()).expect("a file");
    cluster().get(&["create", "-f", file.to_str().expect("Unicode")]);
    let definition = stage.rename("dozens.twelve.example.com");
    let name = stage.rename("twelve-operator");
    let clean = |more: &[&str]| {
        let mut command = cleanup(&stage, "twelve-operator");
        command.args(more);
        command
    };
    let kept = "kept (custom resources of its kind are there: 1; --delete-custom-resources";
    ends(clean(&["--dry-run=server"]), 0, &[kept]);
    ends(clean(&[]), 0, &[kept]);
    cluster().get(&["get", "crd", &definition]);
    let plural = format!("dozens.{group}");
    cluster().get(&["get", &plural, "eggs", "-n", &stage.namespace]);
    // It is still the install's, and goes when the user says so.
    ends(command(&stage, "status", &[&name]), 0, &[&name]);
    let deleted = format!("dozen.{group}/eggs deleted");
    let all = ["--delete-custom-resources"];
    ends(clean(&all), 0, &[&deleted]);
    let found = cluster().get(&[
        "get",
        "crd",
        &definition,
        "--ignore-not-found",
        "-o",
        "name",
    ]);
    assert_eq!(found, "");
}
