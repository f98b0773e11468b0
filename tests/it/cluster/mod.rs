//! A real Kubernetes cluster, started when the first test asks, one for all tests of a run.
//!
//! Its API server, controllers and scheduler are those of Kubernetes, and KWOK plays the one node: what is scheduled there
//! runs at once, so that Deployments become available, though no container ever starts. So nothing answers webhooks
//! either, and the API server is told not to ask any. A test takes namespaces that no other test uses, and leaves them
//! as they are. What disturbs the API server itself needs a cluster of its own, which [`Cluster::private`] starts.

mod dockercfg;
mod servers;
pub(crate) mod wire;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{
    servers::{Extent, Servers},
    wire::Wire,
};
use super::program::{Run, root, tool};

pub(crate) use self::dockercfg::DockercfgController;

/// The token of the administrator, whom no rule of RBAC stops. Every other user's token is the user's name.
const TOKEN: &str = "tests";

/// Users who may do nothing until a test binds them to a role.
pub(crate) const USERS: [&str; 11] = [
    "namespace-admin-1",
    "namespace-admin-2",
    "namespace-admin-3",
    "namespace-admin-4",
    "namespace-admin-5",
    "namespace-admin-6",
    "namespace-admin-7",
    "namespace-admin-8",
    "no-deleter",
    "reader",
    "weak",
];

/// How long the controllers may take for what every namespace gets.
const PATIENCE: Duration = Duration::from_secs(120);

/// The content of a request that has none.
pub(crate) const NOTHING: (&str, &str) = ("application/json", "");

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(Extent::Everything));

/// The cluster of this run.
pub(crate) fn cluster() -> &'static Cluster {
    &CLUSTER
}

/// A running cluster.
pub(crate) struct Cluster {
    servers: Servers,
    extent: Extent,
    namespaces: AtomicUsize,
    /// Made when the API server has made its certificate.
    wire: OnceLock<Wire>,
}

impl Cluster {
    /// An API server that no other test uses, with nothing that acts on its objects: no controllers and no node. It
    /// takes some seconds to start, and ends when it is dropped.
    pub(crate) fn private() -> Self {
        Self::start(Extent::ApiServer)
    }

    /// kubectl as the administrator, ready to be given arguments.
    pub(crate) fn kubectl(&self) -> Command {
        self.kubectl_with(&self.kubeconfig())
    }

    /// kubectl with another kubeconfig, ready to be given arguments.
    pub(crate) fn kubectl_with(&self, kubeconfig: &Path) -> Command {
        let mut kubectl = Command::new(tool("kubectl"));
        kubectl
            .env_clear()
            .env("HOME", self.servers.folder())
            .env("KUBECONFIG", kubeconfig);
        kubectl.stdin(Stdio::null()).current_dir(root());
        kubectl
    }

    /// What kubectl prints when it does as it is told; it has to succeed.
    pub(crate) fn get(&self, arguments: &[&str]) -> String {
        let done = Run::from(self.kubectl().args(arguments).output().expect("kubectl"));
        assert_eq!(done.code, 0, "kubectl {arguments:?}: {}", done.stderr);
        done.stdout
    }

