//! Leases of installs, on a real API server: one run at a time, and none that has to be unlocked by hand.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use kubectl_olm::cluster::{
    AT_ONCE,
    connection::{Connection, ConnectionSettings},
    inventory::InstallName,
    lock::{Lock, LockError, this_process},
};
use serde_json::{Value, json};

use super::{
    cluster::cluster,
    faults::{Fault, FaultProxy, Rule},
};

const LEASE: &str = "lease/kubectl-olm.queues";

fn connection(kubeconfig: &Path) -> Arc<Connection> {
    let settings = ConnectionSettings {
        kubeconfig: Some(kubeconfig.to_owned()),
        ..ConnectionSettings::default()
    };
    Arc::new(Connection::open(&settings).expect("a connection"))
}

fn install(namespace: &str) -> InstallName {
    InstallName::new(namespace, "queues").expect("a name")
}

/// Makes the Lease that another process holds.
fn hold(namespace: &str, identity: &str) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kubectl-olm.queues", "namespace": namespace},
        // The clock of whoever holds it is years ahead.
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"},
    });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let (code, answer) = cluster().send("POST", &path, ("application/json", &lease.to_string()));
    assert_eq!(code, 201, "{answer}");
}

fn identity(namespace: &str) -> String {
    let lease = cluster().get(&["get", LEASE, "-n", namespace, "-o", "json"]);
    let lease: Value = serde_json::from_str(&lease).expect("JSON");
    lease["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_lease_is_held_renewed_and_gone_afterwards() {
    let namespace = cluster().namespace("locks");
    let connection = connection(&cluster().kubeconfig());
    let told = |text: &str| panic!("{text}");
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &told).expect("a Lease");
    assert!(lock.is_held());
    assert_eq!(identity(&namespace), this_process().identity());
    let renewed = || {
        cluster().get(&[
            "get",
            LEASE,
            "-n",
            &namespace,
            "-o",
            "jsonpath={.spec.renewTime}",
        ])
    };
    let (first, begun) = (renewed(), Instant::now());
    while renewed() == first {
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "it is not renewed"
        );
        thread::sleep(Duration::from_millis(500));
    }
    lock.check().expect("it is held");
    lock.release().expect("it is given back");
    assert_eq!(
        cluster().get(&["get", "leases", "-n", &namespace, "-o", "name"]),
        ""
    );
}

/// A process that was killed keeps nobody waiting, wherever its Lease says that it ends.
#[test]
fn the_lease_of_a_dead_process_is_taken_at_once() {
    let namespace = cluster().namespace("locks");
    let mut child = Command::new("true")
        .stdin(Stdio::null())
        .spawn()
        .expect("a process");
    let mut holder = this_process();
    holder.pid = child.id();
    child.wait().expect("its end");
    hold(&namespace, &holder.identity());
    let connection = connection(&cluster().kubeconfig());
    let told = |text: &str| panic!("{text}");
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &told).expect("a Lease");
    assert!(lock.is_held());
}

#[test]
fn the_lease_of_another_machine_is_waited_for_until_it_has_run_out() {
    let namespace = cluster().namespace("locks");
    hold(&namespace, "bob@there b00t 4711 77");
    let connection = connection(&cluster().kubeconfig());
    let told = Mutex::new(vec![]);
    let tell = |text: &str| told.lock().expect("unpoisoned").push(text.to_owned());
    let refused = Lock::take(
        &connection,
        &install(&namespace),
        Duration::from_secs(2),
        &tell,
    );
    let refused = refused.err().expect("it is held").to_string();
    assert_eq!(
        refused,
        "lease.coordination.k8s.io/kubectl-olm.queues: the run of bob@there, process 4711 is still at work; wait for it to end, or end it"
    );
    let begun = Instant::now();
    let lock = Lock::take(
        &connection,
        &install(&namespace),
        Duration::from_secs(60),
        &tell,
    )
    .expect("a Lease");
    assert!(
        (15..20).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    assert!(lock.is_held());
    let line = "waiting for the run of bob@there, process 4711, to end";
    assert_eq!(*told.lock().expect("unpoisoned"), [line, line]);
}

#[test]
fn a_lease_that_another_run_has_taken_over_is_lost_and_left_to_it() {
    let namespace = cluster().namespace("locks");
    let connection = connection(&cluster().kubeconfig());
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &|_| {}).expect("a Lease");
    let taken = r#"{"spec": {"holderIdentity": "bob@there b00t 4711 77"}}"#;
    cluster().get(&[
        "patch",
        LEASE,
        "-n",
        &namespace,
        "--type=merge",
        "-p",
        taken,
    ]);
    let begun = Instant::now();
    while lock.is_held() {
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "it is still held"
        );
        thread::sleep(Duration::from_millis(200));
    }
    let lost = lock.check().expect_err("it is lost");
    assert!(matches!(lost, LockError::Lost(_)));
    assert!(
        lost.to_string()
            .ends_with("another run took over, that of bob@there, process 4711"),
        "{lost}"
    );
    lock.release().expect("nothing to give back");
    assert_eq!(identity(&namespace), "bob@there b00t 4711 77");
}

