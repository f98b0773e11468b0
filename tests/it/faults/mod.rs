//! A proxy in front of the API server that does to requests what networks, servers and administrators do: it loses them,
//! loses their answers, refuses them, and ends the program at any of them. It remembers every request, so that a test
//! can tell what was asked and what was written.
//!
//! Programs reach it by a kubeconfig of its own, and it passes their token on. It speaks TLS, as kubectl tells no token
//! to who does not.

mod rule;

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::{Pid, kill_process};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

pub(crate) use self::rule::{Fault, Phase, Rule, Signal};
use super::{
    cluster::{
        Cluster,
        wire::{self, Wire},
    },
    lying::certificates::{Authority, Flaw},
};

/// Longer than anything takes that a test waits for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Vouches for all proxies.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("Proxies of the tests"));

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
    /// The status code that the client was to get; none when it got no answer.
    pub(crate) code: Option<u16>,
}

impl Request {
    /// Whether it may change what is stored: it is no question, and no dry run.
    pub(crate) fn is_write(&self) -> bool {
        let is_review = self.path.contains("/selfsubject");
        // Of a DELETE, the options are its body.
        let is_dry = self.query.contains("dryRun=All") || self.body.contains(r#""dryRun":["All"]"#);
        self.method != "GET" && !is_dry && !is_review
    }
}

/// A proxy that runs until it is dropped.
pub(crate) struct FaultProxy {
    address: SocketAddr,
    folder: TempDir,
    state: Arc<State>,
}

struct State {
    wire: Wire,
    tls: Arc<ServerConfig>,
    is_over: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    requests: Vec<Request>,
    rules: Vec<Rule>,
    /// Whom signals are for.
    target: Option<Pid>,
    /// How many connections there are on which the server may still be told something.
    pending: usize,
}

/// A connection that counts as pending until this is dropped.
struct Pending<'a>(&'a State);

impl FaultProxy {
    /// Starts a proxy that passes everything on.
    pub(crate) fn start(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            wire: cluster.wire(),
            tls: AUTHORITY.server(Flaw::None),
            is_over: AtomicBool::new(false),
            known: Mutex::default(),
        });
        thread::spawn({
            let state = Arc::clone(&state);
            move || {
                for stream in listener.incoming().flatten() {
                    if state.is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let state = Arc::clone(&state);
                    state.known().pending += 1;
                    // What a client does to a connection is its own business.
                    thread::spawn(move || serve(stream, &state, Pending(&state)));
                }
            }
        });
        Self {
            address,
            folder: tempfile::tempdir().expect("a temporary folder"),
            state,
        }
    }

    /// From now on, does to requests what the rules say; the first rule that hits a request counts.
    pub(crate) fn set_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        self.state.known().rules = rules.into_iter().collect();
    }

    /// A kubeconfig that leads through the proxy: as the administrator with the token of the cluster, as a user of
    /// [`super::cluster::USERS`] with the user's name.
    pub(crate) fn kubeconfig(&self, token: &str) -> PathBuf {
        let path = self.folder.path().join(format!("kubeconfig-{token}"));
        let ca = STANDARD.encode(&AUTHORITY.pem);
        let cluster = format!(
            "{{name: proxy, cluster: {{server: 'https://{}', certificate-authority-data: {ca}}}}}",
            self.address
        );
        let user = format!("{{name: proxy, user: {{token: {token}}}}}");
        let context = "{name: proxy, context: {cluster: proxy, user: proxy}}";
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: proxy, clusters: [{cluster}], users: [{user}], \
             contexts: [{context}]}}\n"
        );
        fs::write(&path, text).expect("the temporary folder takes a file");
        path
    }

    /// Whom the signals of rules are for: a child that has not been waited for. A signal waits for this call.
    pub(crate) fn aim(&self, child: &std::process::Child) {
        let pid = i32::try_from(child.id()).expect("a process number");
        self.state.known().target = Pid::from_raw(pid);
    }

    /// All requests so far, in the order in which they came.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.known().requests.clone()
    }

    /// The requests that may have changed what is stored.
    pub(crate) fn writes(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(Request::is_write);
        requests
    }

    /// Forgets all requests, the rules, and whom signals are for; waits until the server has dealt with every request, so
    /// that nothing of a program that was killed changes anything any more.
    pub(crate) fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // What was sent last may not have been taken yet.
            thread::sleep(Duration::from_millis(10));
            if self.state.known().pending == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "a request has no answer");
        }
        let mut known = self.state.known();
        let pending = known.pending;
        *known = Known {
            pending,
            ..Known::default()
        };
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.known().pending -= 1;
    }
}

