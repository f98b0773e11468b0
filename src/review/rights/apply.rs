//! The least roles for whoever applies an install by `kubectl olm apply` and removes it by `kubectl olm cleanup`.
//!
//! Objects are named wherever RBAC can: server-side apply asks for the right to create with the object's name
//! (k8s.io/apiserver `pkg/endpoints/handlers/patch.go`, `createAuthorizerAttributes`), which creating by POST does not.
//! Lists cannot be limited to names. Whoever writes a role or a binding needs all rights in it, or the verbs `escalate` and
//! `bind`, which can be limited to names too (k8s.io/kubernetes `pkg/registry/rbac/escalation_check.go`).
//!
//! What is not covered: inventories of more than 900 KiB, which go on in Secrets whose names depend on their content.
//! Namespaces are not to be deleted, and neither are custom resources: that is more than an install, and is left to
//! administrators. Discovery and reviews of one's own rights are there for everybody.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{RBAC, Rule, Subject};
use crate::{
    manifest::{
        Manifest,
        served::{self, Defined},
    },
    problem::Problem,
};

/// For an object of the install.
const WRITE: &[&str] = &["create", "delete", "get", "patch"];
/// For one that stays when the install goes.
const WRITE_AND_KEEP: &[&str] = &["create", "get", "patch"];
/// For what the program keeps about an install.
const KEEP_BOOKS: &[&str] = &["delete", "get", "patch", "update"];
/// It is created by POST, so that nobody else's is taken over, and that cannot be limited to names.
const CREATE: &[&str] = &["create"];
/// For finding the objects of a kind.
const LIST: &[&str] = &["list"];
/// Kinds whose pods tell why they are not ready.
const WITH_PODS: [&str; 4] = ["DaemonSet", "Deployment", "Job", "StatefulSet"];

/// The install that is applied.
#[derive(Debug, Clone, Copy)]
pub struct Apply<'a> {
    /// The namespace of the install, where its inventory is.
    pub namespace: &'a str,
    /// The name of the install, for the names of the roles.
    pub name: &'a str,
    /// The name of the Secret that holds its inventory, and of its Lease.
    pub inventory: &'a str,
}

/// What an account needs.
#[derive(Debug, Clone)]
pub struct Rights {
    /// The namespaces that the install creates and the roles below are in, to be created first.
    pub namespaces: Vec<Manifest>,
    /// A ClusterRole for what is in no namespace, then a Role for each namespace.
    pub roles: Vec<Manifest>,
    /// What was guessed, and what the rights come to.
    pub notes: Vec<Problem>,
}

/// The least roles that an account needs to apply the objects and to remove them. Bind them by [`bindings`].
#[must_use]
pub fn to_apply(manifests: &[Manifest], apply: Apply<'_>) -> Rights {
    let mut needs = Needs::new(manifests, apply);
    needs.keep_books();
    for manifest in manifests {
        needs.object(manifest);
    }
    needs.look_at_namespaces();
    needs.into_rights()
}

/// The bindings that give a subject the roles.
#[must_use]
pub fn bindings(roles: &[Manifest], subject: &Subject) -> Vec<Manifest> {
    let mut who = json!({"kind": subject.kind, "name": subject.name});
    match subject.kind.as_str() {
        "ServiceAccount" => who["namespace"] = subject.namespace.as_str().into(),
        _ => who["apiGroup"] = RBAC.into(),
    }
    let bindings = roles.iter().map(|role| {
        let mut binding = json!({
            "apiVersion": role.api_version(),
            "kind": format!("{}Binding", role.kind()),
            "metadata": role.object().get("metadata"),
            "roleRef": {"apiGroup": RBAC, "kind": role.kind(), "name": role.name()},
        });
        binding["subjects"] = json!([who]);
        Manifest::generated(binding, "a role")
    });
    bindings.collect()
}

