//! Which objects are of the whole cluster, and which are in namespaces: `--scope`, so that one person approves and
//! applies the first and another the second. No code of OLM is reproduced.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use crate::manifest::{
    Manifest,
    served::{Defined, is_cluster_scoped},
};

/// Which objects are output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scope {
    /// Those of the whole cluster: Namespaces, definitions, ClusterRoles, webhook configurations.
    Cluster,
    /// Those in namespaces.
    Namespaced,
}

/// Which objects are applied, compared or removed.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ScopeArgs {
    /// Only the part of the install that is in the whole cluster, or only that in namespaces, each an install of its own:
    /// cluster or namespaced (default: both in one)
    #[arg(long, value_name = "SCOPE", hide_possible_values = true)]
    pub scope: Option<Scope>,
}

impl ScopeArgs {
    /// What is added to the name of the install.
    pub(super) fn suffix(self) -> &'static str {
        match self.scope {
            None => "",
            Some(Scope::Cluster) => ".cluster",
            Some(Scope::Namespaced) => ".namespaced",
        }
    }
}

/// The scopes of the kinds that some objects define: group and kind.
#[derive(Debug, Default)]
pub(super) struct DefinedScopes(BTreeMap<(String, String), Scope>);

impl DefinedScopes {
    /// The kinds that the CustomResourceDefinitions among these objects define.
    pub(super) fn of<'m>(manifests: impl IntoIterator<Item = &'m Manifest>) -> Self {
        let defined = manifests.into_iter().filter_map(Defined::read);
        let scopes = defined.map(|defined| {
            let scope = scope(defined.is_cluster_scoped);
            ((defined.group, defined.kind), scope)
        });
        Self(scopes.collect())
    }

    /// The scope of an object: that of its kind where it is known. Of a kind that nobody defines here, one that says its
    /// namespace is in it, as everything that is rendered into a namespace does.
    pub(super) fn scope(&self, manifest: &Manifest) -> Scope {
        let (group, kind) = (manifest.group(), manifest.kind());
        if let Some(is_cluster_scoped) = is_cluster_scoped(group, kind) {
            return scope(is_cluster_scoped);
        }
        let defined = self.0.get(&(group.to_owned(), kind.to_owned()));
        defined
            .copied()
            .unwrap_or_else(|| scope(manifest.namespace().is_empty()))
    }
}

fn scope(is_cluster_scoped: bool) -> Scope {
    if is_cluster_scoped {
        Scope::Cluster
    } else {
        Scope::Namespaced
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>) -> Manifest {
        let metadata = json!({"name": "a", "namespace": namespace});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        Manifest::generated(object, "a test")
    }

    fn definition(kind: &str, scope: &str) -> Manifest {
        let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        let names = json!({"kind": kind, "plural": kind.to_lowercase()});
        let spec = json!({"group": "example.com", "scope": scope, "names": names});
        definition.object_mut().insert("spec".to_owned(), spec);
        definition
    }

    #[test]
    fn kubernetes_then_definitions_then_the_namespace_decide() {
        let definitions = [
            definition("Things", "Cluster"),
            definition("Views", "Namespaced"),
        ];
        let scopes = DefinedScopes::of(&definitions);
        for (api_version, kind, namespace, scope) in [
            ("v1", "Namespace", None, Scope::Cluster),
            (
                "rbac.authorization.k8s.io/v1",
                "Role",
                None,
                Scope::Namespaced,
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                Some("ops"),
                Scope::Cluster,
            ),
            ("example.com/v1", "Things", Some("ops"), Scope::Cluster),
            ("example.com/v2", "Views", None, Scope::Namespaced),
            ("example.org/v1", "Things", Some("ops"), Scope::Namespaced),
            ("example.org/v1", "Things", None, Scope::Cluster),
        ] {
            let found = scopes.scope(&object(api_version, kind, namespace));
            assert_eq!(found, scope, "{api_version} {kind} {namespace:?}");
        }
    }
}
