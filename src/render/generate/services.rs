//! The Services in front of the Deployments that serve webhooks or aggregated APIs
//! (`BundleDeploymentServiceResourceGenerator`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Rendering;
use crate::{bundle::cluster_service_version::port_or_default, manifest::Manifest};

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    let mut services = vec![];
    for deployment in rendering.serving() {
        let certificate = rendering.certificate(&deployment.name);
        let labels = deployment
            .spec
            .get("selector")
            .and_then(|selector| selector.get("matchLabels"));
        let mut spec = json!({"ports": ports(rendering, &deployment.name)});
        if let Some(labels) = labels {
            spec["selector"] = labels.clone();
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": certificate.service, "namespace": certificate.namespace},
            "spec": spec,
        });
        let mut service = Manifest::generated(object, "spec.webhookdefinitions");
        rendering
            .options
            .certificates
            .mark_service(&mut service, &certificate);
        services.push(service);
    }
    rendering.manifests.extend(services);
}

/// Every pair of port and target once, by port and then by the target's number, named ones first.
fn ports(rendering: &Rendering<'_>, deployment: &str) -> Vec<Value> {
    let webhooks = rendering.csv.webhooks.iter();
    let by_webhook = webhooks
        .filter(|webhook| webhook.deployment_name == deployment)
        .map(|webhook| {
            let port = webhook.port();
            (
                port,
                webhook.target_port.clone().unwrap_or_else(|| port.into()),
            )
        });
    let apis = rendering.csv.owned_api_services.iter();
    let by_api = apis
        .filter(|api| api.deployment_name == deployment)
        .map(|api| {
            let port = port_or_default(api.container_port);
            (port, port.into())
        });
    let key = |(port, target): (i64, Value)| {
        let name = target.as_str().map(str::to_owned);
        (port, target.as_i64().unwrap_or_default(), name)
    };
    let all: BTreeSet<_> = by_webhook.chain(by_api).map(key).collect();
    let entry = |(port, number, name): (i64, i64, Option<String>)| {
        let target = name.map_or_else(|| number.into(), Value::from);
        json!({"name": port.to_string(), "port": port, "targetPort": target})
    };
    all.into_iter().map(entry).collect()
}
