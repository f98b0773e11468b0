//! The rights that an install grants, and the least that apply it.
//!
//! `testdata/rights/<situation>.yaml` holds `objects`, and what is told of them: the `dangers`, and in `needs` the rules of the
//! least roles that apply them, one a line behind the namespace that each holds in.

use std::{collections::BTreeSet, fs};

use kubectl_olm::{
    bundle::KINDS,
    limits::Limits,
    manifest::{Manifest, Origin, served, yaml},
    review::rights::{Apply, Rule, Subject, bindings, dangers, to_apply},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::program::{root, run};

/// A case of `testdata/rights`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    objects: Vec<Value>,
    /// The lines of the problems, in order.
    #[serde(default)]
    dangers: Vec<String>,
    /// Lines among the rules that are needed.
    #[serde(default)]
    needs: Vec<String>,
    /// The lines of what is to be known of the needed roles.
    #[serde(default)]
    notes: Vec<String>,
}

fn manifests(objects: &[Value]) -> Vec<Manifest> {
    let objects = objects.iter().cloned();
    objects
        .map(|object| Manifest::new(object, Origin::Generated("a test")))
        .collect()
}

/// The rules of roles, a line each: `ops: get, list pods`.
fn lines(roles: &[Manifest]) -> Vec<String> {
    let rules = roles.iter().flat_map(|role| {
        let place = match role.namespace() {
            "" => "cluster",
            namespace => namespace,
        };
        let rules = Rule::read_all(role.object()).into_iter();
        rules.map(move |rule| format!("{place}: {}", rule.words()))
    });
    rules.collect()
}

const APPLY: Apply<'_> = Apply {
    namespace: "ops",
    name: "queues",
    inventory: "kubectl-olm.queues",
};

#[test]
fn each_case_has_the_dangers_and_needs_that_it_says() {
    let mut wrong = vec![];
    let folder = root().join("testdata/rights");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 8, "cases are missing");
    for path in paths {
        let text = fs::read(&path).expect("a case");
        let documents = yaml::read(&text, &Limits::DEFAULT).expect("YAML");
        let case = documents.into_iter().next().expect("a case").value;
        let case: Case = serde_json::from_value(case).expect("a case");
        let manifests = manifests(&case.objects);
        let told: Vec<_> = dangers(&manifests)
            .iter()
            .map(ToString::to_string)
            .collect();
        if told != case.dangers {
            wrong.push(format!("{}: dangers:\n{}", path.display(), told.join("\n")));
        }
        if case.needs.is_empty() {
            continue;
        }
        let rights = to_apply(&manifests, APPLY);
        let notes: Vec<_> = rights.notes.iter().map(ToString::to_string).collect();
        // What every install needs is in the test below.
        let common: BTreeSet<_> = lines(&to_apply(&[], APPLY).roles).into_iter().collect();
        let needs = lines(&rights.roles);
        let needs: Vec<_> = needs
            .into_iter()
            .filter(|line| !common.contains(line))
            .collect();
        if needs != case.needs || notes != case.notes {
            wrong.push(format!(
                "{}: needs:\n{}\nnotes:\n{}",
                path.display(),
                needs.join("\n"),
                notes.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_install_keeps_an_inventory_and_a_lease() {
    assert_eq!(
        lines(&to_apply(&[], APPLY).roles),
        [
            "cluster: get namespaces named ops",
            "ops: create secrets",
            "ops: list secrets",
            "ops: delete, get, patch, update secrets named kubectl-olm.queues",
            "ops: create leases.coordination.k8s.io",
            "ops: delete, get, patch, update leases.coordination.k8s.io named kubectl-olm.queues",
        ]
    );
}

#[test]
fn roles_are_bound_to_who_is_named() {
    let roles = to_apply(&[], APPLY).roles;
    let subject = |kind: &str, namespace: &str| Subject {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: "deployer".to_owned(),
    };
    let of_account = bindings(&roles, &subject("ServiceAccount", "ci"));
    let kinds: Vec<_> = of_account
        .iter()
        .map(|binding| (binding.kind(), binding.namespace()))
        .collect();
    assert_eq!(kinds, [("ClusterRoleBinding", ""), ("RoleBinding", "ops")]);
    assert_eq!(
        of_account[1].object()["subjects"],
        json!([{"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}])
    );
    assert_eq!(
        of_account[1].object()["roleRef"]["name"],
        "kubectl-olm.ops.queues"
    );
    let of_user = bindings(&roles, &subject("User", ""));
    assert_eq!(
        of_user[0].object()["subjects"][0]["apiGroup"],
        "rbac.authorization.k8s.io"
    );
}

#[test]
fn the_command_prints_what_kubectl_applies() {
    let run = run([
        "rbac",
        "testdata/bundles/minimal",
        "-n",
        "ops",
        "--create-namespace",
        "--service-account",
        "ci/deployer",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let documents = yaml::read(run.stdout.as_bytes(), &Limits::DEFAULT).expect("YAML");
    let kinds: Vec<_> = documents
        .iter()
        .map(|document| document.value["kind"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "ClusterRole",
            "Role",
            "ClusterRoleBinding",
            "RoleBinding"
        ]
    );
}

#[test]
fn the_command_tells_what_is_granted() {
    let granted = |form: &str| {
        run([
            "rbac",
            "testdata/bundles/minimal",
            "-n",
            "ops",
            "--granted",
            "-o",
            form,
        ])
    };
    let text = granted("text");
    assert_eq!(text.code, 0, "{}", text.stderr);
    let json: Value = serde_json::from_str(&granted("json").stdout).expect("JSON");
    for grant in json["grants"].as_array().expect("grants") {
        let name = grant["subject"]["name"].as_str().expect("a name");
        assert!(text.stdout.contains(name), "{}", text.stdout);
    }
    let wrong = granted("yaml");
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn every_kind_that_bundles_may_bring_is_known_as_bundles_know_it() {
    let groups = [
        "",
        "autoscaling.k8s.io",
        "console.openshift.io",
        "monitoring.coreos.com",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
    ];
    for (kind, is_namespaced) in KINDS {
        let mut found = groups
            .iter()
            .filter_map(|group| served::is_cluster_scoped(group, kind));
        assert_eq!(found.next(), Some(!is_namespaced), "{kind}");
    }
}
