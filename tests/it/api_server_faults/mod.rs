//! What the program does when the API server fails, refuses, or is changed by others meanwhile. Every test works on the
//! bundle of twelve objects, under names of its own.

mod immutable;
mod inventories;
mod refused;
mod transient;

use std::{
    process::Child, process::Command, process::Stdio, thread, time::Duration, time::Instant,
};

use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    faults::Request,
    kill_matrix::Stage,
    program::{Run, program},
};

/// Longer than anything takes that a test waits for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every failure says that came before the first write.
const UNCHANGED: &str = "nothing was changed";

/// What every failure says that came later.
const LISTED: &str = "its inventory lists everything";

/// Runs a command of the program with a version of the bundle.
fn bundle(stage: &Stage, word: &str, version: &str, arguments: &[&str]) -> Run {
    start(stage, word, version, arguments)
        .wait_with_output()
        .expect("the program ends")
        .into()
}

fn start(stage: &Stage, word: &str, version: &str, arguments: &[&str]) -> Child {
    let mut command = command(stage, cluster().token(), word, arguments);
    let folder = stage.copy(&format!("bundles/twelve-operator-{version}"));
    command.arg(folder).spawn().expect("the program starts")
}

fn command(stage: &Stage, user: &str, word: &str, arguments: &[&str]) -> Command {
    let mut command = program();
    command
        .args([word, "--kubeconfig"])
        .arg(stage.proxy.kubeconfig(user));
    command.args(["-n", &stage.namespace]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn cleanup(stage: &Stage) -> Run {
    let name = stage.rename("twelve-operator");
    let mut cleanup = command(stage, cluster().token(), "cleanup", &[&name, "--yes"]);
    cleanup.output().expect("the program starts").into()
}

/// A stage on which the first version is applied.
fn applied() -> Stage {
    let stage = Stage::new();
    expect(&bundle(&stage, "apply", "v1", &[]), 0, &[]);
    stage.proxy.settle();
    stage
}

/// Fails unless a run ended with an exit code, and said all this on standard error.
#[track_caller]
fn expect(run: &Run, code: i32, said: &[&str]) {
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    for said in said {
        assert!(
            run.stderr.contains(said),
            "{said:?} is not in:\n{}",
            run.stderr
        );
    }
}

/// The path of an object of a stage, by the name that it has in the bundle.
fn path(stage: &Stage, plural: &str, name: &str) -> String {
    let (plural, name) = (stage.rename(plural), stage.rename(name));
    match plural.rsplit_once('/') {
        Some((group, plural)) => format!(
            "/apis/{group}/namespaces/{}/{plural}/{name}",
            stage.namespace
        ),
        None => format!("/api/v1/namespaces/{}/{plural}/{name}", stage.namespace),
    }
}

fn get(path: &str) -> (u16, Value) {
    cluster().send("GET", path, NOTHING)
}

fn is_there(stage: &Stage, plural: &str, name: &str) -> bool {
    get(&path(stage, plural, name)).0 == 200
}

fn send(method: &str, path: &str, content: &Value) -> Value {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let (code, answer) = cluster().send(method, path, (kind, &content.to_string()));
    assert!(code < 300, "{method} {path}: {answer}");
    answer
}

/// The requests of a program that changed anything but its Lease.
fn changes(stage: &Stage) -> Vec<String> {
    let writes = stage.proxy.writes().into_iter();
    let changes = writes.filter(|request| !request.path.contains("/leases"));
    changes
        .map(|Request { method, path, .. }| format!("{method} {path}"))
        .collect()
}

/// Waits until the program has sent a request.
fn wait_for(stage: &Stage, is_it: impl Fn(&Request) -> bool) {
    until("the request was sent", || {
        stage.proxy.requests().iter().any(&is_it)
    });
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Has the API server refuse requests in the namespace of a stage by a policy, which has an effect when this returns.
/// `probe` says whether it has.
fn forbid(stage: &Stage, operation: &str, expression: &str, probe: impl Fn() -> bool) -> String {
    let name = format!("{}-policy", stage.namespace);
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "services"], "operations": [operation],
    });
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}});
    send(
        "POST",
        policies,
        &json!({
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
                "validations": [{"expression": expression, "message": "frozen by the platform team"}],
            },
        }),
    );
    send(
        "POST",
        &format!("{policies}bindings").replace("policiesbindings", "policybindings"),
        &json!({
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    );
    until("the policy has an effect", probe);
    name
}

/// Takes a policy away again, and waits until it has no effect any more.
fn allow(name: &str, probe: impl Fn() -> bool) {
    let kinds = [
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
    ];
    for kind in kinds {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/{name}");
        cluster().send("DELETE", &path, NOTHING);
    }
    until("the policy has no effect", || !probe());
}
