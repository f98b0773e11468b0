//! What the cluster lacks for an install, and what comes with the install itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{
    desired::Desired,
    inventory::InstallName,
    resource::{Resource, Resources, Scope, Served},
};
use crate::{
    manifest::{Manifest, ObjectKey},
    problem::Problem,
};

/// The rule of kinds that a cluster lacks.
const RULE: &str = "missing-kind";

/// The kinds of a cluster, with those that an install defines.
#[derive(Debug)]
pub struct Kinds<'r> {
    served: &'r Resources,
    defined: BTreeMap<(String, String), Vec<Resource>>,
}

/// What is known of an object's kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KindOf {
    /// The cluster serves it.
    Served(Resource),
    /// The install defines it, and the cluster does not serve it yet.
    Defined(Resource),
    /// The cluster does not serve it.
    Missing,
    /// The cluster serves it, but not in this version: in that one.
    Otherwise {
        /// The version that is asked for.
        asked: String,
        /// The one that the cluster prefers.
        served: String,
    },
    /// The server of its group does not answer.
    Unknown,
}

impl<'r> Kinds<'r> {
    /// The kinds that a cluster serves, and those that the definitions among these objects bring.
    #[must_use]
    pub fn new<'d>(served: &'r Resources, objects: impl IntoIterator<Item = &'d Desired>) -> Self {
        let mut defined: BTreeMap<_, Vec<Resource>> = BTreeMap::new();
        for desired in objects {
            for resource in defined_by(&desired.manifest) {
                let kind = (resource.group.clone(), resource.kind.clone());
                defined.entry(kind).or_default().push(resource);
            }
        }
        Self { served, defined }
    }

    /// What is known of an object's kind, in the version of its `apiVersion`.
    #[must_use]
    pub fn of(&self, key: &ObjectKey, version: &str) -> KindOf {
        let found = self.served.find(key, version);
        if let Served::As(resource) = found
            && resource.version == version
        {
            return KindOf::Served(resource.clone());
        }
        let kind = (key.group.clone(), key.kind.clone());
        let mut defined = self.defined.get(&kind).into_iter().flatten();
        match (defined.find(|resource| resource.version == version), found) {
            (Some(resource), _) => KindOf::Defined(resource.clone()),
            // A request for an object in one version takes no object in another one.
            (None, Served::As(other)) => KindOf::Otherwise {
                asked: version.to_owned(),
                served: other.version.clone(),
            },
            (None, Served::Missing) => KindOf::Missing,
            (None, Served::Unknown) => KindOf::Unknown,
        }
    }
}

/// The kinds that a definition brings, one for each version that is served.
fn defined_by(manifest: &Manifest) -> Vec<Resource> {
    if (manifest.group(), manifest.kind()) != ("apiextensions.k8s.io", "CustomResourceDefinition") {
        return vec![];
    }
    let Some(spec) = manifest.object().get("spec") else {
        return vec![];
    };
    let text = |pointer: &str| {
        let text = spec.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let scope = match text("/scope").as_str() {
        "Cluster" => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    let versions = spec.get("versions").and_then(Value::as_array);
    let versions = versions.into_iter().flatten();
    let served = versions.filter(|version| version.get("served") == Some(&Value::Bool(true)));
    let named = served.filter_map(|version| version.get("name")?.as_str());
    named
        .map(|version| Resource {
            group: text("/group"),
            version: version.to_owned(),
            kind: text("/names/kind"),
            plural: text("/names/plural"),
            scope,
        })
        .collect()
}

/// The namespaces among the objects of an install, and its own: what goes into them cannot be asked about before they are
/// there.
#[must_use]
pub fn later<'d>(objects: &'d [Desired], install: &'d InstallName) -> BTreeSet<&'d str> {
    let namespaces = objects.iter().filter(|desired| desired.key.is_namespace());
    let named = namespaces.map(|desired| desired.key.name.as_str());
    named.chain([install.namespace.as_str()]).collect()
}

/// A kind that the cluster lacks.
#[derive(Debug)]
pub struct MissingKind {
    /// The first object of it.
    object: String,
    /// What is missing, and how many objects need it.
    message: String,
    /// What to do, so that they can be applied.
    advice: &'static str,
}

impl MissingKind {
    /// That its objects are refused.
    #[must_use]
    pub fn refused(self) -> Problem {
        let message = format!("{}; {}", self.message, self.advice);
        Problem::error(RULE, message).on(self.object)
    }

    /// That its objects are left out.
    #[must_use]
    pub fn left_out(self) -> Problem {
        Problem::warning(RULE, format!("left out: {}", self.message)).on(self.object)
    }
}

/// The kinds that the cluster lacks.
#[must_use]
pub fn missing_kinds(missing: &[(&Desired, KindOf)]) -> Vec<MissingKind> {
    let mut by_kind: BTreeMap<(&str, &str, &KindOf), Vec<&Desired>> = BTreeMap::new();
    for (desired, found) in missing {
        let key = &desired.key;
        let objects = by_kind.entry((&key.group, &key.kind, found)).or_default();
        objects.push(desired);
    }
    let told = by_kind.into_iter().map(|((group, kind, found), objects)| {
        let count = match objects.len() {
            1 => "1 object needs it".to_owned(),
            count => format!("{count} objects need it"),
        };
        let name = if group.is_empty() { "core" } else { group };
        let (message, advice) = match found {
            KindOf::Unknown => (
                format!(
                    "the server of the group {name} does not answer, so nothing is known of the kind {kind}, and {count}"
                ),
                "`kubectl get apiservices` tells which one it is",
            ),
            KindOf::Otherwise { asked, served } => (
                format!(
                    "the cluster has the kind {kind} of the group {name} not in version {asked}, but in {served}, and {count}"
                ),
                advice(group),
            ),
            _ => (
                format!("the cluster has no kind {kind} of the group {name}, and {count}"),
                advice(group),
            ),
        };
        let first = objects.first().map(|desired| desired.key.to_string());
        MissingKind {
            object: first.unwrap_or_default(),
            message,
            advice,
        }
    });
    told.collect()
}

/// What to do about a group that is not there.
fn advice(group: &str) -> &'static str {
    match group {
        "cert-manager.io" => {
            "install cert-manager, or use --certs self-signed, which needs nothing of the cluster"
        }
        "monitoring.coreos.com" => {
            "install the Prometheus operator, or leave these objects out with --skip-missing-kinds"
        }
        _ => "install what defines it, or leave these objects out with --skip-missing-kinds",
    }
}
