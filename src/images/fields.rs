//! Which fields of which kinds are there for images.
//!
//! Pods of Kubernetes' own kinds and of ClusterServiceVersions, with the variables `RELATED_IMAGE_*`, by which operators
//! are told what they are to run (operator-sdk's convention); `relatedImages`; the images of catalogs. Whether a text is
//! a reference, or holds some, is judged only for variables and arguments, because nothing else says what is in them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Role, free_text};
use crate::{
    image::{ImageReference, split_scheme},
    manifest::Manifest,
};

/// Groups and kinds, and where the pod's spec is.
const POD_SPECS: &[(&str, &str, &str)] = &[
    ("apps", "DaemonSet", "/spec/template/spec"),
    ("apps", "Deployment", "/spec/template/spec"),
    ("apps", "ReplicaSet", "/spec/template/spec"),
    ("apps", "StatefulSet", "/spec/template/spec"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template/spec"),
    ("batch", "Job", "/spec/template/spec"),
    ("", "Pod", "/spec"),
];

/// Groups and kinds of catalogs, and where the image is that they are served from.
const CATALOGS: &[(&str, &str, &str)] = &[
    ("operators.coreos.com", "CatalogSource", "/spec/image"),
    (
        "olm.operatorframework.io",
        "ClusterCatalog",
        "/spec/source/image/ref",
    ),
];

/// The kind whose deployments have pods, and that has `relatedImages`. Its group is not asked for, as bundles are told by
/// it alone.
pub(super) const CLUSTER_SERVICE_VERSION: &str = "ClusterServiceVersion";
/// What the names of variables begin with that hold an image.
pub(super) const RELATED_IMAGE: &str = "RELATED_IMAGE_";

/// An image in a text.
pub(super) struct Field<'a> {
    /// Where it stands.
    pub(super) pointer: String,
    pub(super) role: Role,
    /// What the image is called there.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// The byte of the string at which it begins.
    pub(super) start: usize,
}

/// The texts in fields for images, pod by pod: init containers, containers, with the variables of each, and volumes.
pub(super) fn of(manifest: &Manifest) -> Vec<Field<'_>> {
    let mut found = vec![];
    for (pointer, pod_spec) in pod_specs(manifest) {
        containers_of(pod_spec, &pointer, &mut found);
        volumes(pod_spec, &pointer, &mut found);
    }
    if manifest.kind() == CLUSTER_SERVICE_VERSION {
        related_images(manifest, &mut found);
    }
    for (group, kind, pointer) in CATALOGS {
        if *group == manifest.group()
            && *kind == manifest.kind()
            && let Some(text) = at(manifest, pointer).and_then(as_text)
        {
            found.push(Field {
                pointer: (*pointer).to_owned(),
                role: Role::Catalog,
                name: "",
                text,
                start: 0,
            });
        }
    }
    found
}

/// All containers of an object's pods, by their JSON pointers, and which kind of container each is.
pub(super) fn containers(manifest: &Manifest) -> BTreeMap<String, (Role, &Value)> {
    let mut containers = BTreeMap::new();
    for (pointer, pod_spec) in pod_specs(manifest) {
        for (field, role) in CONTAINERS {
            for (position, container) in items(pod_spec, field) {
                containers.insert(format!("{pointer}/{field}/{position}"), (role, container));
            }
        }
    }
    containers
}

/// What a text at a JSON pointer is to the container that it belongs to, and what it is called there.
pub(super) fn role_in<'a>(
    containers: &BTreeMap<String, (Role, &'a Value)>,
    pointer: &str,
) -> (Role, &'a str) {
    if let Some((list, _)) = pointer.rsplit_once('/')
        && let Some((container, "args" | "command")) = list.rsplit_once('/')
        && containers.contains_key(container)
    {
        return (Role::Argument, "");
    }
    if let Some(variable) = pointer.strip_suffix("/value")
        && let Some((list, position)) = variable.rsplit_once('/')
        && let Some((_, container)) = list
            .strip_suffix("/env")
            .and_then(|container| containers.get(container))
    {
        let position = position.parse::<usize>().unwrap_or(usize::MAX);
        let variable = container.get("env").and_then(|env| env.get(position));
        return (Role::Variable, variable.map_or("", name));
    }
    (Role::Text, "")
}

/// The fields of a pod's spec that hold containers.
const CONTAINERS: [(&str, Role); 2] = [
    ("initContainers", Role::InitContainer),
    ("containers", Role::Container),
];

/// The specs of the pods that an object makes or is, with their JSON pointers.
fn pod_specs(manifest: &Manifest) -> Vec<(String, &Value)> {
    if manifest.kind() == CLUSTER_SERVICE_VERSION {
        let Some(strategy) = at(manifest, "/spec/install/spec") else {
            return vec![];
        };
        let deployments = items(strategy, "deployments");
        return deployments
            .filter_map(|(position, deployment)| {
                let pod_spec = deployment.pointer("/spec/template/spec")?;
                let pointer =
                    format!("/spec/install/spec/deployments/{position}/spec/template/spec");
                Some((pointer, pod_spec))
            })
            .collect();
    }
    let is_it = |(group, kind, _): &&(&str, &str, _)| {
        *group == manifest.group() && *kind == manifest.kind()
    };
    let place = POD_SPECS.iter().find(is_it);
    let pod_spec = place.and_then(|(_, _, pointer)| {
        let pod_spec = at(manifest, pointer)?;
        Some(((*pointer).to_owned(), pod_spec))
    });
    pod_spec.into_iter().collect()
}

