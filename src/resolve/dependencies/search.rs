//! The choice among all solutions: OLM's preference-guided search (`solver/search.go`).
//!
//! Choices are made in this order: the wishes as the user has them (OLM takes its Subscriptions in random order), then,
//! first come first served, the requirements of what was chosen, each bundle's in their order. For each the best node is
//! taken for which there still is a solution; one that a chosen node meets already needs no choice. OLM looks ahead by
//! less and goes back when it fails, which ends at the same place.
//!
//! OLM then looks for the fewest nodes beyond the chosen (`solver/solve.go`). Nothing is left to do there: what was
//! chosen meets all requirements of what was chosen, so it is a solution without anything else.

use std::collections::{BTreeSet, VecDeque};

use super::{Stop, formula::Formula, graph::Graph};

/// The nodes chosen, the installed operators that stay among them. Only after [`Formula::impose`] found the rules
/// possible.
///
/// # Errors
/// When the search goes beyond its bounds.
pub(super) fn choose(graph: &Graph, formula: &mut Formula) -> Result<BTreeSet<usize>, Stop> {
    let mut chosen: BTreeSet<usize> = graph.staying.iter().copied().collect();
    let mut choices: VecDeque<&[usize]> = graph.wanted.iter().map(Vec::as_slice).collect();
    let mut asked = BTreeSet::new();
    while let Some(ways) = choices.pop_front() {
        if ways.iter().any(|way| chosen.contains(way)) {
            continue;
        }
        for way in ways {
            if formula.take(*way)? {
                chosen.insert(*way);
                let demands = graph.open_demands(*way);
                let new = demands.filter(|demand| asked.insert(*demand));
                choices.extend(new.map(|demand| graph.ways(demand)));
                break;
            }
        }
    }
    Ok(chosen)
}
