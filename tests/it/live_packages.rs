//! What is installed by more than its bundle says: the way through a catalog, what a package needs, certificates that are
//! made, and several installs of one folder.

use std::{
    process::{Command, Stdio},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    cluster::Cluster,
    faults::{Fault, Rule},
    kill_matrix::Stage,
    live_commands::{cleanup, command, ends, run, with_catalog},
    program::{Run, program},
};

/// A command about what is in the catalog.
fn of_catalog(stage: &Stage, word: &str, arguments: &[&str]) -> Command {
    let mut command = command(stage, word, arguments);
    with_catalog(stage, &mut command, "");
    command
}

/// What was written besides Leases, since the proxy was asked to forget.
fn writes(stage: &Stage) -> Vec<String> {
    let writes = stage.proxy.writes().into_iter();
    let writes = writes.filter(|request| !request.path.contains("/leases"));
    writes
        .map(|request| format!("{} {}", request.method, request.path))
        .collect()
}

#[test]
fn an_upgrade_goes_the_way_of_the_catalog_unless_it_is_forced() {
    let stage = Stage::new();
    let package = stage.rename("twelve-operator");
    let exact = |version: &str, more: &[&str]| {
        of_catalog(
            &stage,
            "apply",
            &[&[package.as_str(), "--version", version, "--yes"], more].concat(),
        )
    };
    ends(exact("1.0.0", &[]), 0, &["version 1.0.0"]);
    let catalog = stage.copy("catalogs/twelve");
    let catalog = ["--catalog", catalog.to_str().expect("a path"), "-o", "json"];
    let next = ends(command(&stage, "status", &catalog), 0, &[]);
    let next: Value = serde_json::from_str(&next).expect("JSON");
    assert_eq!(
        next["installs"][0]["newer"],
        stage.rename("twelve-operator.v2.0.0")
    );
    ends(
        of_catalog(&stage, "apply", &[&package, "--yes", "--wait"]),
        0,
        &["version 2.0.0"],
    );
    assert_eq!(ends(of_catalog(&stage, "diff", &[&package]), 0, &[]), "");
    // The catalog has no way back.
    stage.proxy.settle();
    let refused = run(exact("1.0.0", &[]));
    assert!(
        matches!(refused.code, 3 | 5) && refused.stderr.contains("--force-upgrade"),
        "{}: {}",
        refused.code,
        refused.stderr
    );
    assert_eq!(writes(&stage), [""; 0]);
    ends(
        exact(
            "1.0.0",
            &["--force-upgrade", "--crd-upgrade-safety", "none"],
        ),
        0,
        &["version 1.0.0"],
    );
    ends(command(&stage, "status", &[]), 0, &["1.0.0"]);
    ends(cleanup(&stage, "twelve-operator"), 0, &[]);
}

/// What was chosen for what was there counts no more once another run has changed that.
#[test]
fn a_run_that_came_between_is_seen() {
    let stage = Stage::new();
    let package = stage.rename("twelve-operator");
    let late = Rule::new(Fault::Delay(Duration::from_secs(3)));
    stage
        .proxy
        .set_rules([late.writes().path("/leases").only(0)]);
    let mut first = of_catalog(&stage, "apply", &[&package, "--version", "1.0.0", "--yes"]);
    first.stdout(Stdio::piped()).stderr(Stdio::piped());
    let first = first.spawn().expect("the program starts");
    let is_choosing = || {
        !stage
            .proxy
            .requests()
            .iter()
            .any(|request| request.path.contains("/leases"))
    };
    while is_choosing() {
        thread::sleep(Duration::from_millis(20));
    }
    ends(
        of_catalog(&stage, "apply", &[&package, "--yes"]),
        0,
        &["version 2.0.0"],
    );
    let first = Run::from(first.wait_with_output().expect("it ends"));
    assert_eq!(first.code, 3, "{}", first.stderr);
    assert!(first.stderr.contains("--force-upgrade"), "{}", first.stderr);
    ends(command(&stage, "status", &[]), 0, &["2.0.0", "ready"]);
}

