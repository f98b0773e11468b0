//! What the program does when the API server fails, refuses, or is changed by others meanwhile. Every test works on the
//! bundle of twelve objects, under names of its own.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use kubectl_olm::{cluster::inventory::applyset_id, limits::Limits, manifest::yaml};
use rayon::prelude::*;
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, NOTHING, cluster},
    faults::{Fault, Request, Rule, Signal},
    kill_matrix::Stage,
    program::{Run, program, root},
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

/// What a server does now and then makes no difference to what is there in the end, for an install, an upgrade and a
/// cleanup alike.
#[test]
fn what_the_server_does_now_and_then_is_outlived() {
    let busy = Fault::refusal(
        429,
        "TooManyRequests",
        "too many requests",
        &[("Retry-After", "1")],
    );
    let broken = Fault::refusal(500, "InternalError", "Internal error occurred", &[]);
    let late = |method| {
        Rule::new(Fault::timed_out())
            .method(method)
            .writes()
            .every(2)
    };
    let lost = |method| {
        Rule::new(Fault::LoseAnswer)
            .method(method)
            .writes()
            .every(2)
    };
    let never = |method| {
        Rule::new(Fault::LoseRequest)
            .method(method)
            .writes()
            .every(2)
    };
    let cases = [
        (
            "every fifth request is one too many",
            vec![Rule::new(busy).every(5)],
        ),
        (
            "every third request fails",
            vec![Rule::new(broken).every(3)],
        ),
        (
            "objects are written and nobody is told in time",
            vec![late("PATCH"), late("DELETE")],
        ),
        (
            "inventories and Leases are written and nobody is told in time",
            vec![late("POST"), late("PUT")],
        ),
        (
            "answers about objects are lost",
            vec![lost("PATCH"), lost("DELETE")],
        ),
        (
            "answers about inventories and Leases are lost",
            vec![lost("POST"), lost("PUT")],
        ),
        (
            "requests are lost",
            vec![never("PATCH"), never("DELETE"), never("PUT")],
        ),
    ];
    let outlive = |(what, rules): (&str, Vec<Rule>)| -> Option<String> {
        let stage = Stage::new();
        for (word, version) in [("apply", "v1"), ("apply", "v2")] {
            stage.proxy.settle();
            stage.proxy.set_rules(rules.clone());
            let run = bundle(&stage, word, version, &["--yes"]);
            if run.code != 0 {
                return Some(format!("{what}: {word} of {version}: {}", run.stderr));
            }
            stage.proxy.settle();
            let diff = bundle(&stage, "diff", version, &[]);
            if diff.code != 0 || diff.stderr.contains("did not finish") {
                return Some(format!(
                    "{what}: {version} differs: {}{}",
                    diff.stdout, diff.stderr
                ));
            }
        }
        stage.proxy.settle();
        stage.proxy.set_rules(rules);
        let run = cleanup(&stage);
        let is_left = is_there(&stage, "configmaps", "twelve-settings")
            || is_there(&stage, "secrets", "kubectl-olm.twelve-operator");
        (run.code != 0 || is_left).then(|| format!("{what}: cleanup: {}", run.stderr))
    };
    // Most of the time they wait.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(cases.len());
    let threads = threads.build().expect("threads");
    let failures: Vec<_> = threads.install(|| cases.into_par_iter().filter_map(outlive).collect());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), signal).expect("it runs");
}

