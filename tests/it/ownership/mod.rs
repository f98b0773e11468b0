//! What an install owns, shares with other installs, uses, and leaves alone.

mod entries;

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    cluster::{NOTHING, cluster},
    kill_matrix::Stage,
    program::root,
    two_actors::{V1, V2, apply, cleanup, done, olm, snapshot, stopped_at},
};

/// Another bundle, with the same definition.
const VIEWER: &str = "bundles/twelve-viewer";

/// A bundle that has nothing to do with the others.
const HELPER: &str = "bundles/twelve-helper";

/// The content of a merge patch.
const MERGE: &str = "application/merge-patch+json";

/// An object that is there; its path is below `/api/v1/namespaces/NAMESPACE` when it begins with no slash.
fn live(stage: &Stage, path: &str) -> Option<Value> {
    let (code, object) = cluster().send("GET", &whole(stage, path), NOTHING);
    assert!(matches!(code, 200 | 404), "{path}: {object}");
    (code == 200).then_some(object)
}

fn whole(stage: &Stage, path: &str) -> String {
    let path = stage.rename(path);
    match path.strip_prefix('/') {
        Some(path) => format!("/{path}"),
        None => format!("/api/v1/namespaces/{}/{path}", stage.namespace),
    }
}

/// Changes an object as a user does.
fn patch(stage: &Stage, path: &str, patch: Value) {
    let path = whole(stage, path) + "?fieldManager=alice";
    let (code, answer) = cluster().send("PATCH", &path, (MERGE, &patch.to_string()));
    assert_eq!(code, 200, "{answer}");
}

fn delete(stage: &Stage, path: &str) {
    let (code, answer) = cluster().send("DELETE", &whole(stage, path), NOTHING);
    assert_eq!(code, 200, "{answer}");
}

/// Creates an object as a user does.
fn create(namespace: &str, object: &Value) {
    let mut kubectl = cluster().kubectl();
    kubectl.args(["create", "-n", namespace, "-f", "-"]);
    let mut kubectl = kubectl
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("kubectl");
    let mut input = kubectl.stdin.take().expect("it is piped");
    input
        .write_all(object.to_string().as_bytes())
        .expect("kubectl reads");
    drop(input);
    assert!(kubectl.wait().expect("kubectl ends").success(), "{object}");
}

/// A pull Secret with this password.
fn pull_secret(password: &str) -> Value {
    let config =
        json!({"auths": {"registry.example.com": {"username": "ann", "password": password}}});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull"}, "stringData": {".dockerconfigjson": config.to_string()},
    })
}

/// A namespace with the pull Secret that others get copies of.
fn vault() -> String {
    let vault = cluster().namespace("vault");
    create(&vault, &pull_secret("first"));
    vault
}

/// An apply of a bundle under a name, with a copy of the pull Secret.
fn apply_with_secret(stage: &Stage, bundle: &str, vault: &str) -> Command {
    let mut command = apply(stage, bundle);
    command.arg("--pull-secret").arg(format!("{vault}/pull"));
    command
}

fn cleanup_of(stage: &Stage, name: &str) -> Command {
    olm(
        stage,
        &[
            "cleanup",
            &stage.rename(name),
            "-n",
            &stage.namespace,
            "--yes",
        ],
    )
}

fn says(text: &str, told: &[&str]) {
    for told in told {
        assert!(text.contains(told), "{told:?} is not told:\n{text}");
    }
}

/// The cases of `testdata/foreign`: what is told, and the file of the object.
fn foreign(stage: &Stage) -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(root().join("testdata/foreign"))
        .expect("cases")
        .flatten();
    let names = files.map(|file| file.file_name().into_string().expect("a name"));
    let cases = names.filter(|name| name.ends_with(".yaml")).map(|name| {
        let file = stage.copy(&format!("foreign/{name}"));
        let text = fs::read_to_string(&file).expect("a text");
        let first = text.lines().next().expect("a line");
        (first.trim_start_matches("# ").to_owned(), file)
    });
    cases.collect()
}

