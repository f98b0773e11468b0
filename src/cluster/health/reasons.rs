//! Why an object is not ready, as everything around it says: its replica set, its pods and its events; and why one that
//! is being deleted is still there.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Health,
    condition::{self, joined, one_line},
    number, text,
};

/// As many events are told.
const TOLD_EVENTS: usize = 5;
/// As many things are told of pods.
const TOLD_OF_PODS: usize = 10;
/// What the recorder of Kubernetes puts before a message that it says for several.
const COMBINED: &str = "(combined from similar events): ";

/// Objects that may have to do with one that is not ready; those that have not are passed over.
#[derive(Clone, Copy, Default)]
pub struct Around<'v> {
    /// ReplicaSets of its namespace.
    pub replica_sets: &'v [Value],
    /// Pods of its namespace.
    pub pods: &'v [Value],
    /// Events of its namespace; of objects that are in none, those of the namespace `default`.
    pub events: &'v [Value],
}

/// Why a live object is not ready, one line each, what matters most first; nothing when it is ready.
#[must_use]
pub fn of(live: &Value, around: &Around<'_>) -> Vec<String> {
    let health = super::of(live);
    let Some(reason) = health.reason() else {
        return vec![];
    };
    let mut reasons = vec![reason.to_owned()];
    if health == Health::Terminating {
        return reasons;
    }
    let newest = newest_replica_set(live, around.replica_sets);
    let pods = owned(newest.unwrap_or(live), around.pods);
    let failures = [Some(live), newest].into_iter().flatten();
    let of_replicas = failures.filter_map(replica_failure);
    let of_pods = of_pods(&pods);
    let known = [live].into_iter().chain(newest).chain(pods);
    let of_events = of_events(&known.collect::<Vec<_>>(), around.events);
    for line in of_replicas.chain(of_pods).chain(of_events) {
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons
}

/// Why a live object is not gone, one line each. `now` tells for how long that has been so.
#[must_use]
pub fn not_gone(live: &Value, now: Timestamp) -> Vec<String> {
    let since = text(live, "/metadata/deletionTimestamp");
    if since.is_empty() {
        return vec!["it is there, and nobody has deleted it".to_owned()];
    }
    let mut going = "it is being deleted".to_owned();
    if let Ok(since) = since.parse::<Timestamp>() {
        let seconds = now.as_second().saturating_sub(since.as_second());
        going = format!("it has been going for {}", age(seconds));
    }
    let finalizers = texts(live, "/metadata/finalizers");
    let mut reasons = vec![if finalizers.is_empty() {
        going
    } else {
        let finalizers = one_line(&finalizers.join(", "));
        format!("{going} and waits for its finalizers: {finalizers}")
    }];
    if text(live, "/kind") == "Namespace" {
        reasons.extend(of_namespace(live));
    }
    reasons
}

/// Why a namespace is not gone (kubernetes `pkg/controller/namespace/deletion/status_condition_utils.go`).
fn of_namespace(live: &Value) -> Vec<String> {
    let mut reasons = vec![];
    for condition in condition::all(live) {
        if condition.status != "True" || !condition.kind.starts_with("Namespace") {
            continue;
        }
        if condition.kind == "NamespaceDeletionDiscoveryFailure" {
            let broken = broken_services(condition.message);
            reasons.extend(broken.into_iter().map(|service| {
                format!("apiservice.apiregistration.k8s.io/{service} does not answer, and no namespace goes until it does or is deleted")
            }));
        }
        reasons.push(joined(&[condition.kind, condition.message]));
    }
    reasons
}

/// The APIServices of the versions of APIs that are named in a message.
fn broken_services(message: &str) -> BTreeSet<String> {
    let words = message.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']'));
    let versions = words.filter_map(|word| word.trim_end_matches(':').split_once('/'));
    let versions = versions.filter(|(group, version)| {
        let number = version.strip_prefix('v').unwrap_or_default();
        group.contains('.') && number.starts_with(|c: char| c.is_ascii_digit())
    });
    versions
        .map(|(group, version)| format!("{version}.{group}"))
        .collect()
}

