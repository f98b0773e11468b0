//! What a difference leaves out: fields that the server and its controllers write, and that nobody asked for.
//!
//! The list below is the only one. Much of it is that of kapp (carvel-dev/kapp `pkg/kapp/config/default.go`,
//! `rebaseRules` and `diffAgainstLastAppliedFieldExclusionRules`).

use serde_json::Value;

use super::Asked;
use crate::{cluster::desired::PART_OF, manifest::ObjectKey};

/// A field that is left out.
pub struct Noise {
    /// The group and the kind whose field it is; nothing for all kinds.
    pub of: Option<(&'static str, &'static str)>,
    /// The way to it. A step may hold `*` for any text: of a map it names keys, of a list the names of its items, and
    /// `*` alone stands for every item.
    pub path: &'static [&'static str],
    /// When it is left out.
    pub when: When,
    /// Why nobody wants to see it.
    pub reason: &'static str,
}

/// When a field is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Whatever was asked for.
    Always,
    /// Whatever was asked for, of objects that have this field.
    With(&'static str),
    /// Unless it was asked for, and not to be empty.
    UnlessAsked,
    /// Unless both sides have it, and not the same.
    UnlessChanged,
}

use When::{Always, UnlessAsked, UnlessChanged, With};

const NAMESPACE: Option<(&str, &str)> = Some(("", "Namespace"));
const SERVICE: Option<(&str, &str)> = Some(("", "Service"));
const ACCOUNT: Option<(&str, &str)> = Some(("", "ServiceAccount"));

/// Everything that is left out.
#[rustfmt::skip]
pub const NOISE: &[Noise] = &[
    row(None, &["metadata", "managedFields"], Always, "the server's own notes of whose a field is"),
    row(None, &["metadata", "resourceVersion"], Always, "it counts writes"),
    row(None, &["metadata", "uid"], Always, "the server chooses it"),
    row(None, &["metadata", "generation"], Always, "it counts changes of what is asked for"),
    row(None, &["metadata", "creationTimestamp"], Always, "the server sets it"),
    row(None, &["metadata", "selfLink"], Always, "servers before 1.20 set it"),
    row(None, &["metadata", "labels", PART_OF], UnlessChanged, "how installs find their objects; it is shown when an object changes hands"),
    row(None, &["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"], UnlessAsked, "kubectl's copy of the object"),
    row(None, &["status"], UnlessAsked, "controllers write it"),
    row(Some(("apps", "Deployment")), &["metadata", "annotations", "deployment.kubernetes.io/revision"], UnlessAsked, "it counts rollouts"),
    row(Some(("admissionregistration.k8s.io", "MutatingWebhookConfiguration")), &["webhooks", "*", "clientConfig", "caBundle"], UnlessAsked, "cert-manager or OpenShift fills it in"),
    row(Some(("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")), &["webhooks", "*", "clientConfig", "caBundle"], UnlessAsked, "cert-manager or OpenShift fills it in"),
    row(Some(("apiextensions.k8s.io", "CustomResourceDefinition")), &["spec", "conversion", "webhook", "clientConfig", "caBundle"], UnlessAsked, "cert-manager or OpenShift fills it in"),
    row(Some(("apiregistration.k8s.io", "APIService")), &["spec", "caBundle"], UnlessAsked, "cert-manager or OpenShift fills it in"),
    row(Some(("rbac.authorization.k8s.io", "ClusterRole")), &["rules"], With("aggregationRule"), "a controller collects them from other ClusterRoles, and overwrites what is asked for"),
    row(SERVICE, &["spec", "clusterIP"], UnlessAsked, "the server chooses it"),
    row(SERVICE, &["spec", "clusterIPs"], UnlessAsked, "the server chooses them"),
    row(SERVICE, &["spec", "healthCheckNodePort"], UnlessAsked, "the server chooses it"),
    row(SERVICE, &["spec", "ports", "*", "nodePort"], UnlessAsked, "the server chooses it"),
    row(NAMESPACE, &["spec", "finalizers"], UnlessAsked, "the server sets it"),
    row(NAMESPACE, &["metadata", "labels", "kubernetes.io/metadata.name"], UnlessAsked, "the server sets it"),
    row(NAMESPACE, &["metadata", "labels", "pod-security.kubernetes.io/*"], UnlessAsked, "OpenShift keeps them in step with what pods may do"),
    row(NAMESPACE, &["metadata", "annotations", "security.openshift.io/*"], UnlessAsked, "OpenShift adds them"),
    row(NAMESPACE, &["metadata", "annotations", "openshift.io/sa.scc.*"], UnlessAsked, "OpenShift gives each namespace its user ids"),
    row(ACCOUNT, &["secrets", "*-dockercfg-*"], UnlessAsked, "OpenShift adds a login of its own to each account"),
    row(ACCOUNT, &["secrets", "*-token-*"], UnlessAsked, "servers before 1.24 and OpenShift add tokens"),
    row(ACCOUNT, &["imagePullSecrets", "*-dockercfg-*"], UnlessAsked, "OpenShift adds a login of its own to each account"),
    row(ACCOUNT, &["metadata", "annotations", "openshift.io/internal-registry-pull-secret-ref"], UnlessAsked, "OpenShift notes the login that it has added"),
];

