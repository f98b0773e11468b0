//! The choice among all solutions: OLM's preference-guided search (`solver/search.go`).
//!
//! Choices are made in this order: the wishes as the user has them (OLM takes its Subscriptions in random order), then,
//! first come first served, the requirements of what was chosen, each bundle's in their order. For each the best node is
//! taken for which there still is a solution; one that a chosen node meets already needs no choice. OLM looks ahead by
//! less and goes back when it fails, which ends at the same place.
//!
//! OLM then looks for the fewest nodes beyond the chosen (`solver/solve.go`). Nothing is left to do there: what was
//! chosen meets all requirements of what was chosen, so it is a solution without anything else.

//!
//! As most choices can have their best node, many are made at once while that goes well.

use std::collections::{BTreeSet, VecDeque};

use super::{Stop, formula::Formula, graph::Graph};

/// The nodes chosen, the installed operators that stay among them. Only after [`Formula::impose`] found the rules
/// possible.
///
/// # Errors
/// When the search goes beyond its bounds.
pub(super) fn choose(graph: &Graph, formula: &mut Formula) -> Result<BTreeSet<usize>, Stop> {
    let mut search = Search {
        graph,
        chosen: graph.staying.iter().copied().collect(),
        choices: graph.wanted.iter().map(Vec::as_slice).collect(),
        asked: BTreeSet::new(),
    };
    let mut at_once = search.choices.len();
    while !search.choices.is_empty() {
        at_once = at_once.clamp(1, search.choices.len());
        let best = search.best(at_once);
        if formula.take_all(&best)? {
            search.choices.drain(..at_once);
            best.into_iter().for_each(|node| search.add(node));
            at_once = at_once.saturating_mul(2);
        } else if at_once > 1 {
            at_once /= 2;
        } else if let Some(ways) = search.choices.pop_front() {
            for way in ways {
                if formula.take(*way)? {
                    search.add(*way);
                    break;
                }
            }
        }
    }
    Ok(search.chosen)
}

struct Search<'g> {
    graph: &'g Graph,
    chosen: BTreeSet<usize>,
    /// The nodes to choose from, for each choice that is to be made.
    choices: VecDeque<&'g [usize]>,
    /// The demands that were put among the choices.
    asked: BTreeSet<usize>,
}

impl Search<'_> {
    /// The best nodes for the next choices, without those that something chosen meets already.
    fn best(&self, choices: usize) -> Vec<usize> {
        let mut best: Vec<usize> = vec![];
        let mut taken = BTreeSet::new();
        for ways in self.choices.iter().take(choices) {
            let is_met = |way: &usize| self.chosen.contains(way) || taken.contains(way);
            if let Some(first) = ways.first().filter(|_| !ways.iter().any(is_met)) {
                best.push(*first);
                taken.insert(*first);
            }
        }
        best
    }

    /// Chooses a node; what it needs is to be chosen after all that is.
    fn add(&mut self, node: usize) {
        self.chosen.insert(node);
        for demand in self.graph.open_demands(node) {
            if self.asked.insert(demand) {
                self.choices.push_back(self.graph.ways(demand));
            }
        }
    }
}
