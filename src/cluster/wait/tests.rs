//! Waiting, with a server that is played.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use serde_json::json;

use super::*;
use crate::cluster::{
    answer::{Refusal, RefusalKind},
    resource::Scope,
};

/// A server: what it has at each path, one state after the other, the last one for ever; and what it was asked for.
#[derive(Default)]
struct Server {
    states: BTreeMap<String, Vec<Result<Value, RefusalKind>>>,
    asked: Mutex<Vec<String>>,
}

impl Server {
    fn with(mut self, path: &str, states: Vec<Result<Value, RefusalKind>>) -> Self {
        self.states.insert(path.to_owned(), states);
        self
    }

    fn answer(&self, request: &Request) -> Result<Answer, ApiError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.iter().filter(|path| **path == request.path).count();
        asked.push(request.path.clone());
        let states = self.states.get(&request.path);
        let state = states.and_then(|states| states.get(before).or(states.last()));
        match state.cloned().unwrap_or(Err(RefusalKind::NotFound)) {
            Ok(body) => Ok(Answer {
                code: 200,
                body,
                bytes: 0,
            }),
            Err(kind) => Err(ApiError::Refused(Refusal {
                about: request.about.clone(),
                code: 400,
                reason: String::new(),
                message: "no".to_owned(),
                causes: vec![],
                kind,
            })),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn object(group: &str, kind: &str, plural: &str, name: &str) -> (Resource, ObjectKey) {
    let resource = Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        scope: Scope::Namespaced,
    };
    let key = ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: "ops".to_owned(),
        name: name.to_owned(),
    };
    (resource, key)
}

fn claim(name: &str) -> (Resource, ObjectKey) {
    object("", "PersistentVolumeClaim", "persistentvolumeclaims", name)
}

const CLAIMS: &str = "/api/v1/namespaces/ops/persistentvolumeclaims";
const EVENTS: &str = "/api/v1/namespaces/ops/events";

fn live(name: &str, uid: &str, phase: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid}, "status": {"phase": phase}})
}

/// As many pauses, which take no time.
fn pauses(mut count: usize) -> impl FnMut() -> bool {
    move || {
        count = count.saturating_sub(1);
        count > 0
    }
}

/// Waits for objects, and gives what is told in the end, and all that was told of progress.
fn wait(server: &Server, objects: &[(Resource, ObjectKey)]) -> (Vec<NotReady>, Vec<String>) {
    let progress = RefCell::new(vec![]);
    let tell = |ready: usize, all: usize, next: &str| {
        progress
            .borrow_mut()
            .push(format!("{ready} of {all} {next}"));
    };
    let send = |request: &Request| server.answer(request);
    let ended = ready(&send, objects, &mut pauses(3), &tell);
    (ended.err().unwrap_or_default(), progress.into_inner())
}

#[test]
fn only_what_is_not_ready_is_asked_for_again() {
    let server = Server::default()
        .with(&format!("{CLAIMS}/a"), vec![Ok(live("a", "1", "Bound"))])
        .with(
            &format!("{CLAIMS}/b"),
            vec![
                Err(RefusalKind::NotFound),
                Err(RefusalKind::Unavailable),
                Ok(live("b", "2", "Bound")),
            ],
        );
    let role = object("rbac.authorization.k8s.io", "Role", "roles", "c");
    let (left, progress) = wait(&server, &[claim("a"), claim("b"), role]);
    assert_eq!(left, []);
    assert_eq!(
        progress,
        [
            "2 of 3 persistentvolumeclaim/b in ops: it is not there yet",
            "2 of 3 persistentvolumeclaim/b in ops: it could not be read: persistentvolumeclaim/b in ops: no",
            "3 of 3 ",
        ]
    );
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|path| path.ends_with("/a")).count(), 1);
    assert_eq!(asked.len(), 4, "{asked:?}");
}

#[test]
fn many_of_a_kind_are_listed() {
    let items: Vec<_> = (0..9)
        .map(|at| live(&at.to_string(), "u", "Bound"))
        .collect();
    let whole = json!({"items": items});
    let part = json!({"items": [live("0", "u", "Pending")], "metadata": {"continue": "x"}});
    let mut server = Server::default().with(CLAIMS, vec![Ok(part), Ok(whole)]);
    for at in 1..9 {
        let path = format!("{CLAIMS}/{at}");
        server = server.with(&path, vec![Ok(live(&at.to_string(), "u", "Pending"))]);
    }
    let objects: Vec<_> = (0..9).map(|at| claim(&at.to_string())).collect();
    assert_eq!(wait(&server, &objects).0, []);
    // One list that was cut, what it left out, and one that was whole.
    assert_eq!(server.asked().len(), 1 + 8 + 1);
}

