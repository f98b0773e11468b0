//! The rights that an install grants, and the least that an account needs to apply it.
//!
//! | File | What it does |
//! | --- | --- |
//! | `granted.rs` | who gets which rules, by the roles and bindings of an install |
//! | `dangers.rs` | what a person should know of rules, pods, webhooks and places before saying yes |
//! | `apply.rs` | the least roles for whoever applies an install and removes it |
//!
//! No cluster is asked: roles that are not among the objects are only named. What rules mean is RBAC's
//! (k8s.io/kubernetes `plugin/pkg/auth/authorizer/rbac`, `pkg/registry/rbac/escalation_check.go`).

mod apply;
mod dangers;
mod granted;

use serde_json::{Map, Value};

pub use self::{
    apply::{Apply, Rights, bindings, to_apply},
    dangers::{Danger, dangers, is_dangerous},
    granted::{Grant, Role, Subject, granted},
};

/// The group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// A rule of RBAC.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// `apiGroups`.
    pub groups: Vec<String>,
    /// `resources`.
    pub resources: Vec<String>,
    /// `resourceNames`.
    pub names: Vec<String>,
    /// `nonResourceURLs`.
    pub urls: Vec<String>,
    /// `verbs`.
    pub verbs: Vec<String>,
}

impl Rule {
    /// The rules of a role, as they stand in it.
    #[must_use]
    pub fn read_all(role: &Map<String, Value>) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let texts = rule.get(field).and_then(Value::as_array);
            let texts = texts.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
            verbs: texts("verbs"),
        }
    }

    /// The rule as it stands in a role.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let fields = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
            ("verbs", &self.verbs),
        ];
        let fields = fields.into_iter().filter(|(_, texts)| !texts.is_empty());
        let fields = fields.map(|(field, texts)| (field.to_owned(), Value::from(texts.as_slice())));
        Value::Object(fields.collect())
    }

    /// The rule in words: `get, list deployments.apps`, with the names that it is limited to.
    #[must_use]
    pub fn words(&self) -> String {
        let verbs = self.verbs.join(", ");
        if !self.urls.is_empty() {
            return format!("{verbs} {}", self.urls.join(", "));
        }
        let resources = self.resources.iter().flat_map(|resource| {
            self.groups.iter().map(move |group| match group.as_str() {
                "" => resource.clone(),
                group => format!("{resource}.{group}"),
            })
        });
        let resources: Vec<_> = resources.collect();
        let names = match self.names.as_slice() {
            [] => String::new(),
            names => format!(" named {}", names.join(", ")),
        };
        format!("{verbs} {}{names}", resources.join(", "))
    }
}
