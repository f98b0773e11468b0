//! Whether objects are ready and why not: as cases of `testdata/health` say, to which one is added without writing Rust,
//! and as kstatus says.
//!
//! kstatus's side is the program in `tests/tools/kstatus-oracle` (sigs.k8s.io/cli-utils v0.37.2). Besides the cases it is
//! asked about objects that are made up.

use std::{collections::BTreeMap, fs, path::PathBuf};

use jiff::Timestamp;
use kubectl_olm::cluster::health::{
    self, Health,
    reasons::{self, Around},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{cases, oracle::Oracle, program::root, random::Random};

/// A live object, and what is to be said of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    object: Value,
    state: String,
    #[serde(default)]
    reason: String,
    /// What kstatus says of it, where that is something else; `error` when it does not say.
    #[serde(default)]
    kstatus: String,
}

/// What kstatus says.
#[derive(Deserialize)]
struct Answer {
    status: String,
    error: String,
}

impl Answer {
    fn word(&self) -> &str {
        if self.error.is_empty() {
            &self.status
        } else {
            "error"
        }
    }
}

fn word(health: &Health) -> &'static str {
    match health {
        Health::Current => "Current",
        Health::InProgress(_) => "InProgress",
        Health::Failed(_) => "Failed",
        Health::Terminating => "Terminating",
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("cases");
    let paths = entries.map(|entry| entry.expect("a case").path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

#[test]
fn objects_are_in_the_state_that_their_cases_say() {
    let (mut oracle, mut wrong, mut count) = (Oracle::start("kstatus-oracle", &[]), vec![], 0);
    for path in files("testdata/health") {
        for case in cases::read::<Vec<Case>>(&path) {
            count += 1;
            let health = health::of(&case.object);
            let ours = (word(&health), health.reason().unwrap_or_default());
            if ours != (case.state.as_str(), case.reason.as_str()) {
                wrong.push(format!("{}: {ours:?}", case.case));
            }
            let answer: Answer = oracle.ask(&case.object);
            let expected = if case.kstatus.is_empty() {
                &case.state
            } else {
                &case.kstatus
            };
            if answer.word() != expected {
                wrong.push(format!("{}: kstatus says {}", case.case, answer.word()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "cases are missing");
}

/// An object that is not ready or not gone, what is around it, and what is told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReasonsCase {
    object: Value,
    #[serde(default)]
    replica_sets: Vec<Value>,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    events: Vec<Value>,
    /// When it is asked why the object is not gone; without, it is asked why it is not ready.
    now: Option<String>,
    reasons: Vec<String>,
}

#[test]
fn reasons_are_those_that_their_cases_say() {
    for path in files("testdata/health/reasons") {
        let case: ReasonsCase = cases::read(&path);
        let around = Around {
            replica_sets: &case.replica_sets,
            pods: &case.pods,
            events: &case.events,
        };
        let told = match &case.now {
            Some(now) => reasons::not_gone(&case.object, now.parse::<Timestamp>().expect("a time")),
            None => reasons::of(&case.object, &around),
        };
        assert_eq!(told, case.reasons, "{}", path.display());
    }
}

/// The kinds that are made up: their fields are these, below `spec` and `status`, and their values small.
const KINDS: &[(&str, &str, &str)] = &[
    (
        "apps/v1",
        "Deployment",
        "spec.replicas spec.progressDeadlineSeconds status.replicas status.updatedReplicas status.readyReplicas status.availableReplicas",
    ),
    (
        "apps/v1",
        "StatefulSet",
        "spec.replicas spec.partition status.replicas status.readyReplicas status.currentReplicas status.updatedReplicas status.currentRevision status.updateRevision",
    ),
    (
        "apps/v1",
        "DaemonSet",
        "status.desiredNumberScheduled status.currentNumberScheduled status.updatedNumberScheduled status.numberAvailable status.numberReady",
    ),
    (
        "apps/v1",
        "ReplicaSet",
        "spec.replicas status.replicas status.fullyLabeledReplicas status.availableReplicas status.readyReplicas",
    ),
    (
        "batch/v1",
        "Job",
        "spec.parallelism spec.completions status.succeeded status.failed status.startTime",
    ),
    ("batch/v1", "CronJob", "status.active"),
    ("v1", "Pod", "status.phase"),
    ("v1", "Service", "spec.type spec.clusterIP"),
    ("v1", "PersistentVolumeClaim", "status.phase"),
    ("v1", "ConfigMap", "data"),
    ("policy/v1", "PodDisruptionBudget", "status.currentHealthy"),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "status.storedVersions",
    ),
    (
        "extensions/v1beta1",
        "Deployment",
        "spec.replicas status.replicas",
    ),
    ("queue.example.com/v1", "Queue", "status.phase"),
    ("cert-manager.io/v1", "Certificate", "status.revision"),
    ("apiregistration.k8s.io/v1", "APIService", "spec.version"),
];

const CONDITIONS: &[&str] = &[
    "Available",
    "Progressing",
    "ReplicaFailure",
    "Ready",
    "Reconciling",
    "Stalled",
    "Complete",
    "Failed",
    "NamesAccepted",
    "Established",
    "PodScheduled",
    "Synced",
];
const REASONS: &[&str] = &[
    "",
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "Installing",
    "Unschedulable",
    "Other",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "Bound",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Lost",
    "LoadBalancer",
    "OnDelete",
];

fn pick<'t>(random: &mut Random, all: &[&'t str]) -> &'t str {
    all[random.below(all.len())]
}

fn made_up(random: &mut Random) -> Value {
    let (version, kind, fields) = KINDS[random.below(KINDS.len())];
    let (mut spec, mut status) = (Map::new(), Map::new());
    // Most objects are near the line between two states.
    let usual = random.below(3);
    for field in fields.split(' ') {
        let value = match random.below(12) {
            0 => continue,
            1 => json!(random.below(4)),
            2 => json!(i64::from(i32::MAX)),
            3..=5 => json!(pick(random, TEXTS)),
            6 => json!([1.5, null, true, "1", {}])[random.below(5)].clone(),
            _ => json!(usual),
        };
        match field.split_once('.') {
            Some(("spec", "partition")) => {
                let strategy =
                    json!({"type": pick(random, TEXTS), "rollingUpdate": {"partition": value}});
                spec.insert("updateStrategy".to_owned(), strategy);
            }
            Some(("spec", name)) => _ = spec.insert(name.to_owned(), value),
            Some((_, name)) => _ = status.insert(name.to_owned(), value),
            None => {}
        }
    }
    let conditions = (0..random.below(4)).map(|_| {
        json!({
            "type": pick(random, CONDITIONS),
            "status": pick(random, &["True", "True", "False", "Unknown", ""]),
            "reason": pick(random, REASONS),
            "message": "m",
        })
    });
    let conditions: Vec<_> = conditions.collect();
    if random.below(4) > 0 {
        status.insert("conditions".to_owned(), conditions.into());
    }
    if kind == "Pod" && random.below(2) > 0 {
        let waiting = json!({"reason": pick(random, &["CrashLoopBackOff", "ErrImagePull"])});
        status.insert(
            "containerStatuses".to_owned(),
            json!([{"name": "c", "state": {"waiting": waiting}}]),
        );
    }
    let mut metadata = json!({"name": "a", "creationTimestamp": "2020-01-01T00:00:00Z"});
    if random.below(2) > 0 {
        metadata["generation"] = json!(1);
        if random.below(4) > 0 {
            status.insert(
                "observedGeneration".to_owned(),
                json!(1 + random.below(8) / 7),
            );
        }
    }
    if random.below(30) == 0 {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let mut object =
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    if random.below(8) > 0 {
        object["status"] = status.into();
    }
    object
}

/// Where we say something else than kstatus, as `health/mod.rs` lists it: what it says, and what we may say.
fn may_differ(object: &Value, kstatus: &str, ours: &str) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    match kind {
        "APIService" => ours == "InProgress" || kstatus == "InProgress" && ours == "Current",
        "Certificate" => {
            let conditions = object["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let says = conditions.any(|one| one["type"] == "Ready" && one["status"] != "");
            ours == "InProgress" && kstatus == "Current" && !says
        }
        "StatefulSet" => object.get("status").is_none() && ours == "InProgress",
        "Pod" => kstatus == "Failed" && ours == "InProgress",
        _ => false,
    }
}

#[test]
fn objects_are_in_the_state_that_kstatus_says() {
    let (mut oracle, mut random) = (Oracle::start("kstatus-oracle", &[]), Random::new(7));
    let (mut tally, mut wrong) = (BTreeMap::<(String, String), usize>::new(), vec![]);
    let (mut refused, mut differing) = (0, 0);
    for _ in 0..20_000 {
        let object = made_up(&mut random);
        let ours = word(&health::of(&object));
        let answer: Answer = oracle.ask(&object);
        if answer.word() == "error" {
            refused += 1;
            continue;
        }
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        *tally.entry((kind, answer.status.clone())).or_default() += 1;
        if answer.status == ours {
            continue;
        }
        differing += 1;
        if !may_differ(&object, &answer.status, ours) {
            wrong.push(format!(
                "we say {ours}, kstatus {}: {object}",
                answer.status
            ));
        }
    }
    eprintln!("20000 objects: {refused} that kstatus does not take, {differing} differ on purpose");
    wrong.truncate(10);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What is made up reaches both sides of each rule.
    for (kind, state) in [
        ("Deployment", "Current"),
        ("Deployment", "Failed"),
        ("Deployment", "InProgress"),
        ("StatefulSet", "Current"),
        ("StatefulSet", "InProgress"),
        ("DaemonSet", "Current"),
        ("ReplicaSet", "Current"),
        ("ReplicaSet", "InProgress"),
        ("Job", "Failed"),
        ("Job", "Current"),
        ("Pod", "Failed"),
        ("Pod", "Current"),
        ("Service", "InProgress"),
        ("PersistentVolumeClaim", "Current"),
        ("CustomResourceDefinition", "Failed"),
        ("CustomResourceDefinition", "Current"),
        ("Queue", "InProgress"),
        ("Queue", "Terminating"),
    ] {
        let count = tally.get(&(kind.to_owned(), state.to_owned()));
        assert!(
            count.is_some_and(|count| *count > 2),
            "{kind} {state}: {count:?}"
        );
    }
}
