//! Fields that cannot be changed: told all at once, made anew on request, and put back when that fails.

use std::fs;

use kubectl_olm::{limits::Limits, manifest::yaml};
use serde_json::{Value, json};

use super::{
    super::{
        cluster::cluster,
        faults::{Fault, Rule},
        kill_matrix::Stage,
        program::{Run, root},
    },
    LISTED, UNCHANGED, changes, command, expect, get, path,
};

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

/// A change of the spec of the bundle's Deployment.
fn of_the_deployment(spec: Value, change: Value) -> Fixed {
    Fixed {
        object: json!({"kind": "Deployment", "spec": spec}),
        change: json!({"spec": change}),
        says: String::new(),
        is_recreated: false,
    }
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
    run_with(stage, "apply", cases, arguments)
}

fn run_with<'c>(
    stage: &Stage,
    word: &str,
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
    let run = command(stage, cluster().token(), word, arguments)
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

/// Without a deadline for its progress a Deployment gets one again, and it may not take longer than that to be ready.
#[test]
fn what_the_server_would_fill_in_again_is_refused_before_the_first_write() {
    let stage = Stage::new();
    let case = of_the_deployment(json!({}), json!({"minReadySeconds": 700}));
    expect(&apply_with(&stage, [(&case, false)], &[]), 0, &[]);
    stage.proxy.settle();
    let refused = apply_with(&stage, [(&case, true)], &[]);
    expect(&refused, 5, &["progressDeadlineSeconds", UNCHANGED]);
    assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
}

/// A strategy without its settings has those that the server fills in, which no other strategy may have.
#[test]
fn what_the_server_filled_in_gives_way() {
    let stage = Stage::new();
    let labelled = |tier: Value| json!({"metadata": {"labels": {"tier": tier}}});
    let case = of_the_deployment(
        json!({"template": labelled(json!("old"))}),
        json!({"strategy": {"type": "Recreate"}, "template": labelled(Value::Null)}),
    );
    expect(&apply_with(&stage, [(&case, false)], &[]), 0, &[]);
    let deployment = path(&stage, "apps/v1/deployments", "twelve-operator");
    let strategy = || get(&deployment).1["spec"]["strategy"].clone();
    assert_eq!(strategy()["rollingUpdate"]["maxSurge"], "25%");
    let field = |name: &str| get(&deployment).1["metadata"][name].clone();
    let (uid, generation) = (field("uid"), field("generation"));
    let diff = || {
        let diff = run_with(&stage, "diff", [(&case, true)], &[]);
        expect(&diff, 1, &[]);
        assert!(diff.stdout.contains("type: Recreate"), "{}", diff.stdout);
        diff.stdout
    };
    let planned = diff();
    stage.proxy.settle();
    // Between the two writes that it takes, a run may end.
    let refusal = Fault::refusal(403, "Forbidden", "not now", &[]);
    let second = Rule::new(refusal).writes().path(&deployment).only(1);
    stage.proxy.set_rules([second]);
    expect(
        &apply_with(&stage, [(&case, true)], &[]),
        6,
        &["not now", LISTED],
    );
    stage.proxy.set_rules([]);
    assert_eq!(field("generation"), generation);
    assert_eq!(diff(), planned);
    expect(&apply_with(&stage, [(&case, true)], &[]), 0, &[]);
    assert_eq!(strategy(), json!({"type": "Recreate"}));
    assert_eq!(field("uid"), uid);
    stage.proxy.settle();
    expect(&apply_with(&stage, [(&case, true)], &[]), 0, &[]);
    assert!(changes(&stage).is_empty(), "{:?}", changes(&stage));
}
