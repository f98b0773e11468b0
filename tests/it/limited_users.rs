//! Who may not do everything: what is refused and how that is told, what works all the same, and that the roles that
//! `kubectl olm rbac` prints are enough and no rule of theirs too much.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    kill_matrix::Stage,
    program::{Run, program},
};

/// How long the API server may take until it knows what a role says.
const PATIENCE: Duration = Duration::from_secs(30);

/// The verbs of rules without which nothing can be applied. Without the others, a run only tells less.
const NEEDED: [&str; 3] = ["create", "escalate", "bind"];

/// A command of the program about a version of the bundle, as a user.
fn command(stage: &Stage, user: &str, word: &str, version: &str) -> Command {
    let mut command = program();
    command.arg(word);
    command.arg(stage.copy(&format!("bundles/twelve-operator-{version}")));
    command.args(["-n", &stage.namespace]);
    if word != "rbac" {
        command
            .arg("--kubeconfig")
            .arg(stage.proxy.kubeconfig(user));
    }
    command
}

fn run_as(stage: &Stage, user: &str, (word, version): (&str, &str), arguments: &[&str]) -> Run {
    let mut command = command(stage, user, word, version);
    command.args(arguments);
    command.output().expect("the program starts").into()
}

fn cleanup(stage: &Stage, user: &str, arguments: &[&str]) -> Run {
    let mut command = program();
    command.args(["cleanup", &stage.rename("twelve-operator")]);
    command
        .args(["-n", &stage.namespace, "--yes"])
        .args(arguments);
    command
        .arg("--kubeconfig")
        .arg(stage.proxy.kubeconfig(user));
    command.output().expect("the program starts").into()
}

fn status(stage: &Stage, user: &str, arguments: &[&str]) -> Run {
    let mut command = program();
    command.arg("status").args(arguments);
    command
        .arg("--kubeconfig")
        .arg(stage.proxy.kubeconfig(user));
    command.output().expect("the program starts").into()
}

/// Fails unless the exit code is this one, and all of this is said on standard error.
fn expect(run: &Run, code: i32, said: &[&str]) {
    let all = said.iter().all(|words| run.stderr.contains(words));
    assert!(
        run.code == code && all,
        "exit code {} is to be {code}, saying {said:?}:\n{}{}",
        run.code,
        run.stderr,
        run.stdout
    );
}

/// Binds a user to a ClusterRole in the namespace of a stage.
fn bind(stage: &Stage, user: &str, role: &str) {
    let (role, user) = (format!("--clusterrole={role}"), format!("--user={user}"));
    let namespace = ["-n", &stage.namespace];
    cluster().get(
        &[
            &["create", "rolebinding", "tests", &role, &user],
            &namespace[..],
        ]
        .concat(),
    );
}

/// What was written besides Leases.
fn writes(stage: &Stage) -> Vec<String> {
    let writes = stage.proxy.writes().into_iter();
    let writes = writes.filter(|request| !request.path.contains("/leases"));
    writes
        .map(|request| format!("{} {}", request.method, request.path))
        .collect()
}

fn administrator() -> &'static str {
    cluster().token()
}

#[test]
fn who_may_write_in_one_namespace_only_applies_what_is_in_it() {
    let stage = Stage::new();
    let user = "namespace-admin-1";
    bind(&stage, user, "admin");
    let refused = run_as(&stage, user, ("apply", "v1"), &["--wait"]);
    let crd =
        stage.rename("customresourcedefinition.apiextensions.k8s.io/dozens.twelve.example.com");
    let class = stage.rename("priorityclass.scheduling.k8s.io/twelve-legacy");
    let hint = "hint: `kubectl olm rbac` prints what an account needs; with --scope cluster and --scope namespaced";
    expect(&refused, 5, &[&crd, &class, "nothing was changed", hint]);
    assert_eq!(
        refused.stderr.matches("error[rights]").count(),
        6,
        "{}",
        refused.stderr
    );
    assert_eq!(writes(&stage), [""; 0]);

    let [cluster_wide, namespaced] = [["--scope", "cluster"], ["--scope", "namespaced"]];
    expect(
        &run_as(&stage, administrator(), ("apply", "v1"), &cluster_wide),
        0,
        &[],
    );
    expect(&run_as(&stage, user, ("diff", "v1"), &namespaced), 1, &[]);
    let wait = [&namespaced[..], &["--wait"]].concat();
    expect(&run_as(&stage, user, ("apply", "v1"), &wait), 0, &[]);
    let same = run_as(&stage, user, ("diff", "v1"), &namespaced);
    expect(&same, 0, &[]);
    assert_eq!(same.stdout, "");
    let shown = status(&stage, user, &["-n", &stage.namespace]);
    expect(&shown, 0, &[]);
    for words in [
        ".namespaced",
        "ready",
        "6 objects not checked",
        "not checked: ",
    ] {
        assert!(
            shown.stdout.contains(words),
            "no {words:?} in\n{}",
            shown.stdout
        );
    }
    expect(&status(&stage, user, &[]), 5, &["hint: name a namespace"]);
    expect(&cleanup(&stage, user, &namespaced), 0, &[]);
    expect(&cleanup(&stage, administrator(), &cluster_wide), 0, &[]);
}

