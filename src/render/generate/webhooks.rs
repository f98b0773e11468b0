//! Admission webhook configurations, one object for each definition (`BundleValidatingWebhookResourceGenerator`,
//! `BundleMutatingWebhookResourceGenerator`). They are cluster-scoped; the namespace that upstream writes into them
//! is left out.

use serde_json::{Map, Value, json};

use super::Rendering;
use crate::{
    bundle::cluster_service_version::{AdmissionRule, WebhookDescription, WebhookType},
    manifest::Manifest,
};

/// The fields that both kinds of configuration take over as they are.
const COPIED: [&str; 5] = [
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
];

pub(super) fn validating(rendering: &mut Rendering<'_>) {
    generate(
        rendering,
        WebhookType::Validating,
        "ValidatingWebhookConfiguration",
        &[],
    );
}

pub(super) fn mutating(rendering: &mut Rendering<'_>) {
    generate(
        rendering,
        WebhookType::Mutating,
        "MutatingWebhookConfiguration",
        &["reinvocationPolicy"],
    );
}

fn generate(rendering: &mut Rendering<'_>, of: WebhookType, kind: &str, copied_too: &[&str]) {
    for webhook in rendering.csv.webhooks_of(of) {
        let name = webhook
            .generate_name
            .strip_suffix('-')
            .unwrap_or(&webhook.generate_name);
        let certificate = rendering.certificate(&webhook.deployment_name);
        let mut entry = entry(webhook, name, &certificate.service, rendering);
        for field in COPIED.iter().chain(copied_too) {
            if let Some(value) = webhook.copied.get(*field) {
                entry.insert((*field).to_owned(), value.clone());
            }
        }
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [entry],
        });
        let mut manifest = Manifest::generated(object, "spec.webhookdefinitions");
        rendering
            .options
            .certificates
            .trust(&mut manifest, &certificate);
        rendering.manifests.push(manifest);
    }
}

fn entry(
    webhook: &WebhookDescription,
    name: &str,
    service: &str,
    rendering: &Rendering<'_>,
) -> Map<String, Value> {
    let mut service = json!({
        "name": service,
        "namespace": rendering.namespace(),
        "port": webhook.port(),
    });
    if let Some(path) = &webhook.webhook_path {
        service["path"] = path.as_str().into();
    }
    let mut entry = Map::from_iter([
        ("name".to_owned(), name.into()),
        ("clientConfig".to_owned(), json!({"service": service})),
        (
            "admissionReviewVersions".to_owned(),
            json!(webhook.admission_review_versions),
        ),
    ]);
    if !webhook.rules.is_empty() {
        entry.insert("rules".to_owned(), webhook.rules.iter().map(rule).collect());
    }
    if !rendering.watches_all() {
        let watched = json!({
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": rendering.targets,
        });
        entry.insert(
            "namespaceSelector".to_owned(),
            json!({"matchExpressions": [watched]}),
        );
    }
    entry
}

fn rule(rule: &AdmissionRule) -> Value {
    let mut fields: Map<String, Value> = rule.other.clone().into_iter().collect();
    for (name, words) in [
        ("apiGroups", &rule.api_groups),
        ("resources", &rule.resources),
    ] {
        if !words.is_empty() {
            fields.insert(name.to_owned(), json!(words));
        }
    }
    fields.into()
}
