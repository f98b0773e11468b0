//! Checks of the bundle as a whole and of the objects it brings besides the ClusterServiceVersion.

use serde_json::Value;

use super::Facts;
use crate::{
    bundle::{Bundle, KINDS},
    manifest::{Manifest, names},
    problem::Problem,
};

/// The largest request that an API server reads (kubernetes/apiserver `pkg/server/config.go`).
const REQUEST_BYTES: usize = 3 << 20;
/// The largest request that etcd takes unless it is told otherwise.
const ETCD_BYTES: usize = 3 << 19;
/// The data that a Secret or ConfigMap may hold.
const DATA_BYTES: usize = 1 << 20;
/// What all annotations of an object may hold together (apimachinery `pkg/api/validation/objectmeta.go`).
const ANNOTATION_BYTES: usize = 256 << 10;

/// `CheckPackageNameNotEmpty`.
pub(super) fn package_is_named(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    if bundle.package.is_empty() {
        let message =
            "the package name is empty; set operators.operatorframework.io.bundle.package.v1";
        problems.push(Problem::error("package", message).at("metadata/annotations.yaml"));
    }
}

/// `CheckObjectSupport`: by kind alone, as OLM does.
pub(super) fn kinds_are_supported(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for object in &bundle.others {
        if !KINDS.iter().any(|(kind, _)| *kind == object.kind()) {
            let message = format!(
                "objects of kind {} cannot be part of a bundle",
                object.kind()
            );
            problems.push(about(object, Problem::error("kind", message)));
        }
    }
}

/// OLM v0 stops an install half-way at a kind that its linters let through (`catalog/supportedresources.go`).
pub(super) fn kinds_are_installed(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for object in bundle
        .others
        .iter()
        .filter(|object| object.kind() == "PodMonitor")
    {
        let message = "OLM v0 refuses a PodMonitor when it installs; OLM v1 takes it";
        problems.push(about(object, Problem::warning("kind-v0", message)));
    }
}

/// OLM passes such objects on, and the API server refuses them.
pub(super) fn api_versions_are_given(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for object in bundle.others.iter().chain(&bundle.crds) {
        if object.api_version().is_empty() {
            let message = "has no apiVersion, so the API server will refuse it";
            problems.push(about(object, Problem::warning("api-version", message)));
        }
    }
}

/// A name that is a path, steers a terminal or is missing is refused; one that only breaks the API server's rule for
/// its kind is told, as OLM renders it.
pub(super) fn names_are_valid(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    let csv = [&bundle.csv.manifest];
    for object in bundle.others.iter().chain(&bundle.crds).chain(csv) {
        let name = object.name();
        let broken = match (object.group(), object.kind()) {
            ("rbac.authorization.k8s.io", _) => None,
            ("", "Service") => names::service_error(name),
            _ => names::subdomain_error(name),
        };
        let not_text = object.metadata("name").filter(|name| !name.is_string());
        let problem = match (names::path_segment_error(name), broken) {
            (Some(_), _) if let Some(found) = not_text => {
                let message = format!("metadata.name: expected a text, found {found}; quote it");
                Problem::error("object-name", message)
            }
            (Some(reason), _) => Problem::error("object-name", invalid(name, &reason)),
            (None, Some(reason)) => Problem::warning("object-name", invalid(name, &reason)),
            (None, None) => continue,
        };
        problems.push(about(object, problem));
    }
}

fn invalid(name: &str, reason: &str) -> String {
    format!("metadata.name {name:?} is invalid: {reason}")
}

