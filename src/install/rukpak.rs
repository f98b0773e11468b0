//! Installs of RukPak: Bundle and BundleDeployment of `core.rukpak.io`, whose content is a bundle in an image.
//!
//! Follows rukpak `pkg/provisioner` (a provisioner's class says the format) and `pkg/source`. What RukPak keeps apart,
//! content and its install, is one here: nothing is put anywhere but to be installed.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Asker, BundleSource, Content, Found, Given, Install, Objects, SecretRef, Stopped, about,
    annotations::{Annotations, named_by},
    field, id_of, or_default, texts,
};
use crate::{manifest::Manifest, problem::Problem, render::overrides::Overrides};

const RULE: &str = "rukpak";

/// The class that installs registry+v1 content.
const REGISTRY: &str = "core-rukpak-io-registry";

/// Other classes, and the format of what they install.
const OTHER_FORMATS: [(&str, &str); 2] = [
    ("core-rukpak-io-plain", "plain+v0"),
    ("core-rukpak-io-helm", "helm+v3"),
];

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "or_default")]
    provisioner_class_name: String,
    #[serde(deserialize_with = "or_default")]
    source: Source,
    #[serde(deserialize_with = "or_default")]
    install_namespace: String,
    #[serde(deserialize_with = "or_default")]
    template: Template,
    #[serde(deserialize_with = "or_default")]
    config: Map<String, Value>,
    #[serde(deserialize_with = "texts")]
    watch_namespaces: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Template {
    spec: Option<Box<Spec>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    #[serde(deserialize_with = "or_default")]
    r#type: String,
    #[serde(deserialize_with = "or_default")]
    image: Image,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Image {
    #[serde(deserialize_with = "or_default")]
    r#ref: String,
    #[serde(rename = "pullSecret", deserialize_with = "or_default")]
    pull_secret: String,
}

/// The installs that Bundles and BundleDeployments ask for.
pub(super) fn installs(objects: &Objects, given: &Given) -> Vec<Found> {
    let all = objects.bundles.iter().chain(&objects.bundle_deployments);
    let found = all.map(|object| (id_of(object), install(object, given)));
    found.collect()
}

fn install(object: &Manifest, given: &Given) -> Result<Install, Stopped> {
    let annotations = Annotations::of(object)?;
    let spec: Spec = field(object.object().get("spec"));
    let install_namespace = Some(spec.install_namespace.clone());
    let watch_namespaces = spec.watch_namespaces.clone();
    let has_config = !spec.config.is_empty();
    // Up to v1alpha1 a deployment holds a whole Bundle, whose class is that of the format.
    let spec = spec.template.spec.map_or(
        Spec {
            template: Template::default(),
            ..spec
        },
        |inner| *inner,
    );
    check_content(object, &spec)?;
    let mut notes = vec![];
    if has_config {
        let message = "spec.config does not count for registry+v1 content, as for RukPak";
        let note = Problem::warning(RULE, message);
        notes.push(note.at(&object.origin).on(object.key()));
    }
    let asker = Asker::from(object);
    let secret = Some(spec.source.image.pull_secret).filter(|name| !name.is_empty());
    let secret = secret.map(|name| SecretRef {
        namespace: None,
        name,
        named_by: named_by(&asker),
    });
    Ok(Install {
        id: id_of(object),
        object: Some(asker),
        namespace: given
            .namespace
            .clone()
            .or(install_namespace.filter(|name| !name.is_empty())),
        watched: [&given.watched, &annotations.watched, &watch_namespaces]
            .into_iter()
            .find(|watched| !watched.is_empty())
            .cloned()
            .unwrap_or_default(),
        content: Content::Bundle(BundleSource::Image(spec.source.image.r#ref)),
        overrides: Overrides::default(),
        certificates: annotations.certificates,
        pull_secrets: secret.into_iter().chain(annotations.pull_secrets).collect(),
        also_service_accounts: annotations.also_service_accounts,
        notes,
    })
}

/// Refuses content that is not read, by what it is.
fn check_content(object: &Manifest, spec: &Spec) -> Result<(), Stopped> {
    let class = spec.provisioner_class_name.as_str();
    if class != REGISTRY {
        let format = OTHER_FORMATS.iter().find(|(other, _)| *other == class);
        let asked = match format {
            Some((_, format)) => format!("{format} content ({class})"),
            None => format!("content of the provisioner class {class:?}"),
        };
        let message = format!("asks for {asked}; what is read is registry+v1 ({REGISTRY})");
        return Err(about(object, RULE, message).into());
    }
    if spec.source.r#type != "image" {
        let message = format!(
            "takes its content from a source of type {:?}; what is read is `image`",
            spec.source.r#type
        );
        let hint = "fetch the content, and render the folder: kubectl olm render DIR";
        return Err(Stopped::because(about(object, RULE, message), hint));
    }
    Ok(())
}
