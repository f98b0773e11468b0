//! Objects as they are sent, and what a live one has otherwise: cases that are data, as `testdata/desired/README.md` and
//! `testdata/asked/README.md` say. What is refused is refused by a real API server too, and what is sent is taken.

use std::{fs, path::PathBuf};

use kubectl_olm::{
    cluster::{
        asked,
        desired::{Claim, DesiredSet, PART_OF, Purpose},
        inventory::InstallName,
    },
    manifest::{Manifest, Origin},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cases::read,
    cluster::cluster,
    program::{Run, root},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    objects: Vec<Value>,
    #[serde(default)]
    problems: Vec<String>,
    #[serde(default)]
    sent: Vec<Value>,
    #[serde(default)]
    entries: Vec<String>,
    #[serde(default)]
    server: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    asked: Value,
    live: Value,
    differences: Vec<String>,
    laid_over: Option<Value>,
}

fn cases(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("testdata").join(folder)).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "cases are missing");
    paths
}

fn desired(objects: &[Value], purpose: Purpose) -> Result<DesiredSet, Vec<String>> {
    let install = InstallName::new("ops", "queues").expect("a name");
    let manifests = (2..).zip(objects).map(|(line, object)| {
        let path = "case".into();
        Manifest::new(object.clone(), Origin::File { path, line })
    });
    let set = DesiredSet::of(manifests.collect(), &install, &|_| purpose);
    set.map_err(|problems| {
        let place = |mut problem: kubectl_olm::problem::Problem| {
            problem.place = "".into();
            problem.to_string()
        };
        problems.into_iter().map(place).collect()
    })
}

#[test]
fn objects_are_sent_or_refused_as_their_cases_say() {
    let mut wrong = vec![];
    for path in cases("desired") {
        let case: Case = read(&path);
        let set = desired(&case.objects, Purpose::Install);
        let problems = set.as_ref().err().cloned().unwrap_or_default();
        if problems != case.problems {
            wrong.push(format!("{}:\n{}", path.display(), problems.join("\n")));
        }
        let Ok(set) = set else { continue };
        let id = InstallName::new("ops", "queues")
            .expect("a name")
            .applyset_id();
        for (mut wanted, sent) in case.sent.into_iter().zip(&set.objects) {
            wanted["metadata"]["labels"][PART_OF] = json!(id);
            let sent = sent.manifest.clone().into_value();
            if sent != wanted {
                wrong.push(format!("{}: {sent}\nnot {wanted}", path.display()));
            }
        }
        let entry = |entry: &kubectl_olm::cluster::accounts::Entry| {
            format!("{} {} {}", entry.account, entry.list.field(), entry.secret)
        };
        let entries: Vec<_> = set.entries.iter().map(entry).collect();
        if entries != case.entries {
            wrong.push(format!("{}: {entries:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_api_server_says_the_same_of_them() {
    let cluster = cluster();
    let namespace = cluster.namespace("desired");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut wrong = vec![];
    for path in cases("desired") {
        let case: Case = read(&path);
        if case.server.is_empty() {
            continue;
        }
        for (index, mut object) in case.objects.into_iter().enumerate() {
            if object["metadata"]["namespace"].is_string() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            let file = folder.path().join(format!("{index}.json"));
            fs::write(&file, object.to_string()).expect("a file");
            let mut kubectl = cluster.kubectl();
            kubectl
                .args([
                    "apply",
                    "--server-side",
                    "--dry-run=server",
                    "--validate=false",
                    "-f",
                ])
                .arg(&file);
            let run = Run::from(kubectl.output().expect("kubectl"));
            let said = if run.code == 0 { "takes" } else { "refuses" };
            if said != case.server {
                wrong.push(format!(
                    "{}: it {said} item {index}: {}",
                    path.display(),
                    run.stderr
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_too_large_is_refused_with_its_limit() {
    let big = |bytes: usize| "x".repeat(bytes);
    let named = |name: &str, rest: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ops"}});
        for (field, value) in rest.as_object().expect("a map") {
            object[field] = value.clone();
        }
        object
    };
    let objects = [
        named("data", json!({"data": {"a": big(1_100_000)}})),
        named(
            "annotated",
            json!({"metadata": {"name": "annotated", "namespace": "ops", "annotations": {"a": big(257 << 10)}}}),
        ),
        named(
            "whole",
            json!({"apiVersion": "example.com/v1", "spec": big(3_200_000)}),
        ),
        named(
            "label",
            json!({"metadata": {"name": "label", "namespace": "ops", "labels": {"a": big(64)}}}),
        ),
        named(&big(254), json!({})),
        // A large definition is not too large.
        named(
            "fits",
            json!({"apiVersion": "example.com/v1", "spec": big(1_180_000)}),
        ),
    ];
    let problems = desired(&objects, Purpose::Install)
        .expect_err("problems")
        .join("\n");
    for told in [
        "its data is 1100000 bytes; the API server takes at most 1048576",
        "its annotations are 263169 bytes",
        "configmap.example.com/whole: it is 32002",
        "no more than 63 characters",
        "no more than 253 characters",
    ] {
        assert!(
            problems.contains(told),
            "{told}:\n{}",
            &problems[..problems.len().min(2_000)]
        );
    }
    assert_eq!(problems.lines().count(), 5);
}

#[test]
fn what_is_shared_is_not_claimed() {
    let claim = |kind: &str, name: &str, purpose: Purpose| {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        desired(&[object], purpose).expect("it is sent").objects[0].claim
    };
    assert_eq!(claim("Namespace", "ops", Purpose::Install), Claim::Use);
    assert_eq!(
        claim("ServiceAccount", "default", Purpose::Install),
        Claim::Use
    );
    assert_eq!(
        claim("ServiceAccount", "manager", Purpose::Install),
        Claim::Own
    );
    assert_eq!(
        claim("ServiceAccount", "manager", Purpose::Entries),
        Claim::Use
    );
    assert_eq!(claim("Secret", "pull", Purpose::Copy), Claim::UseIfSame);
    assert_eq!(claim("Secret", "pull", Purpose::Install), Claim::Own);
}

#[test]
fn live_objects_are_compared_with_what_is_asked_for() {
    let mut wrong = vec![];
    for path in cases("asked") {
        let case: Asked = read(&path);
        let found = asked::differences(&case.asked, &case.live);
        if found != case.differences {
            wrong.push(format!("{}: {found:?}", path.display()));
        }
        let laid = asked::laid_over(&case.live, &case.asked);
        // Nothing is left to differ, and what is not asked for is as it was.
        if !asked::differences(&case.asked, &laid).is_empty()
            || case.laid_over.is_some_and(|wanted| wanted != laid)
        {
            wrong.push(format!("{}: {laid:#}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
