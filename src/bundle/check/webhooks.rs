//! Checks of the webhooks and aggregated APIs that a bundle's Deployments serve.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Facts;
use crate::{
    bundle::{
        Bundle,
        cluster_service_version::{AdmissionRule, WebhookDescription, WebhookType},
    },
    manifest::names,
    problem::Problem,
};

/// `CheckConversionWebhookSupport`.
pub(super) fn conversion_needs_all_namespaces(
    bundle: &Bundle,
    _: &Facts,
    problems: &mut Vec<Problem>,
) {
    let modes: Vec<_> = bundle
        .csv
        .install_modes
        .iter()
        .map(String::as_str)
        .collect();
    if modes == ["AllNamespaces"] {
        return;
    }
    for webhook in bundle.csv.webhooks_of(WebhookType::Conversion) {
        let message = format!(
            "conversion webhook {:?} needs a bundle that supports AllNamespaces and no other install mode; this one \
             supports [{}]",
            webhook.generate_name,
            modes.join(" "),
        );
        problems.push(bundle.in_csv(Problem::error("conversion-mode", message)));
    }
}

/// `CheckWebhookDeploymentReferentialIntegrity`.
pub(super) fn deployments_exist(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for webhook in &bundle.csv.webhooks {
        if !has_deployment(bundle, &webhook.deployment_name) {
            let message = format!(
                "{} is served by deployment {:?}, which does not exist",
                title(webhook),
                webhook.deployment_name
            );
            problems.push(bundle.in_csv(Problem::error("webhook-deployment", message)));
        }
    }
}

/// `CheckWebhookNameUniqueness`.
pub(super) fn names_are_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    let mut told = BTreeSet::new();
    for webhook in &bundle.csv.webhooks {
        let name = (webhook.r#type.as_str(), webhook.generate_name.as_str());
        if !seen.insert(name) && told.insert(name) {
            let message = format!("{} stands more than once", title(webhook));
            problems.push(bundle.in_csv(Problem::error("webhook-unique", message)));
        }
    }
}

/// `CheckWebhookNameIsDNS1123SubDomain`.
pub(super) fn names_are_valid(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for webhook in &bundle.csv.webhooks {
        if let Some(reason) = names::subdomain_error(&webhook.generate_name) {
            let message = format!("{} has an invalid name: {reason}", title(webhook));
            problems.push(bundle.in_csv(Problem::error("webhook-name", message)));
        }
    }
}

/// `CheckConversionWebhookCRDReferenceUniqueness`.
pub(super) fn conversion_is_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let mut converters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for webhook in bundle.csv.webhooks_of(WebhookType::Conversion) {
        for crd in &webhook.conversion_crds {
            converters
                .entry(crd)
                .or_default()
                .push(&webhook.generate_name);
        }
    }
    for (crd, mut webhooks) in converters {
        if webhooks.len() > 1 {
            webhooks.sort_unstable();
            let message = format!(
                "conversion webhooks [{}] name the same custom resource definition {crd:?}",
                webhooks.join(",")
            );
            problems.push(bundle.in_csv(Problem::error("conversion-unique", message)));
        }
    }
}

/// `CheckConversionWebhooksReferenceOwnedCRDs`.
pub(super) fn conversion_is_of_owned(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let owned: BTreeSet<_> = bundle.csv.owned_crds.iter().collect();
    for webhook in bundle.csv.webhooks_of(WebhookType::Conversion) {
        let foreign = webhook
            .conversion_crds
            .iter()
            .filter(|crd| !owned.contains(crd));
        for crd in foreign {
            let message = format!(
                "{} converts custom resource definition {crd:?}, which the bundle does not own",
                title(webhook)
            );
            problems.push(bundle.in_csv(Problem::error("conversion-owned", message)));
        }
    }
}

/// `CheckWebhookRules`: an operator may not guard everything, OLM itself, or the webhooks of others.
pub(super) fn rules_are_allowed(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let admission = bundle
        .csv
        .webhooks
        .iter()
        .filter(|webhook| webhook.webhook_type() != Some(WebhookType::Conversion));
    for webhook in admission {
        for reason in webhook.rules.iter().flat_map(forbidden) {
            let message = format!("{} has a forbidden rule: {reason}", title(webhook));
            problems.push(bundle.in_csv(Problem::error("webhook-rule", message)));
        }
    }
}

