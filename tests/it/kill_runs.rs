//! The program is killed at each of its requests to a real API server, and what is run next goes on from there.
//!
//! The install is that of testdata/bundles/twelve-operator-v1, with a copy of a pull Secret, and entries in its own
//! ServiceAccount and in one of which others have a part.

use std::{process::Command, sync::LazyLock, time::Instant};

use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    faults::FaultProxy,
    kill_matrix::{At, Done, End, Scene, Stage, kill_matrix},
    program::{Run, program, root},
};

/// What a killed run leaves, as the next one words it.
const UNFINISHED: &str = "did not finish";

/// The namespace of the Secret that installs copy.
static SOURCE: LazyLock<String> = LazyLock::new(|| {
    let namespace = cluster().namespace("pull-source");
    let login = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpjYW5hcnktNWMyZQ=="}}}"#;
    let secret = json!({
        "metadata": {"name": "twelve-pull"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": login},
    });
    let secret = secret.to_string();
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    let (code, answer) = cluster().send("POST", &path, ("application/json", &secret));
    assert_eq!(code, 201, "{answer}");
    namespace
});

/// A command of the program for the install of a stage, in one of its namespaces.
fn command(stage: &Stage, word: &str, arguments: &[&str]) -> Command {
    let mut command = program();
    command.args([word, "--kubeconfig"]).arg(stage.kubeconfig());
    command.args(arguments);
    command
}

/// A command with a version of the bundle.
fn of_bundle(stage: &Stage, word: &str, version: &str, arguments: &[&str]) -> Command {
    let secret = format!("{}/twelve-pull", *SOURCE);
    let mut command = command(stage, word, &["--pull-secret", &secret]);
    let bundle = format!("bundles/twelve-operator-{version}");
    command.args(arguments).arg(stage.copy(&bundle));
    command
}

/// A command with a version of the bundle, in the namespace that has bystanders.
fn beside_others(stage: &Stage, word: &str, version: &str) -> Command {
    let account = ["--also-service-account", "shared", "-n", &stage.namespace];
    of_bundle(stage, word, version, &account)
}

fn cleanup(stage: &Stage, namespace: &str) -> Command {
    let name = stage.rename("twelve-operator");
    command(stage, "cleanup", &[&name, "-n", namespace, "--yes"])
}

fn apply_v1(stage: &Stage) -> Command {
    beside_others(stage, "apply", "v1")
}

fn apply_v2(stage: &Stage) -> Command {
    let mut apply = beside_others(stage, "apply", "v2");
    apply.arg("--yes");
    apply
}

/// Inventories tell of runs and uids. The list of an account is one field, and whoever writes it, back too, owns it: what
/// is in it is checked by itself.
fn may_differ(object: &str) -> bool {
    (object.starts_with("Secret ") && object.contains("/kubectl-olm."))
        || (object.starts_with("ServiceAccount ") && object.ends_with("/shared"))
}

fn get(path: &str) -> (u16, Value) {
    cluster().send("GET", path, NOTHING)
}

/// What the inventory of a stage says of its last run: `done`, `running`, or nothing when there is none.
fn state(stage: &Stage) -> String {
    let secret = stage.rename("kubectl-olm.twelve-operator");
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", stage.namespace);
    let (_, secret) = get(&path);
    let state = secret["metadata"]["annotations"]["kubectl-olm/state"].as_str();
    state.unwrap_or_default().to_owned()
}

/// The pull Secrets of the account of which others have a part.
fn pull_secrets(stage: &Stage) -> Vec<String> {
    let path = format!(
        "/api/v1/namespaces/{}/serviceaccounts/shared",
        stage.namespace
    );
    let (_, account) = get(&path);
    let entries = account["imagePullSecrets"].as_array().into_iter().flatten();
    entries
        .filter_map(|entry| entry["name"].as_str().map(str::to_owned))
        .collect()
}

fn expect(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

/// That a run tells of the one before exactly when that has not finished, and waited for nobody.
fn tells_of(seen: &str, run: &Run) -> Result<(), String> {
    let told = run.stderr.matches(UNFINISHED).count();
    let wanted = usize::from(seen == "running");
    expect(
        told == wanted && !run.stderr.contains("waiting for the run"),
        || format!("after a run that is {seen:?}, it says: {}", run.stderr),
    )
}

/// That the account of which others have a part has these entries.
fn has_entries(stage: &Stage, wanted: &[&str]) -> Result<(), String> {
    let found = pull_secrets(stage);
    expect(found == wanted, || format!("the account has {found:?}"))
}

/// What is there after an apply: everything, and an inventory that says so.
fn is_applied(stage: &Stage, seen: &str, apply: &Done) -> Result<(), String> {
    tells_of(seen, &apply.run)?;
    has_entries(stage, &["alice-pull", "bob-pull", "twelve-pull"])?;
    let state = state(stage);
    expect(state == "done", || format!("the inventory says {state:?}"))
}

/// A diff in between shows what is missing and writes nothing; the next apply ends as if nothing had happened.
#[test]
fn an_apply_that_was_killed_is_shown_and_continued() {
    let diff = |stage: &Stage| beside_others(stage, "diff", "v1");
    kill_matrix(&Scene {
        before: &[],
        killed: &apply_v1,
        at: At::Requests,
        look: &state,
        then: &[(&diff, &[0, 1]), (&apply_v1, &[0])],
        check: &|stage, seen, done| {
            let [diff, apply] = done else {
                return Err("two commands".to_owned());
            };
            tells_of(seen, &diff.run)?;
            let writes = diff.requests.iter().filter(|request| request.is_write());
            expect(writes.count() == 0, || "the diff wrote".to_owned())?;
            let changes = ["created", "configured", "patched"];
            let is_changed = changes.iter().any(|word| apply.run.stdout.contains(word));
            expect((diff.run.code == 1) == is_changed, || {
                format!(
                    "diff ends with {}, and then: {}",
                    diff.run.code, apply.run.stdout
                )
            })?;
            is_applied(stage, seen, apply)
        },
        may_differ: &may_differ,
        end: End::AsUndisturbed,
    });
}

#[test]
fn an_upgrade_that_was_killed_is_continued() {
    kill_matrix(&Scene {
        before: &[&apply_v1],
        killed: &apply_v2,
        at: At::Requests,
        look: &state,
        then: &[(&apply_v2, &[0])],
        check: &|stage, seen, done| {
            let place = |method: &str| {
                let is_it = |request: &super::faults::Request| {
                    request.method == method
                        && request.is_write()
                        && !request.path.contains("/leases/")
                };
                (
                    done[0].requests.iter().rposition(is_it),
                    done[0].requests.iter().position(is_it),
                )
            };
            let ((last_apply, _), (_, first_delete)) = (place("PATCH"), place("DELETE"));
            let is_ordered =
                first_delete.is_none_or(|delete| last_apply.is_none_or(|apply| apply < delete));
            expect(is_ordered, || {
                "it deletes before it has applied everything".to_owned()
            })?;
            is_applied(stage, seen, &done[0])
        },
        may_differ: &may_differ,
        end: End::AsUndisturbed,
    });
}

#[test]
fn a_cleanup_that_was_killed_is_continued() {
    let cleanup = |stage: &Stage| cleanup(stage, &stage.namespace);
    kill_matrix(&Scene {
        before: &[&apply_v1],
        killed: &cleanup,
        at: At::Requests,
        look: &state,
        then: &[(&cleanup, &[0])],
        check: &|stage, seen, done| {
            tells_of(seen, &done[0].run)?;
            has_entries(stage, &["alice-pull", "bob-pull"])
        },
        may_differ: &|object| object.ends_with("/shared"),
        end: End::AsBefore,
    });
}

#[test]
fn what_a_killed_apply_made_is_cleaned_up() {
    let cleanup = |stage: &Stage| cleanup(stage, &stage.namespace);
    kill_matrix(&Scene {
        before: &[],
        killed: &apply_v1,
        at: At::Writes,
        look: &state,
        then: &[(&cleanup, &[0])],
        check: &|stage, seen, done| {
            tells_of(seen, &done[0].run)?;
            has_entries(stage, &["alice-pull", "bob-pull"])
        },
        may_differ: &|object| object.ends_with("/shared"),
        end: End::AsBefore,
    });
}

/// The namespace is made before there can be an inventory in it, and takes the inventory along when it goes.
#[test]
fn a_namespace_that_a_killed_apply_made_is_cleaned_up() {
    let apply = |stage: &Stage| {
        let made = stage.made();
        of_bundle(stage, "apply", "v1", &["-n", &made, "--create-namespace"])
    };
    let cleanup = |stage: &Stage| cleanup(stage, &stage.made());
    kill_matrix(&Scene {
        before: &[],
        killed: &apply,
        at: At::Writes,
        look: &|_| String::new(),
        then: &[(&cleanup, &[0])],
        check: &|_, _, _| Ok(()),
        may_differ: &|_| false,
        end: End::AsBefore,
    });
}

/// While a namespace goes, its inventory may still be there, and lists objects outside of it that are gone.
#[test]
fn a_cleanup_waits_for_a_namespace_that_keeps_its_inventory_for_a_while() {
    let stage = Stage::new();
    let made = stage.made();
    let run = |mut command: Command| Run::from(command.output().expect("the program starts"));
    let applied = run(of_bundle(
        &stage,
        "apply",
        "v1",
        &["-n", &made, "--create-namespace"],
    ));
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    let secret = stage.rename("kubectl-olm.twelve-operator");
    let path = format!("/api/v1/namespaces/{made}/secrets/{secret}");
    let hold = |finalizers: Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
        let (code, answer) =
            cluster().send("PATCH", &path, ("application/merge-patch+json", &patch));
        assert_eq!(code, 200, "{answer}");
    };
    hold(json!(["example.com/held"]));
    let cleanup = |more: &str| {
        let mut cleanup = cleanup(&stage, &made);
        cleanup.arg(more);
        run(cleanup)
    };
    let first = cleanup("--wait=false");
    assert_eq!(first.code, 0, "{}", first.stderr);
    let second = cleanup("--timeout=2s");
    assert_eq!(second.code, 7, "{}", second.stderr);
    hold(Value::Null);
    let last = cleanup("--timeout=60s");
    assert_eq!(last.code, 0, "{}", last.stderr);
}

/// A cleanup that was killed while the namespace goes is continued too.
#[test]
fn a_cleanup_of_a_namespace_that_was_killed_is_continued() {
    let apply = |stage: &Stage| {
        let made = stage.made();
        of_bundle(stage, "apply", "v1", &["-n", &made, "--create-namespace"])
    };
    let cleanup = |stage: &Stage| cleanup(stage, &stage.made());
    kill_matrix(&Scene {
        before: &[&apply],
        killed: &cleanup,
        at: At::Writes,
        look: &|_| String::new(),
        then: &[(&cleanup, &[0])],
        check: &|_, _, _| Ok(()),
        may_differ: &|_| false,
        end: End::AsBefore,
    });
}

/// Of a run on another machine nobody knows whether it has died, so that its Lease has to run out.
#[test]
fn a_run_that_died_elsewhere_is_waited_for_no_longer_than_its_lease() {
    let namespace = cluster().namespace("elsewhere");
    let lease = json!({
        "metadata": {"name": "kubectl-olm.minimal"},
        "spec": {
            "holderIdentity": "anna@elsewhere 4c0ffee 17 100",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    });
    let lease = lease.to_string();
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let (code, answer) = cluster().send("POST", &path, ("application/json", &lease));
    assert_eq!(code, 201, "{answer}");
    let proxy = FaultProxy::start(cluster());
    let begun = Instant::now();
    let mut apply = program();
    apply
        .args(["apply", "--kubeconfig"])
        .arg(proxy.kubeconfig(cluster().token()));
    apply
        .args(["-n", &namespace])
        .arg(root().join("testdata/bundles/minimal"));
    let run = Run::from(apply.output().expect("the program starts"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        begun.elapsed().as_secs() <= 20,
        "it took {:?}",
        begun.elapsed()
    );
    assert!(
        run.stderr.contains("waiting for the run of anna@elsewhere"),
        "{}",
        run.stderr
    );
}
