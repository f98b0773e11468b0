//! Who gets which rules: the bindings of an install, with the roles that they name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Danger, RBAC, Rule,
    dangers::{self, Accounts},
};
use crate::manifest::{Manifest, ObjectKey, label_selector::LabelSelector};

/// Labels of ClusterRoles that add their rules to a ClusterRole that every cluster has, and that one
/// (k8s.io/kubernetes `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`).
const AGGREGATED_TO: [(&str, &str); 3] = [
    ("rbac.authorization.k8s.io/aggregate-to-admin", "admin"),
    ("rbac.authorization.k8s.io/aggregate-to-edit", "edit"),
    ("rbac.authorization.k8s.io/aggregate-to-view", "view"),
];

/// Who gets rights.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// `ServiceAccount`, `User`, `Group`, or `ClusterRole` for all who have that one.
    pub kind: String,
    /// The namespace of a ServiceAccount; empty for others.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The role that a binding names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Role {
    /// `ClusterRole` or `Role`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it allows; nothing when it is not among the objects, so that only the cluster knows.
    pub rules: Option<Vec<Rule>>,
}

/// What somebody gets by one binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Who gets it.
    pub subject: Subject,
    /// The namespace where it holds; empty when it holds in all of them and for what is in none.
    pub namespace: String,
    /// The binding; the role itself where its labels add it to another role.
    pub binding: ObjectKey,
    /// The role.
    pub role: Role,
    /// What a person should know of it.
    pub dangers: Vec<Danger>,
}

/// Who gets which rules by the roles and bindings among the objects, sorted by subject.
#[must_use]
pub fn granted(manifests: &[Manifest]) -> Vec<Grant> {
    let roles = Roles::of(manifests);
    let accounts = Accounts::of(manifests);
    let of_rbac = manifests.iter().filter(|manifest| manifest.group() == RBAC);
    let mut grants = vec![];
    for manifest in of_rbac {
        match manifest.kind() {
            "RoleBinding" | "ClusterRoleBinding" => {
                grants.extend(by_binding(manifest, &roles, &accounts));
            }
            "ClusterRole" => grants.extend(by_labels(manifest, &accounts)),
            _ => {}
        }
    }
    grants.sort();
    grants
}

/// The roles among the objects, by kind, namespace and name.
struct Roles<'m> {
    by_name: BTreeMap<(&'m str, &'m str, &'m str), &'m Manifest>,
}

impl<'m> Roles<'m> {
    fn of(manifests: &'m [Manifest]) -> Self {
        let is_role = |manifest: &&Manifest| {
            manifest.group() == RBAC && ["Role", "ClusterRole"].contains(&manifest.kind())
        };
        let roles = manifests.iter().filter(is_role).map(|role| {
            let namespace = match role.kind() {
                "Role" => role.namespace(),
                _ => "",
            };
            ((role.kind(), namespace, role.name()), role)
        });
        let by_name = roles.collect();
        Self { by_name }
    }

    /// What a role allows, with the rules that it takes on from others.
    fn rules(&self, kind: &str, namespace: &str, name: &str) -> Option<Vec<Rule>> {
        let namespace = if kind == "Role" { namespace } else { "" };
        let role = self.by_name.get(&(kind, namespace, name))?;
        let mut rules = Rule::read_all(role.object());
        let selectors = role.object().get("aggregationRule");
        let selectors = selectors.and_then(|rule| rule.get("clusterRoleSelectors"));
        for selector in selectors.and_then(Value::as_array).into_iter().flatten() {
            let Ok(selector) = LabelSelector::parse(selector) else {
                continue;
            };
            let others = self
                .by_name
                .values()
                .filter(|other| other.kind() == "ClusterRole" && selector.matches(&labels(other)));
            rules.extend(others.flat_map(|other| Rule::read_all(other.object())));
        }
        Some(rules)
    }
}

fn labels(manifest: &Manifest) -> BTreeMap<String, String> {
    let labels = manifest.metadata("labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str()?;
        Some((key.clone(), value.to_owned()))
    });
    labels.collect()
}

/// What each subject of a binding gets.
fn by_binding(binding: &Manifest, roles: &Roles<'_>, accounts: &Accounts<'_>) -> Vec<Grant> {
    let object = binding.object();
    let text = |value: &Value, field: &str| {
        let text = value.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let nothing = Value::Null;
    let reference = object.get("roleRef").unwrap_or(&nothing);
    let (kind, name) = (text(reference, "kind"), text(reference, "name"));
    let namespace = match binding.kind() {
        "RoleBinding" => binding.namespace().to_owned(),
        _ => String::new(),
    };
    let rules = roles.rules(&kind, &namespace, &name);
    let role = Role { kind, name, rules };
    let subjects = object.get("subjects").and_then(Value::as_array);
    let subjects = subjects.into_iter().flatten().map(|subject| {
        let subject = Subject {
            kind: text(subject, "kind"),
            namespace: text(subject, "namespace"),
            name: text(subject, "name"),
        };
        Grant {
            dangers: dangers::of_grant(&subject, &namespace, &role, accounts),
            subject,
            namespace: namespace.clone(),
            binding: binding.key(),
            role: role.clone(),
        }
    });
    subjects.collect()
}

/// What all get who have a role that this one is added to by its labels.
fn by_labels(role: &Manifest, accounts: &Accounts<'_>) -> Vec<Grant> {
    let labels = labels(role);
    let is_set = |label: &str| labels.get(label).is_some_and(|value| value == "true");
    let added = AGGREGATED_TO.iter().filter(|(label, _)| is_set(label));
    let grants = added.map(|(_, to)| {
        let subject = Subject {
            kind: "ClusterRole".to_owned(),
            namespace: String::new(),
            name: (*to).to_owned(),
        };
        let role_of = Role {
            kind: "ClusterRole".to_owned(),
            name: role.name().to_owned(),
            rules: Some(Rule::read_all(role.object())),
        };
        Grant {
            dangers: dangers::of_grant(&subject, "", &role_of, accounts),
            subject,
            namespace: String::new(),
            binding: role.key(),
            role: role_of,
        }
    });
    grants.collect()
}