/// Group, resource and verbs.
type What = (String, String, &'static [&'static str]);
/// What is needed of which names; of all where there are none.
type Rules = BTreeMap<What, BTreeSet<String>>;

/// The rules that are needed, while they are gathered.
struct Needs<'m> {
    apply: Apply<'m>,
    manifests: &'m [Manifest],
    defined: BTreeMap<(String, String), Defined>,
    /// By namespace, which is empty for what is in none.
    rules: BTreeMap<String, Rules>,
    notes: BTreeSet<Problem>,
}

impl<'m> Needs<'m> {
    fn new(manifests: &'m [Manifest], apply: Apply<'m>) -> Self {
        let defined = manifests.iter().filter_map(Defined::read);
        let defined = defined.map(|kind| ((kind.group.clone(), kind.kind.clone()), kind));
        Self {
            apply,
            manifests,
            defined: defined.collect(),
            rules: BTreeMap::new(),
            notes: BTreeSet::new(),
        }
    }

    /// A right for all objects of a resource; `namespace` is empty for what is in none, and for all namespaces.
    fn all(
        &mut self,
        namespace: &str,
        group: &str,
        resource: &str,
        verbs: &'static [&'static str],
    ) {
        let rules = self.rules.entry(namespace.to_owned()).or_default();
        rules
            .entry((group.to_owned(), resource.to_owned(), verbs))
            .or_default();
    }

    /// A right for an object.
    fn named(
        &mut self,
        namespace: &str,
        (group, resource): (&str, &str),
        verbs: &'static [&'static str],
        name: &str,
    ) {
        if name.is_empty() {
            return;
        }
        let rules = self.rules.entry(namespace.to_owned()).or_default();
        let key = (group.to_owned(), resource.to_owned(), verbs);
        rules.entry(key).or_default().insert(name.to_owned());
    }

    /// The inventory and the Lease.
    fn keep_books(&mut self) {
        let Apply {
            namespace,
            inventory,
            ..
        } = self.apply;
        self.named(namespace, ("", "secrets"), KEEP_BOOKS, inventory);
        // For the inventories of other installs, with which objects may be shared.
        self.all(namespace, "", "secrets", LIST);
        self.all(namespace, "", "secrets", CREATE);
        let leases = ("coordination.k8s.io", "leases");
        self.named(namespace, leases, KEEP_BOOKS, inventory);
        self.all(namespace, leases.0, leases.1, CREATE);
    }

    /// What an object needs.
    fn object(&mut self, manifest: &Manifest) {
        let (group, kind, name) = (manifest.group(), manifest.kind(), manifest.name());
        let (plural, is_cluster_scoped) = self.resource(manifest);
        let namespace = match (is_cluster_scoped, manifest.namespace()) {
            (true, _) => "",
            (false, "") => self.apply.namespace,
            (false, namespace) => namespace,
        };
        let write = if is_namespace(manifest) {
            WRITE_AND_KEEP
        } else {
            WRITE
        };
        self.named(namespace, (group, &plural), write, name);
        self.all(namespace, group, &plural, LIST);
        if WITH_PODS.contains(&kind) {
            self.all(namespace, "", "events", LIST);
            self.all(namespace, "", "pods", LIST);
            self.all(namespace, "apps", "replicasets", LIST);
        }
        if let Some(defined) = Defined::read(manifest) {
            // So that objects of the kind are counted before it goes.
            self.all("", &defined.group, &defined.plural, LIST);
        }
        if group == RBAC {
            self.role_or_binding(manifest, namespace);
        }
    }

    /// The verbs by which rights are given that the account need not have.
    fn role_or_binding(&mut self, manifest: &Manifest, namespace: &str) {
        let resource = |kind: &str| {
            if kind == "ClusterRole" {
                "clusterroles"
            } else {
                "roles"
            }
        };
        match manifest.kind() {
            kind @ ("Role" | "ClusterRole") => {
                let role = (RBAC, resource(kind));
                self.named(namespace, role, &["escalate"], manifest.name());
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let reference = manifest.object().get("roleRef").unwrap_or(&Value::Null);
                let text = |field: &str| reference.get(field).and_then(Value::as_str);
                let role = (RBAC, resource(text("kind").unwrap_or_default()));
                self.named(namespace, role, &["bind"], text("name").unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The namespaces that objects are in, which are looked at before anything is written.
    fn look_at_namespaces(&mut self) {
        let mut namespaces: BTreeSet<_> = self.rules.keys().cloned().collect();
        namespaces.remove("");
        for manifest in self
            .manifests
            .iter()
            .filter(|manifest| is_namespace(manifest))
        {
            namespaces.remove(manifest.name());
        }
        for name in namespaces {
            self.named("", ("", "namespaces"), &["get"], &name);
        }
    }

    /// What paths call a kind, and whether its objects are in no namespace.
    fn resource(&mut self, manifest: &Manifest) -> (String, bool) {
        let (group, kind) = (manifest.group(), manifest.kind());
        if let Some(defined) = self.defined.get(&(group.to_owned(), kind.to_owned())) {
            return (defined.plural.clone(), defined.is_cluster_scoped);
        }
        let is_cluster_scoped = served::is_cluster_scoped(group, kind);
        if let (Some(plural), Some(is_cluster_scoped)) =
            (served::plural_of(group, kind), is_cluster_scoped)
        {
            return (plural.to_owned(), is_cluster_scoped);
        }
        let plural = served::guessed_plural(kind);
        let is_cluster_scoped = manifest.namespace().is_empty();
        let place = if is_cluster_scoped {
            "no namespace"
        } else {
            "namespaces"
        };
        let message = format!(
            "nothing here defines the kind {kind} of {group}; taken to be called {plural} and to be in {place}"
        );
        let note = Problem::note("guessed-kind", message).on(manifest.key());
        self.notes.insert(note);
        (plural, is_cluster_scoped)
    }

    fn into_rights(self) -> Rights {
        let name = format!("kubectl-olm.{}.{}", self.apply.namespace, self.apply.name);
        let has_role = |manifest: &&Manifest| {
            is_namespace(manifest) && self.rules.contains_key(manifest.name())
        };
        let namespaces = self.manifests.iter().filter(has_role).cloned().collect();
        let mut notes: Vec<_> = self.notes.into_iter().collect();
        let gives_rights = self
            .rules
            .values()
            .flatten()
            .any(|((_, _, verbs), _)| verbs.contains(&"escalate"));
        if gives_rights {
            let message = "whoever has these roles can write anything into the roles of the install, so give them only to \
                           accounts that may have every right in the cluster";
            notes.push(Problem::note("escalate", message));
        }
        let roles = self.rules.into_iter().map(|(namespace, rules)| {
            let rules: Vec<_> = joined(rules).iter().map(Rule::to_value).collect();
            let mut role = json!({
                "apiVersion": format!("{RBAC}/v1"),
                "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": rules,
            });
            if !namespace.is_empty() {
                role["kind"] = "Role".into();
                role["metadata"]["namespace"] = namespace.into();
            }
            Manifest::generated(role, "the objects of the install")
        });
        Rights {
            roles: roles.collect(),
            namespaces,
            notes,
        }
    }
}

fn is_namespace(manifest: &Manifest) -> bool {
    manifest.group().is_empty() && manifest.kind() == "Namespace"
}

/// Rules for several resources of a group in one, where they are the same in all else.
fn joined(rules: Rules) -> Vec<Rule> {
    let mut joined: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for ((group, resource, verbs), names) in rules {
        joined
            .entry((group, names, verbs))
            .or_default()
            .push(resource);
    }
    let rules = joined.into_iter();
    let rules = rules.map(|((group, names, verbs), resources)| Rule {
        groups: vec![group],
        resources,
        names: names.into_iter().collect(),
        urls: vec![],
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
    });
    rules.collect()
}
