//! What names a Kubernetes object: group, kind, namespace and name.

use std::fmt;

/// The identity of an object. Versions are no part of it: `v1` and `v1beta1` of one kind are the same object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, as in the manifest: `Deployment`.
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects and where none is given.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectKey {
    /// Whether the object is a namespace.
    #[must_use]
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Whether the object is a CustomResourceDefinition.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition"
    }
}

/// As `kubectl -o name` prints it: `deployment.apps/manager`, `service/metrics`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.to_ascii_lowercase())?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        write!(f, "/{}", self.name)
    }
}
