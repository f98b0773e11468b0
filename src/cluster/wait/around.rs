//! Reads what there is around objects that are not ready or not gone, and tells why they are not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    NotReady, Sender, State, Watched,
    look::{Form, Seen, items, look},
};
use crate::{
    cluster::{
        AT_ONCE,
        health::reasons::{self, Around},
        request::Request,
        resource::{Resource, Scope},
    },
    concurrent::concurrently,
};

/// Of as many objects it is told what is around them; of the rest, what they say themselves.
const TOLD: usize = 20;

/// Where the events of objects are that are in no namespace.
const DEFAULT: &str = "default";

/// Why objects are not ready, those first that never will be. What may not be read is said once, of the first of them.
pub(super) fn not_ready(send: &Sender<'_>, mut pending: Vec<Watched<'_>>) -> Vec<NotReady> {
    pending.sort_by_key(|watched| watched.state != State::Failed);
    let has_ended = |watched: &Watched<'_>| watched.state == State::Stopped;
    let count = if pending.iter().any(has_ended) {
        0
    } else {
        TOLD
    };
    let told = pending.get(..count.min(pending.len())).unwrap_or_default();
    let unread = Mutex::new(BTreeSet::new());
    let read = |resource: &Resource, request: &Request| match send(request) {
        Ok(answer) => items(answer.body, resource),
        Err(error) => {
            let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
            unread.insert(format!("more could not be read: {error}"));
            vec![]
        }
    };
    let events = read_events(&read, told);
    let around = concurrently(told, AT_ONCE, |watched| read_around(&read, watched));
    let mut around = around.into_iter();
    let all = pending.iter().map(|watched| {
        let (replica_sets, pods) = around.next().unwrap_or_default();
        let events = events.get(namespace_of(watched)).map(Vec::as_slice);
        let around = Around {
            replica_sets: &replica_sets,
            pods: &pods,
            events: events.unwrap_or_default(),
        };
        explained(watched, &around)
    });
    let mut all: Vec<_> = all.collect();
    if let Some(first) = all.first_mut() {
        let unread = unread.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.reasons.extend(unread);
    }
    all
}

/// Why objects are not gone.
pub(super) fn not_gone(
    send: &Sender<'_>,
    pending: Vec<Watched<'_>>,
    now: Timestamp,
) -> Vec<NotReady> {
    // Namespaces say in their status what holds them.
    let is_namespace = |watched: &Watched<'_>| watched.key.is_namespace();
    let namespaces = pending.iter().filter(|watched| is_namespace(watched));
    let namespaces: Vec<_> = namespaces.map(Watched::named).collect();
    let mut seen = look(send, &namespaces, Form::Whole).into_iter();
    let all = pending.into_iter().map(|mut watched| {
        if is_namespace(&watched)
            && let Some(Seen::There(live)) = seen.next()
        {
            watched.live = Some(live);
        }
        let reasons = match &watched.live {
            Some(live) if watched.reason.is_empty() => reasons::not_gone(live, now),
            _ => vec![watched.reason],
        };
        NotReady {
            key: watched.key.clone(),
            reasons,
            is_failed: false,
        }
    });
    all.collect()
}

fn explained(watched: &Watched<'_>, around: &Around<'_>) -> NotReady {
    let mut reasons = vec![watched.reason.clone()];
    if let Some(live) = &watched.live {
        for reason in reasons::of(live, around) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    NotReady {
        key: watched.key.clone(),
        reasons,
        is_failed: watched.state == State::Failed,
    }
}

/// Reads a list.
type Read<'r> = dyn Fn(&Resource, &Request) -> Vec<Value> + Sync + 'r;

/// The warnings of the namespaces of some objects.
fn read_events<'w>(read: &Read<'_>, told: &'w [Watched<'_>]) -> BTreeMap<&'w str, Vec<Value>> {
    let namespaces: BTreeSet<_> = told.iter().map(namespace_of).collect();
    let namespaces: Vec<_> = namespaces.into_iter().collect();
    let resource = namespaced("", "Event", "events");
    let events = concurrently(&namespaces, AT_ONCE, |namespace| {
        let mut request = Request::list(&resource, Some(namespace), "");
        let warnings = "type=Warning".to_owned();
        request.query.push(("fieldSelector", warnings));
        read(&resource, &request)
    });
    namespaces.into_iter().zip(events).collect()
}

/// The replica sets and pods that an object may have.
fn read_around(read: &Read<'_>, watched: &Watched<'_>) -> (Vec<Value>, Vec<Value>) {
    let selector = watched.live.as_ref().and_then(|live| {
        let selector = live.pointer("/spec/selector")?;
        selector_of(selector)
    });
    let (Some(selector), "apps" | "batch") = (selector, watched.key.group.as_str()) else {
        return <_>::default();
    };
    let list = |resource: Resource| {
        let namespace = Some(watched.key.namespace.as_str());
        read(&resource, &Request::list(&resource, namespace, &selector))
    };
    let replica_sets = match watched.key.kind.as_str() {
        "Deployment" => list(namespaced("apps", "ReplicaSet", "replicasets")),
        _ => vec![],
    };
    (replica_sets, list(namespaced("", "Pod", "pods")))
}

/// A selector as a query has it. Of expressions only those with values are kept: what is found is looked at again.
fn selector_of(selector: &Value) -> Option<String> {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let labels: Vec<_> = labels.collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

fn namespaced(group: &str, kind: &str, plural: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        scope: Scope::Namespaced,
    }
}

/// The namespace in which the events of an object are.
fn namespace_of<'w>(watched: &'w Watched<'_>) -> &'w str {
    match watched.key.namespace.as_str() {
        "" => DEFAULT,
        namespace => namespace,
    }
}
