//! The threads that content is read on.

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{
    STACK_BYTES,
    failure::{Class, Failure},
};

/// Threads on all cores, with stacks that hold the deepest content.
///
/// # Errors
/// When the system has no threads to give.
pub(super) fn pool() -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().stack_size(STACK_BYTES).build();
    pool.map_err(|error| Failure::of(Class::Bug, &error))
}
