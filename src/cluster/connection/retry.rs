//! Which failures are worth another try, and after what time. Pure: time and chance are handed in.
//!
//! What a server asks for (`Retry-After`) is honoured up to [`LONGEST_WAIT`], and all waits of a request stay within
//! [`BUDGET`]: kube's own retries are not used, as they wait for whatever they are told.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};

/// How often a request is sent at most to a server that answers.
const TRIES: u32 = 8;
/// How often at most while no request of this run has reached it: an address that is wrong is told soon.
const TRIES_UNKNOWN: u32 = 3;
/// How often at most when it is not answered in time: each of these costs the whole timeout.
const TRIES_IN_SILENCE: u32 = 2;
/// For how long a request waits at most, all waits together.
const BUDGET: Duration = Duration::from_secs(60);
/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The first wait; each is double the one before, up to the last.
const FIRST_STEP: Duration = Duration::from_millis(250);
const LAST_STEP: Duration = Duration::from_secs(4);

/// What went wrong with a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server answered that it could not, with this wish for a pause.
    Refused(Option<Duration>),
    /// There is no connection.
    NotConnected,
    /// The connection broke.
    Broken,
    /// There was no answer in time.
    Silence,
    /// It will be the same next time.
    Lasting,
}

/// Whether a server has answered in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// It has.
    Known,
    /// It has not.
    Unknown,
}

/// How much of a request's tries and waits is used up.
#[derive(Debug, Default)]
pub(super) struct Patience {
    tries: u32,
    silences: u32,
    waited: Duration,
}

impl Patience {
    /// Tries so far.
    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    /// Counts a try that failed, and gives the time after which to try again. `chance`, between 0 and 1, spreads the waits
    /// of many clients.
    pub(super) fn after(
        &mut self,
        trouble: Trouble,
        server: Server,
        chance: f64,
    ) -> Option<Duration> {
        self.tries += 1;
        let mut wait = step(self.tries, chance);
        let may_try = match (trouble, server) {
            (Trouble::Lasting, _) => false,
            (Trouble::NotConnected, Server::Unknown) => self.tries < TRIES_UNKNOWN,
            // A server that is started anew takes as long as it takes.
            (Trouble::NotConnected, Server::Known) => true,
            (Trouble::Silence, _) => {
                self.silences += 1;
                self.silences < TRIES_IN_SILENCE
            }
            (Trouble::Broken, _) => self.tries < TRIES,
            (Trouble::Refused(asked), _) => {
                wait = wait.max(asked.unwrap_or_default().min(LONGEST_WAIT));
                self.tries < TRIES
            }
        };
        let waited = self.waited.saturating_add(wait);
        if !may_try || waited > BUDGET {
            return None;
        }
        self.waited = waited;
        Some(wait)
    }
}

/// The wait after a number of tries: between half of the step and all of it.
fn step(tries: u32, chance: f64) -> Duration {
    let doublings = tries.saturating_sub(1).min(8);
    let step = FIRST_STEP.saturating_mul(1 << doublings).min(LAST_STEP);
    step.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

/// What a `Retry-After` header asks for, in seconds or as a date; nothing when it is neither.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long time too.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = DateTimeParser::new().relaxed_weekday(true);
    let date = date.parse_timestamp(value).ok()?;
    let wait = date.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits in milliseconds, all as long as they may be, until it is given up.
    fn waits(trouble: Trouble, server: Server) -> Vec<u128> {
        let mut patience = Patience::default();
        std::iter::from_fn(|| patience.after(trouble, server, 1.0))
            .map(|wait| wait.as_millis())
            .collect()
    }

    #[test]
    fn waits_double_and_end() {
        let busy = waits(Trouble::Refused(None), Server::Known);
        assert_eq!(busy, [250, 500, 1000, 2000, 4000, 4000, 4000]);
        let unknown = waits(Trouble::NotConnected, Server::Unknown);
        assert_eq!(unknown, [250, 500]);
        assert_eq!(waits(Trouble::Silence, Server::Known), [250]);
        assert!(waits(Trouble::Lasting, Server::Known).is_empty());
    }

    #[test]
    fn a_restart_of_a_known_server_is_outlived() {
        let mut patience = Patience::default();
        let shortest =
            std::iter::from_fn(|| patience.after(Trouble::NotConnected, Server::Known, 0.0));
        let all: Duration = shortest.sum();
        assert!(all > Duration::from_secs(50) && all <= BUDGET, "{all:?}");
    }

    #[test]
    fn a_server_cannot_ask_for_more_than_there_is() {
        for seconds in [31, 86_400, u64::MAX] {
            let asked = Trouble::Refused(Some(Duration::from_secs(seconds)));
            assert_eq!(waits(asked, Server::Known), [30_000, 30_000]);
        }
        let asked = Trouble::Refused(Some(Duration::from_secs(1)));
        let first = waits(asked, Server::Known).first().copied();
        assert_eq!(first, Some(1000));
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let asked = |value: &str| retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(asked(" 2 "), Some(2));
        assert_eq!(asked("18446744073709551615"), Some(u64::MAX));
        assert_eq!(asked(&"9".repeat(400)), Some(u64::MAX));
        assert_eq!(asked("Thu, 01 Jan 2026 00:00:07 GMT"), Some(7));
        assert_eq!(asked("Thu, 01 Jan 2020 00:00:00 GMT"), Some(0));
        for text in ["", "-1", "abc", "1.5", "Fri, 31 Dec 9999 23:59:60 GMT x"] {
            assert_eq!(asked(text), None, "{text}");
        }
    }
}
