//! The ServiceAccounts that the operator runs as (`BundleCSVServiceAccountGenerator`).
//!
//! Upstream makes those that a permission names. A Deployment can name one that no permission does, and its pods then
//! never start; here that one is made as well.

use std::collections::BTreeSet;

use serde_json::json;

use super::Rendering;
use crate::manifest::Manifest;

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    let csv = rendering.csv;
    let permissions = csv.permissions.iter().chain(&csv.cluster_permissions);
    let by_permission = permissions.map(|permission| permission.service_account());
    let by_deployment = csv
        .deployments
        .iter()
        .map(|deployment| deployment.service_account());
    let names: BTreeSet<_> = by_permission.chain(by_deployment).collect();
    for name in names.into_iter().filter(|name| *name != "default") {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": rendering.namespace()},
        });
        let from = "the permissions and deployments of the ClusterServiceVersion";
        rendering.manifests.push(Manifest::generated(object, from));
    }
}
