//! A registry that lies: it answers what a script says, byte for byte, and remembers who asked for what. Raw TCP, since
//! no HTTP server would break the rules as these answers do.

pub(crate) mod certificates;

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Longer than any client waits in these tests.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The header lines, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// How many requests for the same target came before.
    pub(crate) before: usize,
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The first byte that is asked for.
    pub(crate) fn from(&self) -> usize {
        let range = self.header("range").unwrap_or("bytes=0-");
        let first = range.trim_start_matches("bytes=").trim_end_matches('-');
        first.parse().expect("an open range")
    }
}

/// What a script lets the server do, one after the other; after the last, the connection is closed.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends a byte this often, this many times.
    Trickle(Duration, usize),
    /// Sends kibibytes of nothing, up to this many or until nobody listens.
    Flood(usize),
    /// Does nothing until the client hangs up.
    Wait,
    /// Breaks the connection, so that the client sees a reset.
    Reset,
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<Act> {
    let length = body.as_ref().len().to_string();
    let mut bytes = head(
        status,
        &[headers, &[("Content-Length", length.as_str())]].concat(),
    );
    bytes.extend_from_slice(body.as_ref());
    vec![Act::Send(bytes)]
}

/// The head of an answer, and nothing of its body.
pub(crate) fn head(status: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

type Script = dyn Fn(&Request) -> Vec<Act> + Send + Sync;

/// A server that runs until it is dropped.
pub(crate) struct Liar {
    address: SocketAddr,
    seen: Arc<Seen>,
    is_over: Arc<AtomicBool>,
}

/// What a server remembers.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    /// The kibibytes of all floods that were taken.
    flooded: AtomicUsize,
    /// The connections that are over.
    ended: AtomicUsize,
}

impl Liar {
    /// Speaks HTTP.
    pub(crate) fn plain(script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::start(None, Arc::new(script))
    }

    /// Speaks TLS.
    pub(crate) fn tls(
        config: Arc<ServerConfig>,
        script: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self::start(Some(config), Arc::new(script))
    }

    fn start(tls: Option<Arc<ServerConfig>>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen::default());
        let is_over = Arc::new(AtomicBool::new(false));
        let (memory, ends) = (Arc::clone(&seen), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::SeqCst) {
                    break;
                }
                let (tls, script, seen) = (tls.clone(), Arc::clone(&script), Arc::clone(&memory));
                // What a client does to a connection is its own business.
                thread::spawn(move || {
                    let _ = serve(stream, tls, &*script, &seen);
                    seen.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            address,
            seen,
            is_over,
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen
            .requests
            .lock()
            .expect("no thread has failed")
            .clone()
    }

    /// The kibibytes of floods that clients took so far.
    pub(crate) fn flooded(&self) -> usize {
        self.seen.flooded.load(Ordering::SeqCst)
    }

    /// Waits until so many connections are over.
    pub(crate) fn wait_for_ends(&self, count: usize) {
        let begun = Instant::now();
        while self.seen.ended.load(Ordering::SeqCst) < count {
            assert!(begun.elapsed() < PATIENCE, "a connection is still open");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The `Authorization` headers of all requests so far.
    pub(crate) fn authorizations(&self) -> Vec<Option<String>> {
        let requests = self.requests();
        let authorization = |request: &Request| request.header("authorization").map(str::to_owned);
        requests.iter().map(authorization).collect()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    script: &Script,
    seen: &Seen,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut first = [0];
    stream.peek(&mut first)?;
    match tls {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            let mut secure = StreamOwned::new(connection, stream);
            converse(&mut secure, script, seen)?;
            secure.conn.send_close_notify();
            secure.flush()?;
            drain(&mut secure);
            Ok(())
        }
        // So does Go's server answer TLS.
        None if first == [0x16] => {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\nno TLS here\n")?;
            stream.shutdown(Shutdown::Write)?;
            drain(&mut stream);
            Ok(())
        }
        None => {
            let mut stream = stream;
            if converse(&mut stream, script, seen)? == End::Close {
                stream.shutdown(Shutdown::Write)?;
                drain(&mut stream);
            }
            // A socket that is closed with a byte unread resets the connection.
            Ok(())
        }
    }
}

#[derive(PartialEq)]
enum End {
    Close,
    Reset,
}

fn converse(stream: &mut (impl Read + Write), script: &Script, seen: &Seen) -> io::Result<End> {
    let mut request = read_request(stream)?;
    {
        let mut requests = seen.requests.lock().expect("no thread has failed");
        let same = |other: &&Request| other.target == request.target;
        request.before = requests.iter().filter(same).count();
        requests.push(request.clone());
    }
    for act in script(&request) {
        match act {
            Act::Send(bytes) => stream.write_all(&bytes)?,
            Act::Trickle(pause, times) => {
                for _ in 0..times {
                    stream.write_all(b"x")?;
                    stream.flush()?;
                    thread::sleep(pause);
                }
            }
            Act::Flood(kibibytes) => {
                for _ in 0..kibibytes {
                    stream.write_all(&[b' '; 1024])?;
                    seen.flooded.fetch_add(1, Ordering::SeqCst);
                }
            }
            Act::Wait => drain(stream),
            Act::Reset => return Ok(End::Reset),
        }
        stream.flush()?;
    }
    Ok(End::Close)
}

/// Reads a request but for the last byte of its head, unless there is a body behind it.
fn read_request(stream: &mut impl Read) -> io::Result<Request> {
    let mut head = vec![];
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut word = || first.next().unwrap_or_default().to_owned();
    let (method, target) = (word(), word());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request {
        method,
        target,
        headers,
        body: String::new(),
        before: 0,
    };
    let length = request.header("content-length").map(str::parse::<usize>);
    if let Some(Ok(length)) = length {
        let mut body: Vec<u8> = vec![0; 1 + length];
        stream.read_exact(&mut body)?;
        request.body = String::from_utf8_lossy(&body[1..]).into_owned();
    }
    Ok(request)
}

/// Reads until the client hangs up.
fn drain(stream: &mut impl Read) {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
}
