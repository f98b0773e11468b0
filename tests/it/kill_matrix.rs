//! Kills a program at each of its requests to the API server, before the server sees it and after the server has done
//! what it asks, runs a next command, and looks whether the cluster is as if nothing had happened.
//!
//! Each step works on a copy of the input under names of its own, so that steps run side by side in one cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use rayon::prelude::*;
use tempfile::TempDir;

use super::{
    cluster::{NOTHING, cluster},
    faults::{Fault, FaultProxy, Phase, Request, Rule, Signal},
    program::{Run, root, tool},
    snapshot::{Snapshot, add_bystanders},
};

/// How many steps run at once. Most of the time a step waits.
const AT_ONCE: usize = 8;

/// The word in the names of the input that each step replaces by one of its own.
const WORD: &str = "twelve";

/// The number of the next stage.
static STAGES: AtomicUsize = AtomicUsize::new(0);

/// Where one step happens: a namespace, a proxy, and the input under names that no other step uses.
pub(crate) struct Stage {
    pub(crate) namespace: String,
    pub(crate) proxy: FaultProxy,
    word: String,
    folder: TempDir,
}

/// Gives a command for a stage. Its environment and kubeconfig are up to it.
pub(crate) type Act<'a> = dyn Fn(&Stage) -> Command + Sync + 'a;

/// Says what is wrong with what was run after a kill.
pub(crate) type Check<'a> = dyn Fn(&Stage, &str, &[Done]) -> Result<(), String> + Sync + 'a;

/// What is killed, and what is around it.
pub(crate) struct Scene<'a> {
    /// What is done before, undisturbed.
    pub(crate) before: &'a [&'a Act<'a>],
    /// What is killed.
    pub(crate) killed: &'a Act<'a>,
    /// Where it is killed.
    pub(crate) at: At,
    /// What is seen of the stage right after that, for the check.
    pub(crate) look: &'a (dyn Fn(&Stage) -> String + Sync),
    /// What is run after, with the exit codes that are right.
    pub(crate) then: &'a [(&'a Act<'a>, &'a [i32])],
    /// What else has to be true of what was run after, with what was seen before it.
    pub(crate) check: &'a Check<'a>,
    /// The objects, by kind and name, that may differ.
    pub(crate) may_differ: &'a (dyn Fn(&str) -> bool + Sync),
    /// What there has to be in the end.
    pub(crate) end: End,
}

/// A command that was run after, and what it asked the API server.
pub(crate) struct Done {
    pub(crate) run: Run,
    pub(crate) requests: Vec<Request>,
}

/// Where a command is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// At each request.
    Requests,
    /// At each request that may change what is stored.
    Writes,
}

/// What there has to be in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// What there is when nothing was killed.
    AsUndisturbed,
    /// What there was before the first command.
    AsBefore,
}

impl Stage {
    /// A new namespace with bystanders, a proxy, and a word for names.
    pub(crate) fn new() -> Self {
        // As long as the word, as names that get too long are cut.
        let word = format!("t{:05}", STAGES.fetch_add(1, Ordering::Relaxed));
        let stage = Self {
            namespace: cluster().namespace(&format!("stage-{word}")),
            proxy: FaultProxy::start(cluster()),
            folder: tempfile::tempdir().expect("a temporary folder"),
            word,
        };
        add_bystanders(cluster(), &stage.namespace);
        stage
    }

    /// A copy of a file or folder below `testdata`, under the names of this stage.
    pub(crate) fn copy(&self, path: &str) -> PathBuf {
        let copy = self.folder.path().join(self.rename(path));
        self.copy_to(&root().join("testdata").join(path), &copy);
        copy
    }

    /// A name of the input, as it is in this stage.
    pub(crate) fn rename(&self, name: &str) -> String {
        name.replace(WORD, &self.word)
    }

