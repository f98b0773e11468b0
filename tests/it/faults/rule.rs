//! What the proxy does to which requests.

use std::time::Duration;

pub(crate) use rustix::process::Signal;

use super::Request;

/// What is done to a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The server never sees it; the client gets this status and these bytes.
    Answer(u16, Vec<u8>),
    /// It reaches the server later.
    Delay(Duration),
    /// The server never sees it, and the connection ends.
    LoseRequest,
    /// The server does what it asks, and the connection ends.
    LoseAnswer,
    /// The server does what it asks, and the client gets this status and these bytes.
    Instead(u16, Vec<u8>),
    /// The server never sees it, and the connection stays.
    Hang,
    /// The program gets a signal. One that is killed gets no answer, and before the server has seen the request, the
    /// server never will.
    Signal(Signal, Phase),
}

impl Fault {
    /// An answer with headers and a body.
    pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut text = format!("HTTP/1.1 {status} Made Up\r\nConnection: close\r\n");
        let length = body.len().to_string();
        for (name, value) in headers.iter().chain(&[("Content-Length", length.as_str())]) {
            text += &format!("{name}: {value}\r\n");
        }
        Self::Answer(status, (text + "\r\n" + body).into_bytes())
    }

    /// What a server says that was not told in time that its storage has done what was asked.
    pub(crate) fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        match Self::refusal(504, "Timeout", message, &[]) {
            Self::Answer(status, answer) => Self::Instead(status, answer),
            other => other,
        }
    }

    /// A refusal as the API server words them.
    pub(crate) fn refusal(
        status: u16,
        reason: &str,
        message: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        let body = serde_json::json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": status, "reason": reason, "message": message,
        });
        let json = [("Content-Type", "application/json")];
        Self::answer(status, &[&json, headers].concat(), &body.to_string())
    }
}

/// When a signal is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the server sees the request.
    Before,
    /// When the server has done what the request asks.
    After,
}

/// Which of the requests that a rule is about it hits.
#[derive(Debug, Clone, Copy)]
enum Hits {
    All,
    /// One, counted from 0.
    Only(usize),
    /// All from this on, counted from 0.
    From(usize),
    /// Every how many, the first of them included.
    Every(usize),
}

/// What is done to which requests. A rule that says nothing more is about all of them.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    fault: Fault,
    method: Option<&'static str>,
    path: String,
    writes: bool,
    hits: Hits,
    seen: usize,
}

impl Rule {
    /// Does this to every request.
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            method: None,
            path: String::new(),
            writes: false,
            hits: Hits::All,
            seen: 0,
        }
    }

    /// Only to those with this method.
    pub(crate) fn method(self, method: &'static str) -> Self {
        let method = Some(method);
        Self { method, ..self }
    }

    /// Only to those whose path contains this.
    pub(crate) fn path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { path, ..self }
    }

    /// Only to those that may change what is stored.
    pub(crate) fn writes(self) -> Self {
        let writes = true;
        Self { writes, ..self }
    }

    /// Only to one of them, counted from 0.
    pub(crate) fn only(self, number: usize) -> Self {
        let hits = Hits::Only(number);
        Self { hits, ..self }
    }

    /// Only from this of them on, counted from 0.
    pub(crate) fn from(self, number: usize) -> Self {
        let hits = Hits::From(number);
        Self { hits, ..self }
    }

    /// Only to every so many of them, the first included.
    pub(crate) fn every(self, count: usize) -> Self {
        let hits = Hits::Every(count);
        Self { hits, ..self }
    }

    /// What is done to this request, which counts as seen.
    pub(super) fn hit(&mut self, request: &Request) -> Option<Fault> {
        let is_about = self.method.is_none_or(|method| method == request.method)
            && request.path.contains(&self.path)
            && (!self.writes || request.is_write());
        if !is_about {
            return None;
        }
        let number = self.seen;
        self.seen += 1;
        let is_hit = match self.hits {
            Hits::All => true,
            Hits::Only(only) => number == only,
            Hits::From(first) => number >= first,
            Hits::Every(count) => number.is_multiple_of(count),
        };
        is_hit.then(|| self.fault.clone())
    }
}