#[test]
fn whoever_may_not_use_leases_is_told_what_it_takes() {
    let namespace = cluster().namespace("locks");
    let connection = connection(&cluster().user("weak"));
    let refused = Lock::take(&connection, &install(&namespace), Duration::ZERO, &|_| {});
    let refused = refused.err().expect("it is forbidden").to_string();
    let expected = format!("may not get leases.coordination.k8s.io in namespace {namespace}");
    assert!(
        refused.contains(&expected) && refused.contains("get, create, update and delete"),
        "{refused}"
    );
}

/// What holds is what is stored, and not what is heard of it.
#[test]
fn a_lease_whose_renewals_are_not_answered_is_held() {
    let namespace = cluster().namespace("locks");
    let proxy = FaultProxy::start(cluster());
    let connection = connection(&proxy.kubeconfig(cluster().token()));
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &|_| {}).expect("a Lease");
    proxy.set_rules([Rule::new(Fault::LoseAnswer).method("PUT").path("/leases/")]);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(18) {
        assert!(lock.is_held(), "{:?}", begun.elapsed());
        thread::sleep(Duration::from_millis(200));
    }
    lock.check().expect("it is held");
}

/// As many writers as requests may be on their way keep a renewal from nothing.
#[test]
fn a_lease_is_renewed_while_all_other_requests_hang() {
    let namespace = cluster().namespace("locks");
    let proxy = FaultProxy::start(cluster());
    let connection = connection(&proxy.kubeconfig(cluster().token()));
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &|_| {}).expect("a Lease");
    proxy.set_rules([Rule::new(Fault::Delay(Duration::from_secs(20))).path("/version")]);
    thread::scope(|scope| {
        for _ in 0..2 * AT_ONCE {
            scope.spawn(|| connection.version());
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(18) {
            assert!(lock.is_held(), "{:?}", begun.elapsed());
            thread::sleep(Duration::from_millis(200));
        }
        connection.stop();
    });
}

/// As when the machine has slept, or the server was away: nothing may be written until it is known that nobody else took
/// the Lease.
#[test]
fn a_lease_that_could_not_be_renewed_is_not_held_until_it_is_had_back() {
    let namespace = cluster().namespace("locks");
    let proxy = FaultProxy::start(cluster());
    let connection = connection(&proxy.kubeconfig(cluster().token()));
    let lock =
        Lock::take(&connection, &install(&namespace), Duration::ZERO, &|_| {}).expect("a Lease");
    let refusal = Fault::refusal(403, "Forbidden", "not now", &[]);
    proxy.set_rules([Rule::new(refusal).method("PUT").path("/leases/")]);
    let begun = Instant::now();
    while lock.is_held() {
        assert!(
            begun.elapsed() < Duration::from_secs(25),
            "it is still held"
        );
        thread::sleep(Duration::from_millis(200));
    }
    assert!(
        begun.elapsed() > Duration::from_secs(9),
        "{:?}",
        begun.elapsed()
    );
    let lost = lock.check().expect_err("it may be another's").to_string();
    assert!(
        lost.contains("could not be renewed for 15 seconds"),
        "{lost}"
    );
    proxy.set_rules([]);
    lock.check().expect("it is had back");
    assert!(lock.is_held());
}