impl State {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no thread has failed")
    }

    /// Remembers a request; its number, and what is to be done to it.
    fn judge(&self, request: Request) -> (usize, Option<Fault>) {
        let mut known = self.known();
        let mut fault = None;
        for rule in &mut known.rules {
            // Every rule counts every request that it is about, whichever comes first.
            let hit = rule.hit(&request);
            fault = fault.or(hit);
        }
        known.requests.push(request);
        (known.requests.len() - 1, fault)
    }

    fn signal(&self, signal: Signal) {
        let deadline = Instant::now() + PATIENCE;
        let target = loop {
            if let Some(target) = self.known().target {
                break target;
            }
            assert!(Instant::now() < deadline, "no child was named");
            thread::sleep(Duration::from_millis(1));
        };
        // It may have ended by itself.
        let _ = kill_process(target, signal);
    }

    fn answered(&self, number: usize, code: u16) {
        // A client that is still there after the proxy has been asked to forget is none of the next test's.
        if let Some(request) = self.known().requests.get_mut(number) {
            request.code = Some(code);
        }
    }
}

fn serve(stream: TcpStream, state: &State, pending: Pending<'_>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = ServerConnection::new(Arc::clone(&state.tls)).map_err(io::Error::other)?;
    let mut client = BufReader::new(StreamOwned::new(tls, stream));
    let mut head = read_head(&mut client)?;
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body)?;
    let (number, fault) = state.judge(request_of(&head, &body));
    // One answer a connection, so that its end is the end of the answer.
    head.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    head.insert(1, "Connection: close\r\n".to_owned());
    let request = [head.concat().as_bytes(), b"\r\n", &body].concat();
    match fault {
        Some(Fault::LoseRequest) => return Ok(()),
        Some(Fault::Hang) => {
            drop(pending);
            thread::sleep(PATIENCE);
            return Ok(());
        }
        Some(Fault::Answer(status, answer)) => {
            state.answered(number, status);
            client.get_mut().write_all(&answer)?;
            return end(client.get_mut());
        }
        Some(Fault::Signal(signal, Phase::Before)) => {
            state.signal(signal);
            if signal == Signal::KILL {
                return Ok(());
            }
        }
        Some(Fault::Delay(time)) => thread::sleep(time),
        _ => {}
    }
    let (mut server, head) = forward(&request, &state.wire)?;
    drop(pending);
    match fault {
        Some(Fault::LoseAnswer) => return Ok(()),
        Some(Fault::Instead(status, answer)) => {
            state.answered(number, status);
            client.get_mut().write_all(&answer)?;
            return end(client.get_mut());
        }
        Some(Fault::Signal(signal, Phase::After)) => {
            state.signal(signal);
            if signal == Signal::KILL {
                return Ok(());
            }
        }
        _ => {}
    }
    if let Some(code) = head.first().and_then(|line| wire::status(line)) {
        state.answered(number, code);
    }
    let mut client = client.into_inner();
    client.write_all(head.concat().as_bytes())?;
    client.write_all(b"\r\n")?;
    pass(&mut server, &mut client)?;
    end(&mut client)
}

/// Says that there is nothing more. Without these words of TLS an answer counts as cut.
fn end(client: &mut StreamOwned<ServerConnection, TcpStream>) -> io::Result<()> {
    client.conn.send_close_notify();
    client.flush()?;
    client.sock.shutdown(Shutdown::Write)
}

/// Passes a request on, and waits until its answer begins: by then the server has done what was asked.
fn forward(request: &[u8], wire: &Wire) -> io::Result<(impl BufRead + use<>, Vec<String>)> {
    let mut server = wire.connect()?;
    server.write_all(request)?;
    let mut server = BufReader::new(server);
    let head = read_head(&mut server)?;
    Ok((server, head))
}

/// Passes bytes on as they come, as those of a watch do.
fn pass(mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        // The server may end a connection without a word of TLS.
        match from.read(&mut buffer).unwrap_or(0) {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

/// The lines of a head, without the empty one.
fn read_head(stream: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut lines = vec![];
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            return Ok(lines);
        }
        lines.push(line);
    }
}

fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    let mut headers = head.iter().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(header, _)| header.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn request_of(head: &[String], body: &[u8]) -> Request {
    let first = head.first().map_or("", String::as_str);
    let mut words = first.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: String::from_utf8_lossy(body).into_owned(),
        code: None,
    }
}