    /// The kubeconfig of the administrator, by way of the proxy.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.proxy.kubeconfig(cluster().token())
    }

    fn copy_to(&self, from: &Path, to: &Path) {
        if from.is_dir() {
            fs::create_dir_all(to).expect("a folder");
            for entry in fs::read_dir(from).expect("a folder").flatten() {
                let name = entry.file_name().into_string().expect("a name");
                self.copy_to(&entry.path(), &to.join(self.rename(&name)));
            }
        } else {
            let text = fs::read_to_string(from).expect("a text");
            fs::create_dir_all(to.parent().expect("a parent")).expect("a folder");
            fs::write(to, self.rename(&text)).expect("a file");
        }
    }

    /// A namespace that is not there before a command makes it.
    pub(crate) fn made(&self) -> String {
        self.rename("twelve-made")
    }

    /// The id of the install of the bundle, which is made from its name and carried by its objects.
    fn id(&self) -> String {
        let secret = self.rename("secrets/kubectl-olm.twelve-operator");
        let path = format!("/api/v1/namespaces/{}/{secret}", self.namespace);
        let (_, secret) = cluster().send("GET", &path, NOTHING);
        let id = secret["metadata"]["labels"]["applyset.kubernetes.io/id"].as_str();
        id.unwrap_or("no install").to_owned()
    }

    fn snapshot(&self) -> Snapshot {
        let names = [self.word.as_str(), &self.namespace];
        let taken = Snapshot::take(cluster(), &[&self.namespace, &self.made()], &names);
        let id = self.id();
        // The name of the namespace has the word in it.
        taken.renamed(&[
            (&id, "ID"),
            (&self.namespace, "NAMESPACE"),
            (&self.word, WORD),
        ])
    }

    /// Runs a command that has to end with one of these exit codes.
    fn run(&self, act: &Act<'_>, codes: &[i32]) -> Result<Done, String> {
        self.proxy.settle();
        let run = Run::from(act(self).output().expect("the program starts"));
        if !codes.contains(&run.code) {
            return Err(format!("exit code {}: {}", run.code, run.stderr));
        }
        let requests = self.proxy.requests();
        Ok(Done { run, requests })
    }

    /// Runs a command that is killed; whether it was.
    fn run_killed(&self, act: &Act<'_>, rule: Rule) -> bool {
        self.proxy.set_rules([rule]);
        let mut command = act(self);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        self.proxy.aim(&child);
        let status = child.wait().expect("the program ends");
        self.proxy.settle();
        status.code().is_none()
    }
}

impl Drop for Stage {
    /// Definitions slow the API server down, and namespaces hold what has to be watched; nobody waits for their end.
    fn drop(&mut self) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let definition = self.rename("dozens.twelve.example.com");
        cluster().send("DELETE", &format!("{definitions}/{definition}"), NOTHING);
        for namespace in [&self.namespace, &self.made()] {
            let path = format!("/api/v1/namespaces/{namespace}");
            cluster().send("DELETE", &path, NOTHING);
        }
    }
}

/// Kills at every request, before the server has seen it, and after it has done what is asked. Fails with all steps that did not end as an undisturbed run.
pub(crate) fn kill_matrix(scene: &Scene<'_>) {
    let (mut requests, reference) =
        undisturbed(scene).unwrap_or_else(|reason| panic!("undisturbed: {reason}"));
    if scene.at == At::Writes {
        requests.retain(Request::is_write);
    }
    assert!(
        !requests.is_empty(),
        "the program asks the API server for nothing"
    );
    let phases = |request: &Request| match request.is_write() {
        true => &[Phase::Before, Phase::After][..],
        // It makes no difference to the server.
        false => &[Phase::Before],
    };
    let steps = requests.iter().enumerate();
    let steps = steps
        .flat_map(|(number, request)| phases(request).iter().map(move |phase| (number, *phase)));
    let steps: Vec<_> = steps.collect();
    let requests = requests.len();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(AT_ONCE)
        .build()
        .expect("threads");
    let ends: Vec<_> = pool.install(|| {
        let steps = steps.par_iter().map(|&(number, phase)| {
            let end = step(scene, number, phase, &reference);
            end.map_err(|reason| format!("killed at request {number}, {phase:?}: {reason}"))
        });
        steps.collect()
    });
    let killed = ends
        .iter()
        .filter(|end| matches!(end, Ok(true) | Err(_)))
        .count();
    let failures: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    println!("killed {killed} times at {requests} requests");
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        steps.len(),
        failures.join("\n")
    );
    // How many requests there are may differ a little from run to run.
    assert!(
        killed * 10 >= steps.len() * 9,
        "only {killed} of {} were killed",
        steps.len()
    );
}