#[test]
fn objects_of_others_refuse_an_install_all_at_once_until_they_are_adopted() {
    let stage = Stage::new();
    let before = snapshot(&stage);
    let mut objects = vec![];
    for (owner, file) in foreign(&stage) {
        let file = file.to_str().expect("a path");
        let names = cluster().get(&["create", "-n", &stage.namespace, "-f", file, "-o", "name"]);
        objects.push((owner, names.trim().to_owned()));
    }
    let there = snapshot(&stage);
    // kubectl names core objects without their group, as `--adopt` takes them.
    let refused = |objects: &[(String, String)], adopted: &[(String, String)]| {
        let mut command = apply(&stage, V1);
        command.args(
            adopted
                .iter()
                .map(|(_, object)| format!("--adopt={object}")),
        );
        let run = done(command, 5);
        for (owner, object) in objects {
            let line = run
                .stderr
                .lines()
                .find(|line| line.contains(object.as_str()) && line.contains(owner.as_str()));
            let line = line.unwrap_or_else(|| panic!("{object}: {owner}:\n{}", run.stderr));
            says(line, &["error[owner]", &format!("--adopt {object}")]);
        }
        assert_eq!(
            run.stderr.matches("error[owner]").count(),
            objects.len(),
            "{}",
            run.stderr
        );
        says(&run.stderr, &["nothing was changed"]);
        there
            .compare(&snapshot(&stage))
            .unwrap_or_else(|changed| panic!("{changed}"));
    };
    refused(&objects, &[]);
    refused(&objects[..1], &objects[1..]);
    let mut command = apply(&stage, V1);
    command.arg("--adopt=all");
    let run = done(command, 0);
    for (_, object) in &objects {
        says(&run.stdout, &[&format!("{object} adopted")]);
    }
    done(cleanup(&stage), 0);
    before
        .compare(&snapshot(&stage))
        .unwrap_or_else(|left| panic!("{left}"));
}

#[test]
fn a_definition_of_another_install_is_refused_or_shared_and_goes_with_the_last() {
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dozens.twelve.example.com";
    // Who of the two goes first.
    for order in [
        ["twelve-operator", "twelve-viewer"],
        ["twelve-viewer", "twelve-operator"],
    ] {
        let stage = Stage::new();
        let before = snapshot(&stage);
        done(apply(&stage, V1), 0);
        let refused = done(apply(&stage, VIEWER), 5);
        let owner = format!("{} in {}", stage.rename("twelve-operator"), stage.namespace);
        let object =
            stage.rename("customresourcedefinition.apiextensions.k8s.io/dozens.twelve.example.com");
        says(
            &refused.stderr,
            &[
                &object,
                &owner,
                &format!("--adopt {object}"),
                "nothing was changed",
            ],
        );
        let mut adopting = apply(&stage, VIEWER);
        adopting.arg("--adopt").arg(&object);
        done(adopting, 0);
        // Both are content with it.
        for bundle in [VIEWER, V1, VIEWER] {
            let run = done(apply(&stage, bundle), 0);
            assert!(!run.stdout.contains(" configured"), "{}", run.stdout);
        }
        let first = done(cleanup_of(&stage, order[0]), 0);
        says(&first.stdout, &["left alone", &stage.rename(order[1])]);
        assert!(live(&stage, definition).is_some());
        done(cleanup_of(&stage, order[1]), 0);
        before
            .compare(&snapshot(&stage))
            .unwrap_or_else(|left| panic!("{order:?}: {left}"));
    }
}

#[test]
fn a_definition_that_was_taken_over_goes_with_the_last_at_once() {
    let stage = Stage::new();
    let before = snapshot(&stage);
    done(apply(&stage, V1), 0);
    let mut adopting = apply(&stage, VIEWER);
    adopting.arg("--adopt=all");
    done(adopting, 0);
    done(cleanup_of(&stage, "twelve-viewer"), 0);
    done(cleanup_of(&stage, "twelve-operator"), 0);
    before
        .compare(&snapshot(&stage))
        .unwrap_or_else(|left| panic!("{left}"));
}

