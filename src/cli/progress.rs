//! How far downloads are, on a terminal.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::source::registry::Progress;

/// What takes no longer than this is not shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on the terminal for each download. Nothing is drawn where standard error is no terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    lines: MultiProgress,
    bars: Mutex<BTreeMap<u64, ProgressBar>>,
    next: AtomicU64,
    start: Once,
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            lines: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            bars: Mutex::default(),
            next: AtomicU64::new(0),
            start: Once::new(),
        }
    }
}

/// A line on the terminal that counts what is done of many things that wait for registries.
#[derive(Debug)]
pub(super) struct Count {
    bar: ProgressBar,
}

impl Count {
    /// Counts up to `all`; nothing is drawn where standard error is no terminal, or when it is over soon.
    pub(super) fn new(all: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::hidden());
        let later = bar.clone();
        if let Ok(style) = ProgressStyle::with_template("{pos} of {len} {msg}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            if !later.is_finished() {
                later.set_draw_target(ProgressDrawTarget::stderr());
            }
        });
        Self { bar }
    }

    /// As many are done.
    pub(super) fn show(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    /// All are.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Terminal {
    /// Shows what is going on, once it has taken a while.
    fn show_later(&self) {
        let lines = self.lines.clone();
        self.start.call_once(|| {
            thread::spawn(move || {
                thread::sleep(PATIENCE);
                lines.set_draw_target(ProgressDrawTarget::stderr());
            });
        });
    }

    fn bar(&self, id: u64) -> Option<ProgressBar> {
        let bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        bars.get(&id).cloned()
    }
}

impl Progress for Terminal {
    fn begin(&self, what: &str, bytes: Option<u64>) -> u64 {
        self.show_later();
        let template = match bytes {
            Some(_) => "{msg}  {bytes} of {total_bytes}  {binary_bytes_per_sec}",
            None => "{msg}  {bytes}  {elapsed}",
        };
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(bytes.unwrap_or_default());
        let bar = self.lines.add(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        });
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(PATIENCE / 4);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        bars.insert(id, bar);
        id
    }

    fn advance(&self, id: u64, bytes: u64) {
        if let Some(bar) = self.bar(id) {
            bar.inc(bytes);
        }
    }

    fn end(&self, id: u64) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = bars.remove(&id) {
            bar.finish_and_clear();
            self.lines.remove(&bar);
        }
    }
}
