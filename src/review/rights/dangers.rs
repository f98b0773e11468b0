//! What a person should know before saying yes: rules that give more than they seem to, pods that can leave their node,
//! webhooks that see everything, and objects in places that are not the operator's.
//!
//! The list follows Kubernetes' own advice on what lets an account gain more rights ("Role Based Access Control Good
//! Practices"). It names, it does not judge: many operators need some of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    RBAC, Rule,
    granted::{Role, Subject, granted},
};
use crate::{manifest::Manifest, problem::Problem};

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Danger {
    /// A word for it that can be looked up in the documentation.
    pub rule: &'static str,
    /// What it is.
    pub text: String,
}

/// Resources whose objects run as pods, with their groups.
const RUN_AS_PODS: [(&str, &str); 8] = [
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];
/// Subresources through which a holder acts inside of what is there: group, resource, and what that allows.
const REACH_INTO: [(&str, &str, &str); 5] = [
    ("", "nodes/proxy", ": reaches every pod through its kubelet"),
    ("", "pods/attach", ": reaches into running pods"),
    (
        "",
        "pods/ephemeralcontainers",
        ": adds containers to running pods",
    ),
    ("", "pods/exec", ": runs commands in running pods"),
    (
        "",
        "serviceaccounts/token",
        ": takes on the rights of ServiceAccounts",
    ),
];
/// Groups and resources.
type Resources = &'static [(&'static str, &'static str)];

/// Verbs that give rights themselves: verb, what it means, and what it means something for.
const GIVE_RIGHTS: [(&str, &str, Resources); 3] = [
    (
        "bind",
        ": gives others roles whose rights it need not have",
        &ROLES,
    ),
    (
        "escalate",
        ": puts rights into roles that it need not have",
        &ROLES,
    ),
    (
        "impersonate",
        ": acts as somebody else",
        &[("", "groups"), ("", "serviceaccounts"), ("", "users")],
    ),
];
const ROLES: [(&str, &str); 2] = [(RBAC, "clusterroles"), (RBAC, "roles")];
/// Groups and users who are more than one account.
const EVERYBODY: [(&str, &str); 5] = [
    ("system:anonymous", "everybody, without logging in"),
    ("system:authenticated", "everybody who can log in"),
    ("system:masters", "the administrators who bypass RBAC"),
    (
        "system:serviceaccounts",
        "every ServiceAccount of the cluster",
    ),
    ("system:unauthenticated", "everybody, without logging in"),
];
/// The namespace of the cluster's own parts.
const KUBE_SYSTEM: &str = "kube-system";
/// Capabilities with which a container has as good as all others.
const CAPABILITIES: [&str; 8] = [
    "ALL",
    "BPF",
    "DAC_READ_SEARCH",
    "NET_ADMIN",
    "NET_RAW",
    "SYS_ADMIN",
    "SYS_MODULE",
    "SYS_PTRACE",
];

/// Everything that a person should know of an install, as warnings on its objects, sorted, each once.
#[must_use]
pub fn dangers(manifests: &[Manifest]) -> Vec<Problem> {
    let mut problems = BTreeSet::new();
    let mut tell = |danger: Danger, object: &dyn std::fmt::Display| {
        problems.insert(Problem::warning(danger.rule, danger.text).on(object));
    };
    for grant in granted(manifests) {
        for danger in grant.dangers {
            let text = format!("{}: {}", grant.subject, danger.text);
            tell(Danger { text, ..danger }, &grant.binding);
        }
    }
    for manifest in manifests {
        let found = [of_pods(manifest), of_webhooks(manifest), of_place(manifest)];
        for danger in found.into_iter().flatten() {
            tell(danger, &manifest.key());
        }
    }
    problems.into_iter().collect()
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind.as_str(), self.namespace.as_str()) {
            ("ClusterRole", _) => write!(f, "everybody with ClusterRole {}", self.name),
            (kind, "") => write!(f, "{kind} {}", self.name),
            (kind, namespace) => write!(f, "{kind} {namespace}/{}", self.name),
        }
    }
}

/// The ServiceAccounts of an install, and the namespaces that it is in.
pub(super) struct Accounts<'m> {
    accounts: BTreeSet<(&'m str, &'m str)>,
    namespaces: BTreeSet<&'m str>,
}

impl<'m> Accounts<'m> {
    pub(super) fn of(manifests: &'m [Manifest]) -> Self {
        let is = |manifest: &&Manifest, kinds: &[&str]| kinds.contains(&manifest.kind());
        let accounts = manifests
            .iter()
            .filter(|manifest| is(manifest, &["ServiceAccount"]));
        let lived_in = manifests
            .iter()
            .filter(|manifest| is(manifest, &["ServiceAccount", "Deployment"]));
        Self {
            accounts: accounts
                .map(|account| (account.namespace(), account.name()))
                .collect(),
            namespaces: lived_in.map(Manifest::namespace).collect(),
        }
    }

