//! The order in which objects can be created one after the other, as a table of kinds.
//!
//! It is that of OLM v1's phases (operator-controller `applier/phase.go`, `defaultPhaseOrder` and `phaseGKMap`) with
//! one change: custom resource definitions come right after namespaces, so that `kubectl apply` of one stream
//! has established them by the time their first object is sent.

use super::{Manifest, key::ObjectKey};

/// Groups and kinds, first to last. A kind that is not listed goes where [`UNLISTED`] says.
const APPLY_ORDER: &[&[(&str, &str)]] = &[
    &[("", "Namespace")],
    &[("apiextensions.k8s.io", "CustomResourceDefinition")],
    &[
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        ("scheduling.k8s.io", "PriorityClass"),
    ],
    &[("", "ServiceAccount")],
    &[("", "Secret"), ("", "ConfigMap")],
    &[
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("storage.k8s.io", "StorageClass"),
    ],
    &[
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "Role"),
    ],
    &[
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    ],
    &[
        ("", "Service"),
        ("cert-manager.io", "Issuer"),
        ("cert-manager.io", "Certificate"),
    ],
    &[("apps", "Deployment")],
    &[("autoscaling.k8s.io", "VerticalPodAutoscaler")],
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
    &[("apiregistration.k8s.io", "APIService")],
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
];

/// The rank that kinds outside the table share: that of Deployments.
const UNLISTED: usize = 9;

/// Sorts by rank, then by key: the same set gives the same order, whatever order it came in.
pub fn sort(manifests: &mut [Manifest]) {
    manifests.sort_by_cached_key(|manifest| {
        let key = manifest.key();
        (rank(&key), key)
    });
}

fn rank(key: &ObjectKey) -> usize {
    let same = |(group, kind): &(&str, &str)| *group == key.group && *kind == key.kind;
    let found = APPLY_ORDER.iter().position(|rank| rank.iter().any(same));
    found.unwrap_or(UNLISTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_kinds_rank_with_deployments() {
        assert!(APPLY_ORDER[UNLISTED].contains(&("apps", "Deployment")));
    }
}
