//! A real Kubernetes API server with its etcd, started when the first test asks, one for all tests of a run.
//!
//! It stores and judges objects, and nothing acts on them: there are no controllers and no nodes, so no pod runs, no
//! namespace gets its default ServiceAccount, and a deleted namespace never goes. A test takes namespaces that no other
//! test uses, and leaves them as they are.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use super::program::{Run, tool};

/// How long the servers may take to get ready. They take 3 seconds on two idle cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// The token of an administrator.
const TOKEN: &str = "tests";

/// Runs the servers until its standard input ends, which nothing ever writes to. It ends with the process of the tests,
/// however that ends, so that no server and no folder outlives them.
const SUPERVISOR: &str = r#"
etcd_program=$1 kube_apiserver_program=$2 etcd_port=$3 port=$4 disabled=$5 folder=$6
"$etcd_program" --data-dir data --unsafe-no-fsync --log-level warn \
  --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls http://127.0.0.1:0 > etcd.log 2>&1 &
etcd=$!
"$kube_apiserver_program" --etcd-servers "http://127.0.0.1:$etcd_port" --bind-address 127.0.0.1 --secure-port "$port" \
  --cert-dir certificates --service-cluster-ip-range 10.0.0.0/16 --authorization-mode RBAC \
  --token-auth-file tokens.csv --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file certificates/apiserver.key \
  --service-account-signing-key-file certificates/apiserver.key \
  --disable-admission-plugins "$disabled" > kube-apiserver.log 2>&1 &
kube_apiserver=$!
read -r _
kill -KILL $kube_apiserver $etcd
wait
cd / && rm -rf "$folder"
"#;

/// What would refuse objects because something is missing that a whole cluster has: the controller that makes
/// ServiceAccounts, and the operators that answer their webhooks.
const NOT_ADMITTING: &str = "ServiceAccount,MutatingAdmissionWebhook,ValidatingAdmissionWebhook";

static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);

/// The cluster of this run.
pub(crate) fn cluster() -> &'static Cluster {
    &CLUSTER
}

/// A running API server.
pub(crate) struct Cluster {
    folder: PathBuf,
    /// Kept for its standard input, whose end is the end of the servers.
    _supervisor: Child,
}

impl Cluster {
    /// kubectl as an administrator of the cluster, ready to be given arguments.
    pub(crate) fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(tool("kubectl"));
        kubectl
            .env_clear()
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"));
        kubectl.stdin(Stdio::null()).current_dir(&self.folder);
        kubectl
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

    /// Creates CustomResourceDefinitions, and waits until objects of theirs can be created.
    pub(crate) fn define(&self, name: &str, definitions: &str) {
        let file = self.folder.join(name);
        fs::write(&file, definitions).expect("the temporary folder takes a file");
        let apply = vec!["apply", "--server-side"];
        let wait = vec!["wait", "--for", "condition=established", "--timeout", "60s"];
        for arguments in [apply, wait] {
            let mut kubectl = self.kubectl();
            let done = kubectl.args(arguments).arg("-f").arg(&file).output();
            let done = Run::from(done.expect("kubectl starts"));
            assert!(done.code == 0, "{name}: {}", done.stderr);
        }
    }

    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let [etcd_port, port] = free_ports();
        write_configuration(&folder, port);
        let mut supervisor = Command::new("/bin/sh");
        supervisor.args(["-c", SUPERVISOR, "supervisor"]);
        supervisor.args(["etcd", "kube-apiserver"].map(tool));
        supervisor.args([etcd_port, port].map(|port| port.to_string()));
        supervisor.arg(NOT_ADMITTING).arg(&folder);
        supervisor.env_clear().current_dir(&folder);
        // In a process group of its own, it is spared by a Ctrl-C that ends the tests, and lives to end the servers.
        supervisor
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let supervisor = supervisor.spawn().expect("/bin/sh starts");
        let cluster = Self {
            folder,
            _supervisor: supervisor,
        };
        cluster.wait_until_ready();
        cluster
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asked: Output = self
                .kubectl()
                .args(["get", "--raw", "/readyz"])
                .output()
                .expect("kubectl starts");
            if asked.status.success() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the API server is not ready after {} s: {}\n{}\n{}",
                PATIENCE.as_secs(),
                String::from_utf8_lossy(&asked.stderr),
                end_of(&self.folder.join("etcd.log")),
                end_of(&self.folder.join("kube-apiserver.log")),
            );
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Ports that nothing listens on.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("the listener is bound").port())
}

fn write_configuration(folder: &Path, port: u16) {
    let tokens = format!("{TOKEN},administrator,administrator,\"system:masters\"\n");
    fs::write(folder.join("tokens.csv"), tokens).expect("the temporary folder takes a file");
    let kubeconfig = format!(
        "apiVersion: v1
kind: Config
clusters:
- {{name: tests, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: certificates/apiserver.crt}}}}
users:
- {{name: tests, user: {{token: {TOKEN}}}}}
contexts:
- {{name: tests, context: {{cluster: tests, user: tests}}}}
current-context: tests
"
    );
    fs::write(folder.join("kubeconfig"), kubeconfig).expect("the temporary folder takes a file");
}

/// The last lines of a log, under its path.
fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    format!(
        "{}:\n{}",
        log.display(),
        lines[lines.len().saturating_sub(20)..].join("\n")
    )
}
