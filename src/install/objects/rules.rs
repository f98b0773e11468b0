//! What an API server or OLM would refuse beside wrong types: fields that must be there, and values that are no choice.
//!
//! The texts in quotes are OLM's own (operator-lifecycle-manager `pkg/controller/operators/catalog/operator.go`,
//! `validateSourceType`; the rules of the CRDs in operator-controller `api/v1`).

use serde_json::{Map, Value};

use super::{fault::Fault, kinds::listed};
use crate::{images::mirror, install::image_template, manifest::names};

/// A rule about the object of one kind. Paths are dotted.
pub(super) enum Rule {
    /// A text must be there and not be empty; and what it is.
    Required(&'static str, &'static str),
    /// A text that is there must be one of these.
    OneOf(&'static str, &'static [&'static str]),
    /// A text that is there must be the name of a namespace.
    Namespace(&'static str),
    /// Anything else.
    Check(fn(&Map<String, Value>) -> Option<Fault>),
    /// Anything else that may be wrong several times.
    CheckAll(fn(&Map<String, Value>) -> Vec<Fault>),
}
use Rule::{Check, CheckAll, Namespace, OneOf, Required};

type Object = Map<String, Value>;

pub(super) const CATALOG_SOURCE: &[Rule] = &[
    Required("spec.sourceType", "grpc, configmap or internal"),
    Check(source_type),
    Check(image_or_address),
    Check(config_map),
    Check(run_as_root),
    OneOf(
        "spec.grpcPodConfig.securityContextConfig",
        &["legacy", "restricted"],
    ),
    Check(catalog_dir),
];

pub(super) const SUBSCRIPTION: &[Rule] = &[
    Required("spec.name", "the name of the package"),
    Required("spec.source", "the name of the CatalogSource"),
    Required("spec.sourceNamespace", "the namespace of the CatalogSource"),
    OneOf("spec.installPlanApproval", &["Automatic", "Manual"]),
];

pub(super) const OPERATOR_GROUP: &[Rule] = &[OneOf(
    "spec.upgradeStrategy",
    &["Default", "TechPreviewUnsafeFailForward"],
)];

pub(super) const CLUSTER_CATALOG: &[Rule] = &[
    Required("spec.source.type", "Image"),
    OneOf("spec.source.type", &["Image"]),
    Required("spec.source.image.ref", "the image of the catalog"),
    OneOf("spec.availabilityMode", &["Available", "Unavailable"]),
    Check(poll_interval),
];

pub(super) const CLUSTER_EXTENSION: &[Rule] = &[
    Required("spec.namespace", "the namespace to install into"),
    Namespace("spec.namespace"),
    Required("spec.source.sourceType", "Catalog"),
    OneOf("spec.source.sourceType", &["Catalog"]),
    Required("spec.source.catalog.packageName", "the name of the package"),
    OneOf(
        "spec.source.catalog.upgradeConstraintPolicy",
        &["CatalogProvided", "SelfCertified"],
    ),
    OneOf("spec.config.configType", &["Inline"]),
    Check(inline_config),
    Check(selector_of_deployments),
    OneOf(
        "spec.install.preflight.crdUpgradeSafety.enforcement",
        &["None", "Strict"],
    ),
];

const SOURCES: &[&str] = &["image", "git", "configMaps", "upload", "http"];

pub(super) const BUNDLE: &[Rule] = &[
    Required(
        "spec.provisionerClassName",
        "which says the format of the content",
    ),
    Required("spec.source.type", "where the content is"),
    OneOf("spec.source.type", SOURCES),
    Check(|object| bundle_image(object, "spec.source")),
];

pub(super) const BUNDLE_DEPLOYMENT_V1ALPHA1: &[Rule] = &[
    Required(
        "spec.provisionerClassName",
        "which says how the content is installed",
    ),
    Required(
        "spec.template.spec.provisionerClassName",
        "which says the format of the content",
    ),
    Required("spec.template.spec.source.type", "where the content is"),
    OneOf("spec.template.spec.source.type", SOURCES),
    Check(|object| bundle_image(object, "spec.template.spec.source")),
];

pub(super) const BUNDLE_DEPLOYMENT_V1ALPHA2: &[Rule] = &[
    Required(
        "spec.provisionerClassName",
        "which says the format of the content",
    ),
    Namespace("spec.installNamespace"),
    Required("spec.source.type", "where the content is"),
    OneOf("spec.source.type", &["image", "git", "configMaps", "http"]),
    Check(|object| bundle_image(object, "spec.source")),
];

pub(super) const MIRRORS: &[Rule] = &[CheckAll(mirrors)];

/// What a rule has against an object. Fields of a wrong type are told elsewhere.
pub(super) fn broken(rule: &Rule, object: &Object) -> Vec<Fault> {
    let one = match rule {
        Required(path, what) => required(path, what, object),
        OneOf(path, choices) => text(object, path)
            .filter(|found| !choices.contains(found))
            .map(|found| Fault::error("field-value", path, no_choice(path, found, choices))),
        Namespace(path) => text(object, path).and_then(|found| {
            let reason = names::label_error(found)?;
            let message = format!(
                "`{path}` is {}, which is no namespace: {reason}",
                said(found)
            );
            Some(Fault::error("field-value", path, message))
        }),
        Check(check) => check(object),
        CheckAll(check) => return check(object),
    };
    one.into_iter().collect()
}

fn required(path: &str, what: &str, object: &Object) -> Option<Fault> {
    let how = match get(object, path) {
        None | Some(Value::Null) => "missing",
        Some(Value::String(text)) if text.is_empty() => "empty",
        Some(_) => return None,
    };
    let message = format!("`{path}` is {how}: {what}");
    Some(Fault::error("required-field", path, message))
}

fn no_choice(path: &str, found: &str, choices: &[&str]) -> String {
    let allowed = listed(choices.iter().copied(), "or");
    format!("`{path}` is {}, it must be {allowed}", said(found))
}

/// A text in quotes, cut if it is long.
pub(super) fn said(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    Value::from(short).to_string()
}

fn source_type(object: &Object) -> Option<Fault> {
    let path = "spec.sourceType";
    let choices = ["grpc", "configmap", "internal"];
    let found = text(object, path).filter(|found| !choices.contains(found))?;
    let message = format!(
        "unknown sourcetype: {}: {}",
        said(found),
        no_choice(path, found, &choices)
    );
    Some(Fault::error("field-value", path, message))
}

/// A template gives the image once the version of Kubernetes is known.
fn image_or_address(object: &Object) -> Option<Fault> {
    let template = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(|annotations| annotations.get(image_template::ANNOTATION))
        .filter(|template| template.as_str() != Some(""));
    let is_grpc = text(object, "spec.sourceType") == Some("grpc");
    let given = ["spec.image", "spec.address"]
        .iter()
        .any(|path| is_given(object, path));
    (is_grpc && !given && template.is_none()).then(|| {
        let message =
            "image and address unset: at least one must be set for sourcetype: grpc (`spec.image` or `spec.address`)";
        Fault::error("required-field", "spec", message)
    })
}

fn config_map(object: &Object) -> Option<Fault> {
    let found = text(object, "spec.sourceType")?;
    let wants = matches!(found, "configmap" | "internal");
    (wants && !is_given(object, "spec.configMap")).then(|| {
        let message =
            format!("configmap name unset: must be set for sourcetype: {found} (`spec.configMap`)");
        Fault::error("required-field", "spec", message)
    })
}

/// OpenShift's CRD has it, and no controller reads it.
fn run_as_root(object: &Object) -> Option<Fault> {
    let path = "spec.runAsRoot";
    let found = get(object, path)?;
    if !found.is_boolean() && !found.is_null() {
        let message = format!("{path}: expected a boolean");
        return Some(Fault::error("type", path, message));
    }
    let message = "`spec.runAsRoot` is read by no version of OLM, use `spec.grpcPodConfig.securityContextConfig: legacy`";
    Some(Fault::warning("ignored-field", path, message))
}

fn catalog_dir(object: &Object) -> Option<Fault> {
    let block = "spec.grpcPodConfig.extractContent";
    get(object, block)?.as_object()?;
    required(
        "spec.grpcPodConfig.extractContent.catalogDir",
        "where the catalog is in its image",
        object,
    )
}

fn poll_interval(object: &Object) -> Option<Fault> {
    let path = "spec.source.image.pollIntervalMinutes";
    let minutes = get(object, path)?.as_i64()?;
    let message = if minutes < 1 {
        format!("`{path}` is {minutes}, it must be at least 1")
    } else if text(object, "spec.source.image.ref")?.contains('@') {
        "cannot specify pollIntervalMinutes while using digest-based image".to_owned()
    } else {
        return None;
    };
    Some(Fault::error("field-value", path, message))
}

fn inline_config(object: &Object) -> Option<Fault> {
    let config = get(object, "spec.config")?.as_object()?;
    let message = match (config.get("configType"), config.get("inline")) {
        (None | Some(Value::Null), _) => "`spec.config.configType` is missing: Inline",
        (_, None | Some(Value::Null)) => {
            "inline is required when configType is Inline (`spec.config.inline`)"
        }
        (_, Some(Value::Object(inline))) if inline.is_empty() => {
            "`spec.config.inline` is empty, take it out or set `watchNamespace` or `deploymentConfig`"
        }
        _ => return None,
    };
    Some(Fault::error("required-field", "spec.config", message))
}

/// OLM v0 has it in its type, and OLM v1 took it out.
fn selector_of_deployments(object: &Object) -> Option<Fault> {
    let path = "spec.config.inline.deploymentConfig.selector";
    get(object, path)?;
    let message = format!("there is no field `{path}`");
    Some(Fault::error("unknown-field", path, message))
}

fn bundle_image(object: &Object, source: &str) -> Option<Fault> {
    let is_image = text(object, &format!("{source}.type")) == Some("image");
    let path = format!("{source}.image.ref");
    (is_image && !is_given(object, &path)).then(|| {
        let message = format!("`{path}` is missing: the image of the bundle");
        Fault::error("required-field", &path, message)
    })
}

/// What nodes would not take. Unknown fields and wrong types are told elsewhere.
fn mirrors(object: &Object) -> Vec<Fault> {
    let faults = mirror::faults(object).into_iter();
    let here = faults.filter(|fault| [mirror::RULE, "required-field"].contains(&fault.rule));
    here.map(|fault| Fault::error(fault.rule, &fault.path, fault.message))
        .collect()
}

/// Whether a text is there that is not empty. What is of a wrong type is told elsewhere.
fn is_given(object: &Object, path: &str) -> bool {
    match get(object, path) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// A text that is there and not empty.
fn text<'o>(object: &'o Object, path: &str) -> Option<&'o str> {
    let text = get(object, path)?.as_str();
    text.filter(|text| !text.is_empty())
}

fn get<'o>(object: &'o Object, path: &str) -> Option<&'o Value> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut found = object.get(first)?;
    for key in rest.split('.').filter(|key| !key.is_empty()) {
        found = found.get(key)?;
    }
    Some(found)
}