    /// The kubeconfig of the administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.servers.folder().join("kubeconfig")
    }

    /// The kubeconfig of one of [`USERS`].
    pub(crate) fn user(&self, name: &str) -> PathBuf {
        assert!(USERS.contains(&name), "{name} is no user of the cluster");
        self.servers.folder().join(format!("kubeconfig-{name}"))
    }

    /// Where the API server listens, as `127.0.0.1:PORT`. It speaks TLS.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.servers.port())
    }

    /// The certificates that vouch for the API server, as PEM.
    pub(crate) fn ca(&self) -> String {
        let path = self.servers.folder().join("certificates/apiserver.crt");
        fs::read_to_string(path).expect("the API server has made its certificate")
    }

    /// The token of the administrator.
    pub(crate) fn token(&self) -> &'static str {
        TOKEN
    }

    /// A way to the API server, for requests of another user than the administrator, and for bytes.
    pub(crate) fn wire(&self) -> Wire {
        Wire::new(self.address(), &self.ca())
    }

    /// Sends a request as the administrator, and gives the status code and the body of the answer. The content is
    /// its type and its text.
    pub(crate) fn send(&self, method: &str, path: &str, content: (&str, &str)) -> (u16, Value) {
        let wire = self.wire.get_or_init(|| self.wire());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = wire.send(TOKEN, (method, path), content);
            let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            // So it answers for custom resources whose definition is new.
            if answer.0 != 429 || Instant::now() > deadline {
                return answer;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes a namespace of a new name, and waits for what the controllers put into it.
    pub(crate) fn namespace(&self, prefix: &str) -> String {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        let namespace = json!({"metadata": {"name": &name}}).to_string();
        let namespace = ("application/json", namespace.as_str());
        let (code, answer) = self.send("POST", "/api/v1/namespaces", namespace);
        assert_eq!(code, 201, "{answer}");
        if matches!(self.extent, Extent::Everything) {
            self.wait_for_account(&name);
        }
        name
    }

    /// Creates the CustomResourceDefinitions of a file below `testdata/cluster`, and waits until objects of theirs can
    /// be created.
    pub(crate) fn define(&self, file: &str) {
        let file = root().join("testdata/cluster").join(file);
        let file = file.to_str().expect("a path of Unicode");
        self.get(&["apply", "--server-side", "-f", file]);
        let established = "condition=established";
        self.get(&["wait", "--for", established, "--timeout", "60s", "-f", file]);
    }

    /// Applies what a program prints, as `PROGRAM | kubectl apply --server-side -f -` does, with more arguments.
    pub(crate) fn apply(&self, program: &mut Command, arguments: &[&str]) -> (Run, Run) {
        let mut program = program
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let printed = program.stdout.take().expect("standard output is piped");
        // What it tells on standard error has to be read meanwhile, or it may wait for that for ever.
        let program = thread::spawn(|| program.wait_with_output());
        let mut kubectl = self.kubectl();
        kubectl
            .args(["apply", "--server-side", "-f", "-"])
            .args(arguments)
            .stdin(printed);
        let applied = kubectl.output().expect("kubectl starts");
        let program = program
            .join()
            .expect("the thread ends")
            .expect("the program ends");
        (program.into(), applied.into())
    }

    /// Kills the API server; what it has stored stays stored. Only for a private cluster.
    pub(crate) fn kill_apiserver(&self) {
        assert!(matches!(self.extent, Extent::ApiServer), "all tests use it");
        self.servers.kill_apiserver();
    }

    /// Starts the API server again, and waits until it is ready.
    pub(crate) fn start_apiserver(&self) {
        self.servers.start_apiserver();
        self.servers.wait_until_ready(&|| self.kubectl());
    }

    fn start(extent: Extent) -> Self {
        let cluster = Self {
            servers: Servers::start(TOKEN, &USERS),
            extent,
            namespaces: AtomicUsize::new(0),
            wire: OnceLock::new(),
        };
        cluster.start_apiserver();
        if matches!(extent, Extent::Everything) {
            cluster.servers.start_controllers();
            cluster.get(&["create", "-f", "testdata/cluster/node.yaml"]);
            let ready = "condition=ready";
            cluster.get(&["wait", "--for", ready, "--timeout", "120s", "node/node-1"]);
            cluster.wait_for_account("default");
        }
        cluster
    }

    /// Waits for what the controllers put into every namespace.
    fn wait_for_account(&self, namespace: &str) {
        let namespace = format!("/api/v1/namespaces/{namespace}");
        for object in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
            let deadline = Instant::now() + PATIENCE;
            while self
                .send("GET", &format!("{namespace}/{object}"), NOTHING)
                .0
                != 200
            {
                assert!(Instant::now() < deadline, "{namespace} has no {object}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
