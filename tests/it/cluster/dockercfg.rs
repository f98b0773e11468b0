//! Plays the controller of OpenShift that gives every ServiceAccount a pull secret of its own.
//!
//! It reproduces what openshift-controller-manager's `DockercfgController.syncServiceAccount` does to objects: whenever a
//! ServiceAccount names no Secret `NAME-dockercfg-xxxxx`, one is created, and named in both of its lists. So whoever
//! replaces a list makes it create Secrets without end, which is why they can be counted.

use std::{
    io::Write,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

use super::{super::program::Run, Cluster, cluster};

/// How often it looks. The real one is told at once.
const PACE: Duration = Duration::from_millis(200);

/// The controller of one namespace. It stops when it is dropped.
pub(crate) struct DockercfgController {
    stop: Arc<AtomicBool>,
    created: Arc<AtomicUsize>,
    rounds: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl DockercfgController {
    /// Starts it for a namespace.
    pub(crate) fn start(cluster: &'static Cluster, namespace: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let created = Arc::new(AtomicUsize::new(0));
        let rounds = Arc::new(AtomicUsize::new(0));
        let thread = thread::spawn({
            let (stop, created, rounds) = (stop.clone(), created.clone(), rounds.clone());
            let namespace = namespace.to_owned();
            move || {
                while !stop.load(Ordering::Relaxed) {
                    serve(cluster, &namespace, &created);
                    rounds.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(PACE);
                }
            }
        });
        Self {
            stop,
            created,
            rounds,
            thread: Some(thread),
        }
    }

    /// Waits until it has looked at everything that is there now.
    pub(crate) fn settle(&self) {
        let rounds = || self.rounds.load(Ordering::Relaxed);
        // The round that goes on may have begun too early.
        let enough = rounds() + 2;
        while rounds() < enough
            && self
                .thread
                .as_ref()
                .is_some_and(|thread| !thread.is_finished())
        {
            thread::sleep(PACE / 10);
        }
    }

    /// How many Secrets it has created.
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }
}

impl Drop for DockercfgController {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.expect("the controller has not failed");
            }
        }
    }
}

/// Looks once at every ServiceAccount.
fn serve(cluster: &Cluster, namespace: &str, created: &AtomicUsize) {
    let accounts = cluster.get(&["get", "serviceaccounts", "-n", namespace, "-o", "json"]);
    let accounts: Value = serde_json::from_str(&accounts).expect("kubectl prints JSON");
    for account in accounts["items"].as_array().expect("a list") {
        let name = account["metadata"]["name"].as_str().expect("a name");
        let prefix = format!("{name}-dockercfg-");
        let names_one = |list: &str| {
            let mut entries = account[list].as_array().into_iter().flatten();
            entries.any(|entry| {
                entry["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with(&prefix))
            })
        };
        if names_one("imagePullSecrets") && names_one("secrets") {
            continue;
        }
        let number = created.fetch_add(1, Ordering::Relaxed);
        let secret = format!("{prefix}{number:05}");
        create_secret(cluster, namespace, name, &secret);
        add(cluster, namespace, account.clone(), &secret);
    }
}

fn create_secret(cluster: &Cluster, namespace: &str, account: &str, name: &str) {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockercfg",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"openshift.io/internal-registry-auth-token.service-account": account},
        },
        "stringData": {".dockercfg": "{}"},
    });
    let done = send(cluster, "create", &secret);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

/// Names the Secret in the lists of a ServiceAccount. One that was changed meanwhile has its turn the next time.
fn add(cluster: &Cluster, namespace: &str, mut account: Value, secret: &str) {
    for list in ["imagePullSecrets", "secrets"] {
        let entry = json!({ "name": secret });
        match account[list].as_array_mut() {
            Some(entries) => entries.push(entry),
            None => account[list] = json!([entry]),
        }
    }
    if send(cluster, "replace", &account).code != 0 {
        cluster.get(&["delete", "secret", secret, "-n", namespace]);
    }
}

fn send(cluster: &Cluster, verb: &str, object: &Value) -> Run {
    let mut kubectl = cluster.kubectl();
    kubectl.args([
        verb,
        "-f",
        "-",
        "--field-manager",
        "openshift-controller-manager",
    ]);
    kubectl
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut kubectl = kubectl.spawn().expect("kubectl starts");
    let mut input = kubectl.stdin.take().expect("standard input is piped");
    input
        .write_all(object.to_string().as_bytes())
        .expect("kubectl reads");
    drop(input);
    kubectl.wait_with_output().expect("kubectl ends").into()
}

#[test]
fn a_list_that_was_replaced_costs_another_secret() {
    let namespace = cluster().namespace("openshift");
    let openshift = DockercfgController::start(cluster(), &namespace);
    openshift.settle();
    let patch = |form: &str, patch: &str| {
        let account = ["serviceaccount", "default", "-n", &namespace];
        let patch = [form, "-p", patch];
        cluster().get(&[&["patch"], &account[..], &patch].concat());
        openshift.settle();
        let names = ["-o=jsonpath={.imagePullSecrets[*].name}"];
        let names = cluster().get(&[&["get"], &account[..], &names].concat());
        (names, openshift.created())
    };
    let add = r#"[{"op": "add", "path": "/imagePullSecrets/-", "value": {"name": "ours"}}]"#;
    let added = patch("--type=json", add);
    assert_eq!(added, ("default-dockercfg-00000 ours".to_owned(), 1));
    let replaced = patch(
        "--type=merge",
        r#"{"imagePullSecrets": [{"name": "ours"}]}"#,
    );
    assert_eq!(replaced, ("ours default-dockercfg-00001".to_owned(), 2));
}
