//! A registry+v1 bundle: from its files to its objects, and whether OLM would take it.
//!
//! Reproduces operator-controller `rukpak/bundle/source/source.go` (`FromFS`, `GetBundle`). It knows nothing of where
//! the files came from and nothing of what is made of the objects.

mod annotations;
pub mod check;
pub mod cluster_service_version;
mod custom_resource_definition;
mod dependencies;
mod derived_properties;
mod properties;

use std::sync::Arc;

pub use cluster_service_version::ClusterServiceVersion;
use serde_json::Value;

use self::annotations::Annotations;
use crate::{
    files::FileTree,
    limits::Limits,
    manifest::{
        Manifest, Origin,
        conform::{Findings, conform},
        go_types, yaml,
    },
    problem::{Place, Problem},
};

/// The folders that make a bundle.
pub const FOLDERS: [&str; 2] = ["manifests", "metadata"];

const MANIFESTS: &str = FOLDERS[0];

/// The annotation by which a ClusterServiceVersion suggests its namespace.
const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";

/// The kinds that a bundle may bring besides its ClusterServiceVersion, and whether their objects live in a namespace
/// (operator-registry `pkg/lib/bundle/supported_resources.go`). Upstream calls VerticalPodAutoscaler cluster-scoped;
/// it is not, and without a namespace it would land wherever the kubeconfig points.
pub const KINDS: &[(&str, bool)] = &[
    ("ClusterRole", false),
    ("ClusterRoleBinding", false),
    ("ConfigMap", true),
    ("ConsoleCLIDownload", false),
    ("ConsoleLink", false),
    ("ConsolePlugin", false),
    ("ConsoleQuickStart", false),
    ("ConsoleYAMLSample", false),
    ("NetworkPolicy", true),
    ("PodDisruptionBudget", true),
    ("PodMonitor", true),
    ("PriorityClass", false),
    ("PrometheusRule", true),
    ("Role", true),
    ("RoleBinding", true),
    ("Secret", true),
    ("Service", true),
    ("ServiceAccount", true),
    ("ServiceMonitor", true),
    ("VerticalPodAutoscaler", true),
];

/// The only version that a ClusterServiceVersion has ever had.
pub const CSV_API_VERSION: &str = "operators.coreos.com/v1alpha1";

/// No name that Kubernetes takes is longer; every problem of an object repeats its name.
const LONGEST_NAME: usize = 253;

/// Beyond so many problems nobody reads on, and a hostile bundle would only use up memory.
const MOST_PROBLEMS: usize = 10_000;

/// How many unknown fields of one object are named before the rest is only counted.
const NAMED_FIELDS: usize = 5;

/// A bundle.
#[derive(Debug)]
pub struct Bundle {
    /// The package it is a version of; empty when its annotations don't say.
    pub package: String,
    /// What to install, and how.
    pub csv: ClusterServiceVersion,
    /// Its CustomResourceDefinitions, as `apiextensions.k8s.io/v1`, in the order of files and documents.
    pub crds: Vec<Manifest>,
    /// Everything else, in the same order, as it was written.
    pub others: Vec<Manifest>,
    /// What `metadata/properties.yaml` lists.
    properties: Vec<Value>,
    /// What `metadata/dependencies.yaml` lists.
    dependencies: Vec<Value>,
}