#[test]
fn the_printed_roles_suffice_and_no_rule_of_them_is_too_much() {
    let stage = Stage::new();
    let user = "namespace-admin-2";
    let mut print = command(&stage, user, "rbac", "v1");
    print.args(["--user", user, "-o", "json"]);
    let printed = Run::from(print.output().expect("the program starts"));
    expect(&printed, 0, &["note[escalate]"]);
    let list: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let objects = list["items"].as_array().expect("a list");
    objects.iter().for_each(put);
    let mut rules = vec![];
    for role in objects.iter().filter(|object| object["rules"].is_array()) {
        let count = role["rules"].as_array().map_or(0, Vec::len);
        rules.extend((0..count).map(|index| (role, index)));
    }
    rules.retain(|(role, index)| {
        let mut verbs = role["rules"][index]["verbs"]
            .as_array()
            .into_iter()
            .flatten();
        verbs.any(|verb| NEEDED.iter().any(|needed| verb == needed))
    });
    assert!(rules.len() > 8, "{rules:#?}");
    for (role, index) in rules {
        let mut less = role.clone();
        let rule = less["rules"].as_array_mut().expect("rules").remove(index);
        put(&less);
        wait_until_allowed(user, &stage.namespace, &rule, false);
        let refused = run_as(&stage, user, ("apply", "v1"), &[]);
        let of_what = rule["resources"][0].as_str().expect("a resource");
        expect(&refused, 5, &["nothing was changed", of_what]);
        put(role);
        wait_until_allowed(user, &stage.namespace, &rule, true);
    }
    let wait = ["--wait", "--timeout", "2m"];
    expect(&run_as(&stage, user, ("apply", "v1"), &wait), 0, &[]);
    expect(&run_as(&stage, user, ("diff", "v1"), &[]), 0, &[]);
    expect(&status(&stage, user, &["-n", &stage.namespace]), 0, &[]);
    expect(&cleanup(&stage, user, &[]), 0, &[]);
    for object in objects {
        cluster().send("DELETE", &path(object), NOTHING);
    }
}

/// Where a role or binding is.
fn path(object: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &object["metadata"];
    let namespace = text(&metadata["namespace"]).map(|name| format!("namespaces/{name}/"));
    let kind = text(&object["kind"]).expect("a kind").to_lowercase();
    let name = text(&metadata["name"]).expect("a name");
    let namespace = namespace.unwrap_or_default();
    format!("/apis/rbac.authorization.k8s.io/v1/{namespace}{kind}s/{name}")
}

/// Makes a role or binding be like this.
fn put(object: &Value) {
    let (path, content) = (path(object), object.to_string());
    let content = ("application/apply-patch+yaml", content.as_str());
    let path = format!("{path}?fieldManager=tests&force=true");
    let (code, answer) = cluster().send("PATCH", &path, content);
    assert!(code < 300, "{path}: {answer}");
}

