//! The rules of what runs pods: Deployment, StatefulSet, DaemonSet, ReplicaSet, Job and Pod.
//!
//! They are those of kstatus (`core.go`: `deploymentConditions`, `stsConditions`, `daemonsetConditions`,
//! `replicasetConditions`, `jobConditions`, `podConditions`), asked in the same order.

use serde_json::Value;

use super::{Health, Object, number, text};

/// The state by the rule of the kind; nothing when there is no rule for it here.
pub(super) fn of(group: &str, kind: &str, object: &Object<'_>) -> Option<Health> {
    let rule = match (group, kind) {
        ("apps" | "extensions", "Deployment") => deployment,
        ("apps", "StatefulSet") => stateful_set,
        ("apps" | "extensions", "DaemonSet") => daemon_set,
        ("apps" | "extensions", "ReplicaSet") => replica_set,
        ("batch", "Job") => job,
        ("", "Pod") => pod,
        _ => return None,
    };
    Some(rule(object).unwrap_or(Health::Current))
}

/// Why the object is not ready, if so.
type Found = Option<Health>;

/// Without `progressDeadlineSeconds`, or with this one, the controller does not watch the progress of a Deployment.
const NO_DEADLINE: i64 = i32::MAX as i64;

fn deployment(object: &Object<'_>) -> Found {
    let mut is_progressing =
        object.number("/spec/progressDeadlineSeconds", NO_DEADLINE) == NO_DEADLINE;
    let mut is_available = false;
    for condition in object.conditions {
        match condition.kind {
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                let why = condition.why("");
                return Some(Health::Failed(format!("no progress in time: {why}")));
            }
            "Progressing" => {
                is_progressing |=
                    condition.status == "True" && condition.reason == "NewReplicaSetAvailable";
            }
            "Available" => is_available |= condition.status == "True",
            _ => {}
        }
    }
    let wanted = object.number("/spec/replicas", 1);
    let all = object.number("/status/replicas", 0);
    let updated = object.number("/status/updatedReplicas", 0);
    let ready = object.number("/status/readyReplicas", 0);
    let available = object.number("/status/availableReplicas", 0);
    too_few(all, wanted, "replicas are created")
        .or_else(|| too_few(updated, wanted, "replicas are updated"))
        .or_else(|| too_many(all, wanted))
        .or_else(|| too_few(available, updated, "replicas are available"))
        .or_else(|| too_few(ready, wanted, "replicas are ready"))
        .or_else(|| (!is_progressing).then(|| waiting("its new replicas are not available yet")))
        .or_else(|| (!is_available).then(|| waiting("it is not available yet")))
}

fn stateful_set(object: &Object<'_>) -> Found {
    if object.text("/spec/updateStrategy/type") == "OnDelete" {
        return None;
    }
    // Not in kstatus: without replicas there would be nothing to wait for, seen or not.
    if object.live.pointer("/status").is_none() {
        return Some(waiting("its controller has not seen it yet"));
    }
    let wanted = object.number("/spec/replicas", 1);
    let all = object.number("/status/replicas", 0);
    let updated = object.number("/status/updatedReplicas", 0);
    let first = too_few(all, wanted, "replicas are created")
        .or_else(|| {
            let ready = object.number("/status/readyReplicas", 0);
            too_few(ready, wanted, "replicas are ready")
        })
        .or_else(|| too_many(all, wanted));
    if first.is_some() {
        return first;
    }
    let partition = object.number("/spec/updateStrategy/rollingUpdate/partition", -1);
    if partition != -1 {
        // The first replicas, so many, stay as they are.
        let to_update = wanted.saturating_sub(partition);
        return too_few(updated, to_update, "replicas are updated");
    }
    let current = object.number("/status/currentReplicas", 0);
    too_few(current, wanted, "replicas are of the current revision").or_else(|| {
        let revisions = [
            object.text("/status/currentRevision"),
            object.text("/status/updateRevision"),
        ];
        (revisions[0] != revisions[1]).then(|| waiting("not all replicas are updated"))
    })
}

