//! The operator's Deployments (`BundleCSVDeploymentGenerator`).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Rendering;
use crate::{
    manifest::{Manifest, map_at},
    problem::Problem,
    render::{
        certificates::{Certificate, volumes},
        containers::{name, pod_spec, template},
    },
};

pub(super) fn generate(rendering: &mut Rendering<'_>) {
    let csv = rendering.csv;
    for deployment in &csv.deployments {
        let mut spec = deployment.spec.clone();
        annotate_template(rendering, &mut spec);
        spec.insert("revisionHistoryLimit".to_owned(), 1.into());
        if csv.serves_tls(&deployment.name) {
            let certificate = rendering.certificate(&deployment.name);
            serve(rendering, &mut spec, &certificate);
        }
        let mut manifest = Manifest::generated(
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": deployment.name, "namespace": rendering.namespace()},
                "spec": spec,
            }),
            "spec.install.spec.deployments",
        );
        if !deployment.label.is_empty() {
            manifest
                .metadata_mut()
                .insert("labels".to_owned(), json!(deployment.label));
        }
        set_each_variable_once(&mut manifest, &mut rendering.problems);
        rendering.options.overrides.apply(&mut manifest);
        rendering.manifests.push(manifest);
    }
}

/// The annotations of the ClusterServiceVersion go into the pod template, below its own, and what is watched on top.
fn annotate_template(rendering: &Rendering<'_>, spec: &mut Map<String, Value>) {
    let annotations = map_at(map_at(template(spec), "metadata"), "annotations");
    for (key, value) in &rendering.csv.annotations {
        annotations
            .entry(key)
            .or_insert_with(|| value.as_str().into());
    }
    annotations.insert(
        "olm.targetNamespaces".to_owned(),
        rendering.targets.join(",").into(),
    );
    annotations.insert(
        "olm.operatorNamespace".to_owned(),
        rendering.namespace().into(),
    );
}

/// The pods get their certificate, and the hash of its CA as OLM v0 calls it.
fn serve(rendering: &Rendering<'_>, spec: &mut Map<String, Value>, certificate: &Certificate) {
    let provider = &rendering.options.certificates;
    if let Some(secret) = provider.secret(certificate) {
        volumes::mount(pod_spec(spec), &secret);
    }
    if let Some(hash) = provider.authority_hash(certificate) {
        let annotations = map_at(map_at(template(spec), "metadata"), "annotations");
        annotations.insert("olmcahash".to_owned(), hash.into());
    }
}

/// Server-side apply answers the same variable twice with a permanent error 500, and OLM v0 makes an empty entry of
/// the second. A container sees the last one, so that one stays.
fn set_each_variable_once(manifest: &mut Manifest, problems: &mut Vec<Problem>) {
    let key = manifest.key();
    let spec = pod_spec(map_at(manifest.object_mut(), "spec"));
    for field in ["containers", "initContainers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let container_name = name(container).to_owned();
            let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) else {
                continue;
            };
            let mut seen = BTreeSet::new();
            let mut kept: Vec<Value> = vec![];
            for variable in variables.drain(..).rev() {
                if seen.insert(name(&variable).to_owned()) {
                    kept.push(variable);
                    continue;
                }
                let message = format!(
                    "container {container_name:?} sets the variable {:?} twice; the last one counts",
                    name(&variable),
                );
                problems.push(Problem::warning("duplicate-env", message).on(&key));
            }
            kept.reverse();
            *variables = kept;
        }
    }
}
