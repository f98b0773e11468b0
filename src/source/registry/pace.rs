//! Whether content comes fast enough to be worth waiting for: something within the timeout, and over that time no less
//! than [`LEAST`] bytes in a second.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::broken::Broken;

/// The fewest bytes in a second.
const LEAST: u64 = 1 << 10;

/// Watches one body.
#[derive(Debug)]
pub(super) struct Pace {
    timeout: Duration,
    /// For how long bytes were waited for, and how many came in that time. Time in which nobody took them is not theirs.
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// For a time without a byte.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// The next bytes; nothing at the end.
    ///
    /// # Errors
    /// When the connection breaks, or they come too slowly.
    pub(super) async fn chunk(&mut self, response: &mut Response) -> Result<Option<Bytes>, Broken> {
        let begun = Instant::now();
        let chunk = timeout(self.timeout, response.chunk()).await;
        let chunk = chunk
            .map_err(|_| Broken::silent(self.timeout))?
            .map_err(|error| Broken::of(&error))?;
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        if chunk.is_some() && !self.keeps_up(begun.elapsed(), bytes) {
            return Err(Broken::slow(LEAST));
        }
        Ok(chunk)
    }

    /// Counts bytes that were waited for.
    fn keeps_up(&mut self, waited: Duration, bytes: usize) -> bool {
        self.waited += waited;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.waited < self.timeout {
            return true;
        }
        let keeps_up = self.bytes as f64 >= self.waited.as_secs_f64() * LEAST as f64;
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        keeps_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trickle_is_noticed_after_the_timeout() {
        let second = Duration::from_secs(1);
        let mut trickle = Pace::new(3 * second);
        assert!(trickle.keeps_up(second, 100));
        assert!(trickle.keeps_up(second, 100));
        assert!(!trickle.keeps_up(second, 100));
        let mut stream = Pace::new(3 * second);
        assert!((0..100).all(|_| stream.keeps_up(second, 1024)));
        let mut burst = Pace::new(3 * second);
        assert!(burst.keeps_up(Duration::ZERO, 1 << 20));
        assert!(burst.keeps_up(3 * second, 1));
        assert!(!burst.keeps_up(3 * second, 1));
    }
}
