//! Kinds that a cluster serves in other versions than an install names, or comes to serve in more of them.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    faults::{Fault, Rule},
    kill_matrix::Stage,
    program::tool,
    two_actors::{apply, done, olm},
};

/// A bundle with little in it.
const HELPER: &str = "bundles/twelve-helper";

/// Longer than the cluster takes for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How clients ask what there is.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A definition with these versions, each served or not. A bundle may bring objects of this kind, whatever its group.
fn definition(stage: &Stage, versions: &[(&str, bool)]) -> Value {
    let version = |(name, served): &(&str, bool)| {
        json!({
            "name": name, "served": served, "storage": *name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let versions: Vec<_> = versions.iter().map(version).collect();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "scalers.twelve.example.com"},
        "spec": {
            "group": "twelve.example.com", "scope": "Namespaced", "versions": versions,
            "names": {"kind": "VerticalPodAutoscaler", "listKind": "VerticalPodAutoscalerList",
                "plural": "scalers", "singular": "scaler"},
        },
    });
    serde_json::from_str(&stage.rename(&definition.to_string())).expect("JSON")
}

/// A definition that stores objects in a version.
fn stored_in(mut definition: Value, name: &str) -> Value {
    let versions = definition["spec"]["versions"].as_array_mut();
    for version in versions.expect("a list") {
        version["storage"] = (version["name"] == name).into();
    }
    definition
}

/// An object of that kind.
fn scaler(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("twelve.example.com/{version}"), "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name}, "spec": {"of": version},
    })
}

/// An apply of the bundle with objects beside its own.
fn apply_with(stage: &Stage, objects: &[Value]) -> Command {
    let command = apply(stage, HELPER);
    let manifests = stage.copy(HELPER).join("manifests");
    for (number, object) in objects.iter().enumerate() {
        let file = manifests.join(format!("object-{number}.json"));
        fs::write(file, stage.rename(&object.to_string())).expect("a file");
    }
    command
}

/// Whether the cluster serves the kind in a version, and the object in it is there.
fn is_there(stage: &Stage, version: &str, name: &str) -> bool {
    let group = stage.rename("/apis/twelve.example.com");
    let path = format!(
        "{group}/{version}/namespaces/{}/scalers/{name}",
        stage.namespace
    );
    cluster().send("GET", &path, NOTHING).0 == 200
}

/// Creates the definition, or has it serve these versions, and waits until the cluster does.
fn define(stage: &Stage, versions: &[(&str, bool)]) {
    let definition = definition(stage, versions);
    let name = definition["metadata"]["name"].as_str().expect("a name");
    let path = format!("{DEFINITIONS}/{name}?fieldManager=alice&force=true");
    let content = definition.to_string();
    let (code, answer) = cluster().send("PATCH", &path, ("application/apply-patch+yaml", &content));
    assert!(code < 300, "{answer}");
    // The one document that clients ask for is behind the definition, and behind all others.
    let served = || {
        let (_, groups) = cluster().send("GET", "/apis", (DISCOVERY, ""));
        let groups = groups["items"].as_array().expect("groups");
        let group = groups
            .iter()
            .find(|group| group["metadata"]["name"] == stage.rename("twelve.example.com"));
        let served = group.and_then(|group| group["versions"].as_array());
        let is_served = |name: &str| {
            let mut served = served.into_iter().flatten();
            served.any(|version| version["version"] == name && version["resources"][0].is_object())
        };
        versions
            .iter()
            .all(|(name, served)| is_served(name) == *served)
    };
    let deadline = Instant::now() + PATIENCE;
    while !served() {
        assert!(Instant::now() < deadline, "{versions:?} are not served");
        thread::sleep(Duration::from_millis(20));
    }
}

fn undefine(stage: &Stage) {
    let name = stage.rename("scalers.twelve.example.com");
    cluster().send("DELETE", &format!("{DEFINITIONS}/{name}"), NOTHING);
}

