//! The certificate's Secret as volumes of a Deployment.
//!
//! Reproduces operator-controller `rukpak/render/registryv1/generators/generators.go`,
//! `ensureCorrectDeploymentCertVolumes`: both places where operators have always looked, in every container, whatever
//! the bundle had there before.

use serde_json::{Map, Value, json};

use crate::{
    manifest::list_at,
    render::containers::{containers, name},
};

struct Volume {
    name: &'static str,
    mount_path: &'static str,
    certificate: &'static str,
    key: &'static str,
}

const VOLUMES: [Volume; 2] = [
    Volume {
        name: "webhook-cert",
        mount_path: "/tmp/k8s-webhook-server/serving-certs",
        certificate: "tls.crt",
        key: "tls.key",
    },
    Volume {
        name: "apiservice-cert",
        mount_path: "/apiserver.local.config/certificates",
        certificate: "apiserver.crt",
        key: "apiserver.key",
    },
];

/// Mounts the Secret into every container of a pod's spec; init containers are left alone.
pub(in crate::render) fn mount(pod_spec: &mut Map<String, Value>, secret: &str) {
    let replaced = replaced_volumes(pod_spec);
    let for_init: Vec<_> = mounts(pod_spec.get("initContainers"))
        .map(|mount| name(mount).to_owned())
        .collect();
    list_at(pod_spec, "volumes").retain(|volume| {
        let is_ours = VOLUMES.iter().any(|ours| ours.name == name(volume));
        let is_named = |names: &[String]| names.iter().any(|old| old == name(volume));
        !is_named(&replaced) || !is_ours && is_named(&for_init)
    });
    list_at(pod_spec, "volumes").extend(VOLUMES.iter().map(|volume| {
        let items = json!([
            {"key": "tls.crt", "path": volume.certificate},
            {"key": "tls.key", "path": volume.key},
        ]);
        json!({"name": volume.name, "secret": {"secretName": secret, "items": items}})
    }));
    for container in containers(pod_spec) {
        let mounts = list_at(container, "volumeMounts");
        mounts.retain(|mount| !replaced.iter().any(|old| old == name(mount)));
        let ours = VOLUMES.iter();
        mounts.extend(
            ours.map(|volume| json!({"name": volume.name, "mountPath": volume.mount_path})),
        );
    }
}

/// Volumes with our names, and those that some container mounts where ours go. Upstream takes the latter out also where
/// an init container mounts them too, and leaves a pod that no API server accepts; here such a volume stays.
fn replaced_volumes(pod_spec: &Map<String, Value>) -> Vec<String> {
    let ours = VOLUMES.iter().map(|volume| volume.name);
    let in_the_way = mounts(pod_spec.get("containers")).filter(|mount| {
        let path = mount.get("mountPath").and_then(Value::as_str);
        VOLUMES.iter().any(|volume| Some(volume.mount_path) == path)
    });
    ours.chain(in_the_way.map(name))
        .map(str::to_owned)
        .collect()
}

/// The mounts of all containers of a list.
fn mounts(containers: Option<&Value>) -> impl Iterator<Item = &Value> {
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    containers.flat_map(|container| {
        let mounts = container.get("volumeMounts").and_then(Value::as_array);
        mounts.into_iter().flatten()
    })
}
