//! Roles and bindings from the permissions of the ClusterServiceVersion (`BundleCSVPermissionsGenerator`,
//! `BundleCSVClusterPermissionsGenerator`).

use serde_json::{Value, json};

use super::Rendering;
use crate::{
    bundle::cluster_service_version::{Permission, PolicyRule},
    manifest::Manifest,
    problem::Problem,
    render::names,
};

const API_GROUP: &str = "rbac.authorization.k8s.io";
const PERMISSIONS: &str = "spec.install.spec.permissions";
const CLUSTER_PERMISSIONS: &str = "spec.install.spec.clusterPermissions";

/// A Role and its binding in every namespace that is watched; nothing when all are.
pub(super) fn namespaced(rendering: &mut Rendering<'_>) {
    if rendering.watches_all() {
        return;
    }
    for namespace in rendering.targets {
        for permission in &rendering.csv.permissions {
            grant(rendering, permission, Some(namespace), PERMISSIONS);
        }
    }
}

/// A ClusterRole and its binding; an operator that watches all namespaces gets its namespaced permissions this way
/// too, with the right to find the namespaces.
pub(super) fn cluster_wide(rendering: &mut Rendering<'_>) {
    for permission in &rendering.csv.cluster_permissions {
        grant(rendering, permission, None, CLUSTER_PERMISSIONS);
    }
    if rendering.watches_all() {
        for permission in &rendering.csv.permissions {
            let mut promoted = permission.clone();
            promoted
                .rules
                .get_or_insert_default()
                .push(find_namespaces());
            grant(rendering, &promoted, None, PERMISSIONS);
        }
    }
}

fn find_namespaces() -> PolicyRule {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    PolicyRule {
        verbs: Some(words(&["get", "list", "watch"])),
        api_groups: words(&[""]),
        resources: words(&["namespaces"]),
        resource_names: vec![],
        non_resource_urls: vec![],
    }
}

/// A role with the rules and its binding to the account, both named after what they say.
fn grant(
    rendering: &mut Rendering<'_>,
    permission: &Permission,
    namespace: Option<&str>,
    from: &'static str,
) {
    let account = permission.service_account();
    let name = match names::unique(&format!("{}-{account}", rendering.csv.name), permission) {
        Ok(name) => name,
        Err(error) => {
            let message = format!("{from}: cannot be named: {error}");
            rendering
                .problems
                .push(Problem::error("permission", message));
            return;
        }
    };
    let (role, binding) = match namespace {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let metadata = match namespace {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    };
    let api_version = format!("{API_GROUP}/v1");
    let objects = [
        json!({
            "apiVersion": api_version,
            "kind": role,
            "metadata": metadata,
            "rules": permission.rules.iter().flatten().map(rule).collect::<Vec<_>>(),
        }),
        json!({
            "apiVersion": api_version,
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": API_GROUP, "kind": role, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": rendering.namespace()}],
        }),
    ];
    rendering
        .manifests
        .extend(objects.map(|object| Manifest::generated(object, from)));
}

/// A rule as it is written: without the fields that it leaves out.
fn rule(rule: &PolicyRule) -> Value {
    let fields = [
        ("apiGroups", Some(&rule.api_groups)),
        ("nonResourceURLs", Some(&rule.non_resource_urls)),
        ("resourceNames", Some(&rule.resource_names)),
        ("resources", Some(&rule.resources)),
        ("verbs", rule.verbs.as_ref()),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(name, words)| Some((name, words?)));
    let given = given.filter(|(_, words)| !words.is_empty());
    given
        .map(|(name, words)| (name.to_owned(), json!(words)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