/// What no API server stores. OLM finds out half-way through an install.
pub(super) fn sizes_are_within_limits(bundle: &Bundle, _: &Facts, problems: &mut Vec<Problem>) {
    for object in bundle.others.iter().chain(&bundle.crds) {
        if let Some(data) = data_bytes(object).filter(|bytes| *bytes > DATA_BYTES) {
            let message =
                format!("its data is {data} bytes; the API server takes at most {DATA_BYTES}");
            problems.push(about(object, Problem::error("size", message)));
        }
        let bytes = match most_json_bytes(object.object().values()) {
            few if few <= ETCD_BYTES => few,
            _ => json_bytes(object),
        };
        if bytes > REQUEST_BYTES {
            let message = format!(
                "it is {bytes} bytes as JSON; the API server takes at most {REQUEST_BYTES}"
            );
            problems.push(about(object, Problem::error("size", message)));
        } else if bytes > ETCD_BYTES {
            let message =
                format!("it is {bytes} bytes as JSON; etcd takes at most {ETCD_BYTES} by default");
            problems.push(about(object, Problem::warning("size", message)));
        }
    }
    for object in bundle
        .others
        .iter()
        .chain(&bundle.crds)
        .chain([&bundle.csv.manifest])
    {
        let annotations = object.metadata("annotations").and_then(Value::as_object);
        let text = |value: &Value| value.as_str().map_or(0, str::len);
        let bytes: usize = annotations
            .into_iter()
            .flatten()
            .map(|(key, value)| key.len() + text(value))
            .sum();
        if bytes > ANNOTATION_BYTES {
            let message = format!(
                "its annotations are {bytes} bytes; the API server takes at most {ANNOTATION_BYTES}"
            );
            problems.push(about(object, Problem::error("size", message)));
        }
    }
}

/// OLM v0 waits for ever on a cluster that is too old (`operators/olm/requirements.go`), OLM v1 does not look.
pub(super) fn kube_version_is_enough(bundle: &Bundle, facts: &Facts, problems: &mut Vec<Problem>) {
    let wanted = bundle.csv.min_kube_version.as_str();
    if wanted.is_empty() {
        return;
    }
    let Ok(least) = semver::Version::parse(wanted) else {
        let message =
            format!("spec.minKubeVersion {wanted:?} is no semantic version; OLM v0 refuses it");
        problems.push(bundle.in_csv(Problem::warning("min-kube-version", message)));
        return;
    };
    if let Some(have) = &facts.kube_version
        && have.cmp_precedence(&least).is_lt()
    {
        let message = format!(
            "needs Kubernetes {least} or later (spec.minKubeVersion); --kube-version is {have}"
        );
        problems.push(bundle.in_csv(Problem::error("min-kube-version", message)));
    }
}

fn about(object: &Manifest, problem: Problem) -> Problem {
    problem.at(&object.origin).on(object.key())
}

/// The bytes in the data of a Secret or ConfigMap; a Secret's are counted decoded.
fn data_bytes(object: &Manifest) -> Option<usize> {
    let encoded: &[&str] = match (object.group(), object.kind()) {
        ("", "ConfigMap") => &["binaryData"],
        ("", "Secret") => &["data"],
        _ => return None,
    };
    let fields = ["data", "binaryData", "stringData"].into_iter();
    let bytes = fields.map(|field| {
        let values = object
            .object()
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let texts = values.filter_map(|(_, value)| value.as_str());
        let bytes: usize = texts.map(str::len).sum();
        if encoded.contains(&field) {
            bytes / 4 * 3
        } else {
            bytes
        }
    });
    Some(bytes.sum())
}

/// More bytes than these values and their names take as compact JSON: what is under a limit by this quick count need
/// not be counted exactly.
fn most_json_bytes<'a>(values: impl Iterator<Item = &'a Value>) -> usize {
    // No character grows to more than six, and a field has quotes, a colon and a comma besides its name.
    values
        .map(|value| match value {
            Value::String(text) => 6 * text.len() + 8,
            Value::Array(items) => 8 + most_json_bytes(items.iter()),
            Value::Object(fields) => {
                let names: usize = fields.keys().map(|name| 6 * name.len() + 8).sum();
                8 + names + most_json_bytes(fields.values())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        })
        .sum()
}

/// The bytes of the object as compact JSON, counted without building the text.
fn json_bytes(object: &Manifest) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, object.object()) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}
