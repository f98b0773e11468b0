//! Why nothing can be installed, as a short tree of sentences made of the rules that exclude each other.
//!
//! Bundles that fail for the same reason share a sentence, and what is said once is not repeated.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Stop,
    formula::Rule,
    graph::{Graph, Origin, Shared},
    offers::{Known, Offers},
    predicate::Predicate,
};
use crate::resolve::{Reason, Refusal, Request};

/// Names in one sentence.
const MAX_NAMES: usize = 3;
/// Sentences in all about what is needed, and about what there can be only one of.
const MAX_SENTENCES: usize = 30;
const MAX_EXCLUSIVE: usize = 5;
/// Sentences that explain each other, before what is at the bottom is told at once.
const MAX_DEPTH: usize = 6;

/// Why these rules exclude each other.
///
/// # Errors
/// When the catalogs cannot be read.
pub(super) fn tell(
    graph: &Graph,
    core: &[Rule],
    offers: &mut Offers<'_, '_>,
    request: &Request,
) -> Result<Refusal, Stop> {
    let wishes = core.iter().filter_map(|rule| match rule {
        Rule::Wanted(wish) => Some(request.wanted.get(*wish)?.package.as_str()),
        _ => None,
    });
    let wishes: Vec<_> = wishes.collect();
    let message = match wishes.as_slice() {
        [] => "the operators that are installed exclude each other".to_owned(),
        [package] => format!("package {package} cannot be installed"),
        packages => format!(
            "packages {} cannot be installed together",
            enumerated(packages)
        ),
    };
    Ok(Refusal {
        message,
        reasons: reasons(graph, &graph.wanted, core, offers)?,
        hint: hint(graph, core),
        problems: vec![],
    })
}

/// The sentences for these rules, when `wanted` are the nodes for each wish.
///
/// # Errors
/// When the catalogs cannot be read.
pub(super) fn reasons(
    graph: &Graph,
    wanted: &[Vec<usize>],
    core: &[Rule],
    offers: &mut Offers<'_, '_>,
) -> Result<Vec<Reason>, Stop> {
    let told = BTreeSet::new();
    let core = core.iter().copied().collect();
    let mut story = Story {
        graph,
        wanted,
        core,
        offers,
        told,
        reached: BTreeSet::new(),
        left: MAX_SENTENCES,
    };
    story.tell()
}

/// What to do about it: something is missing, or something is in the way.
fn hint(graph: &Graph, core: &[Rule]) -> Option<String> {
    let demands = core.iter().filter_map(|rule| match rule {
        Rule::Needs(demand) => graph.demands.get(*demand),
        _ => None,
    });
    let demands: Vec<_> = demands.collect();
    let leave = "--no-dependencies to leave dependencies to you";
    let missing: Vec<_> = demands
        .iter()
        .filter(|demand| demand.ways.is_empty())
        .collect();
    let apis = missing
        .iter()
        .find_map(|demand| match &demand.requirement.predicate {
            Predicate::Api(api) if api.group.is_empty() => {
                Some(format!("{}.{}", api.kind, api.version))
            }
            Predicate::Api(api) => Some(format!("{}.{}.{}", api.kind, api.version, api.group)),
            _ => None,
        });
    match (apis, missing.is_empty(), demands.is_empty()) {
        (Some(api), ..) => Some(format!(
            "--provided {api} if the cluster has it already, {leave}, or a further --catalog"
        )),
        (None, false, _) => Some(format!("{leave}, or a further --catalog")),
        (None, true, false) => Some(leave.to_owned()),
        (None, true, true) => None,
    }
}

struct Story<'s, 'u, 'c> {
    graph: &'s Graph,
    wanted: &'s [Vec<usize>],
    core: BTreeSet<Rule>,
    offers: &'s mut Offers<'u, 'c>,
    /// The demands that were explained.
    told: BTreeSet<usize>,
    /// The nodes that were come by.
    reached: BTreeSet<usize>,
    /// How many sentences may still be said.
    left: usize,
}

