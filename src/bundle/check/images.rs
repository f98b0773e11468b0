//! What a bundle says of its images.

use std::slice;

use super::Facts;
use crate::{bundle::Bundle, images::pin, problem::Problem};

/// A bundle that is for disconnected clusters names its images by digest: what a mirror has is found by nothing else.
pub(super) fn claims_are_kept(bundle: &Bundle, facts: &Facts, problems: &mut Vec<Problem>) {
    if !facts.is_pinned {
        problems.extend(pin::claim_broken(slice::from_ref(&bundle.csv.manifest)));
    }
}