/// An API server for bundles whose names cannot be changed, one test at a time.
fn quiet() -> (&'static Cluster, MutexGuard<'static, ()>) {
    static QUIET: LazyLock<Cluster> = LazyLock::new(Cluster::private);
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (&QUIET, turn)
}

fn at(cluster: &Cluster, arguments: &[&str]) -> Command {
    let mut command = program();
    command
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig());
    command
}

#[test]
fn a_self_signed_certificate_is_made_once() {
    let (quiet, _turn) = quiet();
    let namespace = quiet.namespace("certificates");
    let apply = |word| {
        at(
            quiet,
            &[
                word,
                "testdata/bundles/queue-operator",
                "-n",
                &namespace,
                "--certs",
                "self-signed",
            ],
        )
    };
    ends(apply("apply"), 0, &[]);
    let secrets = ["get", "secrets", "-n", &namespace, "-o", "json"];
    let certificates = || {
        let list: Value = serde_json::from_str(&quiet.get(&secrets)).expect("JSON");
        let list = list["items"]
            .as_array()
            .cloned()
            .unwrap_or_default()
            .into_iter();
        list.filter(|secret| secret["type"] == "kubernetes.io/tls")
            .collect::<Vec<_>>()
    };
    let made = certificates();
    assert_eq!(made.len(), 1, "{made:#?}");
    let again = ends(apply("apply"), 0, &[]);
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    assert_eq!(ends(apply("diff"), 0, &[]), "");
    assert_eq!(certificates(), made);
    // Who loses it gets another one, and whoever trusts it is told.
    let name = made[0]["metadata"]["name"].as_str().expect("a name");
    quiet.get(&["delete", "secret", name, "-n", &namespace]);
    ends(
        apply("apply"),
        0,
        &[
            "validatingwebhookconfiguration.admissionregistration.k8s.io/validate.queues.example.com configured",
        ],
    );
    assert_ne!(certificates()[0]["data"], made[0]["data"]);
    ends(
        at(
            quiet,
            &["cleanup", "queue-operator", "-n", &namespace, "--yes"],
        ),
        0,
        &[],
    );
}

/// The part of the whole cluster trusts the certificate that is in the other part, be it there already or in a folder.
#[test]
fn both_scopes_have_one_certificate() {
    let (quiet, _turn) = quiet();
    let namespace = quiet.namespace("scopes");
    let with = |word: &str, scope: &str| {
        let bundle = "testdata/bundles/queue-operator";
        let flags = ["-n", &namespace, "--certs", "self-signed", "--scope", scope];
        at(quiet, &[&[word, bundle], &flags[..]].concat())
    };
    let hint = "apply --scope namespaced first";
    ends(
        with("apply", "cluster"),
        5,
        &["the certificate that the webhooks are to trust", hint],
    );
    let told = "its webhooks trust it once --scope cluster is applied";
    ends(with("apply", "namespaced"), 0, &[told, "there was none"]);
    ends(with("apply", "cluster"), 0, &["created"]);
    let first = |kind: &str, path: &str| {
        let path = format!("jsonpath={path}");
        quiet.get(&["get", kind, "-n", &namespace, "-o", &path])
    };
    let authority = first(
        "secrets",
        "{.items[?(@.type==\"kubernetes.io/tls\")].data.ca\\.crt}",
    );
    let trusted = first(
        "validatingwebhookconfigurations",
        "{.items[0].webhooks[0].clientConfig.caBundle}",
    );
    assert!(!authority.is_empty());
    assert_eq!(trusted, authority);
    for scope in ["cluster", "namespaced"] {
        assert_eq!(ends(with("diff", scope), 0, &[]), "");
    }
    // The name alone is that of neither.
    let part = |name: &str| at(quiet, &["cleanup", name, "-n", &namespace, "--yes"]);
    let meant = format!("`kubectl olm cleanup queue-operator.cluster -n {namespace}` removes it");
    ends(
        part("queue-operator"),
        0,
        &["is not installed; nothing to do", &meant],
    );
    for name in ["queue-operator.namespaced", "queue-operator.cluster"] {
        ends(part(name), 0, &["deleted"]);
    }
    let status = at(quiet, &["status", "queue-operator", "-n", &namespace]);
    ends(
        status,
        5,
        &["no install in namespace", "is called queue-operator"],
    );
}