#[test]
fn a_server_that_is_started_anew_is_waited_for() {
    let cluster = Cluster::private();
    let namespace = cluster.namespace("restart");
    let mut apply = program();
    apply
        .args(["apply", "--kubeconfig"])
        .arg(cluster.kubeconfig());
    apply
        .args(["-n", &namespace])
        .arg(root().join("testdata/bundles/twelve-operator-v1"));
    let mut apply = apply
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut told = BufReader::new(apply.stdout.take().expect("standard output is piped"));
    let mut line = String::new();
    while !line.contains("serviceaccount/") {
        line.clear();
        assert!(told.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    // Held, it cannot end before the server does.
    signal(&apply, Signal::STOP);
    cluster.kill_apiserver();
    signal(&apply, Signal::CONT);
    thread::sleep(Duration::from_secs(2));
    cluster.start_apiserver();
    told.read_to_string(&mut String::new()).expect("the lines");
    let run = Run::from(apply.wait_with_output().expect("the program ends"));
    expect(&run, 0, &["waiting for the API server"]);
    let deployment = cluster.get(&[
        "get",
        "deployment/twelve-operator",
        "-n",
        &namespace,
        "-o",
        "name",
    ]);
    assert_eq!(deployment.trim(), "deployment.apps/twelve-operator");
}

#[test]
fn a_port_that_a_container_has_twice_is_refused_without_asking() {
    let stage = Stage::new();
    let folder = stage.copy("bundles/twelve-operator-v1");
    let file = folder.join(stage.rename("manifests/twelve-operator.clusterserviceversion.yaml"));
    let text = fs::read_to_string(&file).expect("a text");
    let twice = "- name: manager\n                ports: [{containerPort: 80}, {containerPort: 81}, {containerPort: 80}]";
    fs::write(&file, text.replace("- name: manager", twice)).expect("a file");
    let run = command(&stage, cluster().token(), "apply", &[])
        .arg(&folder)
        .output();
    let run = Run::from(run.expect("the program starts"));
    expect(
        &run,
        3,
        &[
            "spec.template.spec.containers[0].ports has containerPort 80",
            "deployment.apps/",
            "was not applied",
        ],
    );
    let sent: Vec<_> = stage
        .proxy
        .requests()
        .into_iter()
        .filter(|request| request.method != "GET")
        .collect();
    assert!(sent.is_empty(), "{sent:?}");
}

#[test]
fn fields_of_others_are_all_listed_and_nothing_is_written() {
    let stage = applied();
    let change = |plural: &str, name: &str, content: Value| {
        let path = path(&stage, plural, name);
        let mut content = content;
        let (_, live) = get(&path);
        let group = plural.rsplit_once('/').map_or("v1", |(group, _)| group);
        let kinds = [
            ("configmaps", "ConfigMap"),
            ("services", "Service"),
            ("apps/v1/deployments", "Deployment"),
        ];
        let kind = kinds
            .iter()
            .find(|(plural_of, _)| *plural_of == plural)
            .expect("a kind")
            .1;
        content["apiVersion"] = json!(group);
        content["kind"] = json!(kind);
        content["metadata"] = json!({"name": live["metadata"]["name"]});
        let path = format!("{path}?fieldManager=mallory&force=true");
        let (code, answer) = cluster().send(
            "PATCH",
            &path,
            ("application/apply-patch+yaml", &content.to_string()),
        );
        assert_eq!(code, 200, "{answer}");
    };
    change(
        "configmaps",
        "twelve-settings",
        json!({"data": {"level": "trace"}}),
    );
    change(
        "apps/v1/deployments",
        "twelve-operator",
        json!({"spec": {"replicas": 3}}),
    );
    change(
        "services",
        "twelve-legacy",
        json!({"spec": {"selector": {"app": "mine"}}}),
    );
    let run = bundle(&stage, "apply", "v1", &[]);
    let named = |text: &str| stage.rename(text);
    expect(
        &run,
        5,
        &[
            "mallory",
            ".data.level",
            ".spec.replicas",
            ".spec.selector",
            &named("configmap/twelve-settings"),
            &named("deployment.apps/twelve-operator"),
            &named("service/twelve-legacy"),
            "--force-conflicts",
            UNCHANGED,
        ],
    );
    assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    expect(
        &bundle(&stage, "apply", "v1", &["--force-conflicts"]),
        0,
        &[],
    );
    expect(&bundle(&stage, "diff", "v1", &[]), 0, &[]);
}

#[test]
fn what_may_not_be_deleted_stays_in_the_inventory() {
    let stage = applied();
    let probe = || {
        let path = path(&stage, "configmaps", "twelve-legacy");
        cluster()
            .send("DELETE", &format!("{path}?dryRun=All"), NOTHING)
            .0
            >= 400
    };
    let expression = "!oldObject.metadata.name.endsWith('-legacy')";
    let policy = forbid(&stage, "DELETE", expression, probe);
    let run = bundle(&stage, "apply", "v2", &["--yes"]);
    let legacy = [
        stage.rename("configmap/twelve-legacy"),
        stage.rename("service/twelve-legacy"),
    ];
    expect(
        &run,
        6,
        &[
            &legacy[0],
            &legacy[1],
            "frozen by the platform team",
            LISTED,
            "goes on",
        ],
    );
    let priority = stage.rename("/apis/scheduling.k8s.io/v1/priorityclasses/twelve-legacy");
    assert_eq!(get(&priority).0, 404, "what may be deleted is");
    assert!(is_there(&stage, "configmaps", "twelve-legacy"));
    allow(&policy, probe);
    let run = bundle(&stage, "apply", "v2", &["--yes"]);
    expect(&run, 0, &["did not finish; continuing"]);
    for plural in ["configmaps", "services"] {
        assert!(!is_there(&stage, plural, "twelve-legacy"), "{plural}");
    }
}

#[test]
fn a_delete_that_fails_is_made_by_the_next_run() {
    let stage = applied();
    let broken = Fault::refusal(500, "InternalError", "Internal error occurred", &[]);
    let legacy = stage.rename("configmaps/twelve-legacy");
    stage
        .proxy
        .set_rules([Rule::new(broken).method("DELETE").path(legacy)]);
    let run = bundle(&stage, "apply", "v2", &["--yes"]);
    expect(
        &run,
        6,
        &[
            &stage.rename("configmap/twelve-legacy"),
            "Internal error occurred",
            LISTED,
        ],
    );
    assert!(
        !is_there(&stage, "services", "twelve-legacy"),
        "the others go"
    );
    stage.proxy.settle();
    expect(&bundle(&stage, "apply", "v2", &["--yes"]), 0, &[]);
    assert!(!is_there(&stage, "configmaps", "twelve-legacy"));
}

#[test]
fn an_object_that_took_the_place_of_ours_is_left_alone() {
    let stage = applied();
    let object = path(&stage, "configmaps", "twelve-legacy");
    let slow = Fault::Delay(Duration::from_secs(2));
    stage
        .proxy
        .set_rules([Rule::new(slow).method("DELETE").path(&object)]);
    let apply = start(&stage, "apply", "v2", &["--yes"]);
    wait_for(&stage, |request| {
        request.method == "DELETE" && request.path == object
    });
    cluster().send("DELETE", &object, NOTHING);
    let (list, name) = object.rsplit_once('/').expect("a path");
    send(
        "POST",
        list,
        &json!({"metadata": {"name": name}, "data": {"whose": "mine"}}),
    );
    let run = Run::from(apply.wait_with_output().expect("the program ends"));
    expect(&run, 0, &[]);
    assert!(
        run.stdout.contains(&format!("configmap/{name} left alone")),
        "{}",
        run.stdout
    );
    assert_eq!(get(&object).1["data"]["whose"], "mine");
    stage.proxy.settle();
    expect(&cleanup(&stage), 0, &[]);
    assert_eq!(get(&object).1["data"]["whose"], "mine");
}

#[test]
fn a_refusal_that_no_dry_run_showed_stops_the_run() {
    let stage = Stage::new();
    let settings = stage.rename("twelve-settings");
    let probe = || {
        let maps = format!("/api/v1/namespaces/{}/configmaps", stage.namespace);
        let body = json!({"metadata": {"name": settings}}).to_string();
        let (code, _) = cluster().send("POST", &maps, ("application/json", &body));
        if code < 300 {
            cluster().send("DELETE", &format!("{maps}/{settings}"), NOTHING);
        }
        code >= 400
    };
    let expression = format!("request.dryRun || object.metadata.name != '{settings}'");
    let policy = forbid(&stage, "CREATE", &expression, probe);
    let stopped = bundle(&stage, "apply", "v1", &[]);
    let refused = format!("configmap/{settings}");
    expect(
        &stopped,
        6,
        &[&refused, "frozen by the platform team", LISTED, "goes on"],
    );
    let has_deployment = || is_there(&stage, "apps/v1/deployments", "twelve-operator");
    assert!(!has_deployment(), "later phases wait");
    let went_on = bundle(&stage, "apply", "v1", &["--keep-going"]);
    expect(&went_on, 6, &[&refused, LISTED]);
    assert!(has_deployment(), "--keep-going goes on");
    allow(&policy, probe);
    expect(
        &bundle(&stage, "apply", "v1", &[]),
        0,
        &["did not finish; continuing"],
    );
    expect(&bundle(&stage, "diff", "v1", &[]), 0, &[]);
}

#[test]
fn rights_that_are_taken_away_meanwhile_are_named() {
    let stage = Stage::new();
    let user = "namespace-admin-8";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = json!({
        "metadata": {"name": format!("{}-rights", stage.namespace)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let apply = || {
        let mut apply = command(&stage, user, "apply", &[]);
        apply
            .arg(stage.copy("bundles/twelve-operator-v1"))
            .spawn()
            .expect("the program starts")
    };
    let may = || {
        let wire = cluster().wire();
        let path = format!("/api/v1/namespaces/{}/secrets", stage.namespace);
        wire.send(user, ("GET", &path), NOTHING)
            .expect("an answer")
            .0
            == 200
    };
    send("POST", bindings, &binding);
    until("the user has rights", may);
    let object = path(&stage, "configmaps", "twelve-settings");
    let slow = Rule::new(Fault::Delay(Duration::from_secs(2)))
        .method("PATCH")
        .path(&object)
        .writes();
    stage.proxy.set_rules([slow]);
    let running = apply();
    wait_for(&stage, |request| {
        request.path == object && request.is_write()
    });
    let name = format!("{bindings}/{}-rights", stage.namespace);
    cluster().send("DELETE", &name, NOTHING);
    let run = Run::from(running.wait_with_output().expect("the program ends"));
    let settings = stage.rename("configmap/twelve-settings");
    expect(
        &run,
        6,
        &[
            &settings,
            "cannot patch resource \"configmaps\"",
            "kubectl olm rbac",
            LISTED,
            "goes on",
        ],
    );
    stage.proxy.settle();
    send("POST", bindings, &binding);
    until("the user has rights again", may);
    let run = Run::from(apply().wait_with_output().expect("the program ends"));
    expect(&run, 0, &["did not finish; continuing"]);
    cluster().send("DELETE", &name, NOTHING);
}

#[test]
fn an_object_that_cannot_go_is_named_with_what_holds_it() {
    let stage = applied();
    let object = path(&stage, "configmaps", "twelve-settings");
    send(
        "PATCH",
        &object,
        &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    );
    cluster().send("DELETE", &object, NOTHING);
    let run = bundle(&stage, "apply", "v1", &["--wait", "--timeout", "1s"]);
    let settings = stage.rename("configmap/twelve-settings");
    expect(&run, 7, &[&settings, "example.com/hold", LISTED]);
    send("PATCH", &object, &json!({"metadata": {"finalizers": null}}));
    expect(&bundle(&stage, "apply", "v1", &[]), 0, &[]);
    assert_eq!(get(&object).1["data"]["level"], "info");
}

/// A case of testdata/api_server_faults/immutable.yaml.
struct Fixed {
    object: Value,
    change: Value,
    says: String,
    is_recreated: bool,
}

fn fixed() -> Vec<Fixed> {
    let text =
        fs::read(root().join("testdata/api_server_faults/immutable.yaml")).expect("the cases");
    let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
    let cases = documents
        .into_iter()
        .filter(|document| document.value.is_object());
    let cases = cases.map(|document| Fixed {
        object: document.value["object"].clone(),
        change: document.value["change"].clone(),
        says: document.value["says"].as_str().expect("words").to_owned(),
        is_recreated: document.value["recreated"].as_bool().expect("a bool"),
    });
    cases.collect()
}

fn merge(into: &mut Value, change: &Value) {
    let Some(fields) = change.as_object() else {
        *into = change.clone();
        return;
    };
    for (field, change) in fields {
        match change {
            Value::Null => drop(into.as_object_mut().expect("a map").remove(field)),
            change => merge(&mut into[field], change),
        }
    }
}

/// Applies the bundle with the objects of cases beside its own.
fn apply_with<'c>(
    stage: &Stage,
    cases: impl IntoIterator<Item = (&'c Fixed, bool)>,
    arguments: &[&str],
) -> Run {
    let folder = stage.copy("bundles/twelve-operator-v1");
    for (case, is_changed) in cases {
        let mut object = case.object.clone();
        if is_changed {
            merge(&mut object, &case.change);
        }
        let manifests = folder.join("manifests");
        if object["kind"] == "Deployment" {
            let name = stage.rename("twelve-operator.clusterserviceversion.yaml");
            let text = fs::read(manifests.join(&name)).expect("a file");
            let mut documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
            let mut version = documents.remove(0).value;
            merge(
                &mut version["spec"]["install"]["spec"]["deployments"][0]["spec"],
                &object["spec"],
            );
            fs::write(manifests.join(name), version.to_string()).expect("a file");
        } else {
            let name = case.object["metadata"]["name"].as_str().expect("a name");
            let file = manifests.join(format!("{name}.json"));
            fs::write(file, stage.rename(&object.to_string())).expect("a file");
        }
    }
    let run = command(stage, cluster().token(), "apply", arguments)
        .arg(folder)
        .output();
    run.expect("the program starts").into()
}

#[test]
fn what_cannot_be_changed_is_listed_and_made_anew_only_on_request() {
    let stage = Stage::new();
    let cases = fixed();
    expect(
        &apply_with(&stage, cases.iter().map(|case| (case, false)), &[]),
        0,
        &[],
    );
    stage.proxy.settle();
    let changed =
        |case: &Fixed| stage.rename(case.object["metadata"]["name"].as_str().expect("a name"));
    for arguments in [&[][..], &["--recreate", "--yes"]] {
        let run = apply_with(&stage, cases.iter().map(|case| (case, true)), arguments);
        expect(&run, 5, &[UNCHANGED]);
        for case in cases
            .iter()
            .filter(|case| arguments.is_empty() || !case.is_recreated)
        {
            let line = run
                .stderr
                .lines()
                .find(|line| line.contains(&changed(case)));
            let line = line.unwrap_or_else(|| panic!("{} is not in {}", changed(case), run.stderr));
            let advice = if case.is_recreated {
                "--recreate"
            } else {
                "never deleted"
            };
            assert!(line.contains(&case.says) && line.contains(advice), "{line}");
        }
        assert!(!run.stderr.contains("canary"), "{}", run.stderr);
        assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    }
    let possible = || cases.iter().map(|case| (case, case.is_recreated));
    expect(
        &apply_with(&stage, possible(), &["--recreate", "--yes"]),
        0,
        &[],
    );
    assert_eq!(
        get(&path(&stage, "configmaps", "twelve-fixed")).1["data"]["level"],
        "debug"
    );
    let again = apply_with(&stage, possible(), &[]);
    expect(&again, 0, &[]);
    assert!(!again.stdout.contains("recreated"), "{}", again.stdout);
}

#[test]
fn what_cannot_be_made_anew_is_put_back() {
    let stage = Stage::new();
    let cases: Vec<_> = fixed()
        .into_iter()
        .filter(|case| case.object["kind"] == "ConfigMap")
        .collect();
    expect(
        &apply_with(&stage, cases.iter().map(|case| (case, false)), &[]),
        0,
        &[],
    );
    stage.proxy.settle();
    let refusal = Fault::refusal(422, "Invalid", "no room today", &[]);
    let object = path(&stage, "configmaps", "twelve-fixed");
    stage.proxy.set_rules([Rule::new(refusal)
        .method("PATCH")
        .path(&object)
        .writes()
        .only(0)]);
    let changed = || cases.iter().map(|case| (case, true));
    let run = apply_with(&stage, changed(), &["--recreate", "--yes"]);
    expect(
        &run,
        6,
        &[
            &stage.rename("configmap/twelve-fixed"),
            "no room today",
            "was put back",
            LISTED,
        ],
    );
    assert_eq!(get(&object).1["data"]["level"], "info");
    stage.proxy.settle();
    expect(
        &apply_with(&stage, changed(), &["--recreate", "--yes"]),
        0,
        &[],
    );
    assert_eq!(get(&object).1["data"]["level"], "debug");
}

/// The Secret of the inventory of a stage.
fn inventory(stage: &Stage) -> String {
    path(stage, "secrets", "kubectl-olm.twelve-operator")
}

/// Changes the text of an inventory.
fn edit_inventory(stage: &Stage, edit: impl FnOnce(&mut Value)) {
    let (_, mut secret) = get(&inventory(stage));
    let packed = secret["data"]["inventory"].as_str().expect("an inventory");
    let packed = STANDARD.decode(packed).expect("base64");
    let mut text: Value = serde_json::from_reader(GzDecoder::new(&packed[..])).expect("JSON");
    edit(&mut text);
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    serde_json::to_writer(&mut encoder, &text).expect("memory");
    secret["data"]["inventory"] = json!(STANDARD.encode(encoder.finish().expect("memory")));
    send("PUT", &inventory(stage), &secret);
}

#[test]
fn an_inventory_that_cannot_be_understood_stops_everything() {
    let stage = applied();
    let (_, good) = get(&inventory(&stage));
    let packed = good["data"]["inventory"].as_str().expect("an inventory");
    let cases = [
        (
            json!(packed[..packed.len() / 8 * 4].to_owned()),
            "cannot be decompressed",
        ),
        (
            json!(STANDARD.encode("no inventory")),
            "cannot be decompressed",
        ),
        (Value::Null, "neither data.inventory"),
    ];
    let check = |said: &str| {
        stage.proxy.settle();
        for run in [bundle(&stage, "apply", "v2", &["--yes"]), cleanup(&stage)] {
            let secret = stage.rename("secret/kubectl-olm.twelve-operator");
            expect(&run, 5, &[&secret, said, "hint: ", "othing was changed"]);
        }
        assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    };
    for (data, said) in cases {
        send(
            "PATCH",
            &inventory(&stage),
            &json!({"data": {"inventory": data}}),
        );
        check(said);
    }
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    edit_inventory(&stage, |text| text["form"] = json!(99));
    check("a later version of kubectl-olm");
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    edit_inventory(&stage, |text| text["objects"] = json!("all"));
    check("not as they are written");
    send(
        "PATCH",
        &inventory(&stage),
        &json!({"data": {"inventory": packed}}),
    );
    expect(&cleanup(&stage), 0, &[]);
}

/// Makes a Secret that says it is a part of the inventory of the install of a stage.
fn part(stage: &Stage, name: &str) {
    let install = stage.rename("twelve-operator");
    let id = applyset_id(&stage.namespace, &format!("kubectl-olm.{install}"));
    let secret = json!({
        "metadata": {"name": stage.rename(name), "labels": {"kubectl-olm/inventory": id}},
        "data": {"inventory": "eA=="},
    });
    let path = path(stage, "secrets", name);
    let (folder, _) = path.rsplit_once('/').expect("a path");
    send("POST", folder, &secret);
}

/// A run that was killed between the parts of an inventory and the Secret that names them left them.
#[test]
fn parts_that_no_inventory_names_go_with_the_next_run() {
    let stage = applied();
    let part_of = |number| format!("kubectl-olm.twelve-operator.g1.0123456789ab.{number}");
    part(&stage, "somebody-elses");
    for (number, command) in [(1, "apply"), (2, "cleanup")] {
        part(&stage, &part_of(number));
        let run = match command {
            "apply" => bundle(&stage, "apply", "v2", &["--yes"]),
            _ => cleanup(&stage),
        };
        expect(&run, 0, &[]);
        assert!(!is_there(&stage, "secrets", &part_of(number)), "{command}");
    }
    assert!(is_there(&stage, "secrets", "somebody-elses"));
}

#[test]
fn objects_without_their_inventory_are_taken_back_only_on_request() {
    let stage = applied();
    cluster().send("DELETE", &inventory(&stage), NOTHING);
    let run = bundle(&stage, "apply", "v1", &[]);
    let settings = stage.rename("configmap/twelve-settings");
    expect(
        &run,
        5,
        &[
            &settings,
            "whose inventory does not list it",
            "--adopt",
            UNCHANGED,
        ],
    );
    assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
    expect(&bundle(&stage, "apply", "v1", &["--adopt", "all"]), 0, &[]);
    expect(&cleanup(&stage), 0, &[]);
    assert!(!is_there(&stage, "configmaps", "twelve-settings"));
}

/// Whoever may write Secrets in a namespace may list there what is not the install's, and anybody may copy a label.
#[test]
fn what_is_only_said_to_be_ours_is_never_deleted() {
    let stage = applied();
    let system = "/api/v1/namespaces/kube-system/secrets";
    let name = stage.rename("twelve-crown-jewels");
    let copy = stage.rename("twelve-copied-label");
    let label = get(&path(&stage, "configmaps", "twelve-settings")).1["metadata"]["labels"].clone();
    send(
        "POST",
        system,
        &json!({"metadata": {"name": name}, "stringData": {"keep": "this"}}),
    );
    let maps = format!("/api/v1/namespaces/{}/configmaps", stage.namespace);
    send(
        "POST",
        &maps,
        &json!({"metadata": {"name": copy, "labels": label}}),
    );
    let jewels = format!("{system}/{name}");
    let (_, before) = get(&jewels);
    edit_inventory(&stage, |text| {
        let listed = json!({
            "group": "", "version": "v1", "kind": "Secret", "plural": "secrets", "namespace": "kube-system",
            "name": name, "uid": before["metadata"]["uid"], "asked": "", "managed": "", "hold": "owned",
        });
        text["objects"].as_array_mut().expect("a list").push(listed);
    });
    let upgrade = bundle(&stage, "apply", "v2", &["--yes"]);
    let foreign = format!("secret/{name}: the inventory lists it in kube-system");
    expect(&upgrade, 6, &[&foreign, "it never was this install's"]);
    expect(&cleanup(&stage), 0, &[]);
    assert_eq!(get(&jewels).1, before);
    assert_eq!(get(&format!("{maps}/{copy}")).0, 200);
    cluster().send("DELETE", &jewels, NOTHING);
}