const fn row(
    of: Option<(&'static str, &'static str)>,
    path: &'static [&'static str],
    when: When,
    reason: &'static str,
) -> Noise {
    Noise {
        of,
        path,
        when,
        reason,
    }
}

/// Takes the noise out of both sides of an object.
pub(super) fn remove(
    mut before: Option<&mut Value>,
    mut after: Option<&mut Value>,
    key: &ObjectKey,
    asked: &Asked,
) {
    for noise in NOISE {
        let is_of_kind = noise
            .of
            .is_none_or(|(group, kind)| key.group == group && key.kind == kind);
        if !is_of_kind || !is_left_out(noise, before.as_deref(), after.as_deref(), asked) {
            continue;
        }
        let asked = match (noise.when, asked) {
            (UnlessAsked, Asked::Object(object)) => Some(object),
            _ => None,
        };
        let sides = [before.as_deref_mut(), after.as_deref_mut()];
        for side in sides.into_iter().flatten() {
            take_out(side, noise.path, asked);
        }
    }
}

/// Whether a line of the list holds for an object at all.
fn is_left_out(
    noise: &Noise,
    before: Option<&Value>,
    after: Option<&Value>,
    asked: &Asked,
) -> bool {
    let sides = [before, after];
    match noise.when {
        Always => true,
        UnlessAsked => *asked != Asked::Everything,
        With(field) => sides
            .iter()
            .flatten()
            .any(|side| !is_empty(side.get(field))),
        UnlessChanged => match sides.map(|side| at(side?, noise.path)) {
            [Some(before), Some(after)] => before == after,
            _ => true,
        },
    }
}

/// The value at a path of plain keys.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Takes out what a path leads to, but for what was asked for, and what is empty without it.
fn take_out(value: &mut Value, path: &[&str], asked: Option<&Value>) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                !matches(step, key) || stays(value, rest, asked.and_then(|asked| asked.get(key)))
            });
        }
        Value::Array(items) => {
            let mut position = 0;
            items.retain_mut(|item| {
                let asked = asked.and_then(|asked| same_item(asked, item, position));
                position += 1;
                let name = item.get("name").and_then(Value::as_str);
                !matches(step, name.unwrap_or_default()) || stays(item, rest, asked)
            });
        }
        _ => {}
    }
}

/// Whether a value stays, after what the rest of the path leads to was taken out of it.
fn stays(value: &mut Value, rest: &[&str], asked: Option<&Value>) -> bool {
    if rest.is_empty() {
        return !is_empty(asked);
    }
    let was_empty = is_empty(Some(value));
    take_out(value, rest, asked);
    was_empty || !is_empty(Some(value))
}

/// The item of a list that was asked for and is the same one: by its name, else by its port, else by its position.
fn same_item<'v>(asked: &'v Value, item: &Value, position: usize) -> Option<&'v Value> {
    let items = asked.as_array()?;
    for field in ["name", "port"] {
        if let Some(identity) = item.get(field) {
            return items
                .iter()
                .find(|other| other.get(field) == Some(identity));
        }
    }
    items.get(position)
}

/// Whether a value says nothing: zero too, as the server chooses what is zero.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Bool(_)) => false,
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, mut pattern)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    while let Some((middle, rest)) = pattern.split_once('*') {
        let Some(found) = text.find(middle) else {
            return false;
        };
        text = text.get(found + middle.len()..).unwrap_or_default();
        pattern = rest;
    }
    text.ends_with(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("status", "status2", false),
            ("a.*", "a.b", true),
            ("*-token-*", "default-token-x7k2p", true),
            ("*-token-*", "token", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
