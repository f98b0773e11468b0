//! Checks of the Deployments of the install strategy.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Facts, repeated};
use crate::{
    bundle::{
        Bundle,
        cluster_service_version::{Permission, StrategyDeployment},
    },
    manifest::names,
    problem::Problem,
};

/// `CheckDeploymentSpecUniqueness`.
pub(super) fn names_are_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let deployments = bundle.csv.deployments.iter();
    for name in repeated(deployments.map(|deployment| deployment.name.as_str())) {
        let message = format!("deployment {name:?} stands more than once in the install strategy");
        problems.push(bundle.in_csv(Problem::error("deployment-unique", message)));
    }
}

/// `CheckDeploymentNameIsDNS1123SubDomain`.
pub(super) fn names_are_valid(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for deployment in &bundle.csv.deployments {
        if let Some(reason) = names::subdomain_error(&deployment.name) {
            let message = format!("deployment name {:?} is invalid: {reason}", deployment.name);
            problems.push(bundle.in_csv(Problem::error("deployment-name", message)));
        }
    }
}

/// An operator without a Deployment installs nothing that runs; OLM v1 reports success all the same.
pub(super) fn exist(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    if bundle.csv.deployments.is_empty() {
        let message = "the install strategy has no deployment, so nothing will run";
        problems.push(bundle.in_csv(Problem::warning("no-deployment", message)));
    }
}

/// ServiceAccounts are made for the names that permissions and deployments give.
pub(super) fn service_accounts_are_valid(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let csv = &bundle.csv;
    let permissions = csv.permissions.iter().chain(&csv.cluster_permissions);
    let by_permission = permissions.map(Permission::service_account);
    let by_deployment = csv
        .deployments
        .iter()
        .map(StrategyDeployment::service_account);
    let names: BTreeSet<_> = by_permission.chain(by_deployment).collect();
    for name in names {
        let message = |reason: &str| format!("service account name {name:?} is invalid: {reason}");
        if let Some(reason) = names::path_segment_error(name) {
            problems.push(bundle.in_csv(Problem::error("service-account", message(&reason))));
        } else if let Some(reason) = names::subdomain_error(name) {
            problems.push(bundle.in_csv(Problem::warning("service-account", message(&reason))));
        }
    }
}

/// Server-side apply answers two equal ports in one container with a permanent error 500.
pub(super) fn ports_are_unique(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for deployment in &bundle.csv.deployments {
        for container in containers(deployment) {
            let mut seen = BTreeSet::new();
            for port in list(container, "ports") {
                let number = port
                    .get("containerPort")
                    .and_then(Value::as_i64)
                    .unwrap_or_default();
                let protocol = port
                    .get("protocol")
                    .and_then(Value::as_str)
                    .unwrap_or("TCP");
                if !seen.insert((number, protocol)) {
                    let message = format!(
                        "deployment {:?}, container {:?} has port {number}/{protocol} twice; server-side apply \
                         refuses that, so remove one",
                        deployment.name,
                        name(container),
                    );
                    problems.push(bundle.in_csv(Problem::warning("container-port", message)));
                }
            }
        }
    }
}

/// OLM v0 gives operators an OperatorCondition and its name; OLM v1 and this program do not, and operators that look
/// for it have crashed.
pub(super) fn operator_conditions_are_not_needed(
    bundle: &Bundle,
    _: &Facts,
    problems: &mut Vec<Problem>,
) {
    const VARIABLE: &str = "OPERATOR_CONDITION_NAME";
    let permissions = bundle
        .csv
        .permissions
        .iter()
        .chain(&bundle.csv.cluster_permissions);
    let mut rules = permissions.flat_map(|permission| permission.rules.iter().flatten());
    let by_rights = rules.any(|rule| {
        let group = rule
            .api_groups
            .iter()
            .any(|group| group == "operators.coreos.com");
        group
            && rule
                .resources
                .iter()
                .any(|resource| resource.starts_with("operatorconditions"))
    });
    let specs = bundle
        .csv
        .deployments
        .iter()
        .flat_map(|deployment| deployment.spec.values());
    let by_text = specs.into_iter().any(|value| mentions(value, VARIABLE));
    let reason = match (by_rights, by_text) {
        (_, true) => "its deployment names it",
        (true, _) => "it asks for rights on operatorconditions",
        _ => return,
    };
    let message = format!(
        "the operator seems to read {VARIABLE}, which only OLM v0 provides ({reason}); if it stops without it, give \
         it by `--config` under `env`"
    );
    problems.push(bundle.in_csv(Problem::warning("operator-condition", message)));
}

fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(here) => here.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, text)),
        _ => false,
    }
}

fn containers(deployment: &StrategyDeployment) -> impl Iterator<Item = &Value> {
    let spec = deployment.pod_spec();
    let of = move |field| spec.map_or(&[][..], |spec| list_in(spec, field));
    of("containers").iter().chain(of("initContainers"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.as_object().map_or(&[], |map| list_in(map, field))
}

fn list_in<'a>(map: &'a Map<String, Value>, field: &str) -> &'a [Value] {
    map.get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn name(value: &Value) -> &str {
    value
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