impl Story<'_, '_, '_> {
    fn tell(&mut self) -> Result<Vec<Reason>, Stop> {
        let (mut reasons, mut exclusive) = (vec![], vec![]);
        for rule in self.core.clone() {
            match rule {
                Rule::Wanted(wish) => {
                    let nodes = self.wanted.get(wish).map_or(&[][..], Vec::as_slice);
                    reasons.extend(self.choice(nodes, 0)?);
                }
                Rule::Stays(node) => {
                    self.reached.insert(node);
                }
                Rule::Exclusive(position) => exclusive.extend(self.only_one(position)),
                Rule::Needs(_) | Rule::Deprecated(_) => {}
            }
        }
        if self.left == 0 || exclusive.len() > MAX_EXCLUSIVE {
            exclusive.truncate(MAX_EXCLUSIVE);
            exclusive.push("and more of the same".to_owned().into());
        }
        reasons.extend(exclusive);
        Ok(reasons)
    }

    /// Why none of these nodes can be had, as far as it is their own fault.
    fn choice(&mut self, nodes: &[usize], depth: usize) -> Result<Vec<Reason>, Stop> {
        self.reached.extend(nodes);
        let mut reasons = vec![];
        for (faults, nodes) in self.by_fault(nodes) {
            for fault in faults.into_iter().take(self.left) {
                self.left = self.left.saturating_sub(1);
                reasons.push(self.fault(fault, &nodes, depth)?);
            }
        }
        Ok(reasons)
    }

    /// The nodes with the same rules against them, in the order in which they stand.
    fn by_fault(&self, nodes: &[usize]) -> Vec<(Vec<Rule>, Vec<usize>)> {
        let mut groups: Vec<(Vec<Rule>, Vec<usize>)> = vec![];
        let mut positions = BTreeMap::new();
        for node in nodes {
            let needs = self.graph.open_demands(*node).map(Rule::Needs);
            let faults = needs.chain([Rule::Deprecated(*node)]);
            let mut faults: Vec<_> = faults.filter(|rule| self.core.contains(rule)).collect();
            if let Some(Rule::Deprecated(_)) = faults.last() {
                // All that are deprecated are told together.
                faults = vec![Rule::Deprecated(usize::MAX)];
            }
            let next = groups.len();
            let position = *positions.entry(faults.clone()).or_insert(next);
            match groups.get_mut(position) {
                Some((_, nodes)) => nodes.push(*node),
                None => groups.push((faults, vec![*node])),
            }
        }
        groups
    }

    fn fault(&mut self, fault: Rule, nodes: &[usize], depth: usize) -> Result<Reason, Stop> {
        let Rule::Needs(demand) = fault else {
            let (names, is_one) = self.names(nodes);
            let sentence = format!("{names} {} deprecated", if is_one { "is" } else { "are" });
            return Ok(sentence.into());
        };
        let because = match self.told.insert(demand) {
            true => self.why_not(demand, depth + 1)?,
            false => vec![],
        };
        let sentence = self.needs(nodes, demand);
        Ok(Reason { sentence, because })
    }

    /// Why a demand cannot be met.
    fn why_not(&mut self, demand: usize, depth: usize) -> Result<Vec<Reason>, Stop> {
        let ways = self.graph.ways(demand);
        if ways.is_empty() {
            return self.why_nothing(demand);
        }
        if depth < MAX_DEPTH {
            return self.choice(ways, depth);
        }
        self.bottom()
    }

    /// What needs what nothing meets, and was not told yet.
    fn bottom(&mut self) -> Result<Vec<Reason>, Stop> {
        let mut bottom = vec![];
        for rule in self.core.clone() {
            let Rule::Needs(demand) = rule else {
                continue;
            };
            if self.left == 0 || !self.graph.ways(demand).is_empty() || !self.told.insert(demand) {
                continue;
            }
            self.left -= 1;
            let needs = |node: &usize| self.graph.open_demands(*node).any(|open| open == demand);
            let nodes: Vec<_> = (0..self.graph.nodes.len()).filter(needs).collect();
            bottom.push(Reason {
                sentence: format!("and so on, until {}", self.needs(&nodes, demand)),
                because: self.why_nothing(demand)?,
            });
        }
        Ok(bottom)
    }

    /// That some nodes need something.
    fn needs(&self, nodes: &[usize], demand: usize) -> String {
        let (names, is_one) = self.names(nodes);
        let verb = if is_one { "needs" } else { "need" };
        let demand = self.graph.demands.get(demand);
        let words = demand.map_or("", |demand| &demand.requirement.words);
        format!("{names} {verb} {words}")
    }

    /// Why nothing meets a demand.
    fn why_nothing(&mut self, demand: usize) -> Result<Vec<Reason>, Stop> {
        let Some(demand) = self.graph.demands.get(demand) else {
            return Ok(vec![]);
        };
        if !demand.withheld.is_empty() {
            let packages: Vec<_> = demand.withheld.iter().map(String::as_str).collect();
            let sentence = format!(
                "the cluster has {} from elsewhere, as --provided says, so no other version of it is installed",
                packages.join(", ")
            );
            return Ok(vec![Reason::from(sentence)]);
        }
        let known = self.offers.known(&demand.requirement)?;
        let catalogs = self.offers.universe.catalogs;
        let sentences = known.into_iter().filter_map(|(catalog, known)| {
            let catalog = &catalogs.get(catalog)?.name;
            known_only(&demand.requirement.predicate, catalog, &known)
        });
        let mut sentences: Vec<_> = sentences.collect();
        if sentences.is_empty() {
            sentences.push(match &demand.requirement.predicate {
                Predicate::Package { name, .. } => format!("no catalog has package {name}"),
                Predicate::Api(_) => "no bundle of any catalog provides it".to_owned(),
                _ => "no bundle of any catalog meets it".to_owned(),
            });
        }
        Ok(sentences.into_iter().map(Reason::from).collect())
    }

    /// That there can be only one, and which of those that were come by are more than one.
    fn only_one(&self, position: usize) -> Option<Reason> {
        let exclusive = self.graph.exclusive.get(position)?;
        let nodes = exclusive.nodes.iter().copied();
        let nodes: Vec<_> = nodes.filter(|node| self.reached.contains(node)).collect();
        let names = self.marked_names(&nodes);
        let (all, both) = match names.len() {
            2 => ("both", "both"),
            _ => ("all of", "all"),
        };
        let names = enumerated(&names);
        let sentence = match &exclusive.shared {
            Shared::Package(package) => {
                format!("there can be only one operator from package {package}: not {all} {names}")
            }
            Shared::Api(api) => {
                format!("there can be only one provider of {api}: {names} {both} provide it")
            }
        };
        Some(sentence.into())
    }

    /// The names of nodes with the place that they share, and whether it is one name.
    fn names(&self, nodes: &[usize]) -> (String, bool) {
        let mut places: Vec<_> = nodes.iter().map(|node| self.place(*node)).collect();
        places.dedup();
        let mut names: Vec<_> = nodes.iter().map(|node| self.graph.name(*node)).collect();
        names.dedup();
        let is_one = names.len() == 1;
        let names = enumerated(&names);
        match places.as_slice() {
            [place] => (format!("{names} ({place})"), is_one),
            _ => (names, is_one),
        }
    }

    /// The names of nodes, each once, installed ones marked.
    fn marked_names(&self, nodes: &[usize]) -> Vec<String> {
        let mut names: Vec<(&str, bool)> = vec![];
        for node in nodes {
            let name = self.graph.name(*node);
            let origin = self.graph.nodes.get(*node).map(|node| &node.origin);
            let is_installed = matches!(origin, Some(Origin::Installed(..)));
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known |= is_installed,
                None => names.push((name, is_installed)),
            }
        }
        let marked = names
            .into_iter()
            .map(|(name, is_installed)| match is_installed {
                true => format!("{name} (installed)"),
                false => name.to_owned(),
            });
        marked.collect()
    }

    fn place(&self, node: usize) -> String {
        match self.graph.nodes.get(node).map(|node| &node.origin) {
            Some(Origin::Offered(candidate)) => {
                let catalogs = self.offers.universe.catalogs;
                let catalog = catalogs
                    .get(candidate.catalog)
                    .map_or("", |catalog| &catalog.name);
                match candidate.channel.as_str() {
                    "" => format!("catalog {catalog}"),
                    channel => format!("channel {channel} of catalog {catalog}"),
                }
            }
            _ => "installed".to_owned(),
        }
    }
}

/// What a catalog has that nearly meets a demand, if it has something.
fn known_only(predicate: &Predicate, catalog: &str, known: &Known) -> Option<String> {
    let Known { would_do, versions } = known;
    match (predicate, would_do.as_slice()) {
        (Predicate::Package { name, .. }, []) if !versions.is_empty() => {
            let versions = enumerated(versions);
            Some(format!("catalog {catalog} has {name} only in {versions}"))
        }
        (_, []) => None,
        (_, [one]) => Some(format!(
            "{one} of catalog {catalog} would do, but its channels skip or lack it"
        )),
        (_, several) => Some(format!(
            "{} of catalog {catalog} would do, but their channels skip or lack them",
            enumerated(several)
        )),
    }
}

/// The first few, and how many more.
fn enumerated<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
    let (shown, more) = match names.len() {
        count if count > MAX_NAMES + 1 => (MAX_NAMES, count - MAX_NAMES),
        count => (count, 0),
    };
    let shown = names.get(..shown).unwrap_or_default();
    if more > 0 {
        return format!("{} and {more} others", shown.join(", "));
    }
    match shown {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
