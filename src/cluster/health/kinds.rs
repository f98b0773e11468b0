//! The rules of kinds that run no pods.
//!
//! Those of PersistentVolumeClaims, Services, CustomResourceDefinitions and PodDisruptionBudgets are kstatus's
//! (`core.go`: `pvcConditions`, `serviceConditions`, `crdConditions`, `pdbConditions`). Those of APIServices and of
//! cert-manager's kinds are ours, as `mod.rs` says.

use super::{Health, Object};

/// The state by the rule of the kind; nothing when there is none.
pub(super) fn of(group: &str, kind: &str, object: &Object<'_>) -> Option<Health> {
    let health = match (group, kind) {
        // They have no status that says whether they are ready, whatever conditions somebody puts there.
        ("", "Secret" | "ConfigMap") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => {
            Health::Current
        }
        ("", "PersistentVolumeClaim") => volume_claim(object),
        ("", "Service") => service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => api_service(object),
        ("cert-manager.io", "Certificate" | "ClusterIssuer" | "Issuer") => by_ready(object)
            .unwrap_or_else(|| Health::InProgress("cert-manager has not seen it yet".to_owned())),
        _ => return None,
    };
    Some(health)
}

/// The state by the first condition `Ready` that says something; nothing when there is none. That it is not ready may
/// change, whatever its reason.
pub(super) fn by_ready(object: &Object<'_>) -> Option<Health> {
    let mut conditions = object.conditions.iter();
    conditions.find_map(|condition| match (condition.kind, condition.status) {
        ("Ready", "True") => Some(Health::Current),
        ("Ready", "False" | "Unknown") => {
            let why = condition.why("it does not say why");
            Some(Health::InProgress(format!("not ready: {why}")))
        }
        _ => None,
    })
}

fn volume_claim(object: &Object<'_>) -> Health {
    match object.text("/status/phase") {
        "Bound" => Health::Current,
        "Lost" => Health::InProgress("its volume is lost".to_owned()),
        _ => Health::InProgress("it has no volume yet".to_owned()),
    }
}

fn service(object: &Object<'_>) -> Health {
    let is_balanced = object.text("/spec/type") == "LoadBalancer";
    if is_balanced && object.text("/spec/clusterIP").is_empty() {
        return Health::InProgress("it has no address in the cluster yet".to_owned());
    }
    Health::Current
}

fn definition(object: &Object<'_>) -> Health {
    for condition in object.conditions {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => {
                let why = condition.why("another definition has them");
                return Health::Failed(format!("its names are not accepted: {why}"));
            }
            ("Established", "False") if condition.reason != "Installing" => {
                let why = condition.why("it does not say why");
                return Health::Failed(format!("it is not established: {why}"));
            }
            ("Established", "True") => return Health::Current,
            _ => {}
        }
    }
    Health::InProgress("it is not established yet".to_owned())
}

fn api_service(object: &Object<'_>) -> Health {
    match object.condition("Available") {
        Some(condition) if condition.status == "True" => Health::Current,
        Some(condition) => {
            let why = condition.why("it does not say why");
            Health::InProgress(format!("its API is not available: {why}"))
        }
        None => Health::InProgress("it is not known yet whether its API is available".to_owned()),
    }
}