impl Bundle {
    /// Reads a bundle, and adds what is wrong with it to `problems`.
    ///
    /// When there are errors among them it is not to be rendered, but it can be checked; there is none at all when its
    /// files could not be read, as then much else would only seem to be wrong.
    pub fn parse(
        mut files: FileTree,
        limits: &Limits,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let annotations = match files.take(annotations::PATH) {
            Some(content) => Annotations::parse(&content, limits, problems),
            None => {
                problems.push(missing(annotations::PATH, &files));
                None
            }
        };
        if !files.has_folder(MANIFESTS) {
            let message = "the bundle has no folder `manifests`";
            problems.push(Problem::error("layout", message));
            return None;
        }
        let dependencies = files.take(dependencies::PATH);
        let dependencies =
            dependencies.map(|content| dependencies::read(&content, limits, problems));
        let properties = files.take(properties::PATH);
        let mut objects = Objects::default();
        for path in paths(&files, problems) {
            let content = files.take(&path).unwrap_or_default();
            objects.read(&path, &content, limits, problems);
            if problems.len() > MOST_PROBLEMS {
                let message = format!("too many problems; the files after {path} were not read");
                problems.push(Problem::error("too-many", message));
                return None;
            }
        }
        if objects.is_incomplete {
            return None;
        }
        let csv = objects.csv(problems)?;
        let properties =
            properties::read(properties.as_deref(), limits).unwrap_or_else(|problem| {
                problems.push(problem);
                vec![]
            });
        let csv = finish_csv(csv, &properties, limits, problems)?;
        Some(Self {
            package: annotations?.package,
            csv,
            crds: objects.crds,
            others: objects.others,
            properties,
            dependencies: dependencies.unwrap_or_default(),
        })
    }

    /// Type and value of each property of the bundle, as a catalog would list them for the resolver: without the
    /// manifests, sorted, each once.
    #[must_use]
    pub fn properties(&self) -> Vec<(String, Value)> {
        derived_properties::of(self)
    }

    /// The namespace that the ClusterServiceVersion suggests.
    #[must_use]
    pub fn suggested_namespace(&self) -> Option<&str> {
        let suggested = self.csv.annotations.get(SUGGESTED_NAMESPACE);
        suggested
            .map(String::as_str)
            .filter(|name| !name.is_empty())
    }
}

fn missing(path: &str, files: &FileTree) -> Problem {
    let folders: Vec<_> = FOLDERS
        .into_iter()
        .filter(|folder| !files.has_folder(folder))
        .collect();
    let message = if folders.is_empty() {
        format!("the bundle has no {path}")
    } else {
        format!(
            "the bundle has no {path}: there is no folder `{}`",
            folders.join("` and no folder `")
        )
    };
    Problem::error("layout", message)
}

/// The files to read; folders among them are refused, as OLM does.
fn paths(files: &FileTree, problems: &mut Vec<Problem>) -> Vec<String> {
    for folder in files.folders_in(MANIFESTS) {
        let message = "folders are not allowed below `manifests`; OLM reads it flat";
        problems.push(Problem::error("layout", message).at(folder));
    }
    let paths = files.paths_in(MANIFESTS).into_iter();
    paths
        .filter(|path| path.matches('/').count() == 1)
        .collect()
}

/// The objects of a bundle while its files are read.
#[derive(Default)]
struct Objects {
    /// Whether a file could not be read.
    is_incomplete: bool,
    csvs: Vec<Manifest>,
    crds: Vec<Manifest>,
    others: Vec<Manifest>,
}

impl Objects {
    fn read(&mut self, path: &str, content: &[u8], limits: &Limits, problems: &mut Vec<Problem>) {
        let documents = match yaml::read(content, limits) {
            Ok(documents) => documents,
            Err(error) => {
                problems.push(error.in_file(path));
                self.is_incomplete = true;
                return;
            }
        };
        if documents.len() > 1 {
            let count = documents.len();
            let message =
                format!("holds {count} documents; OLM v0 installs only the first of a file");
            problems.push(Problem::warning("several-documents", message).at(path));
        }
        let path: Arc<str> = path.into();
        for document in documents {
            if problems.len() > MOST_PROBLEMS {
                return;
            }
            let origin = Origin::File {
                path: Arc::clone(&path),
                line: document.line,
            };
            warn_of_duplicate_keys(&document.duplicate_keys, &path, problems);
            let Some(objects) = flatten(document.value, limits.file_objects) else {
                let limit = limits.file_objects;
                let message = format!(
                    "the list has more items than the limit of {limit} (--no-limits lifts it)"
                );
                problems.push(Problem::error("yaml", message).at(&origin));
                self.is_incomplete = true;
                continue;
            };
            for object in objects {
                self.add(Manifest::checked(object, origin.clone()), problems);
            }
        }
    }

