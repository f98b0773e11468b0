//! Copies of pull Secrets, the accounts that use them, and images that none is for.
//!
//! `testdata/pull_secrets/<situation>.yaml` is an install, its Secrets, and what comes of them. In all of them
//! `base64(text)` stands for the text in base64, and every secret has CANARY in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use kubectl_olm::{
    limits::Limits,
    logins,
    manifest::{Manifest, Origin, yaml},
    problem::Problem,
    pull_secrets::{self, PullSecret},
};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    corpus,
    credentials::{assert_silent, encoded},
    program::{root, run},
};

/// An install, and what its Secrets make of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default = "operators")]
    namespace: String,
    /// The objects of the install.
    #[serde(default)]
    objects: Vec<Value>,
    secrets: Vec<Named>,
    /// ServiceAccounts that get the names as well.
    #[serde(default)]
    also: Vec<String>,
    /// All objects, in order, Secrets by what `data` says; not looked at where errors are told.
    #[serde(default)]
    expected: Vec<Value>,
    /// All problems, in order.
    #[serde(default)]
    problems: Vec<String>,
    /// Warnings about images, given that the Secrets are all there are.
    coverage: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    #[serde(default = "catalog")]
    named_by: String,
    source: Option<Value>,
}

fn operators() -> String {
    "operators".to_owned()
}

fn catalog() -> String {
    "catalogsource.operators.coreos.com/team in olm".to_owned()
}

