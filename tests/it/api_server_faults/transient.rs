//! What a server does now and then: answers that are lost, late or refusals that pass, and a server that is started anew.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::Child,
    process::Stdio,
};

use rayon::prelude::*;
use rustix::process::{Pid, kill_process};

use super::{
    super::{
        cluster::{Cluster, cluster},
        faults::{Fault, Rule, Signal},
        kill_matrix::Stage,
        program::{Run, program, root},
    },
    bundle, cleanup, command, expect, is_there,
};

/// What a server does now and then makes no difference to what is there in the end, for an install, an upgrade and a
/// cleanup alike.
#[test]
fn what_the_server_does_now_and_then_is_outlived() {
    let busy = Fault::refusal(
        429,
        "TooManyRequests",
        "too many requests",
        &[("Retry-After", "1")],
    );
    let broken = Fault::refusal(500, "InternalError", "Internal error occurred", &[]);
    let late = |method| {
        Rule::new(Fault::timed_out())
            .method(method)
            .writes()
            .every(2)
    };
    let lost = |method| {
        Rule::new(Fault::LoseAnswer)
            .method(method)
            .writes()
            .every(2)
    };
    let never = |method| {
        Rule::new(Fault::LoseRequest)
            .method(method)
            .writes()
            .every(2)
    };
    let cases = [
        (
            "every fifth request is one too many",
            vec![Rule::new(busy).every(5)],
        ),
        (
            "every third request fails",
            vec![Rule::new(broken).every(3)],
        ),
        (
            "objects are written and nobody is told in time",
            vec![late("PATCH"), late("DELETE")],
        ),
        (
            "inventories and Leases are written and nobody is told in time",
            vec![late("POST"), late("PUT")],
        ),
        (
            "answers about objects are lost",
            vec![lost("PATCH"), lost("DELETE")],
        ),
        (
            "answers about inventories and Leases are lost",
            vec![lost("POST"), lost("PUT")],
        ),
        (
            "requests are lost",
            vec![never("PATCH"), never("DELETE"), never("PUT")],
        ),
    ];
    let outlive = |(what, rules): (&str, Vec<Rule>)| -> Option<String> {
        let stage = Stage::new();
        for (word, version) in [("apply", "v1"), ("apply", "v2")] {
            stage.proxy.settle();
            stage.proxy.set_rules(rules.clone());
            let run = bundle(&stage, word, version, &["--yes"]);
            if run.code != 0 {
                return Some(format!("{what}: {word} of {version}: {}", run.stderr));
            }
            stage.proxy.settle();
            let diff = bundle(&stage, "diff", version, &[]);
            if diff.code != 0 || diff.stderr.contains("did not finish") {
                return Some(format!(
                    "{what}: {version} differs: {}{}",
                    diff.stdout, diff.stderr
                ));
            }
        }
        stage.proxy.settle();
        stage.proxy.set_rules(rules);
        let run = cleanup(&stage);
        let is_left = is_there(&stage, "configmaps", "twelve-settings")
            || is_there(&stage, "secrets", "kubectl-olm.twelve-operator");
        (run.code != 0 || is_left).then(|| format!("{what}: cleanup: {}", run.stderr))
    };
    // Most of the time they wait.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(cases.len());
    let threads = threads.build().expect("threads");
    let failures: Vec<_> = threads.install(|| cases.into_par_iter().filter_map(outlive).collect());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), signal).expect("it runs");
}

#[test]
fn a_server_that_is_started_anew_is_waited_for() {
    let cluster = Cluster::private();
    let namespace = cluster.namespace("restart");
    let mut apply = program();
    apply
        .args(["apply", "--kubeconfig"])
        .arg(cluster.kubeconfig());
    apply
        .args(["-n", &namespace])
        .arg(root().join("testdata/bundles/twelve-operator-v1"));
    let mut apply = apply
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut told = BufReader::new(apply.stdout.take().expect("standard output is piped"));
    let mut line = String::new();
    while !line.contains("serviceaccount/") {
        line.clear();
        assert!(told.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    // Held, it cannot end before the server does.
    signal(&apply, Signal::STOP);
    cluster.kill_apiserver();
    signal(&apply, Signal::CONT);
    let mut errors = BufReader::new(apply.stderr.take().expect("standard error is piped"));
    line.clear();
    while !line.contains("waiting for the API server") {
        line.clear();
        let read = errors.read_line(&mut line).expect("a line");
        assert!(read > 0, "it ended");
    }
    cluster.start_apiserver();
    told.read_to_string(&mut line).expect("the lines");
    errors.read_to_string(&mut line).expect("the lines");
    assert!(apply.wait().expect("it ends").success(), "{line}");
    let deployment = cluster.get(&[
        "get",
        "deployment/twelve-operator",
        "-n",
        &namespace,
        "-o",
        "name",
    ]);
    assert_eq!(deployment.trim(), "deployment.apps/twelve-operator");
}

#[test]
fn a_port_that_a_container_has_twice_is_refused_without_asking() {
    let stage = Stage::new();
    let folder = stage.copy("bundles/twelve-operator-v1");
    let file = folder.join(stage.rename("manifests/twelve-operator.clusterserviceversion.yaml"));
    let text = fs::read_to_string(&file).expect("a text");
    let twice = "- name: manager\n                ports: [{containerPort: 80}, {containerPort: 81}, {containerPort: 80}]";
    fs::write(&file, text.replace("- name: manager", twice)).expect("a file");
    let run = command(&stage, cluster().token(), "apply", &[])
        .arg(&folder)
        .output();
    let run = Run::from(run.expect("the program starts"));
    expect(
        &run,
        3,
        &[
            "spec.template.spec.containers[0].ports has containerPort 80",
            "deployment.apps/",
            "was not applied",
        ],
    );
    let sent: Vec<_> = stage
        .proxy
        .requests()
        .into_iter()
        .filter(|request| request.method != "GET")
        .collect();
    assert!(sent.is_empty(), "{sent:?}");
}
