//! Which answers are worth another try, and after what time. Pure: time and chance are handed in.
//!
//! containers/image tries five times as well, but waits for up to a minute when it is asked to (`docker/docker_client.go`,
//! `makeRequest`). Here all waits of a request fit into [`BUDGET`], and a server that asks for more ends it at once.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};

/// How often a request is sent at most.
pub(super) const TRIES: u32 = 5;
/// How often a request is sent at most that is not answered in time: each of these costs the whole timeout.
const TRIES_IN_SILENCE: u32 = 2;
/// For how long a request waits at most, all waits together.
pub(super) const BUDGET: Duration = Duration::from_secs(30);
/// The first wait; each is double the one before.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// What went wrong with a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server answered with this status, and with this wish for a pause.
    Status(u16, Option<Duration>),
    /// There is no connection, or it broke.
    Connection,
    /// There was no answer in time.
    Silence,
    /// It will be the same next time.
    Lasting,
}

/// What to do after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Try again after this time.
    Again(Duration),
    /// Leave it at that.
    GiveUp,
    /// The server asks for more time than there is.
    TooLong(Duration),
}

/// How much of a request's tries and waits is used up.
#[derive(Debug, Clone, Default)]
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

    /// Counts a try that failed. `chance`, between 0 and 1, spreads the waits of many clients.
    pub(super) fn after(&mut self, trouble: Trouble, chance: f64) -> Next {
        self.tries += 1;
        let asked = match trouble {
            Trouble::Status(408 | 429 | 500 | 502 | 503 | 504, asked) => asked,
            Trouble::Connection => None,
            Trouble::Silence => {
                self.silences += 1;
                None
            }
            Trouble::Status(..) | Trouble::Lasting => return Next::GiveUp,
        };
        if self.tries >= TRIES || self.silences >= TRIES_IN_SILENCE {
            return Next::GiveUp;
        }
        let wait = asked.unwrap_or_else(|| backoff(self.tries, chance));
        match self.waited.checked_add(wait) {
            Some(waited) if waited <= BUDGET => {
                self.waited = waited;
                Next::Again(wait)
            }
            _ => Next::TooLong(wait),
        }
    }
}

/// The wait after a number of tries: between half of the step and all of it.
pub(super) fn backoff(tries: u32, chance: f64) -> Duration {
    let doublings = tries.saturating_sub(1).min(8);
    let step = FIRST_WAIT.saturating_mul(1 << doublings);
    step.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

/// What a `Retry-After` header asks for, in seconds or as a date. A date is compared with the server's own `Date`
/// where there is one, because its clock need not be ours.
pub(super) fn retry_after(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long time too.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let read = |text: &str| {
        DateTimeParser::new()
            .relaxed_weekday(true)
            .parse_timestamp(text)
            .ok()
    };
    let now = date.and_then(read).unwrap_or(now);
    let wait = read(value)?.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_until_the_tries_are_used_up() {
        let mut patience = Patience::default();
        let waits: Vec<_> =
            std::iter::from_fn(|| match patience.after(Trouble::Status(503, None), 1.0) {
                Next::Again(wait) => Some(wait.as_millis()),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000]);
        assert_eq!(patience.tries(), TRIES);
        assert_eq!(backoff(1, 0.0).as_millis(), 125);
        assert_eq!(backoff(u32::MAX, 1.0).as_secs(), 64);
    }

    #[test]
    fn what_stays_as_it_is_is_not_tried_again() {
        for trouble in [
            Trouble::Lasting,
            Trouble::Status(404, None),
            Trouble::Status(501, Some(SECOND)),
        ] {
            assert_eq!(Patience::default().after(trouble, 1.0), Next::GiveUp);
        }
        let mut patience = Patience::default();
        assert!(matches!(
            patience.after(Trouble::Silence, 1.0),
            Next::Again(_)
        ));
        assert_eq!(patience.after(Trouble::Silence, 1.0), Next::GiveUp);
    }

    #[test]
    fn all_waits_together_stay_within_the_budget() {
        let mut patience = Patience::default();
        let asks = |seconds| Trouble::Status(429, Some(Duration::from_secs(seconds)));
        assert_eq!(patience.after(asks(20), 1.0), Next::Again(20 * SECOND));
        assert_eq!(patience.after(asks(11), 1.0), Next::TooLong(11 * SECOND));
        let forever = Duration::from_secs(u64::MAX);
        assert_eq!(
            Patience::default().after(asks(u64::MAX), 1.0),
            Next::TooLong(forever)
        );
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let asked = |value: &str, date| retry_after(value, date, now);
        assert_eq!(asked(" 2 ", None), Some(2 * SECOND));
        assert_eq!(asked("0", None), Some(Duration::ZERO));
        let most = Duration::from_secs(u64::MAX);
        assert_eq!(asked("18446744073709551615", None), Some(most));
        assert_eq!(asked(&"9".repeat(400), None), Some(most));
        let date = "Thu, 01 Jan 2026 00:00:07 GMT";
        assert_eq!(asked(date, None), Some(7 * SECOND));
        assert_eq!(
            asked(date, Some("Thu, 01 Jan 2026 00:00:05 GMT")),
            Some(2 * SECOND)
        );
        assert_eq!(
            asked("Thu, 01 Jan 2020 00:00:00 GMT", None),
            Some(Duration::ZERO)
        );
        for text in [
            "",
            "-1",
            "1.5",
            "soon",
            "Fri, 31 Dec 9999 23:59:60 GMT x",
            "\u{661}",
        ] {
            assert_eq!(asked(text, None), None, "{text}");
        }
    }
}