#[test]
fn pull_secrets_come_where_pods_take_them_from() {
    let mut wrong = vec![];
    let folder = root().join("testdata/pull_secrets");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 25, "cases are missing");
    for path in paths {
        let case = read(&path);
        wrong.extend(tell(&case).map(|told| format!("{}:\n{told}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is otherwise than the case says.
fn tell(case: &Case) -> Option<String> {
    let file = |position: usize, what: &str| Origin::File {
        path: format!("{what}-{position}.yaml").into(),
        line: 1,
    };
    let objects = case.objects.iter().enumerate();
    let mut manifests: Vec<_> = objects
        .map(|(position, object)| Manifest::new(object.clone(), file(position, "object")))
        .collect();
    let secrets: Vec<_> = case
        .secrets
        .iter()
        .enumerate()
        .map(|(position, secret)| PullSecret {
            name: secret.name.clone(),
            source: secret
                .source
                .clone()
                .map(|source| Manifest::new(source, file(position, "secret"))),
            named_by: secret.named_by.clone(),
        })
        .collect();
    let mut problems = vec![];
    pull_secrets::attach(
        &mut manifests,
        &case.namespace,
        &secrets,
        &case.also,
        &mut problems,
    );
    assert_silent(&(&manifests, &secrets, &problems));
    let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
    let mut text = difference("problems", &told, &case.problems);
    if !problems.iter().any(Problem::is_error) {
        let images = coverage(&manifests, &secrets);
        if let Some(expected) = &case.coverage {
            text += &difference("coverage", &images, expected);
        }
        let objects: Vec<_> = manifests.into_iter().map(Manifest::into_value).collect();
        if case.coverage.is_none() {
            text += &difference("objects", &objects, &case.expected);
        }
    }
    (!text.is_empty()).then_some(text)
}

fn coverage(manifests: &[Manifest], secrets: &[PullSecret]) -> Vec<String> {
    let logins: Vec<_> = secrets
        .iter()
        .filter_map(|secret| secret.source.as_ref())
        .map(|source| {
            logins::PullSecret::from_manifest(source.object().clone()).expect("it was copied")
        })
        .collect();
    assert_silent(&logins);
    let covers = |image: &_| logins.iter().any(|logins| logins.covers(image));
    let problems = pull_secrets::uncovered(manifests, &covers);
    problems.iter().map(Problem::to_string).collect()
}

fn difference<T: serde::Serialize + PartialEq>(what: &str, found: &[T], expected: &[T]) -> String {
    if found == expected {
        return String::new();
    }
    let shown = |values: &[T]| {
        let lines = values
            .iter()
            .map(|value| serde_json::to_string(value).expect("JSON"));
        lines.collect::<Vec<_>>().join("\n    ")
    };
    format!(
        "  {what}:\n    {}\n  expected:\n    {}\n",
        shown(found),
        shown(expected)
    )
}

fn read(path: &Path) -> Case {
    let text = encoded(&fs::read_to_string(path).expect("a case"));
    let documents = yaml::read(text.as_bytes(), &Limits::DEFAULT)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let value = documents.into_iter().next().expect("a document").value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every account that a real bundle's Deployments use gets the names, and nothing else of the bundle changes.
#[test]
fn real_bundles_get_pull_secrets_in_all_of_their_accounts_and_nowhere_else() {
    let Some(folder) = corpus::corpus() else {
        return;
    };
    let results: Vec<_> = corpus::cases(&folder)
        .par_iter()
        .map(|case| {
            let name = format!("{}/{}", case.operator, case.version);
            let mut arguments = vec!["render".to_owned()];
            arguments.push(folder.join("bundles").join(&name).display().to_string());
            arguments.extend(["-n", "operators", "-o", "json"].map(str::to_owned));
            if let Some(watched) = &case.watched {
                arguments.extend(["--watch-namespace".to_owned(), watched.clone()]);
            }
            let rendered = run(arguments);
            assert_eq!(rendered.code, 0, "{name}: {}", rendered.stderr);
            let changed = changes(&name, &rendered.stdout);
            (name, changed)
        })
        .collect();
    let sum = |count: fn(&Changes) -> usize| -> usize {
        results.iter().map(|(_, changes)| count(changes)).sum()
    };
    eprintln!(
        "{} bundles: {} accounts were there, {} were made, {} pod templates have a list of their own",
        results.len(),
        sum(|changes| changes.there),
        sum(|changes| changes.made),
        sum(|changes| changes.templates)
    );
    assert!(sum(|changes| changes.there) > results.len() / 2);
    assert!(sum(|changes| changes.made) > 0 && sum(|changes| changes.templates) > 0);
}

/// How many objects of a bundle were changed.
struct Changes {
    there: usize,
    made: usize,
    templates: usize,
}

/// Compares objects before and after by rules that are written down a second time, on plain JSON.
fn changes(bundle: &str, rendered: &str) -> Changes {
    let list: Value = serde_json::from_str(rendered).expect("JSON");
    let before = list["items"].as_array().expect("a list").clone();
    let mut manifests: Vec<_> = before
        .iter()
        .map(|object| Manifest::generated(object.clone(), "a bundle"))
        .collect();
    let secrets = ["one", "two"].map(|name| PullSecret {
        name: name.to_owned(),
        source: None,
        named_by: catalog(),
    });
    let mut problems = vec![];
    pull_secrets::attach(&mut manifests, "operators", &secrets, &[], &mut problems);
    let mut after = by_key(manifests.into_iter().map(Manifest::into_value));
    let mut changes = Changes {
        there: 0,
        made: 0,
        templates: 0,
    };
    let deployments = before
        .iter()
        .filter(|object| object["kind"] == "Deployment");
    let mut accounts: BTreeSet<&str> = deployments
        .map(|deployment| {
            let pod = &deployment["spec"]["template"]["spec"];
            let name = pod["serviceAccountName"].as_str().unwrap_or_default();
            let older = pod["serviceAccount"].as_str().unwrap_or("default");
            if name.is_empty() { older } else { name }
        })
        .collect();
    for mut expected in before.clone() {
        let mut list = None;
        if expected["kind"] == "ServiceAccount"
            && accounts.remove(expected["metadata"]["name"].as_str().expect("a name"))
        {
            changes.there += 1;
            list = Some(&mut expected);
        } else if expected["kind"] == "Deployment" {
            let pod = &mut expected["spec"]["template"]["spec"];
            let has_list = pod["imagePullSecrets"].as_array();
            if has_list.is_some_and(|list| !list.is_empty()) {
                changes.templates += 1;
                list = Some(pod);
            }
        }
        if let Some(object) = list {
            let names = object["imagePullSecrets"].as_array().cloned();
            let mut names = names.unwrap_or_default();
            names.extend([json!({"name": "one"}), json!({"name": "two"})]);
            object["imagePullSecrets"] = names.into();
        }
        let found = after.remove(&key(&expected));
        assert_eq!(found.as_ref(), Some(&expected), "{bundle}");
    }
    for account in accounts {
        changes.made += 1;
        let expected = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": "operators"},
            "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        });
        let found = after.remove(&key(&expected));
        assert_eq!(found, Some(expected), "{bundle}");
    }
    assert!(after.is_empty(), "{bundle}: {:?}", after.keys());
    changes
}

fn by_key(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    objects.map(|object| (key(&object), object)).collect()
}

fn key(object: &Value) -> String {
    let none = Map::new();
    let metadata = object["metadata"].as_object().unwrap_or(&none);
    format!(
        "{} {} {:?} {:?}",
        object["apiVersion"],
        object["kind"],
        metadata.get("namespace"),
        metadata.get("name")
    )
}
