//! The bundle's CustomResourceDefinitions, with their conversion led to the operator (`BundleCRDGenerator`).

use std::collections::BTreeMap;

use serde_json::json;

use super::Rendering;
use crate::{bundle::cluster_service_version::WebhookType, manifest::map_at};

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    let webhooks = rendering.csv.webhooks_of(WebhookType::Conversion);
    let converters: BTreeMap<_, _> = webhooks
        .flat_map(|webhook| {
            webhook
                .conversion_crds
                .iter()
                .map(move |name| (name.as_str(), webhook))
        })
        .collect();
    for mut crd in std::mem::take(&mut rendering.crds) {
        if let Some(webhook) = converters.get(crd.name()) {
            let certificate = rendering.certificate(&webhook.deployment_name);
            let conversion = json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {
                        "service": {
                            "name": certificate.service,
                            "namespace": certificate.namespace,
                            "path": webhook.webhook_path.as_deref().unwrap_or("/"),
                            "port": webhook.port(),
                        },
                    },
                    "conversionReviewVersions": webhook.admission_review_versions,
                },
            });
            map_at(crd.object_mut(), "spec").insert("conversion".to_owned(), conversion);
            rendering.options.certificates.trust(&mut crd, &certificate);
        }
        crd.metadata_mut().remove("namespace");
        rendering.manifests.push(crd);
    }
}