/// The replica set that a Deployment wants now.
fn newest_replica_set<'v>(live: &Value, replica_sets: &'v [Value]) -> Option<&'v Value> {
    let owned = owned(live, replica_sets);
    owned.into_iter().max_by_key(|replica_set| {
        let annotations = replica_set.pointer("/metadata/annotations");
        let revision = annotations.and_then(|all| all.get("deployment.kubernetes.io/revision"));
        let revision = revision.and_then(Value::as_str).unwrap_or_default();
        (
            revision.parse::<u64>().unwrap_or_default(),
            text(replica_set, "/metadata/name"),
        )
    })
}

/// Those objects that a live one owns, by name.
fn owned<'v>(owner: &Value, objects: &'v [Value]) -> Vec<&'v Value> {
    let uid = text(owner, "/metadata/uid");
    let owned = objects.iter().filter(|object| {
        let owners = list(object, "/metadata/ownerReferences").iter();
        !uid.is_empty() && owners.into_iter().any(|owner| text(owner, "/uid") == uid)
    });
    let mut owned: Vec<_> = owned.collect();
    owned.sort_by_key(|object| text(object, "/metadata/name"));
    owned
}

/// Why pods cannot even be made: quotas, security context constraints, webhooks.
fn replica_failure(object: &Value) -> Option<String> {
    let conditions = condition::all(object);
    let mut conditions = conditions.iter();
    let failure = conditions
        .find(|condition| condition.kind == "ReplicaFailure" && condition.status == "True")?;
    Some(format!(
        "no pods are made: {}",
        failure.why("it does not say why")
    ))
}

/// What is wrong with pods; what is wrong with several in the same way is told of the first.
fn of_pods(pods: &[&Value]) -> Vec<String> {
    let mut found: Vec<(Fault, &str, usize)> = vec![];
    for pod in pods {
        for fault in faults(pod) {
            let same = |(other, _, _): &&mut (Fault, _, _)| {
                (&other.part, &other.kind) == (&fault.part, &fault.kind)
            };
            match found.iter_mut().find(same) {
                Some((_, _, more)) => *more += 1,
                None => found.push((fault, text(pod, "/metadata/name"), 0)),
            }
        }
    }
    let told = found.into_iter().take(TOLD_OF_PODS);
    told.map(|(fault, pod, more)| {
        let part = match fault.part.as_str() {
            "" => String::new(),
            container => format!("container {container} of "),
        };
        let more = match more {
            0 => String::new(),
            1 => " and 1 more".to_owned(),
            more => format!(" and {more} more"),
        };
        let what = joined(&[&fault.kind, &fault.message]);
        format!("{part}pod {pod}{more}: {what}")
    })
    .collect()
}

/// Something that is wrong with a pod.
struct Fault {
    /// The container; empty for the pod itself.
    part: String,
    /// What is wrong, in a word or two.
    kind: String,
    message: String,
}

fn faults(pod: &Value) -> Vec<Fault> {
    let mut faults = vec![];
    let of_pod = |kind: &str, message: &str| Fault {
        part: String::new(),
        kind: kind.to_owned(),
        message: message.to_owned(),
    };
    for condition in condition::all(pod) {
        if condition.kind == "PodScheduled" && condition.status == "False" {
            faults.push(of_pod("no node takes it", condition.message));
        }
    }
    if text(pod, "/status/phase") == "Failed" {
        let (reason, message) = (text(pod, "/status/reason"), text(pod, "/status/message"));
        faults.push(of_pod("it has failed", &joined(&[reason, message])));
    }
    for containers in ["/status/initContainerStatuses", "/status/containerStatuses"] {
        faults.extend(list(pod, containers).iter().filter_map(container_fault));
    }
    faults
}