/// Waits until the API server knows whether a user may do what a rule allows.
fn wait_until_allowed(user: &str, namespace: &str, rule: &Value, is_allowed: bool) {
    let needed = |verb: &&Value| NEEDED.iter().any(|needed| *verb == needed);
    let verb = rule["verbs"]
        .as_array()
        .and_then(|verbs| verbs.iter().find(needed));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {
            "verb": verb,
            "group": rule["apiGroups"][0],
            "resource": rule["resources"][0],
            "name": rule["resourceNames"][0].as_str().unwrap_or_default(),
            "namespace": namespace,
        }},
    });
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let content = review.to_string();
        let (_, answer) = cluster().send("POST", reviews, ("application/json", &content));
        if answer["status"]["allowed"] == is_allowed {
            return;
        }
        assert!(Instant::now() < deadline, "{answer}");
    }
}

/// Who may apply an install is not always the one who may remove it.
#[test]
fn who_may_not_delete_is_told_of_all_before_anything_is_removed() {
    let (stage, user) = (Stage::new(), "no-deleter");
    let applied = run_as(&stage, administrator(), ("apply", "v1"), &[]);
    expect(&applied, 0, &[]);
    put(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "no-deleter", "namespace": stage.namespace},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "create", "update", "patch"]}],
    }));
    put(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "no-deleter", "namespace": stage.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "no-deleter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }));
    let may =
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]});
    wait_until_allowed(user, &stage.namespace, &may, true);
    stage.proxy.settle();
    let service = stage.rename("you may not delete services twelve-metrics in namespace");
    let definition = stage.rename("dozens.twelve.example.com in the whole cluster");
    let inventory = stage.rename("you may not delete secrets kubectl-olm.twelve-operator");
    let refused = cleanup(&stage, user, &[]);
    expect(
        &refused,
        5,
        &[
            &service,
            &definition,
            &inventory,
            "nothing was changed",
            "kubectl olm rbac",
        ],
    );
    assert_eq!(writes(&stage), [""; 0]);
}

#[test]
fn who_may_only_read_sees_what_differs() {
    let stage = Stage::new();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "tests-read-everything"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tests-read-everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tests-read-everything"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    });
    [role, binding].iter().for_each(put);
    expect(
        &run_as(&stage, administrator(), ("apply", "v1"), &[]),
        0,
        &[],
    );
    let seen = run_as(&stage, administrator(), ("diff", "v2"), &["--summary"]);
    stage.proxy.settle();
    let same = run_as(&stage, "reader", ("diff", "v1"), &[]);
    expect(&same, 0, &[]);
    assert_eq!(same.stdout, "");
    let differs = run_as(&stage, "reader", ("diff", "v2"), &["--summary"]);
    expect(&differs, 1, &[]);
    assert_eq!(
        differs.stderr.matches("you may not write").count(),
        1,
        "{}",
        differs.stderr
    );
    assert_eq!(differs.stdout, seen.stdout);
    expect(&status(&stage, "reader", &["-n", &stage.namespace]), 0, &[]);
    expect(
        &run_as(&stage, "reader", ("apply", "v2"), &["--yes"]),
        5,
        &["error[rights]", "nothing was changed"],
    );
    expect(&cleanup(&stage, "reader", &[]), 5, &[]);
    let attempts: Vec<_> = stage
        .proxy
        .writes()
        .into_iter()
        .filter(|request| request.code != Some(403))
        .collect();
    assert!(attempts.is_empty(), "{attempts:?}");
    expect(&cleanup(&stage, administrator(), &[]), 0, &[]);
}

/// The role `view` of Kubernetes has no right to Secrets, in one of which the inventory is.
#[test]
fn who_may_not_read_the_inventory_sees_what_differs() {
    let stage = Stage::new();
    let user = "namespace-admin-3";
    bind(&stage, user, "view");
    let namespaced = ["--scope", "namespaced"];
    expect(
        &run_as(&stage, administrator(), ("apply", "v1"), &namespaced),
        0,
        &[],
    );
    let same = run_as(&stage, user, ("diff", "v1"), &namespaced);
    expect(
        &same,
        0,
        &["warning[rights]", "what apply would delete is not shown"],
    );
    assert_eq!(same.stdout, "");
    let differs = run_as(&stage, user, ("diff", "v2"), &namespaced);
    expect(&differs, 1, &[]);
    assert!(
        differs.stdout.contains("twelve:v2") || differs.stdout.contains(":v2"),
        "{}",
        differs.stdout
    );
    expect(&cleanup(&stage, administrator(), &namespaced), 0, &[]);
}
