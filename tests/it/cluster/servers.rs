//! The processes of a cluster: starts them in a temporary folder, and ends them with the process of the tests.

use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use super::super::program::tool;

/// How long the servers may take to get ready. They take 3 seconds on two idle cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the servers, and ends them when its standard input ends.
const SUPERVISOR: &str = include_str!("servers.sh");

/// What would refuse objects because something is missing that a whole cluster has: the operators that answer their
/// webhooks.
const NOT_ADMITTING: &str = "MutatingAdmissionWebhook,ValidatingAdmissionWebhook";

/// How much of a cluster there is.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// The API server and its etcd.
    ApiServer,
    /// Also the controllers, the scheduler and a node.
    Everything,
}

/// The processes of one cluster.
pub(super) struct Servers {
    folder: PathBuf,
    port: u16,
    /// The end of its standard input is the end of the servers, so it is never waited for.
    supervisor: Mutex<Child>,
}

impl Servers {
    /// Starts the supervisor and etcd. Every user has a kubeconfig in the folder of the servers.
    pub(super) fn start(administrator: &str, users: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let [etcd_port, port] = free_ports();
        write_configuration(&folder, port, administrator, users);
        let tools = tool("kubectl");
        let tools = tools.parent().expect("tools are in a folder");
        let mut supervisor = Command::new("/bin/sh");
        supervisor.args(["-c", SUPERVISOR, "supervisor"]).arg(tools);
        supervisor.args([etcd_port, port].map(|port| port.to_string()));
        supervisor.arg(NOT_ADMITTING).arg(&folder);
        supervisor
            .env_clear()
            .env("HOME", &folder)
            .current_dir(&folder);
        // In a process group of its own, it is spared by a Ctrl-C that ends the tests, and lives to end the servers.
        supervisor
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let servers = Self {
            folder,
            port,
            supervisor: Mutex::new(supervisor.spawn().expect("/bin/sh starts")),
        };
        servers.order("start_etcd");
        servers
    }

    /// Where the files of the servers are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The port of the API server.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn start_apiserver(&self) {
        self.order("start_apiserver");
    }

    /// Kills the API server, and waits until nothing takes connections.
    pub(super) fn kill_apiserver(&self) {
        self.order("kill_apiserver");
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            assert!(Instant::now() < deadline, "the API server does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts all that acts on objects.
    pub(super) fn start_controllers(&self) {
        self.order("start_controllers");
    }

    /// Waits until the API server says that it is ready.
    pub(super) fn wait_until_ready(&self, kubectl: &dyn Fn() -> Command) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asked: Output = kubectl()
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

    /// Has the supervisor run one of its functions.
    fn order(&self, function: &str) {
        let mut supervisor = self.supervisor.lock().expect("no test failed in here");
        let orders = supervisor.stdin.as_mut().expect("it is piped");
        writeln!(orders, "{function}").expect("the supervisor reads");
    }
}

/// Ports that nothing listens on.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("the listener is bound").port())
}

fn write_configuration(folder: &Path, port: u16, administrator: &str, users: &[&str]) {
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("the temporary folder takes a file");
    };
    let mut tokens = format!("{administrator},administrator,administrator,\"system:masters\"\n");
    write("kubeconfig", &kubeconfig(port, administrator));
    for user in users {
        tokens += &format!("{user},{user},{user}\n");
        write(&format!("kubeconfig-{user}"), &kubeconfig(port, user));
    }
    write("tokens.csv", &tokens);
}

fn kubeconfig(port: u16, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- {{name: tests, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: certificates/apiserver.crt}}}}
users:
- {{name: tests, user: {{token: {token}}}}}
contexts:
- {{name: tests, context: {{cluster: tests, user: tests}}}}
current-context: tests
"
    )
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