/// What keeps a definition is looked for again when its turn comes.
#[test]
fn a_custom_resource_that_comes_while_a_cleanup_runs_keeps_its_definition() {
    let stage = Stage::new();
    done(apply(&stage, V1), 0);
    let group = stage.rename("twelve.example.com");
    let late = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Dozen", "metadata": {"name": "late"},
    });
    let run = stopped_at(&stage, cleanup(&stage), "/deployments/", || {
        create(&stage.namespace, &late);
    });
    assert_eq!(run.code, 0, "{}", run.stderr);
    let kept = format!("dozens.{group} kept (custom resources of its kind are there: 1");
    says(&run.stdout, &[&kept]);
    assert!(
        live(
            &stage,
            &format!(
                "/apis/{group}/v1/namespaces/{}/dozens/late",
                stage.namespace
            )
        )
        .is_some()
    );
    let mut all = cleanup(&stage);
    all.arg("--delete-custom-resources");
    done(all, 0);
    assert!(
        live(
            &stage,
            &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dozens.{group}")
        )
        .is_none()
    );
}

/// An object that is made between the plan and the write, be it by a user or by another install, which has the same field
/// manager, is not touched.
#[test]
fn what_somebody_makes_meanwhile_is_left_as_it_is() {
    let settings = |stage: &Stage| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": stage.rename("twelve-settings")}, "data": {"of": "somebody else"},
        })
    };
    let by_user = |stage: &Stage| create(&stage.namespace, &settings(stage));
    let by_install = |stage: &Stage| {
        let manifests = stage.copy(HELPER).join("manifests");
        fs::write(manifests.join("settings.yaml"), settings(stage).to_string())
            .expect("a manifest");
        let mut other = olm(stage, &["apply", "-n", &stage.namespace]);
        other.arg(manifests.parent().expect("the bundle"));
        done(other, 0);
    };
    let makers: [&dyn Fn(&Stage); 2] = [&by_user, &by_install];
    for make in makers {
        let stage = Stage::new();
        let path = stage.rename("configmaps/twelve-settings");
        let mut made = None;
        let run = stopped_at(
            &stage,
            apply(&stage, V1),
            "/customresourcedefinitions/",
            || {
                make(&stage);
                made = live(&stage, &path);
            },
        );
        assert!(made.is_some());
        assert_eq!(run.code, 6, "{}", run.stderr);
        let told = [
            "somebody else created it after the plan was made",
            &path.replace("configmaps", "configmap"),
        ];
        says(&run.stderr, &told);
        assert_eq!(live(&stage, &path), made);
        done(cleanup(&stage), 0);
        assert_eq!(live(&stage, &path), made);
    }
}

#[test]
fn a_namespace_and_a_pull_secret_of_two_installs_go_with_the_last() {
    let vault = vault();
    for order in [["first", "second"], ["second", "first"]] {
        let stage = Stage::new();
        let namespace = stage.rename("twelve-made");
        for (name, bundle) in [("first", VIEWER), ("second", HELPER)] {
            let mut command = olm(
                &stage,
                &[
                    "apply",
                    "-n",
                    &namespace,
                    "--create-namespace",
                    "--name",
                    name,
                ],
            );
            command.arg("--pull-secret").arg(format!("{vault}/pull"));
            command.arg(stage.copy(bundle));
            done(command, 0);
        }
        let secret = format!("/api/v1/namespaces/{namespace}/secrets/pull");
        let cleanup = |name: &str| {
            done(
                olm(&stage, &["cleanup", name, "-n", &namespace, "--yes"]),
                0,
            )
        };
        cleanup(order[0]);
        assert!(live(&stage, &secret).is_some(), "{order:?}");
        cleanup(order[1]);
        assert!(
            live(&stage, &format!("/api/v1/namespaces/{namespace}")).is_none(),
            "{order:?}"
        );
    }
}

#[test]
fn a_namespace_stays_as_long_as_another_install_keeps_its_inventory_there() {
    let stage = Stage::new();
    let namespace = stage.made();
    let apply = |flags: &[&str], bundle: &str| {
        let mut command = olm(&stage, &["apply", "-n", &namespace]);
        command.args(flags).arg(stage.copy(bundle));
        done(command, 0)
    };
    apply(&["--create-namespace"], HELPER);
    // Nothing of it is in the namespace but its inventory.
    apply(&["--scope", "cluster"], VIEWER);
    let cleanup = |name: &str| {
        let name = stage.rename(name);
        done(
            olm(&stage, &["cleanup", &name, "-n", &namespace, "--yes"]),
            0,
        )
    };
    let kept = cleanup("twelve-helper");
    says(&kept.stdout, &[&format!("namespace/{namespace} kept")]);
    let path = format!("/api/v1/namespaces/{namespace}");
    let inventory = format!("{path}/secrets/kubectl-olm.twelve-viewer.cluster");
    assert!(live(&stage, &inventory).is_some(), "{}", kept.stdout);
    cleanup("twelve-viewer.cluster");
    cleanup("twelve-helper");
    assert!(live(&stage, &path).is_none());
}

