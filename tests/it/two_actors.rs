//! Two runs at once, and runs that are stopped: whoever comes second waits, and nobody's work is mixed with another's.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rayon::prelude::*;
use rustix::process::{Pid, kill_process};

use super::{
    cluster::{NOTHING, cluster},
    faults::{Fault, Phase, Rule, Signal},
    kill_matrix::Stage,
    program::{Run, program},
    snapshot::Snapshot,
};

/// The two versions of the bundle of twelve objects.
pub(crate) const V1: &str = "bundles/twelve-operator-v1";
pub(crate) const V2: &str = "bundles/twelve-operator-v2";
/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many pairs of runs there are of the same version, and of others.
const PAIRS: usize = 20;
const OTHER_PAIRS: usize = 8;
/// How many pairs run at once.
const AT_ONCE: usize = 4;

/// The program with arguments, by way of the proxy of a stage.
pub(crate) fn olm(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = program();
    command
        .args(arguments)
        .env("KUBECONFIG", stage.kubeconfig());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An apply of a bundle into the namespace of a stage.
pub(crate) fn apply(stage: &Stage, bundle: &str) -> Command {
    let mut command = olm(stage, &["apply", "-n", &stage.namespace, "--yes"]);
    command.arg(stage.copy(bundle));
    command
}

/// A cleanup of the bundle of twelve objects.
pub(crate) fn cleanup(stage: &Stage) -> Command {
    let name = stage.rename("twelve-operator");
    olm(stage, &["cleanup", &name, "-n", &stage.namespace, "--yes"])
}

/// What a command gives, which has to end with this exit code.
pub(crate) fn done(mut command: Command, code: i32) -> Run {
    let run = Run::from(command.output().expect("the program starts"));
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    run
}

/// Whether the cluster is as a bundle says.
fn is_as(stage: &Stage, bundle: &str) -> bool {
    let mut command = olm(stage, &["diff", "-n", &stage.namespace]);
    command.arg(stage.copy(bundle));
    let run = Run::from(command.output().expect("the program starts"));
    assert!(run.code <= 1, "{}", run.stderr);
    run.code == 0
}

/// What there is of a stage.
pub(crate) fn snapshot(stage: &Stage) -> Snapshot {
    let names = [stage.rename("twelve"), stage.namespace.clone()];
    let names = [names[0].as_str(), names[1].as_str()];
    Snapshot::take(cluster(), &[&stage.namespace], &names)
}

/// Starts a command, and another one when the first has asked for so much; what both gave.
fn at_once(stage: &Stage, mut first: Command, mut second: Command, after: usize) -> [Run; 2] {
    stage.proxy.settle();
    let mut first = first.spawn().expect("the program starts");
    wait_until(|| {
        stage.proxy.requests().len() >= after || first.try_wait().expect("a status").is_some()
    });
    let second = second.spawn().expect("the program starts");
    [first, second].map(|child| child.wait_with_output().expect("the program ends").into())
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it has not come");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a test with many numbers, some at once.
fn each(pairs: usize, test: impl Fn(usize) + Send + Sync) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(AT_ONCE).build();
    pool.expect("threads")
        .install(|| (0..pairs).into_par_iter().for_each(test));
}

/// How many requests that may change something went to anything but Leases.
fn writes(stage: &Stage) -> usize {
    let writes = stage.proxy.writes();
    let is_work = |path: &str| !path.contains("/leases");
    writes.iter().filter(|write| is_work(&write.path)).count()
}

fn has_lease(stage: &Stage) -> bool {
    let name = stage.rename("kubectl-olm.twelve-operator");
    let leases = "apis/coordination.k8s.io/v1/namespaces";
    let path = format!("/{leases}/{}/leases/{name}", stage.namespace);
    cluster().send("GET", &path, NOTHING).0 == 200
}

#[test]
fn of_two_applies_one_waits_and_changes_nothing() {
    let alone = Stage::new();
    done(apply(&alone, V1), 0);
    let (work, all) = (writes(&alone), alone.proxy.requests().len());
    each(PAIRS, |number| {
        let stage = Stage::new();
        let commands = [apply(&stage, V1), apply(&stage, V1)];
        let [first, second] = commands;
        let runs = at_once(&stage, first, second, number * all / PAIRS);
        let told = format!("{}{}", runs[0].stderr, runs[1].stderr);
        assert_eq!([runs[0].code, runs[1].code], [0, 0], "{number}: {told}");
        assert_eq!(writes(&stage), work, "{number}: {told}");
        let unchanged = |run: &Run| run.stdout.lines().all(|line| line.ends_with(" unchanged"));
        assert_eq!(
            runs.iter().filter(|run| unchanged(run)).count(),
            1,
            "{number}"
        );
        assert!(!has_lease(&stage), "{number}: the Lease is left");
    });
}

#[test]
fn of_two_applies_that_make_the_namespace_one_waits_and_changes_nothing() {
    let apply = |stage: &Stage| {
        let namespace = stage.made();
        let mut command = olm(stage, &["apply", "-n", &namespace, "--create-namespace"]);
        command.arg(stage.copy(V1));
        command
    };
    // Both may ask for the namespace, of which only one makes it.
    let writes = |stage: &Stage| {
        let namespace = format!("/namespaces/{}", stage.made());
        let writes = stage.proxy.writes();
        let is_work =
            |path: &str| !(path.contains("/leases") || path.ends_with(namespace.as_str()));
        writes.iter().filter(|write| is_work(&write.path)).count()
    };
    let alone = Stage::new();
    done(apply(&alone), 0);
    let work = writes(&alone);
    each(OTHER_PAIRS, |number| {
        let stage = Stage::new();
        let namespace = stage.made();
        let runs = at_once(&stage, apply(&stage), apply(&stage), number * 5);
        let told = format!("{}{}", runs[0].stderr, runs[1].stderr);
        let codes = [runs[0].code, runs[1].code];
        let said = format!("{}---\n{}{told}", runs[0].stdout, runs[1].stdout);
        assert_eq!(writes(&stage), work, "{number}: {said}");
        let unchanged = |run: &&Run| run.stdout.lines().all(|line| line.ends_with(" unchanged"));
        assert_eq!(runs.iter().filter(unchanged).count(), 1, "{number}: {said}");
        let diff = done(
            {
                let mut command = olm(&stage, &["diff", "-n", &namespace, "--create-namespace"]);
                command.arg(stage.copy(V1));
                command
            },
            0,
        );
        let name = stage.rename("twelve-operator");
        done(
            olm(&stage, &["cleanup", &name, "-n", &namespace, "--yes"]),
            0,
        );
        assert_eq!(codes, [0, 0], "{number}: {told}{}", diff.stdout);
    });
}

#[test]
fn two_versions_at_once_end_as_one_of_them() {
    each(OTHER_PAIRS, |number| {
        let stage = Stage::new();
        let before = snapshot(&stage);
        let runs = at_once(&stage, apply(&stage, V1), apply(&stage, V2), number * 7);
        let told = format!("{}{}", runs[0].stderr, runs[1].stderr);
        // The older version would take a field from the definition, which is refused.
        assert!(
            matches!([runs[0].code, runs[1].code], [0 | 3, 0]),
            "{number}: {told}"
        );
        assert!(is_as(&stage, V2), "{number}: {told}");
        done(cleanup(&stage), 0);
        let compared = before.compare(&snapshot(&stage));
        compared.unwrap_or_else(|left| panic!("{number}: {left}"));
    });
}

#[test]
fn an_upgrade_and_a_cleanup_at_once_leave_all_or_nothing() {
    each(OTHER_PAIRS, |number| {
        let stage = Stage::new();
        let before = snapshot(&stage);
        done(apply(&stage, V1), 0);
        let commands = match number % 2 {
            0 => [apply(&stage, V2), cleanup(&stage)],
            _ => [cleanup(&stage), apply(&stage, V2)],
        };
        let [first, second] = commands;
        let runs = at_once(&stage, first, second, number * 5);
        let told = format!("{}{}", runs[0].stderr, runs[1].stderr);
        assert_eq!([runs[0].code, runs[1].code], [0, 0], "{number}: {told}");
        if before.compare(&snapshot(&stage)).is_err() {
            assert!(is_as(&stage, V2), "{number}: {told}");
            done(cleanup(&stage), 0);
        }
        let compared = before.compare(&snapshot(&stage));
        compared.unwrap_or_else(|left| panic!("{number}: {left}"));
    });
}

/// Stops a run at its first write that is about this path, has something done, and lets it go on.
pub(crate) fn stopped_at(
    stage: &Stage,
    mut command: Command,
    path: &str,
    meanwhile: impl FnOnce(),
) -> Run {
    stage.proxy.settle();
    let stop = Rule::new(Fault::Signal(Signal::STOP, Phase::Before));
    stage.proxy.set_rules([stop.writes().path(path).only(0)]);
    let child = command.spawn().expect("the program starts");
    stage.proxy.aim(&child);
    wait_until(|| is_stopped(&child));
    meanwhile();
    signal(&child, Signal::CONT);
    child.wait_with_output().expect("the program ends").into()
}

fn is_stopped(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    assert!(!state.starts_with('Z'), "it has ended");
    state.starts_with('T')
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process number");
    kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it is there");
}

#[test]
fn a_run_that_slept_while_another_took_over_writes_nothing_more() {
    // Where only one request is on its way: what has been sent cannot be called back.
    let stops = [
        ("apply", "/customresourcedefinitions/"),
        ("apply", "/deployments/"),
        ("cleanup", "/deployments/"),
    ];
    stops.into_par_iter().for_each(|(command, path)| {
        let stage = Stage::new();
        done(apply(&stage, V1), 0);
        let run = match command {
            "apply" => apply(&stage, V2),
            _ => cleanup(&stage),
        };
        let mut before = 0;
        let run = stopped_at(&stage, run, path, || {
            let other = done(apply(&stage, V2), 0);
            assert!(
                other.stderr.contains("waiting for the run of "),
                "{}",
                other.stderr
            );
            before = stage.proxy.writes().len();
        });
        let mut more = stage.proxy.writes().split_off(before);
        // The Lease is asked back for, in vain.
        more.retain(|write| !write.path.contains("/leases/"));
        assert!(more.is_empty(), "{command} at {path}: {more:?}");
        assert_eq!(run.code, 6, "{}", run.stderr);
        assert!(
            run.stderr.contains("another run took over"),
            "{}",
            run.stderr
        );
        assert!(is_as(&stage, V2), "{command} at {path}");
    });
}

#[test]
fn a_run_that_is_interrupted_says_what_it_did_and_the_next_goes_on() {
    for (number, is_cleanup) in [(1, false), (5, false), (12, false), (2, true), (9, true)] {
        let stage = Stage::new();
        let reference = Stage::new();
        let mut command = if is_cleanup {
            done(apply(&stage, V1), 0);
            cleanup(&stage)
        } else {
            apply(&stage, V1)
        };
        stage.proxy.settle();
        let delay = Rule::new(Fault::Delay(Duration::from_millis(500)));
        stage.proxy.set_rules([delay.writes().from(number)]);
        let child = command.spawn().expect("the program starts");
        wait_until(|| stage.proxy.writes().len() > number);
        signal(&child, Signal::INT);
        let run = Run::from(child.wait_with_output().expect("the program ends"));
        assert_eq!(run.code, 130, "{number}: {}", run.stderr);
        let what = if is_cleanup { "cleanup" } else { "apply" };
        for told in [
            "error: interrupted",
            " changes of ",
            "its inventory lists everything",
            what,
        ] {
            assert!(
                run.stderr.contains(told),
                "{number}: {told}: {}",
                run.stderr
            );
        }
        stage.proxy.settle();
        assert!(!has_lease(&stage), "{number}: the Lease is left");
        let next = done(
            if is_cleanup {
                cleanup(&stage)
            } else {
                apply(&stage, V1)
            },
            0,
        );
        assert!(
            next.stderr.contains("did not finish"),
            "{number}: {}",
            next.stderr
        );
        if is_cleanup {
            let renamed = |stage: &Stage| {
                snapshot(stage).renamed(&[
                    (&stage.namespace, "NAMESPACE"),
                    (&stage.rename("twelve"), "twelve"),
                ])
            };
            let compared = renamed(&reference).compare(&renamed(&stage));
            compared.unwrap_or_else(|left| panic!("{number}: {left}"));
        } else {
            assert!(is_as(&stage, V1), "{number}");
        }
    }
}

#[test]
fn a_run_that_is_interrupted_twice_ends_at_once() {
    let stage = Stage::new();
    let hang = Rule::new(Fault::Hang).writes().path("/configmaps/");
    stage.proxy.set_rules([hang]);
    let mut child = apply(&stage, V1).spawn().expect("the program starts");
    let is_hanging = || {
        let writes = stage.proxy.writes();
        writes
            .iter()
            .any(|write| write.path.contains("/configmaps/"))
    };
    wait_until(is_hanging);
    signal(&child, Signal::INT);
    let mut told = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("a line");
    assert!(line.contains("once more ends at once"), "{line}");
    let second = Instant::now();
    signal(&child, Signal::INT);
    told.read_to_string(&mut line).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{line}");
    assert!(
        second.elapsed() < Duration::from_secs(2),
        "{:?}",
        second.elapsed()
    );
    // The process is gone, so that its Lease is not waited for.
    stage.proxy.settle();
    let began = Instant::now();
    let next = done(apply(&stage, V1), 0);
    assert!(
        next.stderr.contains("did not finish; continuing"),
        "{}",
        next.stderr
    );
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    assert!(is_as(&stage, V1));
}
