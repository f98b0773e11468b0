//! What else must be installed for the bundles that are wanted, and whether all of it goes together.
//!
//! Reproduces what OLM v0's resolver does after it has found the candidates of each Subscription
//! (`pkg/controller/registry/resolver/resolver.go` `Resolve`, `getBundleVariables`, `addInvariants`; `solver/`):
//! - every requirement of a bundle that is installed is met by one that is installed ([`requirement`], [`predicate`]);
//! - there is at most one bundle of each package, and at most one provider of each API, in the namespace; operators
//!   that are installed count, and stay unless their package is wanted;
//! - a bundle with the property `olm.deprecated` is not installed.
//!
//! Of all installations for which this holds the one is chosen that comes first in this order: the candidates of the
//! first wish as they are given, then those of the second, and so on, what is installed of the package last; then,
//! first come first served, those of each requirement of what was chosen, installed operators first and then as
//! [`offers`] orders them. Nothing is installed that this does not ask for. Where OLM's answer depends on the order of a
//! Go map (several Subscriptions), ours is the one for the order of the wishes.
//!
//! Where we differ on purpose: catalogs of one priority keep the order in which the user gave them; an API or package
//! that is listed twice by one bundle does not exclude that bundle; what the cluster has from elsewhere
//! ([`Provided`](super::Provided)) meets requirements, also those of the APIs of a package that it has, conflicts with
//! nothing, and is not installed again; an installed operator has no
//! requirements, and no range has it when its version is not known; what only a deprecated bundle needs is not looked
//! at, so it need not be readable; time is bounded, so a catalog made to be hard is
//! refused.

mod cel;
mod facts;
mod formula;
mod graph;
mod offers;
mod predicate;
mod refusal;
mod requirement;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    formula::{Formula, Rule},
    graph::{Graph, Origin},
    offers::Offers,
};
use super::{Candidate, Chosen, Reason, Refusal, Request, universe::Universe};
use crate::problem::Problem;

/// What is installed.
#[derive(Debug, Default)]
pub(super) struct Solution {
    /// The bundles, what others need before them: for each wish in order, what its requirements need, in their order,
    /// and then itself. In a circle of requirements the bundle that was reached first comes last. An installed operator
    /// that a wish leaves as it is comes along when the candidates of the wish have it.
    pub(super) chosen: Vec<Chosen>,
    /// Where the best candidate of a wish was not taken, why.
    pub(super) passed_over: Vec<Reason>,
}

/// Why there is no answer at all.
#[derive(Debug)]
enum Stop {
    /// Content that cannot be read.
    Problems(Vec<Problem>),
    /// Something else, in words.
    Invalid(String),
}

/// Chooses among the candidates of each wish, and among what they need.
///
/// # Errors
/// When the wishes do not go together, or with what they need, with the reasons; when content that has to be known for
/// an answer cannot be read; when an answer cannot be found within bounds.
pub(super) fn solve(
    universe: &Universe<'_>,
    roots: &[Vec<Candidate>],
    request: &Request,
) -> Result<Solution, Refusal> {
    let mut offers = Offers::new(universe);
    let answer = answer(&mut offers, roots, request);
    answer.unwrap_or_else(|stop| Err(stop.into()))
}

fn answer(
    offers: &mut Offers<'_, '_>,
    roots: &[Vec<Candidate>],
    request: &Request,
) -> Result<Result<Solution, Refusal>, Stop> {
    let graph = graph::explore(offers, roots, request)?;
    let mut formula = Formula::new(&graph, &graph.wanted);
    if !formula.impose()? {
        let core = formula.core();
        return Ok(Err(refusal::tell(&graph, &core, offers, request)?));
    }
    let taken = search::choose(&graph, &mut formula)?;
    Ok(Ok(Solution {
        chosen: in_order(&graph, &taken),
        passed_over: passed_over(&graph, &taken, offers)?,
    }))
}