#[test]
fn what_a_user_put_in_the_place_of_an_object_is_left_alone_by_cleanup() {
    let (stage, vault) = (Stage::new(), vault());
    done(apply_with_secret(&stage, V1, &vault), 0);
    for (path, object) in [
        ("secrets/pull", pull_secret("of the user")),
        (
            "configmaps/twelve-settings",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": stage.rename("twelve-settings")}, "data": {"of": "the user"},
            }),
        ),
    ] {
        // With our label and all.
        let mut object = object;
        object["metadata"]["labels"] =
            live(&stage, path).expect("it is there")["metadata"]["labels"].clone();
        delete(&stage, path);
        create(&stage.namespace, &object);
    }
    let run = done(cleanup(&stage), 0);
    for object in ["secret/pull", &stage.rename("configmap/twelve-settings")] {
        let line = run.stdout.lines().find(|line| line.starts_with(object));
        says(
            line.unwrap_or_default(),
            &["left alone", "somebody has created it anew"],
        );
    }
    assert!(live(&stage, "secrets/pull").is_some());
    assert_eq!(
        live(&stage, "configmaps/twelve-settings").expect("it is there")["data"],
        json!({"of": "the user"})
    );
}

#[test]
fn fields_of_others_stay_and_fields_of_ours_are_told_before_they_are_taken() {
    let stage = Stage::new();
    done(apply(&stage, V1), 0);
    patch(
        &stage,
        "configmaps/twelve-settings",
        json!({"data": {"mine": "kept"}, "metadata": {"labels": {"team": "a"}}}),
    );
    let run = done(apply(&stage, V1), 0);
    assert!(
        run.stdout.lines().all(|line| line.ends_with(" unchanged")),
        "{}",
        run.stdout
    );
    patch(
        &stage,
        "configmaps/twelve-settings",
        json!({"data": {"level": "trace"}}),
    );
    let version = |stage: &Stage| {
        let object = live(stage, "configmaps/twelve-settings").expect("it is there");
        object["metadata"]["resourceVersion"].clone()
    };
    let before = version(&stage);
    let run = done(apply(&stage, V1), 5);
    let object = format!(
        "{} in {}",
        stage.rename("configmap/twelve-settings"),
        stage.namespace
    );
    says(
        &run.stderr,
        &[
            "error[conflict]",
            &object,
            ".data.level",
            "alice",
            "--force-conflicts",
            "nothing was changed",
        ],
    );
    assert_eq!(version(&stage), before);
    let mut forced = apply(&stage, V1);
    forced.arg("--force-conflicts");
    done(forced, 0);
    let object = live(&stage, "configmaps/twelve-settings").expect("it is there");
    assert_eq!(object["data"], json!({"level": "info", "mine": "kept"}));
}

#[test]
fn what_a_user_deletes_is_made_again_and_told() {
    let stage = Stage::new();
    done(apply(&stage, V1), 0);
    delete(&stage, "configmaps/twelve-legacy");
    let created = stage.rename("configmap/twelve-legacy created");
    says(&done(apply(&stage, V1), 0).stdout, &[&created]);
    // Here the plan has been made already, for the object that was there.
    let inventory = stage.rename("/secrets/kubectl-olm.twelve");
    let run = stopped_at(&stage, apply(&stage, V2), &inventory, || {
        delete(&stage, "configmaps/twelve-settings");
    });
    assert_eq!(run.code, 0, "{}", run.stderr);
    says(
        &run.stdout,
        &[&stage.rename("configmap/twelve-settings created")],
    );
    let run = done(apply(&stage, V2), 0);
    assert!(
        run.stdout.lines().all(|line| line.ends_with(" unchanged")),
        "{}",
        run.stdout
    );
}
