//! The catalogs of OLM v0: CatalogSources, each with the image that it is served from.
//!
//! Reproduces operator-lifecycle-manager `pkg/controller/operators/catalogtemplate/operator.go`: the image that a template
//! gives takes the place of `spec.image`. Where it gives none, the catalog stops; there, it keeps its old image.

use serde::Deserialize;
use serde_json::Value;

use super::{
    Asker, CatalogContent, CatalogRef, Given, Objects, SecretRef, Stopped, about,
    annotations::{self, named_by},
    field, image_template, texts,
};
use crate::manifest::{Manifest, map_at};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CatalogSourceSpec {
    source_type: String,
    image: Option<String>,
    address: Option<String>,
    priority: i64,
    #[serde(deserialize_with = "texts")]
    secrets: Vec<String>,
}

/// The CatalogSources.
pub(super) fn catalogs(objects: &Objects, given: &Given) -> Vec<CatalogRef> {
    let sources = objects.catalog_sources.iter();
    sources.map(|source| catalog(source, given)).collect()
}

fn catalog(source: &Manifest, given: &Given) -> CatalogRef {
    let spec: CatalogSourceSpec = field(source.object().get("spec"));
    let asker = Asker::from(source);
    let namespace = Some(source.namespace()).filter(|namespace| !namespace.is_empty());
    let mut manifest = source.clone();
    let image = mistyped(source).map_or_else(|| resolved_image(source, &spec, given), Err);
    let image = image.inspect(|image| {
        if let Some(image) = image {
            let spec = map_at(manifest.object_mut(), "spec");
            spec.insert("image".to_owned(), image.clone().into());
        }
    });
    let standing_in = given.catalogs.iter().find(|given| given.stands_for(source));
    let content = match (image, standing_in) {
        (Err(stopped), _) => CatalogContent::Unresolved(stopped),
        (Ok(_), Some(given)) => given.content.clone(),
        (Ok(Some(image)), None) => CatalogContent::Image(image),
        (Ok(None), None) => CatalogContent::Unreadable(without_image(source, &spec)),
    };
    let secrets = spec.secrets.into_iter();
    // OLM passes over empty names, too.
    let secrets = secrets.filter(|name| !name.is_empty());
    let secrets = secrets.map(|name| SecretRef {
        namespace: namespace.map(str::to_owned),
        name,
        named_by: named_by(&asker),
    });
    CatalogRef {
        id: source.name().to_owned(),
        namespace: namespace.map(str::to_owned),
        name: source.name().to_owned(),
        labels: None,
        priority: standing_in
            .and_then(|given| given.priority)
            .or(Some(spec.priority)),
        content,
        pull_secrets: secrets.collect(),
        manifest: Some(manifest),
    }
}

/// An annotation that was meant to be another one.
fn mistyped(source: &Manifest) -> Option<Stopped> {
    let annotations = source.metadata("annotations").and_then(Value::as_object)?;
    let known = image_template::ANNOTATION;
    let message = annotations.keys().find_map(|key| {
        if key.starts_with(annotations::PREFIX) {
            Some(format!(
                "annotation {key}: it goes on the object that asks for an install"
            ))
        } else if key.eq_ignore_ascii_case(known) && key != known {
            Some(format!(
                "there is no annotation {key}; did you mean {known}?"
            ))
        } else {
            None
        }
    })?;
    Some(about(source, "annotation", message).into())
}

/// The image that a CatalogSource is served from, its template filled in; nothing when it has none.
fn resolved_image(
    source: &Manifest,
    spec: &CatalogSourceSpec,
    given: &Given,
) -> Result<Option<String>, Stopped> {
    let annotations = source.metadata("annotations");
    let template = annotations.and_then(|annotations| annotations.get(image_template::ANNOTATION));
    let template = template.and_then(Value::as_str).unwrap_or_default();
    if spec.source_type != "grpc" {
        return Ok(None);
    }
    if template.is_empty() {
        return Ok(spec.image.clone().filter(|image| !image.is_empty()));
    }
    let image = image_template::resolve(template, given.kube_version.as_ref());
    image.map(Some).map_err(|error| {
        let cause = std::error::Error::source(&error);
        let message = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        Stopped {
            hint: error.hint(),
            ..about(source, "catalog-image-template", message).into()
        }
    })
}

fn without_image(source: &Manifest, spec: &CatalogSourceSpec) -> Stopped {
    let message = match &spec.address {
        Some(address) if spec.source_type == "grpc" => {
            format!("is served from the address {address}, which only a cluster can ask")
        }
        _ => format!(
            "has the source type {}, which is not read",
            spec.source_type
        ),
    };
    let hint = format!("name its content with --catalog {}=SOURCE", source.name());
    Stopped::because(about(source, "catalog-source", message), hint)
}