#[test]
fn it_ends_when_one_has_failed_and_tells_why() {
    let deployment = |conditions: Value| {
        json!({
            "metadata": {"name": "d", "uid": "d"},
            "spec": {"selector": {"matchLabels": {"app": "d"}}},
            "status": {"conditions": conditions},
        })
    };
    let failed = json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]);
    let sets = json!({"items": [{"metadata": {"name": "r", "uid": "r", "ownerReferences": [{"uid": "d"}]}}]});
    let waiting =
        json!([{"name": "c", "image": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]);
    let pods = json!({"items": [{
        "metadata": {"name": "p", "uid": "p", "ownerReferences": [{"uid": "r"}]},
        "status": {"containerStatuses": waiting},
    }]});
    let server = Server::default()
        .with(
            "/apis/apps/v1/namespaces/ops/deployments/d",
            vec![Ok(deployment(json!([]))), Ok(deployment(failed))],
        )
        .with("/apis/apps/v1/namespaces/ops/replicasets", vec![Ok(sets)])
        .with("/api/v1/namespaces/ops/pods", vec![Ok(pods)])
        .with(EVENTS, vec![Err(RefusalKind::Forbidden)])
        .with(&format!("{CLAIMS}/a"), vec![Ok(live("a", "1", "Pending"))]);
    let objects = [claim("a"), object("apps", "Deployment", "deployments", "d")];
    let (left, _) = wait(&server, &objects);
    let told: Vec<_> = left
        .iter()
        .map(|one| (one.key.name.as_str(), one.is_failed, one.reasons.clone()))
        .collect();
    let reasons = [
        "no progress in time: ProgressDeadlineExceeded",
        "container c of pod p: ErrImagePull: image i",
        "more could not be read: events in ops: no",
    ];
    assert_eq!(
        told,
        [
            ("d", true, reasons.map(str::to_owned).to_vec()),
            ("a", false, vec!["it has no volume yet".to_owned()]),
        ]
    );
}

#[test]
fn what_may_not_be_read_is_not_asked_for_again() {
    let server = Server::default()
        .with(&format!("{CLAIMS}/a"), vec![Err(RefusalKind::Forbidden)])
        .with(
            &format!("{CLAIMS}/b"),
            vec![Ok(live("b", "1", "Pending")), Ok(live("b", "1", "Bound"))],
        );
    let (left, progress) = wait(&server, &[claim("a"), claim("b")]);
    assert_eq!(left.len(), 1);
    assert_eq!(
        left[0].reasons[0],
        "it could not be read: persistentvolumeclaim/a in ops: no"
    );
    assert_eq!(progress.len(), 2);
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|path| path.ends_with("/a")).count(), 1);
}

#[test]
fn an_object_that_is_made_anew_is_another_one() {
    let path = format!("{CLAIMS}/a");
    let states = vec![Ok(live("a", "1", "Pending")), Ok(live("a", "2", "Bound"))];
    let server = Server::default().with(&path, states);
    let (left, _) = wait(&server, &[claim("a")]);
    assert!(left[0].is_failed);
    assert!(left[0].reasons[0].contains("made anew"), "{left:?}");

    let states = vec![
        Ok(live("a", "1", "Bound")),
        Err(RefusalKind::Unavailable),
        Ok(live("a", "2", "Bound")),
    ];
    let server = Server::default().with(&path, states);
    let send = |request: &Request| server.answer(request);
    let (resource, key) = claim("a");
    assert_eq!(
        gone(&send, &[(resource, key, "1".to_owned())], &mut pauses(9)),
        []
    );
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn what_is_not_gone_in_time_says_why() {
    let namespace = Resource {
        scope: Scope::Cluster,
        ..object("", "Namespace", "namespaces", "").0
    };
    let key = ObjectKey {
        namespace: String::new(),
        ..object("", "Namespace", "", "ops").1
    };
    let deleted = "2000-01-01T00:00:00Z";
    let remaining =
        json!({"type": "NamespaceContentRemaining", "status": "True", "message": "2 queues"});
    let live = json!({
        "metadata": {"name": "ops", "uid": "1", "deletionTimestamp": deleted, "finalizers": ["a/b"]},
        "status": {"conditions": [remaining]},
    });
    let server = Server::default().with("/api/v1/namespaces/ops", vec![Ok(live)]);
    let send = |request: &Request| server.answer(request);
    let (resource, role) = object("rbac.authorization.k8s.io", "Role", "roles", "gone");
    let objects = [
        (namespace, key, "1".to_owned()),
        (resource, role, "2".to_owned()),
    ];
    let left = gone(&send, &objects, &mut pauses(2));
    assert_eq!(left.len(), 1);
    assert!(
        left[0].reasons[0].ends_with("and waits for its finalizers: a/b"),
        "{left:?}"
    );
    assert_eq!(left[0].reasons[1], "NamespaceContentRemaining: 2 queues");
}

#[test]
fn pauses_grow_and_end() {
    let mut pauses = Pauses::until(Duration::from_millis(1));
    assert!(pauses.pause());
    assert_eq!(pauses.next, Duration::from_millis(750));
    thread::sleep(Duration::from_millis(2));
    assert!(!pauses.pause());
}
