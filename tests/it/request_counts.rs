//! How many requests a run sends: over a slow network they are what it costs.

use std::{collections::BTreeSet, process::Command};

use super::{
    faults::Request,
    kill_matrix::Stage,
    program::{Run, program},
};

/// Requests of any run: what the server is and serves, the namespace, and the inventory.
const OF_ANY_RUN: usize = 8;

/// A command about version 1 of the twelve objects.
fn command(stage: &Stage, word: &str, namespace: &[&str]) -> Command {
    let mut command = program();
    command.args([word, "--kubeconfig"]).arg(stage.kubeconfig());
    command.args(["--certs", "none"]).args(namespace);
    command.arg(stage.copy("bundles/twelve-operator-v1"));
    command
}

/// What a command prints and asks for, but for what it asks the more often the longer it takes.
fn run(stage: &Stage, mut command: Command) -> (Run, Vec<Request>) {
    stage.proxy.settle();
    let run = Run::from(command.output().expect("the program starts"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut requests = stage.proxy.requests();
    requests.retain(|request| {
        let is_look = request.path.contains("/customresourcedefinitions/");
        !(request.path.contains("/leases") || is_look && request.method == "GET")
    });
    (run, requests)
}

/// The requests as lines, for messages.
fn lines(requests: &[Request]) -> String {
    let line = |request: &Request| {
        let Request {
            method,
            path,
            query,
            ..
        } = request;
        format!("{method} {path}?{query}\n")
    };
    requests.iter().map(line).collect()
}

/// Applies twice and compares: two requests for each object and one for each kind, then one for each kind, all of them
/// reads.
fn count(stage: &Stage, namespace: &[&str]) {
    let (first, requests) = run(stage, command(stage, "apply", namespace));
    let objects: Vec<_> = first.stdout.lines().collect();
    let kinds = objects.iter().filter_map(|line| line.split('/').next());
    let kinds = kinds.collect::<BTreeSet<_>>().len();
    assert!(objects.len() >= 12, "{}", first.stdout);
    let most = 2 * objects.len() + kinds + OF_ANY_RUN;
    let told = lines(&requests);
    assert!(requests.len() <= most, "more than {most} requests:\n{told}");
    let most = kinds + OF_ANY_RUN;
    for word in ["apply", "diff"] {
        let (_, requests) = run(stage, command(stage, word, namespace));
        let told = lines(&requests);
        assert!(
            requests.len() <= most,
            "{word}, more than {most} requests:\n{told}"
        );
        let only_reads = requests.iter().all(|request| request.method == "GET");
        assert!(only_reads, "{word}:\n{told}");
    }
}

#[test]
fn an_object_takes_two_requests_and_none_when_nothing_has_changed() {
    let stage = Stage::new();
    count(&stage, &["-n", &stage.namespace]);
}

/// What is in a namespace that is not there cannot be asked about, and the rights are asked for by kind.
#[test]
fn a_namespace_that_is_not_there_takes_no_more() {
    let stage = Stage::new();
    let namespace = format!("{}-new", stage.namespace);
    count(&stage, &["-n", &namespace, "--create-namespace"]);
}
