//! What the server refuses, before the first write and after it, and what others do meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{NOTHING, cluster},
        faults::{Fault, Rule},
        kill_matrix::Stage,
        program::Run,
    },
    LISTED, UNCHANGED, allow, applied, bundle, changes, cleanup, command, expect, forbid, get,
    is_there, path, send, start, until, wait_for,
};

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