    fn are_foreign(&self, subject: &Subject) -> bool {
        let (namespace, name) = (subject.namespace.as_str(), subject.name.as_str());
        subject.kind == "ServiceAccount"
            && !self.accounts.contains(&(namespace, name))
            && !self.namespaces.contains(namespace)
    }
}

/// What a person should know of what somebody gets; `namespace` is empty when it holds everywhere.
pub(super) fn of_grant(
    subject: &Subject,
    namespace: &str,
    role: &Role,
    accounts: &Accounts<'_>,
) -> Vec<Danger> {
    let mut found = vec![];
    let everybody = EVERYBODY.iter().find(|(name, _)| {
        subject.name == *name
            || name.ends_with('s') && subject.name.starts_with(&format!("{name}:"))
    });
    if let Some((name, who)) = everybody
        && subject.kind != "ServiceAccount"
    {
        let text = format!("{name} is {who}");
        found.push(Danger {
            rule: "everybody",
            text,
        });
    }
    if accounts.are_foreign(subject) {
        let text = format!(
            "it is an account of another namespace, {}",
            subject.namespace
        );
        found.push(Danger {
            rule: "foreign-account",
            text,
        });
    }
    if role.kind == "ClusterRole" && role.name == "cluster-admin" {
        let text = format!(
            "gets cluster-admin, so may do everything{}",
            place(namespace)
        );
        found.push(Danger {
            rule: "cluster-admin",
            text,
        });
    }
    let rules = role.rules.iter().flatten();
    let mut told: BTreeMap<Told, BTreeSet<String>> = BTreeMap::new();
    for (may, what) in rules.flat_map(|rule| of_rule(rule, namespace)) {
        told.entry(may).or_default().insert(what);
    }
    found.extend(told.into_iter().map(|((rule, means), what)| {
        let what: Vec<_> = what.into_iter().collect();
        let text = format!("may {}{}{means}", what.join("; "), place(namespace));
        Danger { rule, text }
    }));
    found.sort();
    found
}

/// The word for a danger, and what it means.
type Told = (&'static str, &'static str);

/// Whether a person should know of a rule; `namespace` is empty when it holds everywhere.
#[must_use]
pub fn is_dangerous(rule: &Rule, namespace: &str) -> bool {
    !of_rule(rule, namespace).is_empty()
}

fn place(namespace: &str) -> String {
    match namespace {
        "" => " in the whole cluster".to_owned(),
        namespace => format!(" in {namespace}"),
    }
}

/// Whether a list of a rule covers a word.
fn covers(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == "*" || one == word)
}

/// Whether a rule is about a resource.
fn is_about(rule: &Rule, group: &str, resource: &str) -> bool {
    let any_of = resource
        .split_once('/')
        .map(|(_, part)| format!("*/{part}"));
    covers(&rule.groups, group)
        && (covers(&rule.resources, resource)
            || any_of.is_some_and(|any| rule.resources.contains(&any)))
}

/// What a person should know of a rule: the dangers, each with what the rule allows.
fn of_rule(rule: &Rule, namespace: &str) -> Vec<(Told, String)> {
    let has_star = |list: &[String]| list.iter().any(|one| one == "*");
    let mut found = vec![];
    if has_star(&rule.resources) || has_star(&rule.groups) {
        let means = ": that includes what is not there yet";
        found.push((("wildcard", means), rule.words()));
    } else if has_star(&rule.verbs) {
        found.push((("every-verb", ""), rule.words()));
    }
    // What a rule for everything allows besides is in that already.
    if has_star(&rule.resources) && has_star(&rule.groups) && has_star(&rule.verbs) {
        return found;
    }
    found.extend(giving_rights(rule));
    found.extend(of_secrets(rule, namespace));
    found.extend(in_pods(rule));
    found
}

/// Verbs that give rights themselves, where they mean something.
fn giving_rights(rule: &Rule) -> impl Iterator<Item = (Told, String)> {
    let gives = GIVE_RIGHTS.iter().filter(|(verb, _, resources)| {
        let is_said = rule.verbs.iter().any(|one| one == verb);
        let is_meant = resources
            .iter()
            .any(|(group, resource)| is_about(rule, group, resource));
        is_said || covers(&rule.verbs, verb) && is_meant
    });
    gives.map(|(verb, means, _)| ((*verb, *means), rule.words()))
}

/// Reading Secrets where they are not the operator's.
fn of_secrets(rule: &Rule, namespace: &str) -> Option<(Told, String)> {
    let reads = ["get", "list", "watch"].into_iter();
    let reads: Vec<_> = reads.filter(|verb| covers(&rule.verbs, verb)).collect();
    let reads_all = is_about(rule, "", "secrets")
        && !reads.is_empty()
        && rule.names.is_empty()
        && ["", KUBE_SYSTEM].contains(&namespace);
    reads_all.then(|| {
        (
            ("read-secrets", ""),
            format!("{} all Secrets", reads.join(", ")),
        )
    })
}