/// The requests of the command that is to be killed, and what there is in the end.
fn undisturbed(scene: &Scene<'_>) -> Result<(Vec<Request>, Snapshot), String> {
    let stage = Stage::new();
    let before = stage.snapshot();
    for act in scene.before {
        stage.run(act, &[0])?;
    }
    let requests = stage.run(scene.killed, &[0])?.requests;
    let codes = [0, 1];
    for (act, _) in scene.then {
        stage.run(act, &codes)?;
    }
    let end = stage.snapshot().without(scene.may_differ);
    if scene.end == End::AsBefore {
        before.without(scene.may_differ).compare(&end)?;
    }
    Ok((requests, end))
}

/// Kills at one request; whether the program got that far.
fn step(
    scene: &Scene<'_>,
    number: usize,
    phase: Phase,
    reference: &Snapshot,
) -> Result<bool, String> {
    let stage = Stage::new();
    let bystanders = Snapshot::bystanders(cluster(), &stage.namespace);
    for act in scene.before {
        stage.run(act, &[0])?;
    }
    stage.proxy.settle();
    let kill = Rule::new(Fault::Signal(Signal::KILL, phase)).only(number);
    let kill = match scene.at {
        At::Requests => kill,
        At::Writes => kill.writes(),
    };
    let was_killed = stage.run_killed(scene.killed, kill);
    let seen = (scene.look)(&stage);
    let mut done = vec![];
    for (act, codes) in scene.then {
        done.push(stage.run(act, codes)?);
    }
    (scene.check)(&stage, &seen, &done)?;
    reference.compare(&stage.snapshot().without(scene.may_differ))?;
    bystanders.compare(&Snapshot::bystanders(cluster(), &stage.namespace))?;
    Ok(was_killed)
}

/// That the driver finds its way is shown with a program that takes up where it was killed.
#[test]
fn kubectl_ends_where_it_would_have_ended() {
    let apply = |stage: &Stage| {
        let bundle = stage.copy("bundles/twelve-operator-v1");
        let mut render = super::program::program();
        render
            .args(["render", "-n", &stage.namespace, "-o", "json"])
            .arg(&bundle);
        let rendered = render.output().expect("the program starts");
        let objects = bundle.join("objects.json");
        fs::write(&objects, rendered.stdout).expect("a file");
        let mut kubectl = Command::new(tool("kubectl"));
        kubectl.env_clear().env("HOME", stage.folder.path());
        kubectl.arg("--kubeconfig").arg(stage.kubeconfig());
        kubectl.args(["apply", "--server-side", "-f"]).arg(&objects);
        kubectl.stdin(Stdio::null());
        kubectl
    };
    kill_matrix(&Scene {
        before: &[],
        killed: &apply,
        at: At::Requests,
        look: &|_| String::new(),
        then: &[(&apply, &[0])],
        check: &|_, _, done| match done[0].run.stdout.lines().count() {
            12 => Ok(()),
            _ => Err(format!(
                "12 objects are applied, not\n{}",
                done[0].run.stdout
            )),
        },
        may_differ: &|_| false,
        end: End::AsUndisturbed,
    });
}