fn forbidden(rule: &AdmissionRule) -> Vec<String> {
    const CONFIGURATIONS: [&str; 5] = [
        "*",
        "mutatingwebhookconfiguration",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        "validatingwebhookconfigurations",
    ];
    let mut reasons = vec![];
    for group in &rule.api_groups {
        match group.as_str() {
            "*" | "olm.operatorframework.io" => {
                reasons.push(format!("it may not be for API group {group:?}"))
            }
            "admissionregistration.k8s.io" => {
                let resources = rule
                    .resources
                    .iter()
                    .map(|resource| resource.to_lowercase());
                let bad = resources.filter(|resource| CONFIGURATIONS.contains(&resource.as_str()));
                reasons.extend(bad.map(|resource| {
                    format!("it may not be for resource {resource:?} of API group {group:?}")
                }));
            }
            _ => {}
        }
    }
    reasons
}

/// OLM makes nothing of a webhook whose type it does not know.
pub(super) fn types_are_known(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for webhook in bundle
        .csv
        .webhooks
        .iter()
        .filter(|webhook| webhook.webhook_type().is_none())
    {
        let message = format!(
            "{} is of no known type, so nothing is made of it",
            title(webhook)
        );
        problems.push(bundle.in_csv(Problem::warning("webhook-type", message)));
    }
}

/// The API server calls a conversion webhook only for definitions that prune unknown fields
/// (`generators.go`, `BundleCRDGenerator`).
pub(super) fn conversion_prunes_unknown_fields(
    bundle: &Bundle,
    _: &Facts,
    problems: &mut Vec<Problem>,
) {
    let webhooks = bundle.csv.webhooks_of(WebhookType::Conversion);
    let converted: BTreeSet<_> = webhooks
        .flat_map(|webhook| webhook.conversion_crds.iter().map(String::as_str))
        .collect();
    for crd in &bundle.crds {
        let preserves = crd
            .object()
            .get("spec")
            .and_then(|spec| spec.get("preserveUnknownFields"));
        if preserves == Some(&Value::Bool(true)) && converted.contains(crd.name()) {
            let message = "spec.preserveUnknownFields must be false, or the API server will not call the conversion webhook";
            problems.push(
                Problem::error("conversion-pruning", message)
                    .at(&crd.origin)
                    .on(crd.key()),
            );
        }
    }
}

/// Two webhooks of a Deployment on one port and two target ports give a Service that the API server refuses.
pub(super) fn ports_are_unambiguous(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let mut targets: BTreeMap<(&str, i64), BTreeSet<String>> = BTreeMap::new();
    for webhook in &bundle.csv.webhooks {
        let port = webhook.port();
        let target = webhook
            .target_port
            .as_ref()
            .map_or_else(|| port.to_string(), Value::to_string);
        targets
            .entry((&webhook.deployment_name, port))
            .or_default()
            .insert(target);
    }
    for ((deployment, port), targets) in
        targets.into_iter().filter(|(_, targets)| targets.len() > 1)
    {
        let targets: Vec<_> = targets.into_iter().collect();
        let message = format!(
            "the webhooks of deployment {deployment:?} lead port {port} to several target ports ({}), and the API \
             server takes one",
            targets.join(", "),
        );
        problems.push(bundle.in_csv(Problem::warning("webhook-port", message)));
    }
}

/// OLM v0 reports `DeploymentNotFound` (`operators/olm/requirements.go`).
pub(super) fn api_services_are_served(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for api in &bundle.csv.owned_api_services {
        if !has_deployment(bundle, &api.deployment_name) {
            let message = format!(
                "API {}.{} is served by deployment {:?}, which does not exist",
                api.version, api.group, api.deployment_name,
            );
            problems.push(bundle.in_csv(Problem::error("apiservice-deployment", message)));
        }
    }
}

fn has_deployment(bundle: &Bundle, name: &str) -> bool {
    bundle
        .csv
        .deployments
        .iter()
        .any(|deployment| deployment.name == name)
}

fn title(webhook: &WebhookDescription) -> String {
    format!("{} {:?}", webhook.r#type, webhook.generate_name)
}