    /// Sorts an object by kind alone, as OLM does: real bundles get the group of a ClusterServiceVersion wrong.
    fn add(&mut self, manifest: Result<Manifest, Origin>, problems: &mut Vec<Problem>) {
        let mut manifest = match manifest {
            Ok(manifest) => manifest,
            Err(origin) => {
                let message = "is no Kubernetes object: it has no `kind`";
                problems.push(Problem::error("no-kind", message).at(&origin));
                return;
            }
        };
        let identity = [manifest.api_version(), manifest.kind(), manifest.name()];
        if identity.iter().any(|text| text.len() > LONGEST_NAME) {
            let message =
                format!("apiVersion, kind and name may have {LONGEST_NAME} characters each");
            problems.push(Problem::error("object-name", message).at(&manifest.origin));
            self.is_incomplete = true;
            return;
        }
        match manifest.kind() {
            "ClusterServiceVersion" => self.csvs.push(manifest),
            "CustomResourceDefinition" => {
                custom_resource_definition::to_v1(&mut manifest, problems);
                let (key, origin) = (manifest.key(), manifest.origin.clone());
                let findings = conform_object(&mut manifest, &go_types::CUSTOM_RESOURCE_DEFINITION);
                report(&findings, &origin, &key.to_string(), problems);
                self.crds.push(manifest);
            }
            _ => {
                rbac_to_v1(&mut manifest, problems);
                self.others.push(manifest);
            }
        }
    }

    /// The one ClusterServiceVersion; OLM v0 and v1 would silently take the last of several.
    fn csv(&mut self, problems: &mut Vec<Problem>) -> Option<Manifest> {
        if self.csvs.len() > 1 {
            let places: Vec<_> = self.csvs.iter().map(|csv| csv.origin.to_string()).collect();
            let message = format!(
                "the bundle holds {} ClusterServiceVersions: {}",
                places.len(),
                places.join(", ")
            );
            problems.push(Problem::error("one-csv", message));
            return None;
        }
        if self.csvs.is_empty() {
            let message = "no ClusterServiceVersion found in `manifests`";
            problems.push(Problem::error("one-csv", message));
        }
        self.csvs.pop()
    }
}

/// A list becomes its items, and theirs if they are lists; anything else stays alone. Items that say nothing of
/// themselves are of the kind that the list is of. `None` when there are more than `limit`.
fn flatten(value: Value, limit: usize) -> Option<Vec<Value>> {
    let (mut objects, mut pending) = (vec![], vec![value]);
    while let Some(mut value) = pending.pop() {
        let items = match value.get_mut("items") {
            Some(Value::Array(items)) => std::mem::take(items),
            _ => {
                objects.push(value);
                continue;
            }
        };
        if objects.len() + pending.len() + items.len() > limit {
            return None;
        }
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let kind = kind.strip_suffix("List").unwrap_or(kind);
        for mut item in items.into_iter().rev() {
            if let Some(item) = item.as_object_mut()
                && !item.contains_key("apiVersion")
                && !item.contains_key("kind")
            {
                item.insert("apiVersion".to_owned(), version.into());
                item.insert("kind".to_owned(), kind.into());
            }
            pending.push(item);
        }
    }
    Some(objects)
}

/// RBAC's v1beta1, gone since Kubernetes 1.22, differs from v1 in nothing but its name.
fn rbac_to_v1(manifest: &mut Manifest, problems: &mut Vec<Problem>) {
    if manifest.api_version() == "rbac.authorization.k8s.io/v1beta1" {
        let v1 = "rbac.authorization.k8s.io/v1";
        manifest
            .object_mut()
            .insert("apiVersion".to_owned(), v1.into());
        let message =
            "rbac.authorization.k8s.io/v1beta1 is gone since Kubernetes 1.22; converted to v1";
        let problem = Problem::warning("rbac-v1beta1", message);
        problems.push(problem.at(&manifest.origin).on(manifest.key()));
    }
}