/// What is wrong with a container, as its status says.
fn container_fault(status: &Value) -> Option<Fault> {
    let reason = text(status, "/state/waiting/reason");
    let (kind, message) = match reason {
        // It has ended, or is about to start.
        "" | "ContainerCreating" | "PodInitializing" => {
            let is_ready = status.get("ready").and_then(Value::as_bool) == Some(true);
            let now = end(status.pointer("/state/terminated"));
            let last = || end(status.pointer("/lastState/terminated"));
            let ended = now.or_else(last).filter(|_| !is_ready)?;
            ("it does not stay up".to_owned(), ended)
        }
        "CrashLoopBackOff" => {
            let last = end(status.pointer("/lastState/terminated"));
            let message = last.unwrap_or_else(|| text(status, "/state/waiting/message").to_owned());
            (reason.to_owned(), message)
        }
        _ => {
            let (image, message) = (
                text(status, "/image"),
                text(status, "/state/waiting/message"),
            );
            let message = if image.is_empty() || message.contains(image) {
                message.to_owned()
            } else {
                joined(&[&format!("image {image}"), message])
            };
            (reason.to_owned(), message)
        }
    };
    Some(Fault {
        part: text(status, "/name").to_owned(),
        kind,
        message,
    })
}

/// How a container has ended, if that was no success.
fn end(terminated: Option<&Value>) -> Option<String> {
    let terminated = terminated?;
    let code = number(terminated, "/exitCode").filter(|code| *code != 0)?;
    let (reason, message) = (text(terminated, "/reason"), text(terminated, "/message"));
    let reason = match reason {
        "" | "Error" => String::new(),
        reason => format!(" ({})", one_line(reason)),
    };
    Some(joined(&[
        &format!("ended with exit code {code}{reason}"),
        message,
    ]))
}

/// What the newest warnings say of some objects, each once.
fn of_events(objects: &[&Value], events: &[Value]) -> Vec<String> {
    let uids: BTreeSet<_> = objects
        .iter()
        .map(|object| text(object, "/metadata/uid"))
        .collect();
    let ours = events.iter().filter(|event| {
        let uid = text(event, "/involvedObject/uid");
        text(event, "/type") == "Warning" && !uid.is_empty() && uids.contains(uid)
    });
    // The same is told of each pod, and of each that could not be made, by the name that it was to have.
    let mut newest: BTreeMap<String, (&str, String, i64)> = BTreeMap::new();
    for event in ours {
        let what = joined(&[text(event, "/reason"), text(event, "/message")]);
        let what = what.replace(COMBINED, "");
        let time = time_of(event);
        let count = number(event, "/series/count").or_else(|| number(event, "/count"));
        let (last, said, times) = newest.entry(nameless(&what)).or_default();
        if *last <= time {
            (*last, *said) = (time, what);
        }
        *times = times.saturating_add(count.unwrap_or(1).max(1));
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_by(|one, other| other.cmp(one));
    let told = newest.into_iter().take(TOLD_EVENTS);
    told.map(|(_, what, times)| match times {
        1 => format!("event {what}"),
        times => format!("event, {times} times, {what}"),
    })
    .collect()
}

/// What an event says, without the name of a pod that could not be made.
fn nameless(what: &str) -> String {
    let around = what
        .split_once("pods \"")
        .and_then(|(before, rest)| Some((before, rest.split_once('"')?.1)));
    match around {
        Some((before, after)) => format!("{before}pods{after}"),
        None => what.to_owned(),
    }
}

/// When an event was seen last, as text that sorts.
fn time_of(event: &Value) -> &str {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let times = times.into_iter().map(|pointer| text(event, pointer));
    times.max().unwrap_or_default()
}

/// Seconds as people read them, in the two largest units.
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn texts<'v>(value: &'v Value, pointer: &str) -> Vec<&'v str> {
    list(value, pointer)
        .iter()
        .filter_map(Value::as_str)
        .collect()
}
