//! STAND-IN, thrown away.
use super::{Candidate, Chosen, Refusal, Request, universe::Universe};
use std::collections::BTreeSet;
pub(super) fn solve(
    _: &Universe<'_>,
    roots: &[Vec<Candidate>],
    _: &Request,
) -> Result<Vec<Chosen>, Refusal> {
    Ok(roots
        .iter()
        .filter_map(|root| root.first())
        .map(|candidate| Chosen {
            candidate: candidate.clone(),
            required_by: BTreeSet::new(),
        })
        .collect())
}