/// Running pods, and reaching into those that run.
fn in_pods(rule: &Rule) -> Vec<(Told, String)> {
    let creates = covers(&rule.verbs, "create");
    let run = RUN_AS_PODS.into_iter();
    let run = run.filter(|(group, resource)| creates && is_about(rule, group, resource));
    let run: Vec<_> = run.map(|(_, resource)| resource).collect();
    let mut found = vec![];
    if !run.is_empty() {
        let means = ": runs pods under every ServiceAccount there";
        found.push((("run-pods", means), format!("create {}", run.join(", "))));
    }
    for (group, resource, means) in REACH_INTO {
        let acts = creates || resource == "nodes/proxy" && !rule.verbs.is_empty();
        if is_about(rule, group, resource) && acts {
            found.push((("reach-into-pods", means), rule.words()));
        }
    }
    found
}

/// What pods of an object may do to their nodes.
fn of_pods(manifest: &Manifest) -> Vec<Danger> {
    let Some(spec) = pod_spec(manifest) else {
        return vec![];
    };
    let host = |text| Danger { rule: "host", text };
    let shared = [
        ("hostNetwork", "network"),
        ("hostPID", "processes"),
        ("hostIPC", "shared memory"),
    ];
    let shared = shared.into_iter();
    let shared = shared.filter(|(field, _)| spec.get(*field) == Some(&Value::Bool(true)));
    let shared =
        shared.map(|(field, what)| format!("its pods use the {what} of their node ({field})"));
    let paths =
        list(spec, "volumes").filter_map(|volume| volume.pointer("/hostPath/path")?.as_str());
    let paths = paths.map(|path| format!("its pods use {path} of their node (hostPath)"));
    let mut found: Vec<_> = shared.chain(paths).map(host).collect();
    let containers = ["initContainers", "containers"].into_iter();
    let containers = containers.flat_map(|field| list(spec, field));
    found.extend(containers.flat_map(of_container));
    found
}

/// The specification of the pods of an object, if it runs any.
fn pod_spec(manifest: &Manifest) -> Option<&Value> {
    let spec = manifest.object().get("spec")?;
    match manifest.kind() {
        "Pod" => Some(spec),
        "CronJob" => spec.pointer("/jobTemplate/spec/template/spec"),
        "DaemonSet" | "Deployment" | "Job" | "ReplicaSet" | "StatefulSet" => {
            spec.pointer("/template/spec")
        }
        _ => None,
    }
}

/// What a container may do to its node.
fn of_container(container: &Value) -> Vec<Danger> {
    let name = container.get("name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let context = container.get("securityContext").unwrap_or(&Value::Null);
    let mut found = vec![];
    if context.get("privileged") == Some(&Value::Bool(true)) {
        found.push(format!(
            "container {name} is privileged: it is root on its node"
        ));
    }
    let added = context.pointer("/capabilities/add");
    let added = added.and_then(Value::as_array).into_iter().flatten();
    let added = added.filter_map(Value::as_str);
    let added = added.map(|name| name.strip_prefix("CAP_").unwrap_or(name));
    let added: Vec<_> = added.filter(|name| CAPABILITIES.contains(name)).collect();
    if !added.is_empty() {
        let added = added.join(", ");
        found.push(format!("container {name} has the capability {added}"));
    }
    let rule = "privileged";
    found
        .into_iter()
        .map(|text| Danger { rule, text })
        .collect()
}

fn list<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// What webhooks see.
fn of_webhooks(manifest: &Manifest) -> Vec<Danger> {
    let is_configuration = manifest.group() == "admissionregistration.k8s.io";
    let webhooks = manifest
        .object()
        .get("webhooks")
        .filter(|_| is_configuration);
    let webhooks = webhooks.and_then(Value::as_array).into_iter().flatten();
    let has_star = |rule: &Value, field: &str| {
        list(rule, field).any(|one| one.as_str().is_some_and(|one| one == "*" || one == "*/*"))
    };
    let found = webhooks.filter_map(|webhook| {
        let is_wide = list(webhook, "rules")
            .any(|rule| has_star(rule, "resources") || has_star(rule, "apiGroups"));
        let name = webhook
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let when_down = match webhook.get("failurePolicy").and_then(Value::as_str) {
            Some("Ignore") => "",
            _ => ", and stops those changes while it does not answer",
        };
        is_wide.then(|| Danger {
            rule: "wide-webhook",
            text: format!("webhook {name} sees changes of every kind or group{when_down}"),
        })
    });
    found.collect()
}

/// Objects where the cluster's own parts are.
fn of_place(manifest: &Manifest) -> Vec<Danger> {
    let text = match (manifest.kind(), manifest.namespace(), manifest.name()) {
        (_, KUBE_SYSTEM, _) => format!("it is in {KUBE_SYSTEM}, where the cluster's own parts are"),
        ("Namespace", _, KUBE_SYSTEM) => {
            format!("it is {KUBE_SYSTEM}, where the cluster's own parts are")
        }
        _ => return vec![],
    };
    vec![Danger {
        rule: "kube-system",
        text,
    }]
}
