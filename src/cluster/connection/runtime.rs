//! The threads that requests run on.

use tokio::runtime::{Builder, Handle, Runtime};

/// Enough to decrypt and decompress at once; waiting takes none.
const THREADS: usize = 2;

/// A runtime that is left behind when it is dropped: a name that is being looked up cannot be interrupted.
#[derive(Debug)]
pub(super) struct Engine(Option<Runtime>, Handle);

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has none.
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("cluster")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self(Some(runtime), handle))
    }

    /// Where tasks are started.
    pub(super) fn handle(&self) -> &Handle {
        &self.1
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
