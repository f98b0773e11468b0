//! The threads that content is read on.

use rayon::ThreadPoolBuilder;

use super::STACK_BYTES;
use crate::limits::Limits;

/// The stack of a thread that handles content as deep as the limits allow: four times what 128 levels take.
const STACK_WITHIN_LIMITS: usize = 16 << 20;

/// Has rayon's threads, one for each core, get stacks that hold the deepest content. Whoever reads content on them
/// calls this first; once is enough.
pub(super) fn prepare(limits: &Limits) {
    // Address space may be scarce, and without its threads rayon is of no use at all.
    let stack = if limits.depth > Limits::DEFAULT.depth {
        STACK_BYTES
    } else {
        STACK_WITHIN_LIMITS
    };
    // The second call finds the threads there, with the stacks of the first.
    let _ = ThreadPoolBuilder::new().stack_size(stack).build_global();
}