/// Why the best candidate of a wish was not taken, for each wish of which that is so.
fn passed_over(
    graph: &Graph,
    taken: &BTreeSet<usize>,
    offers: &mut Offers<'_, '_>,
) -> Result<Vec<Reason>, Stop> {
    let mut wanted = graph.wanted.clone();
    let mut passed_over = vec![];
    for wish in 0..wanted.len() {
        let Some(nodes) = wanted.get_mut(wish) else {
            continue;
        };
        let Some(chosen) = nodes.iter().position(|node| taken.contains(node)) else {
            continue;
        };
        let better: Vec<_> = nodes.iter().copied().take(chosen).collect();
        nodes.drain(..chosen);
        nodes.truncate(1);
        let (Some(best), Some(node)) = (better.first().copied(), nodes.first().copied()) else {
            continue;
        };
        let kept = std::mem::replace(nodes, better);
        let core = impossible(graph, &wanted)?;
        let because = refusal::reasons(graph, &wanted, &core, offers)?;
        if let Some(nodes) = wanted.get_mut(wish) {
            *nodes = kept;
        }
        passed_over.push(Reason {
            sentence: format!("{} instead of {}", graph.name(node), graph.name(best)),
            because,
        });
    }
    Ok(passed_over)
}

/// The rules that keep these nodes from being installed; none when nothing does.
fn impossible(graph: &Graph, wanted: &[Vec<usize>]) -> Result<Vec<Rule>, Stop> {
    let mut formula = Formula::new(graph, wanted);
    if formula.impose()? {
        return Ok(vec![]);
    }
    Ok(formula.core())
}

/// What was taken, with what asks for it, in the order of installation.
fn in_order(graph: &Graph, taken: &BTreeSet<usize>) -> Vec<Chosen> {
    let mut required_by: BTreeMap<usize, BTreeSet<(String, String)>> = BTreeMap::new();
    let mut needs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in taken {
        for demand in graph.open_demands(*node) {
            let mut ways = graph.ways(demand).iter().copied();
            let met = ways
                .find(|way| taken.contains(way))
                .filter(|met| met != node);
            if let (Some(met), Some(demand)) = (met, graph.demands.get(demand)) {
                let name = graph.name(*node).to_owned();
                let because = (name, demand.requirement.words.clone());
                required_by.entry(met).or_default().insert(because);
                needs.entry(*node).or_default().push(met);
            }
        }
    }
    let wanted = graph
        .wanted
        .iter()
        .flatten()
        .filter(|node| taken.contains(node));
    let order = needed_first(wanted.copied(), &needs);
    let chosen = order.into_iter().filter_map(|node| {
        let candidate = match &graph.nodes.get(node)?.origin {
            Origin::Offered(candidate) => candidate.clone(),
            Origin::Installed(_, candidate) => candidate.clone()?,
        };
        let required_by = required_by.remove(&node).unwrap_or_default();
        Some(Chosen {
            candidate,
            required_by,
        })
    });
    chosen.collect()
}

/// Each of the starts, after all that it needs.
fn needed_first(
    starts: impl Iterator<Item = usize>,
    needs: &BTreeMap<usize, Vec<usize>>,
) -> Vec<usize> {
    let needs = |node: usize| needs.get(&node).map_or(&[][..], Vec::as_slice).iter();
    let (mut order, mut seen) = (vec![], BTreeSet::new());
    for start in starts {
        if !seen.insert(start) {
            continue;
        }
        let mut path = vec![(start, needs(start))];
        while let Some((node, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) if seen.insert(*next) => path.push((*next, needs(*next))),
                Some(_) => {}
                None => {
                    order.push(*node);
                    path.pop();
                }
            }
        }
    }
    order
}

impl From<Vec<Problem>> for Stop {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

impl From<cel::Exhausted> for Stop {
    fn from(_: cel::Exhausted) -> Self {
        Self::Invalid("there are too many requirements to test on too many bundles".to_owned())
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        let message = "what the bundles need cannot be worked out".to_owned();
        let hint = Some("--no-dependencies to leave dependencies to you".to_owned());
        match stop {
            Stop::Problems(problems) => Self {
                message,
                problems,
                hint,
                ..Self::default()
            },
            Stop::Invalid(sentence) => Self {
                message,
                reasons: vec![sentence.into()],
                hint,
                ..Self::default()
            },
        }
    }
}
