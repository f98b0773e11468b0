//! Stands between the program and a registry: counts what passes, and lets it pass no faster than a test wants.
//!
//! It looks at no byte. What it counts, no log of a server can lose, and no request of another test is among it.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for something to pass.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running tap. It ends with the process.
pub(crate) struct Tap {
    address: String,
    passed: Arc<Passed>,
}

/// How fast answers may pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Speed {
    Full,
    BytesPerSecond(u32),
}

#[derive(Default)]
struct Passed {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    connections: u64,
    /// Towards the program.
    bytes: u64,
}

impl Tap {
    /// Starts a tap in front of the server at `HOST:PORT`.
    pub(crate) fn before(server: &str, speed: Speed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let passed = Arc::new(Passed::default());
        let tap = Self {
            address: address.to_string(),
            passed: Arc::clone(&passed),
        };
        let server = server.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                passed.count(1, 0);
                let Ok(server) = TcpStream::connect(&server) else {
                    continue;
                };
                let twins = (client.try_clone(), server.try_clone());
                let (Ok(client_twin), Ok(server_twin)) = twins else {
                    continue;
                };
                thread::spawn(move || pass(client_twin, server_twin, Speed::Full, |_| {}));
                let passed = Arc::clone(&passed);
                thread::spawn(move || pass(server, client, speed, |bytes| passed.count(0, bytes)));
            }
        });
        tap
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// As many connections as were made so far.
    pub(crate) fn connections(&self) -> u64 {
        self.passed
            .counts
            .lock()
            .expect("no thread panics")
            .connections
    }

    /// Waits until the program was sent so many bytes.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let counts = self.passed.counts.lock().expect("no thread panics");
        let (counts, waited) = self
            .passed
            .changed
            .wait_timeout_while(counts, PATIENCE, |counts| counts.bytes < bytes)
            .expect("no thread panics");
        assert!(
            !waited.timed_out(),
            "only {} of {bytes} bytes passed in {} s",
            counts.bytes,
            PATIENCE.as_secs()
        );
    }
}

impl Passed {
    fn count(&self, connections: u64, bytes: u64) {
        let mut counts = self.counts.lock().expect("no thread panics");
        counts.connections += connections;
        counts.bytes += bytes;
        self.changed.notify_all();
    }
}

/// Passes everything on from one to the other, to its end.
fn pass(mut from: TcpStream, mut to: TcpStream, speed: Speed, passed: impl Fn(u64)) {
    let begun = Instant::now();
    let mut piece = vec![0; 16 << 10];
    let mut bytes = 0_u64;
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
        bytes += length as u64;
        passed(length as u64);
        if let Speed::BytesPerSecond(speed) = speed {
            let due = Duration::from_secs_f64(bytes as f64 / f64::from(speed));
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    // The other half may still have something to say.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
