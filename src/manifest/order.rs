//! The order in which objects can be created one after the other, as a table of kinds.
//!
//! It is that of OLM v1's phases (operator-controller `applier/phase.go`, `defaultPhaseOrder` and `phaseGKMap`) with
//! two changes: custom resource definitions come right after namespaces, so that `kubectl apply` of one stream
//! has established them by the time their first object is sent; and ClusterServiceVersions, which OLM v1 does not
//! store, come right after these, as with OLM v0.

use super::{Manifest, file_name, key::ObjectKey};

/// Phases with their groups and kinds, first to last. A kind that is not listed goes where [`UNLISTED`] says.
const APPLY_ORDER: &[(&str, &[(&str, &str)])] = &[
    ("namespaces", &[("", "Namespace")]),
    (
        "definitions",
        &[("apiextensions.k8s.io", "CustomResourceDefinition")],
    ),
    (
        "versions",
        &[("operators.coreos.com", "ClusterServiceVersion")],
    ),
    (
        "policies",
        &[
            ("networking.k8s.io", "NetworkPolicy"),
            ("policy", "PodDisruptionBudget"),
            ("scheduling.k8s.io", "PriorityClass"),
        ],
    ),
    ("identity", &[("", "ServiceAccount")]),
    ("configuration", &[("", "Secret"), ("", "ConfigMap")]),
    (
        "storage",
        &[
            ("", "PersistentVolume"),
            ("", "PersistentVolumeClaim"),
            ("storage.k8s.io", "StorageClass"),
        ],
    ),
    (
        "roles",
        &[
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "Role"),
        ],
    ),
    (
        "bindings",
        &[
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
        ],
    ),
    (
        "infrastructure",
        &[
            ("", "Service"),
            ("cert-manager.io", "Issuer"),
            ("cert-manager.io", "Certificate"),
        ],
    ),
    ("deploy", &[("apps", "Deployment")]),
    (
        "scaling",
        &[("autoscaling.k8s.io", "VerticalPodAutoscaler")],
    ),
    (
        "publish",
        &[
            ("monitoring.coreos.com", "PrometheusRule"),
            ("monitoring.coreos.com", "ServiceMonitor"),
            ("monitoring.coreos.com", "PodMonitor"),
            ("console.openshift.io", "ConsoleYAMLSample"),
            ("console.openshift.io", "ConsoleQuickStart"),
            ("console.openshift.io", "ConsoleCLIDownload"),
            ("console.openshift.io", "ConsoleLink"),
            ("console.openshift.io", "ConsolePlugin"),
        ],
    ),
    ("services", &[("apiregistration.k8s.io", "APIService")]),
    (
        "admission",
        &[
            (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
        ],
    ),
];

/// The rank that kinds outside the table share: that of Deployments.
const UNLISTED: usize = 10;

/// Sorts by rank, then by key: the same set gives the same order, whatever order it came in.
pub fn sort(manifests: &mut [Manifest]) {
    manifests.sort_by_cached_key(|manifest| {
        let key = manifest.key();
        (rank(&key), key)
    });
}

/// The phase that objects of a kind are created in: its number, counted from the first, and what it is called.
#[must_use]
pub fn phase(key: &ObjectKey) -> (usize, &'static str) {
    let rank = rank(key);
    (rank, APPLY_ORDER.get(rank).map_or("", |(name, _)| name))
}

/// Sorts names of files, as [`file_names`](file_name::file_names) gives them, by the rank of the objects in them, then by
/// name. Only the names count, so the place of a file does not depend on whether its object is known to this run.
pub fn sort_files(names: &mut [String]) {
    names.sort_by_cached_key(|name| {
        let rank = rank_where(|group, kind| file_name::holds(name, group, kind));
        (rank, name.clone())
    });
}

fn rank(key: &ObjectKey) -> usize {
    rank_where(|group, kind| group == key.group && kind == key.kind)
}

fn rank_where(is_meant: impl Fn(&str, &str) -> bool) -> usize {
    let is_meant = |(group, kind): &(&str, &str)| is_meant(group, kind);
    let found = APPLY_ORDER
        .iter()
        .position(|(_, kinds)| kinds.iter().any(is_meant));
    found.unwrap_or(UNLISTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_kinds_rank_with_deployments() {
        assert!(APPLY_ORDER[UNLISTED].1.contains(&("apps", "Deployment")));
    }

    #[test]
    fn a_file_has_the_rank_of_its_object() {
        for (group, kind) in APPLY_ORDER
            .iter()
            .flat_map(|(_, kinds)| kinds.iter().copied())
        {
            for name in ["a", "con", "-", "system:a"] {
                let key = |namespace: &str| ObjectKey {
                    group: group.to_owned(),
                    kind: kind.to_owned(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                let keys = [key(""), key("ops")];
                for file in file_name::file_names(&keys) {
                    let found = rank_where(|group, kind| file_name::holds(&file, group, kind));
                    assert_eq!(found, rank(&keys[0]), "{file}");
                }
            }
        }
    }

    #[test]
    fn files_sort_by_what_is_in_them() {
        let mut names = [
            "role.rbac.authorization.k8s.io-a_ops.yaml",
            "role-a_ops.yaml",
            "deployment.apps-a_ops.yaml",
            "widget.example.com-a_ops.yaml",
            "secret-b_ops.yaml",
            "secret-a_ops.yaml",
            "namespace-ops.yaml",
        ]
        .map(str::to_owned);
        sort_files(&mut names);
        assert_eq!(
            names,
            [
                "namespace-ops.yaml",
                "secret-a_ops.yaml",
                "secret-b_ops.yaml",
                "role.rbac.authorization.k8s.io-a_ops.yaml",
                "deployment.apps-a_ops.yaml",
                "role-a_ops.yaml",
                "widget.example.com-a_ops.yaml",
            ]
        );
    }
}