/// Adds the images of all containers.
fn containers_of<'a>(pod_spec: &'a Value, pointer: &str, found: &mut Vec<Field<'a>>) {
    for (field, role) in CONTAINERS {
        for (position, container) in items(pod_spec, field) {
            let pointer = format!("{pointer}/{field}/{position}");
            if let Some(text) = text(container, "image") {
                found.push(Field {
                    pointer: format!("{pointer}/image"),
                    role,
                    name: name(container),
                    text,
                    start: 0,
                });
            }
            arguments(container, &pointer, found);
            variables(container, &pointer, found);
        }
    }
}

/// Adds the images in the command and the arguments of a container.
fn arguments<'a>(container: &'a Value, pointer: &str, found: &mut Vec<Field<'a>>) {
    for field in ["command", "args"] {
        for (position, argument) in items(container, field) {
            let pointer = format!("{pointer}/{field}/{position}");
            let roles = (Role::Argument, Role::ArgumentPart);
            if let Some(text) = as_text(argument) {
                judged(text, roles, ("", &pointer), found);
            }
        }
    }
}

/// Adds the images that variables of a container hold.
fn variables<'a>(container: &'a Value, pointer: &str, found: &mut Vec<Field<'a>>) {
    for (position, variable) in items(container, "env") {
        let Some(text) = text(variable, "value") else {
            continue;
        };
        let name = name(variable);
        let pointer = format!("{pointer}/env/{position}/value");
        let (scheme, image) = split_scheme(text);
        if name.starts_with(RELATED_IMAGE) && ImageReference::parse(image).is_ok() {
            found.push(Field {
                pointer,
                role: Role::RelatedImageVariable,
                name,
                text: image,
                start: scheme.len(),
            });
        } else {
            let roles = (Role::Variable, Role::VariablePart);
            judged(text, roles, (name, &pointer), found);
        }
    }
}

/// Adds a text that looks like an image, or the images in it; `roles` are for these two.
fn judged<'a>(
    text: &'a str,
    roles: (Role, Role),
    (name, pointer): (&'a str, &str),
    found: &mut Vec<Field<'a>>,
) {
    let (scheme, image) = split_scheme(text);
    let mut add = |role, text: &'a str, start| {
        if ImageReference::parse(text).is_ok() {
            found.push(Field {
                pointer: pointer.to_owned(),
                role,
                name,
                text,
                start,
            });
        }
    };
    if free_text::is_reference(image) {
        return add(roles.0, image, scheme.len());
    }
    for span in free_text::references(text) {
        // What follows a slash is the rest of a path: `--volume=/data.d/cache:ro`.
        let before = text.get(..span.start).unwrap_or_default();
        if !before.ends_with('/') {
            add(
                roles.1,
                text.get(span.clone()).unwrap_or_default(),
                span.start,
            );
        }
    }
}

/// Adds the images that are mounted as volumes.
fn volumes<'a>(pod_spec: &'a Value, pointer: &str, found: &mut Vec<Field<'a>>) {
    for (position, volume) in items(pod_spec, "volumes") {
        let image = volume.get("image");
        if let Some(text) = image.and_then(|image| text(image, "reference")) {
            found.push(Field {
                pointer: format!("{pointer}/volumes/{position}/image/reference"),
                role: Role::ImageVolume,
                name: name(volume),
                text,
                start: 0,
            });
        }
    }
}

/// Adds the images that a ClusterServiceVersion lists.
fn related_images<'a>(manifest: &'a Manifest, found: &mut Vec<Field<'a>>) {
    let Some(spec) = manifest.object().get("spec") else {
        return;
    };
    for (position, entry) in items(spec, "relatedImages") {
        if let Some(text) = text(entry, "image") {
            let (scheme, text) = split_scheme(text);
            found.push(Field {
                pointer: format!("/spec/relatedImages/{position}/image"),
                role: Role::RelatedImage,
                name: name(entry),
                text,
                start: scheme.len(),
            });
        }
    }
}

/// The value that a JSON pointer without escapes leads to.
fn at<'a>(manifest: &'a Manifest, pointer: &str) -> Option<&'a Value> {
    let pointer = pointer.strip_prefix('/')?;
    let first = pointer.split('/').next()?;
    let rest = pointer.get(first.len()..)?;
    manifest.object().get(first)?.pointer(rest)
}

/// The items of the list under `field`, with their positions; none where there is no list.
pub(super) fn items<'a>(
    value: &'a Value,
    field: &str,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

/// The `name` of an entry of a list, empty when there is none.
fn name(value: &Value) -> &str {
    text(value, "name").unwrap_or_default()
}

/// The text under `field`, if there is one that is not empty.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    as_text(value.get(field)?)
}

/// The text that a value is, if it is not empty.
fn as_text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