fn warn_of_duplicate_keys(keys: &[yaml::DuplicateKey], path: &str, problems: &mut Vec<Problem>) {
    for duplicate in keys {
        let message = format!(
            "`{}` stands twice in one map; the last one counts",
            duplicate.key
        );
        let place = Place {
            path: path.to_owned(),
            line: duplicate.line,
        };
        problems.push(Problem::warning("duplicate-key", message).at(place));
    }
}

/// Brings an object into the shape that Go's types give it.
fn conform_object(
    manifest: &mut Manifest,
    shape: &'static crate::manifest::conform::Struct,
) -> Findings {
    let mut value = Value::Object(std::mem::take(manifest.object_mut()));
    let findings = conform(&mut value, shape);
    if let Value::Object(object) = value {
        *manifest.object_mut() = object;
    }
    findings
}

fn report(findings: &Findings, place: &Origin, object: &str, problems: &mut Vec<Problem>) {
    for finding in &findings.errors {
        problems.push(
            Problem::error("type", finding.to_string())
                .at(place)
                .on(object),
        );
    }
    let dropped = &findings.dropped;
    let count = dropped.len() + findings.unlisted;
    if dropped.is_empty() {
        return;
    }
    let named = dropped
        .iter()
        .take(NAMED_FIELDS)
        .map(|path| format!("`{path}`"));
    let mut message = format!(
        "unknown to Kubernetes and left out: {}",
        named.collect::<Vec<_>>().join(", ")
    );
    if count > NAMED_FIELDS {
        message.push_str(&format!(" and {} more", count - NAMED_FIELDS));
    }
    problems.push(
        Problem::warning("unknown-field", message)
            .at(place)
            .on(object),
    );
}

/// Types the ClusterServiceVersion, and puts the bundle's properties into the annotations that pod templates get.
fn finish_csv(
    mut manifest: Manifest,
    properties: &[Value],
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<ClusterServiceVersion> {
    let (key, origin) = (manifest.key().to_string(), manifest.origin.clone());
    let version = manifest.api_version();
    if version != CSV_API_VERSION {
        let message = format!("apiVersion is {version:?}; OLM v0 takes only {CSV_API_VERSION}");
        problems.push(
            Problem::warning("csv-api-version", message)
                .at(&origin)
                .on(&key),
        );
    }
    let findings = conform_object(&mut manifest, &go_types::CLUSTER_SERVICE_VERSION);
    report(&findings, &origin, &key, problems);
    let annotations = manifest.metadata("annotations");
    let annotation = annotations.and_then(|all| all.get(properties::ANNOTATION)?.as_str());
    let merged = properties::merged(annotation, properties).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    match ClusterServiceVersion::parse(manifest) {
        Ok(csv) if csv.deployments.len() > limits.deployments => {
            let limit = limits.deployments;
            let message =
                format!("more deployments than the limit of {limit} (--no-limits lifts it)");
            problems.push(Problem::error("size", message).at(&origin).on(&key));
            None
        }
        Ok(mut csv) => {
            let merged = merged.map(|text| (properties::ANNOTATION.to_owned(), text));
            csv.annotations.extend(merged);
            Some(csv)
        }
        Err(reason) => {
            problems.push(Problem::error("type", reason).at(&origin).on(key));
            None
        }
    }
}

impl Manifest {
    /// An object of a bundle; it must be a map with a kind.
    fn checked(value: Value, origin: Origin) -> Result<Self, Origin> {
        let kind = value
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if kind.is_empty() {
            return Err(origin);
        }
        Ok(Self::new(value, origin))
    }
}