#[test]
fn an_object_whose_version_is_no_longer_served_is_there_and_goes_with_its_install() {
    let stage = Stage::new();
    define(&stage, &[("v1alpha1", true), ("v1", true)]);
    done(apply_with(&stage, &[scaler("v1alpha1", "old")]), 0);
    assert!(is_there(&stage, "v1", "old"));
    define(&stage, &[("v1alpha1", false), ("v1", true)]);
    let status = done(olm(&stage, &["status", "-n", &stage.namespace]), 0);
    let told = format!("{}{}", status.stdout, status.stderr);
    assert!(
        told.contains("ready") && !told.contains("missing"),
        "{told}"
    );
    let name = stage.rename("twelve-helper");
    let cleanup = done(
        olm(&stage, &["cleanup", &name, "-n", &stage.namespace, "--yes"]),
        0,
    );
    assert!(
        cleanup.stdout.contains("/old deleted"),
        "{}",
        cleanup.stdout
    );
    assert!(!is_there(&stage, "v1", "old"));
    undefine(&stage);
}

/// For a moment after a definition changed, the server lists versions whose paths are not there.
#[test]
fn an_object_is_not_taken_for_gone_by_a_path_that_is_not_there() {
    let stage = Stage::new();
    define(&stage, &[("v1", true)]);
    done(apply_with(&stage, &[scaler("v1", "one")]), 0);
    let absent = |method, path: &str| {
        let fault = Fault::answer(
            404,
            &[("Content-Type", "text/plain")],
            "404 page not found\n",
        );
        let path = format!("{}/scalers{path}", stage.namespace);
        Rule::new(fault).method(method).path(path).only(0)
    };
    stage.proxy.set_rules([
        absent("GET", ""),
        absent("GET", "/one"),
        absent("DELETE", "/one"),
    ]);
    let name = stage.rename("twelve-helper");
    let cleanup = olm(&stage, &["cleanup", &name, "-n", &stage.namespace, "--yes"]);
    let cleanup = done(cleanup, 0);
    assert!(
        cleanup.stdout.contains("/one deleted"),
        "{}",
        cleanup.stdout
    );
    assert!(!is_there(&stage, "v1", "one"));
    undefine(&stage);
}

#[test]
fn an_upgrade_brings_a_version_of_a_kind_and_an_object_of_it() {
    let stage = Stage::new();
    let first = [definition(&stage, &[("v1", true)]), scaler("v1", "one")];
    done(apply_with(&stage, &first), 0);
    // The one is asked for in another version, the other is new.
    let both = [("v1", true), ("v2", true)];
    let second = [
        definition(&stage, &both),
        scaler("v2", "one"),
        scaler("v2", "two"),
    ];
    done(apply_with(&stage, &second), 0);
    assert!(is_there(&stage, "v2", "one") && is_there(&stage, "v2", "two"));
    let again = done(apply_with(&stage, &second), 0);
    assert!(
        again
            .stdout
            .lines()
            .all(|line| line.ends_with(" unchanged")),
        "{}",
        again.stdout
    );
    // Nothing of the install serves this one.
    let third = [definition(&stage, &both), scaler("v3", "one")];
    let refused = done(apply_with(&stage, &third), 5);
    assert!(
        refused.stderr.contains("not in version v3, but in v2"),
        "{}",
        refused.stderr
    );
    undefine(&stage);
}

#[test]
fn what_an_upgrade_drops_goes_though_its_version_ends_with_it() {
    let stage = Stage::new();
    let versions = |is_served| [("v1alpha1", is_served), ("v1", true)];
    let first = [
        definition(&stage, &versions(true)),
        scaler("v1alpha1", "old"),
    ];
    done(apply_with(&stage, &first), 0);
    let mut upgrade = apply_with(&stage, &[definition(&stage, &versions(false))]);
    let manifests = stage.copy(HELPER).join("manifests");
    fs::remove_file(manifests.join("object-1.json")).expect("the file of the first time");
    upgrade.args(["--crd-upgrade-safety", "none"]);
    let run = done(upgrade, 0);
    assert!(run.stdout.contains("/old deleted"), "{}", run.stdout);
    assert!(!is_there(&stage, "v1", "old"));
    undefine(&stage);
}

/// The commands that a run tells of.
fn commands(told: &str) -> Vec<String> {
    let quoted = told.split('`').skip(1).step_by(2);
    let commands =
        quoted.filter(|way| way.starts_with("kubectl ") && !way.starts_with("kubectl olm"));
    commands.map(str::to_owned).collect()
}

