//! Every reference to an image in rendered objects, and where it stands: one walk, to read them and to change them.
//!
//! Knows where objects of Kubernetes' own kinds keep pod templates, and of those the containers, the init containers and
//! the variables `RELATED_IMAGE_*`, by which operators are told what they are to run (operator-sdk's convention). Whether
//! a text is a reference is judged only for those variables, because nothing else says what is in them.

use serde_json::Value;

use crate::{
    image::ImageReference,
    manifest::{Manifest, ObjectKey, Origin},
};

/// Groups and kinds, and where the pod's spec is, from the top of the object.
const POD_SPECS: &[(&str, &str, &[&str])] = &[
    ("apps", "DaemonSet", &["spec", "template", "spec"]),
    ("apps", "Deployment", &["spec", "template", "spec"]),
    ("apps", "ReplicaSet", &["spec", "template", "spec"]),
    ("apps", "StatefulSet", &["spec", "template", "spec"]),
    (
        "batch",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template", "spec"],
    ),
    ("batch", "Job", &["spec", "template", "spec"]),
    ("", "Pod", &["spec"]),
];

/// What the names of variables begin with that hold an image.
const RELATED_IMAGE: &str = "RELATED_IMAGE_";

/// What an image is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A container runs it.
    Container,
    /// An init container runs it.
    InitContainer,
    /// A variable of a container names it.
    RelatedImage,
}

/// A text that names an image, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUse {
    /// The object.
    pub object: ObjectKey,
    /// Where the object came from.
    pub origin: Origin,
    /// Where in the object, as a JSON pointer: `/spec/template/spec/containers/0/image`.
    pub pointer: String,
    /// What the image is used for.
    pub role: Role,
    /// The text as it was written; of a container it need not be a reference.
    pub text: String,
}

/// The images of an object, in a fixed order.
#[must_use]
pub fn of(manifest: &Manifest) -> Vec<ImageUse> {
    let mut found = vec![];
    let key = manifest.key();
    if let Some((path, pod_spec)) = pod_spec(manifest) {
        let mut add = |pointer: String, role, text: &str| {
            found.push(ImageUse {
                object: key.clone(),
                origin: manifest.origin.clone(),
                pointer,
                role,
                text: text.to_owned(),
            });
        };
        let pointer = format!("/{}", path.join("/"));
        containers(pod_spec, &pointer, &mut add);
    }
    found
}

/// Changes the images of an object: `to` gives the text to put in the place of one, or nothing where it stays.
pub fn rewrite(manifest: &mut Manifest, mut to: impl FnMut(&ImageUse) -> Option<String>) {
    for image in of(manifest) {
        if let Some(text) = to(&image)
            && let Some(place) = at_mut(manifest, &image.pointer)
        {
            *place = Value::String(text);
        }
    }
}

/// The spec of the pods that an object makes or is, and the way to it.
fn pod_spec(manifest: &Manifest) -> Option<(&'static [&'static str], &Value)> {
    let is_it = |(group, kind, _): &&(&str, &str, _)| {
        *group == manifest.group() && *kind == manifest.kind()
    };
    let (_, _, path) = POD_SPECS.iter().find(is_it)?;
    let (first, rest) = path.split_first()?;
    let top = manifest.object().get(*first)?;
    let pod_spec = rest
        .iter()
        .try_fold(top, |value, field| value.get(*field))?;
    Some((path, pod_spec))
}

/// Tells of the images of all containers.
fn containers(pod_spec: &Value, pointer: &str, add: &mut impl FnMut(String, Role, &str)) {
    for (field, role) in [
        ("initContainers", Role::InitContainer),
        ("containers", Role::Container),
    ] {
        for (position, container) in items(pod_spec, field) {
            let pointer = format!("{pointer}/{field}/{position}");
            if let Some(text) = text(container, "image") {
                add(format!("{pointer}/image"), role, text);
            }
            related_images(container, &pointer, add);
        }
    }
}

