//! The threads that requests run on.

use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

use super::error::RegistryError;

/// Enough to hash and decrypt at once; waiting takes none.
const THREADS: usize = 2;

/// A runtime that is left behind when it is dropped: a name that is being looked up cannot be interrupted.
#[derive(Debug)]
pub(super) struct Engine(Option<Runtime>, Handle);

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no threads for it.
    pub(super) fn start() -> Result<Arc<Self>, RegistryError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("registry")
            .enable_all()
            .build()
            .map_err(|error| RegistryError::Setup(error.to_string()))?;
        let handle = runtime.handle().clone();
        Ok(Arc::new(Self(Some(runtime), handle)))
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
