//! The threads that content is read on.

use rayon::ThreadPoolBuilder;

use super::STACK_BYTES;

/// Has rayon's threads, one for each core, get stacks that hold the deepest content. Whoever reads content on them
/// calls this first; once is enough.
pub(super) fn prepare() {
    // The second call finds the threads there, with the stacks of the first.
    let _ = ThreadPoolBuilder::new()
        .stack_size(STACK_BYTES)
        .build_global();
}