#[test]
fn what_a_package_needs_is_an_install_of_its_own_and_stays_as_long_as_it_is_needed() {
    let (quiet, _turn) = quiet();
    let namespace = quiet.namespace("dependencies");
    let of = |word| {
        at(
            quiet,
            &[
                word,
                "mail-archive",
                "-n",
                &namespace,
                "--catalog",
                "testdata/catalogs/example",
            ],
        )
    };
    ends(
        of("apply"),
        0,
        &["mail-operator.v1.0.0", "mail-archive.v0.3.1"],
    );
    let status = ends(
        at(quiet, &["status", "-n", &namespace, "-o", "json"]),
        0,
        &[],
    );
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let installs = status["installs"].as_array().into_iter().flatten();
    let needed: Vec<_> = installs
        .map(|install| (install["name"].clone(), install["requiredBy"].clone()))
        .collect();
    assert_eq!(
        needed,
        [
            (json!("mail-archive"), json!([])),
            (
                json!("mail-operator"),
                json!([format!("{namespace}/mail-archive")])
            )
        ]
    );
    assert_eq!(ends(of("diff"), 0, &[]), "");
    let again = ends(of("apply"), 0, &[]);
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    // Who applies what is needed by itself knows nothing of who needs it.
    let alone = [
        "apply",
        "mail-operator",
        "-n",
        &namespace,
        "--catalog",
        "testdata/catalogs/example",
    ];
    ends(at(quiet, &alone), 0, &[]);
    let cleanup = |name| at(quiet, &["cleanup", name, "-n", &namespace, "--yes"]);
    let needed = format!(
        "mail-operator in {namespace} is needed by mail-archive in {namespace}; nothing was changed"
    );
    ends(
        cleanup("mail-operator"),
        5,
        &[&needed, "hint: remove what needs it first"],
    );
    let left = format!("`kubectl olm cleanup mail-operator -n {namespace}` removes it");
    ends(cleanup("mail-archive"), 0, &[&left]);
    ends(cleanup("mail-operator"), 0, &[]);
    ends(
        at(quiet, &["status", "-n", &namespace]),
        0,
        &["nothing is installed"],
    );
}

/// Who installs from manifests has every install with its namespaces, and each goes by itself.
#[test]
fn manifests_of_two_installs_are_applied_and_go_one_by_one() {
    let (quiet, _turn) = quiet();
    let of = |word| {
        at(
            quiet,
            &[
                word,
                "-f",
                "testdata/manifests/queues",
                "--catalog",
                "team=testdata/catalogs/example",
                "--image-source",
                "example.com/=testdata/bundles",
                "--certs",
                "none",
            ],
        )
    };
    ends(of("apply"), 0, &[]);
    assert_eq!(ends(of("diff"), 0, &[]), "");
    let again = ends(of("apply"), 0, &[]);
    assert!(
        again
            .lines()
            .all(|line| line.ends_with(" unchanged") || line.ends_with(" used")),
        "{again}"
    );
    // Its namespaces stay on this server, which has no controllers: nobody waits for that.
    let cleanup = |name| {
        at(
            quiet,
            &["cleanup", name, "-n", name, "--yes", "--wait=false"],
        )
    };
    ends(cleanup("mail"), 0, &["secret/registry-pull deleted"]);
    ends(cleanup("queues"), 0, &["secret/registry-pull deleted"]);
}