/// Tells of the images that variables of a container hold.
fn related_images(container: &Value, pointer: &str, add: &mut impl FnMut(String, Role, &str)) {
    for (position, variable) in items(container, "env") {
        let is_related = text(variable, "name").is_some_and(|name| name.starts_with(RELATED_IMAGE));
        if let Some(text) = text(variable, "value")
            && is_related
            && ImageReference::parse(text).is_ok()
        {
            let pointer = format!("{pointer}/env/{position}/value");
            add(pointer, Role::RelatedImage, text);
        }
    }
}

/// The items of the list under `field`, with their positions; none where there is no list.
fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

/// The text under `field`, if there is one that is not empty.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    let text = value.get(field)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The value that a JSON pointer leads to.
fn at_mut<'a>(manifest: &'a mut Manifest, pointer: &str) -> Option<&'a mut Value> {
    let pointer = pointer.strip_prefix('/')?;
    let first = pointer.split('/').next()?;
    let rest = pointer.get(first.len()..)?;
    manifest.object_mut().get_mut(first)?.pointer_mut(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(object: Value) -> Vec<(String, Role, String)> {
        let images = of(&Manifest::generated(object, "a test"));
        let part = |image: ImageUse| (image.pointer, image.role, image.text);
        images.into_iter().map(part).collect()
    }

    #[test]
    fn images_are_found_wherever_a_pod_has_them() {
        let env = json!([
            {"name": "RELATED_IMAGE_A", "value": "quay.io/org/operand:1"},
            {"name": "RELATED_IMAGE_EMPTY", "value": ""},
            {"name": "RELATED_IMAGE_NONE", "value": "Not An Image"},
            {"name": "RELATED_IMAGE_FROM", "valueFrom": {"fieldRef": {}}},
            {"name": "IMAGE", "value": "quay.io/org/other"},
        ]);
        let pod = json!({
            "initContainers": [{"image": "one", "env": env}],
            "containers": [{"name": "none"}, {"image": "$(two)"}, null],
        });
        for (api_version, kind, path) in [
            ("apps/v1", "Deployment", "/spec/template/spec"),
            (
                "batch/v1",
                "CronJob",
                "/spec/jobTemplate/spec/template/spec",
            ),
            ("v1", "Pod", "/spec"),
        ] {
            let mut object = pod.clone();
            for field in path.split('/').skip(1).collect::<Vec<_>>().iter().rev() {
                object = json!({ *field: object });
            }
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            let at = |below: &str, role, text: &str| (format!("{path}{below}"), role, text.into());
            let expected = [
                at("/initContainers/0/image", Role::InitContainer, "one"),
                at(
                    "/initContainers/0/env/0/value",
                    Role::RelatedImage,
                    "quay.io/org/operand:1",
                ),
                at("/containers/1/image", Role::Container, "$(two)"),
            ];
            assert_eq!(found(object), expected, "{kind}");
        }
    }

    #[test]
    fn other_objects_and_odd_shapes_have_none() {
        for object in [
            json!({"apiVersion": "v1", "kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"image": "a"}]}}}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": []}}),
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": {"image": "a"}}}),
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": 7}, {"env": "a"}]}}),
        ] {
            assert_eq!(found(object.clone()), [], "{object}");
        }
    }

    #[test]
    fn what_is_found_can_be_changed_in_its_place() {
        let object = |one: &str, two: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [
                {"image": one}, {"image": "stays", "env": [{"name": "RELATED_IMAGE_A", "value": two}]},
            ]}})
        };
        let mut manifest = Manifest::generated(object("a", "b"), "a test");
        rewrite(&mut manifest, |image| {
            (image.text != "stays").then(|| format!("mirror.example/{}", image.text))
        });
        let expected = object("mirror.example/a", "mirror.example/b");
        assert_eq!(manifest.into_value(), expected);
    }
}
