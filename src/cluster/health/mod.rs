//! Whether an object is ready, and why it is not, in a line that its user understands.
//!
//! The states are those of kstatus (sigs.k8s.io/cli-utils `pkg/kstatus/status`, `Compute`), and are found in its order:
//! deletion, `observedGeneration`, the conditions `Reconciling` and `Stalled`, the rules of the kind, the condition
//! `Ready`; what has nothing of this is as it was asked for. The words are ours.
//!
//! We differ from it on purpose:
//! - an APIService is ready when it is `Available`, which kstatus does not look at: until then, requests for its group fail;
//! - cert-manager's Certificate, Issuer and ClusterIssuer are on their way until they say that they are `Ready`; for
//!   kstatus they are current until their controller has seen them;
//! - so is a StatefulSet whose controller has not seen it, which for kstatus is current when it has no replicas;
//! - a Pod that finds no node is on its way for ever: kstatus gives up after 15 s, but nodes may be added, and a clock
//!   would make the same input give different answers;
//! - a status that is no status, such as conditions that are no list, is one without them; kstatus stops with an error.
//!
//! | File | What is in it |
//! | --- | --- |
//! | `condition.rs` | conditions, and how they are told |
//! | `workloads.rs` | the rules of what runs pods |
//! | `kinds.rs` | the rules of other kinds |
//! | `reasons.rs` | why something is not ready, as its pods, its replica sets and its events say |

mod condition;
mod kinds;
pub mod reasons;
mod workloads;

use serde_json::Value;

use self::condition::Condition;

/// What state an object is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It is as it was asked for.
    Current,
    /// It is on its way; why, in one line.
    InProgress(String),
    /// It will not get there by itself; why, in one line.
    Failed(String),
    /// It is being deleted.
    Terminating,
}

impl Health {
    /// Why the object is not ready, in one line; nothing when it is.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Current => None,
            Self::InProgress(reason) | Self::Failed(reason) => Some(reason),
            Self::Terminating => Some("it is being deleted"),
        }
    }
}

/// The state of a live object, which must have its `apiVersion` and `kind`; objects in lists of the API have neither.
#[must_use]
pub fn of(live: &Value) -> Health {
    if !text(live, "/metadata/deletionTimestamp").is_empty() {
        return Health::Terminating;
    }
    if let Some(health) = unseen(live) {
        return health;
    }
    let conditions = condition::all(live);
    for condition in &conditions {
        match (condition.kind, condition.status) {
            ("Reconciling", "True") => return Health::InProgress(condition.told()),
            ("Stalled", "True") => return Health::Failed(condition.told()),
            _ => {}
        }
    }
    let object = Object {
        live,
        conditions: &conditions,
    };
    let (group, kind) = (group(live), text(live, "/kind"));
    workloads::of(group, kind, &object)
        .or_else(|| kinds::of(group, kind, &object))
        .unwrap_or_else(|| kinds::by_ready(&object).unwrap_or(Health::Current))
}

/// Whether an object of a kind is ready as soon as it is written, so that nothing needs to be asked.
#[must_use]
pub fn is_ready_when_written(group: &str, kind: &str) -> bool {
    const KINDS: &[(&str, &[&str])] = &[
        ("", &["ConfigMap", "LimitRange", "Secret", "ServiceAccount"]),
        (
            "admissionregistration.k8s.io",
            &[
                "MutatingWebhookConfiguration",
                "ValidatingAdmissionPolicyBinding",
                "ValidatingWebhookConfiguration",
            ],
        ),
        (
            "console.openshift.io",
            &[
                "ConsoleCLIDownload",
                "ConsoleLink",
                "ConsoleQuickStart",
                "ConsoleYAMLSample",
            ],
        ),
        ("networking.k8s.io", &["NetworkPolicy"]),
        (
            "rbac.authorization.k8s.io",
            &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        ),
        ("scheduling.k8s.io", &["PriorityClass"]),
    ];
    let of_group = KINDS.iter().find(|(known, _)| *known == group);
    of_group.is_some_and(|(_, kinds)| kinds.contains(&kind))
}

/// An object, and its conditions.
struct Object<'v> {
    live: &'v Value,
    conditions: &'v [Condition<'v>],
}

impl<'v> Object<'v> {
    /// The first condition of a kind.
    fn condition(&self, kind: &str) -> Option<&Condition<'v>> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// A whole number, or what it is by default.
    fn number(&self, pointer: &str, default: i64) -> i64 {
        number(self.live, pointer).unwrap_or(default)
    }

    fn text(&self, pointer: &str) -> &'v str {
        text(self.live, pointer)
    }
}

/// What is to be said when the controller has not seen the object as it is now, as far as it tells what it has seen.
fn unseen(live: &Value) -> Option<Health> {
    let generation = number(live, "/metadata/generation")?;
    let observed = number(live, "/status/observedGeneration")?;
    (observed != generation).then(|| {
        Health::InProgress(format!(
            "its controller has not seen the latest change yet (generation {observed} of {generation})"
        ))
    })
}

fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

fn group(live: &Value) -> &str {
    let version = text(live, "/apiVersion").rsplit_once('/');
    version.map_or("", |(group, _)| group)
}
