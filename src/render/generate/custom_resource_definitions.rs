//! The bundle's CustomResourceDefinitions, with their conversion led to the operator (`BundleCRDGenerator`).

use serde_json::json;

use super::Rendering;
use crate::{bundle::cluster_service_version::WebhookType, manifest::map_at};

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    for mut crd in std::mem::take(&mut rendering.crds) {
        let mut webhooks = rendering.csv.webhooks_of(WebhookType::Conversion);
        let converter = webhooks.find(|webhook| {
            webhook
                .conversion_crds
                .iter()
                .any(|name| name == crd.name())
        });
        if let Some(webhook) = converter {
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
