//! Aggregated APIs that the operator serves, which OLM v1 refuses and OLM v0 installs
//! (operator-lifecycle-manager `pkg/controller/install/apiservice.go` and `certresources.go`).

use serde_json::json;

use super::Rendering;
use crate::{bundle::cluster_service_version::port_or_default, manifest::Manifest};

const API_GROUP: &str = "rbac.authorization.k8s.io";
const FROM: &str = "spec.apiservicedefinitions";

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    for api in &rendering.csv.owned_api_services {
        let certificate = rendering.certificate(&api.deployment_name);
        let object = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": format!("{}.{}", api.version, api.group)},
            "spec": {
                "group": api.group,
                "groupPriorityMinimum": 2000,
                "service": {
                    "name": certificate.service,
                    "namespace": certificate.namespace,
                    "port": port_or_default(api.container_port),
                },
                "version": api.version,
                "versionPriority": 15,
            },
        });
        let mut manifest = Manifest::generated(object, FROM);
        rendering
            .options
            .certificates
            .trust(&mut manifest, &certificate);
        rendering.manifests.push(manifest);
    }
    delegate_authentication(rendering);
}

/// A server of aggregated APIs asks the API server who its callers are and what they may do.
fn delegate_authentication(rendering: &mut Rendering<'_>) {
    let csv = rendering.csv;
    for deployment in &csv.deployments {
        if !csv
            .owned_api_services
            .iter()
            .any(|api| api.deployment_name == deployment.name)
        {
            continue;
        }
        let service = rendering.certificate(&deployment.name).service;
        let subjects = json!([{
            "kind": "ServiceAccount",
            "name": deployment.service_account(),
            "namespace": rendering.namespace(),
        }]);
        let objects = [
            json!({
                "apiVersion": format!("{API_GROUP}/v1"),
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("{service}-system:auth-delegator")},
                "roleRef": {"apiGroup": API_GROUP, "kind": "ClusterRole", "name": "system:auth-delegator"},
                "subjects": subjects,
            }),
            json!({
                "apiVersion": format!("{API_GROUP}/v1"),
                "kind": "RoleBinding",
                "metadata": {"name": format!("{service}-auth-reader"), "namespace": "kube-system"},
                "roleRef": {"apiGroup": API_GROUP, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
                "subjects": subjects,
            }),
        ];
        rendering
            .manifests
            .extend(objects.map(|object| Manifest::generated(object, FROM)));
    }
}
