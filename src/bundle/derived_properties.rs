//! The properties of a bundle, from everything that it says of itself: what the resolver of OLM v0 knows of it.
//!
//! Reproduces operator-registry `pkg/registry/parse.go` (`derivedProperties`) and `registry_to_model.go`
//! (`ObjectsAndPropertiesFromBundle`). What holds manifests is left out, as OLM leaves it out of the annotation of a
//! ClusterServiceVersion. No property stands twice, where opm prints one twice that is both listed and derived.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Bundle, properties::ANNOTATION};

const PACKAGE: &str = "olm.package";
const GVK: &str = "olm.gvk";
/// The types that hold manifests.
const MANIFESTS: [&str; 2] = ["olm.bundle.object", "olm.csv.metadata"];

/// Group, kind and version of an API.
type Api = (String, String, String);

/// Type and value of each property, sorted by the type and the text of the value.
pub(super) fn of(bundle: &Bundle) -> Vec<(String, Value)> {
    let annotation = annotated(bundle);
    let annotated = annotation.iter().filter_map(pair);
    let listed: Vec<_> = bundle.properties.iter().filter_map(pair).collect();
    let needed: Vec<_> = bundle.dependencies.iter().filter_map(pair).collect();
    let said = || listed.iter().copied().chain(annotated.clone());

    let mut properties = vec![package(bundle, &listed, annotated.clone())];
    let apis = said().filter(|(kind, _)| *kind == GVK);
    let provided = apis.map(|(_, value)| api(value)).chain(provided(bundle));
    properties.extend(as_properties(GVK, provided));
    let apis = needed.iter().filter(|(kind, _)| *kind == GVK);
    let required = apis.map(|(_, value)| api(value)).chain(required(bundle));
    properties.extend(as_properties("olm.gvk.required", required));
    let packages = needed.iter().filter(|(kind, _)| *kind == PACKAGE);
    properties.extend(packages.map(|(_, value)| {
        let (name, range) = (text(value, "packageName"), text(value, "version"));
        let value = json!({"packageName": name, "versionRange": range});
        ("olm.package.required".to_owned(), value)
    }));
    let others = said()
        .chain(needed.iter().copied())
        .filter(|(kind, _)| ![PACKAGE, GVK].contains(kind) && !MANIFESTS.contains(kind));
    properties.extend(others.map(|(kind, value)| (kind.to_owned(), value.clone())));
    properties.sort_by_cached_key(|(kind, value)| (kind.clone(), value.to_string()));
    properties.dedup();
    properties
}

/// The properties of the annotation. What is wrong with it was told when the bundle was read.
fn annotated(bundle: &Bundle) -> Vec<Value> {
    let annotations = bundle.csv.manifest.metadata("annotations");
    let text = annotations.and_then(|all| all.get(ANNOTATION)?.as_str());
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Type and value of a property or dependency that has both.
fn pair(property: &Value) -> Option<(&str, &Value)> {
    let kind = property.get("type")?.as_str()?;
    let value = property.get("value").filter(|value| !value.is_null())?;
    Some((kind, value)).filter(|_| !kind.is_empty())
}

/// Package and version. The annotation counts more than `metadata/annotations.yaml`, and that more than
/// `metadata/properties.yaml`: opm takes the last that it comes by, in this order.
fn package<'a>(
    bundle: &Bundle,
    listed: &[(&'a str, &'a Value)],
    annotated: impl Iterator<Item = (&'a str, &'a Value)>,
) -> (String, Value) {
    let is_package = |(kind, _): &(&str, &Value)| *kind == PACKAGE;
    let spec = bundle.csv.manifest.object().get("spec");
    let of_csv = |field: &str| spec.map_or("", |spec| text(spec, field));
    let derived = json!({
        "packageName": bundle.package,
        "version": of_csv("version"),
        "release": of_csv("release"),
    });
    let of_file = listed.iter().copied().rfind(is_package);
    let chosen = match (annotated.filter(is_package).last(), of_file) {
        (Some((_, value)), _) => value,
        (None, Some((_, value))) if bundle.package.is_empty() => value,
        _ => &derived,
    };
    let mut value = json!({
        "packageName": text(chosen, "packageName"),
        "version": text(chosen, "version"),
    });
    let release = text(chosen, "release");
    if !release.is_empty() {
        value["release"] = release.into();
    }
    (PACKAGE.to_owned(), value)
}

/// Every version of the bundle's definitions, and the aggregated APIs that it serves.
fn provided(bundle: &Bundle) -> Vec<Api> {
    let mut apis = vec![];
    for crd in &bundle.crds {
        let Some(spec) = crd.object().get("spec") else {
            continue;
        };
        let kind = spec.get("names").map_or("", |names| text(names, "kind"));
        for version in items(spec.get("versions")) {
            let (group, version) = (text(spec, "group"), text(version, "name"));
            apis.push((group.to_owned(), kind.to_owned(), version.to_owned()));
        }
    }
    apis.extend(described(bundle, "apiservicedefinitions", "owned").map(api));
    apis
}

/// The APIs of others that the ClusterServiceVersion names. A definition's group is what follows its plural.
fn required(bundle: &Bundle) -> Vec<Api> {
    let crds = described(bundle, "customresourcedefinitions", "required");
    let crds = crds.filter_map(|crd| {
        let (_, group) = text(crd, "name").split_once('.')?;
        let (kind, version) = (text(crd, "kind"), text(crd, "version"));
        Some((group.to_owned(), kind.to_owned(), version.to_owned()))
    });
    let served = described(bundle, "apiservicedefinitions", "required");
    crds.chain(served.map(api)).collect()
}

fn described<'a>(
    bundle: &'a Bundle,
    definitions: &str,
    whose: &str,
) -> impl Iterator<Item = &'a Value> {
    let spec = bundle.csv.manifest.object().get("spec");
    items(spec.and_then(|spec| spec.get(definitions)?.get(whose)))
}

fn as_properties(kind: &str, apis: impl Iterator<Item = Api>) -> Vec<(String, Value)> {
    let apis: BTreeSet<Api> = apis.collect();
    let property = |(group, api_kind, version)| {
        let value = json!({"group": group, "kind": api_kind, "version": version});
        (kind.to_owned(), value)
    };
    apis.into_iter().map(property).collect()
}

fn api(value: &Value) -> Api {
    let part = |field: &str| text(value, field).to_owned();
    (part("group"), part("kind"), part("version"))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let value = value.get(field).and_then(Value::as_str);
    value.unwrap_or_default()
}