/// Does what was told, to the letter.
fn follow(stage: &Stage, commands: &[String]) {
    let tools = tool("kubectl");
    let tools = tools.parent().expect("a folder").display();
    for command in commands {
        let mut shell = Command::new("sh");
        shell
            .env_clear()
            .env("PATH", format!("{tools}:/usr/bin:/bin"));
        shell.env("HOME", stage.copy(HELPER));
        let shell = shell.env("KUBECONFIG", cluster().kubeconfig());
        let done = shell.args(["-c", command]).output().expect("a shell");
        assert!(done.status.success(), "{command}: {done:?}");
    }
}

/// What a refusal says can be done is done to the letter, and the upgrade then goes through.
#[test]
fn a_version_that_goes_while_it_is_stored_is_refused_with_the_way_out() {
    let stage = Stage::new();
    let ways = |wanted: &[Value]| {
        let told = done(apply_with(&stage, wanted), 5).stderr;
        assert!(!told.contains("crd-upgrade-safety"), "{told}");
        commands(&told)
    };
    let follow = |ways: &[String]| follow(&stage, ways);
    let only = |name| stored_in(definition(&stage, &[(name, true)]), name);
    done(apply_with(&stage, &[only("v1alpha1")]), 0);
    let delete = ways(&[only("v1")]);
    assert!(
        delete.len() == 1 && delete[0].contains(" delete "),
        "{delete:?}"
    );
    follow(&delete);
    done(apply_with(&stage, &[only("v1")]), 0);
    let both = [("v1", true), ("v2", true)];
    let one = || scaler("v2", "one");
    done(
        apply_with(&stage, &[stored_in(definition(&stage, &both), "v2"), one()]),
        0,
    );
    let anew = ways(&[only("v2"), one()]);
    assert!(anew.len() == 2 && anew[1].contains(" patch "), "{anew:?}");
    follow(&anew);
    done(apply_with(&stage, &[only("v2"), one()]), 0);
    undefine(&stage);
}

/// Custom resources that somebody made keep their definition, and what converts them goes with its operator.
#[test]
fn what_is_kept_is_told_how_to_be_read_without_its_operator() {
    let stage = Stage::new();
    let versions = [("v1alpha1", true), ("v1", true)];
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "twelve-converter"},
        "spec": {"selector": {"app": "twelve"}, "ports": [{"port": 443}]},
    });
    let stored_first = stored_in(definition(&stage, &versions), "v1alpha1");
    let make = |version: &str, name: &str| {
        let object = stage.rename(&scaler(version, name).to_string());
        let group = stage.rename("/apis/twelve.example.com");
        let path = format!("{group}/{version}/namespaces/{}/scalers", stage.namespace);
        let (code, answer) = cluster().send("POST", &path, ("application/json", &object));
        assert_eq!(code, 201, "{answer}");
    };
    let mut converted = stored_in(definition(&stage, &versions), "v1");
    let service_of = json!({"namespace": stage.namespace, "name": stage.rename("twelve-converter"), "path": "/convert"});
    converted["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service_of}},
    });
    let converted = [converted, service.clone()];
    done(apply_with(&stage, &converted), 0);
    make("v1", "as-stored");
    let name = stage.rename("twelve-helper");
    let cleanup = |more: &[&str], code| {
        let mut cleanup = olm(&stage, &["cleanup", &name, "-n", &stage.namespace, "--yes"]);
        cleanup.args(more);
        done(cleanup, code)
    };
    let planned = cleanup(&["--dry-run=server"], 0).stdout;
    assert!(
        planned.contains("kept") && planned.contains("What converts them"),
        "{planned}"
    );
    // One that is stored in another version than it is read in has to be converted, and nothing does that here.
    done(apply_with(&stage, &[stored_first, service]), 0);
    make("v1alpha1", "to-be-converted");
    done(apply_with(&stage, &converted), 0);
    let kept = cleanup(&[], 0).stdout;
    assert!(
        kept.contains("kept") && kept.contains("cannot be read"),
        "{kept}"
    );
    let ways = commands(&kept);
    assert!(
        ways.len() == 1 && ways[0].contains("conversion"),
        "{ways:?}"
    );
    let refused = cleanup(&["--delete-custom-resources"], 5).stderr;
    assert!(refused.contains("read as they are stored"), "{refused}");
    follow(&stage, &ways);
    cleanup(&["--delete-custom-resources"], 0);
    let definition = definition(&stage, &versions)["metadata"]["name"]
        .as_str()
        .map(str::to_owned);
    let path = format!("{DEFINITIONS}/{}", definition.expect("a name"));
    assert_eq!(cluster().send("GET", &path, NOTHING).0, 404);
}