fn daemon_set(object: &Object<'_>) -> Found {
    let is_seen = number(object.live, "/metadata/generation").is_some()
        && number(object.live, "/status/observedGeneration").is_some();
    let wanted = number(object.live, "/status/desiredNumberScheduled");
    let (true, Some(wanted)) = (is_seen, wanted) else {
        return Some(waiting("its controller has not seen it yet"));
    };
    let counts = [
        ("/status/currentNumberScheduled", "pods are created"),
        ("/status/updatedNumberScheduled", "pods are updated"),
        ("/status/numberAvailable", "pods are available"),
        ("/status/numberReady", "pods are ready"),
    ];
    let mut counts = counts.into_iter();
    counts.find_map(|(pointer, what)| too_few(object.number(pointer, 0), wanted, what))
}

fn replica_set(object: &Object<'_>) -> Found {
    let failures = object.conditions.iter();
    let mut failures = failures.filter(|condition| condition.kind == "ReplicaFailure");
    if let Some(failure) = failures.find(|condition| condition.status == "True") {
        let why = failure.why("see its pods");
        return Some(Health::InProgress(format!("no replicas are made: {why}")));
    }
    let wanted = object.number("/spec/replicas", 1);
    let counts = [
        ("/status/fullyLabeledReplicas", "replicas are labelled"),
        ("/status/availableReplicas", "replicas are available"),
        ("/status/readyReplicas", "replicas are ready"),
    ];
    let mut counts = counts.into_iter();
    counts
        .find_map(|(pointer, what)| too_few(object.number(pointer, 0), wanted, what))
        .or_else(|| too_many(object.number("/status/replicas", 0), wanted))
}

/// A Job is as it was asked for as soon as it runs: how long it takes is its own matter.
fn job(object: &Object<'_>) -> Found {
    for condition in object.conditions {
        match (condition.kind, condition.status) {
            ("Complete", "True") => return None,
            ("Failed", "True") => {
                let why = condition.why("its pods failed");
                return Some(Health::Failed(format!("the job has failed: {why}")));
            }
            _ => {}
        }
    }
    let is_started = !object.text("/status/startTime").is_empty();
    (!is_started).then(|| waiting("the job has not started yet"))
}

fn pod(object: &Object<'_>) -> Found {
    match object.text("/status/phase") {
        "Succeeded" | "Failed" => None,
        "Running" => {
            let mut conditions = object.conditions.iter();
            if conditions.any(|condition| condition.kind == "Ready" && condition.status == "True") {
                return None;
            }
            let crashing = crashing(object.live);
            if crashing.is_empty() {
                return Some(waiting("the pod runs and is not ready yet"));
            }
            let crashing = crashing.join(", ");
            Some(Health::Failed(format!(
                "it crashes again and again: {crashing}"
            )))
        }
        "Pending" => {
            let mut conditions = object.conditions.iter();
            let unscheduled = conditions
                .find(|condition| condition.kind == "PodScheduled" && condition.status == "False");
            Some(match unscheduled {
                Some(condition) if condition.reason == "Unschedulable" => {
                    Health::InProgress(format!("no node takes it: {}", condition.why("")))
                }
                _ => waiting("the pod has not started yet"),
            })
        }
        _ => Some(waiting("no node has seen the pod yet")),
    }
}

/// The containers of a pod that are not started again for now, as they end too often.
fn crashing(pod: &Value) -> Vec<&str> {
    let containers = pod.pointer("/status/containerStatuses");
    let containers = containers.and_then(Value::as_array).map(Vec::as_slice);
    let containers = containers.unwrap_or_default().iter();
    containers
        .filter(|container| text(container, "/state/waiting/reason") == "CrashLoopBackOff")
        .map(|container| text(container, "/name"))
        .collect()
}

fn too_few(count: i64, wanted: i64, what: &str) -> Found {
    (count < wanted).then(|| Health::InProgress(format!("{count} of {wanted} {what}")))
}

fn too_many(count: i64, wanted: i64) -> Found {
    (count > wanted).then(|| {
        let old = count.saturating_sub(wanted);
        Health::InProgress(match old {
            1 => "1 old replica is still there".to_owned(),
            old => format!("{old} old replicas are still there"),
        })
    })
}

fn waiting(reason: &str) -> Health {
    Health::InProgress(reason.to_owned())
}
