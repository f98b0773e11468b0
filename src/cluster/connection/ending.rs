//! When a run ends: at a point in time, or when it is stopped.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// What is known of the end.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    is_stopped: bool,
    end: Option<Instant>,
}

/// The end of a run.
#[derive(Debug, Default)]
pub(super) struct Ending(watch::Sender<State>);

/// The run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over;

impl Ending {
    /// Ends it now.
    pub(super) fn stop(&self) {
        self.0.send_modify(|state| state.is_stopped = true);
    }

    /// Lets it end after a time, even one that was stopped.
    pub(super) fn after(&self, time: Duration) {
        let end = Instant::now().checked_add(time);
        self.0.send_replace(State {
            is_stopped: false,
            end,
        });
    }

    /// How much time is left; nothing when there is no end.
    ///
    /// # Errors
    /// When it is over.
    pub(super) fn left(&self) -> Result<Option<Duration>, Over> {
        let State { is_stopped, end } = *self.0.borrow();
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        match left {
            _ if is_stopped => Err(Over),
            Some(Duration::ZERO) => Err(Over),
            left => Ok(left),
        }
    }

    /// Waits.
    ///
    /// # Errors
    /// When the run ends meanwhile.
    pub(super) async fn pause(&self, time: Duration) -> Result<(), Over> {
        self.unless_over(tokio::time::sleep(time)).await
    }

    /// Waits for something.
    ///
    /// # Errors
    /// When the run ends before.
    pub(super) async fn unless_over<T>(&self, wanted: impl Future<Output = T>) -> Result<T, Over> {
        let left = self.left()?;
        let mut changes = self.0.subscribe();
        let stopped = async {
            // It is never dropped before us.
            let _ = changes.wait_for(|state| state.is_stopped).await;
        };
        let end = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = wanted => Ok(result),
            () = stopped => Err(Over),
            () = end => Err(Over),
        }
    }
}
