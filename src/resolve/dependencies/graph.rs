//! Everything that could come to be installed: the bundles that are wanted, what they need, what that needs, and the
//! operators that are installed (OLM's `resolver.go` `getBundleVariables` and `addInvariants`).

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    Stop,
    facts::Facts,
    offers::Offers,
    requirement::{self, Requirement},
};
use crate::{
    catalog::Gvk,
    problem::Problem,
    resolve::{Candidate, Provided, Request},
};

/// Ways to meet requirements, all counted; real catalogs have some thousands.
const MAX_WAYS: usize = 3_000_000;

/// Everything that could come to be installed. Nodes and demands are named by their positions.
#[derive(Default)]
pub(super) struct Graph {
    /// What could be installed, or is.
    pub(super) nodes: Vec<Node>,
    /// What is needed, each once.
    pub(super) demands: Vec<Demand>,
    /// The nodes that meet each wish, best first.
    pub(super) wanted: Vec<Vec<usize>>,
    /// The installed operators that stay, as nobody wants anything of their packages.
    pub(super) staying: Vec<usize>,
    /// Of what there can be only one.
    pub(super) exclusive: Vec<Exclusive>,
}

/// A bundle that could be installed, or an operator that is.
pub(super) struct Node {
    /// What it is.
    pub(super) origin: Origin,
    /// What is known of it.
    pub(super) facts: Rc<Facts>,
    /// What it needs, in order.
    pub(super) demands: Vec<usize>,
}

/// Where something comes from.
pub(super) enum Origin {
    /// It is installed under this name; with the candidate that it is, when a wish has it among its own.
    Installed(String, Option<Candidate>),
    /// A catalog has it.
    Offered(Candidate),
}

/// A requirement, as seen from one catalog.
pub(super) struct Demand {
    /// What is needed.
    pub(super) requirement: Rc<Requirement>,
    /// Whether the cluster has it from elsewhere.
    pub(super) provided: bool,
    /// Packages with bundles that would meet it, and that the cluster has from elsewhere in a version that does not.
    pub(super) withheld: BTreeSet<String>,
    /// The nodes that meet it, best first.
    pub(super) ways: Vec<usize>,
}

/// Nodes of which one at most can be installed.
pub(super) struct Exclusive {
    /// What they share.
    pub(super) shared: Shared,
    /// The nodes.
    pub(super) nodes: Vec<usize>,
}

/// What there can be only once in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shared {
    /// A package.
    Package(String),
    /// A provider of an API.
    Api(Gvk),
}

/// Catalog, package, channel and bundle.
type Key = (usize, String, String, usize);

/// Builds a graph.
struct Explorer<'e, 'u, 'c> {
    offers: &'e mut Offers<'u, 'c>,
    request: &'e Request,
    provided: Vec<Facts>,
    graph: Graph,
    nodes: BTreeMap<Key, usize>,
    demands: BTreeMap<(usize, String), usize>,
    installed: Vec<usize>,
    /// Bundles that are wanted whatever their channel, so they meet requirements though no channel lists them so.
    without_channel: Vec<usize>,
    ways: usize,
    problems: BTreeSet<Problem>,
}

/// Everything that these candidates could lead to.
///
/// # Errors
/// When a package or a requirement on the way cannot be read, or there are too many ways.
pub(super) fn explore(
    offers: &mut Offers<'_, '_>,
    roots: &[Vec<Candidate>],
    request: &Request,
) -> Result<Graph, Stop> {
    let mut explorer = Explorer {
        offers,
        request,
        provided: vec![],
        graph: Graph::default(),
        nodes: BTreeMap::new(),
        demands: BTreeMap::new(),
        installed: vec![],
        without_channel: vec![],
        ways: 0,
        problems: BTreeSet::new(),
    };
    explorer.add_provided()?;
    explorer.add_installed()?;
    explorer.add_wanted(roots)?;
    let mut next = 0;
    while !request.without_dependencies && next < explorer.graph.nodes.len() {
        explorer.add_demands(next)?;
        next += 1;
    }
    let Explorer {
        mut graph,
        problems,
        ..
    } = explorer;
    if !problems.is_empty() {
        return Err(Stop::Problems(problems.into_iter().collect()));
    }
    graph.find_exclusive();
    Ok(graph)
}

impl Explorer<'_, '_, '_> {
    /// Installed operators come first, in the order of their packages and names, so they are preferred to all others.
    fn add_installed(&mut self) -> Result<(), Stop> {
        let mut installed: Vec<_> = self.request.installed.iter().collect();
        installed.sort_by_key(|installed| (&installed.package, &installed.name));
        installed.dedup();
        for installed in installed {
            let mut installed = installed.clone();
            if installed.version.is_none() {
                installed.version = self.offers.version(&installed.package, &installed.name)?;
            }
            let position = self.graph.nodes.len();
            self.installed.push(position);
            let mut wanted = self.request.wanted.iter();
            if !wanted.any(|wanted| wanted.package == installed.package) {
                self.graph.staying.push(position);
            }
            self.graph.nodes.push(Node {
                origin: Origin::Installed(installed.name.clone(), None),
                facts: Rc::new(Facts::of_installed(&installed)),
                demands: vec![],
            });
        }
        Ok(())
    }

    /// What is installed of a wanted package is the last choice for it.
    fn add_wanted(&mut self, roots: &[Vec<Candidate>]) -> Result<(), Stop> {
        for (position, candidates) in roots.iter().enumerate() {
            let mut nodes = vec![];
            let installed = self.installed_for(position);
            for candidate in candidates {
                if let Some(node) = installed
                    && self.is_installed(node, candidate)
                {
                    nodes.push(node);
                    continue;
                }
                let shelf = self
                    .offers
                    .shelf(&(candidate.catalog, candidate.package.name.clone()))?;
                let facts = shelf.and_then(|shelf| shelf.facts.get(candidate.bundle).cloned());
                let facts = facts.unwrap_or_else(|| {
                    Rc::new(Facts::of_bundle(&candidate.package, candidate.bundle))
                });
                let node = self.node(candidate.clone(), facts)?;
                if candidate.channel.is_empty() {
                    self.without_channel.push(node);
                }
                nodes.push(node);
            }
            nodes.extend(installed.filter(|node| !nodes.contains(node)));
            self.graph.wanted.push(nodes);
        }
        Ok(())
    }

    /// The operator that is installed of the package of a wish.
    fn installed_for(&self, wish: usize) -> Option<usize> {
        let package = &self.request.wanted.get(wish)?.package;
        let is_of_package = |node: &usize| {
            let facts = self.graph.nodes.get(*node).map(|node| &node.facts.package);
            facts == Some(package)
        };
        self.installed.iter().copied().find(is_of_package)
    }

    /// Whether a candidate is an operator that is installed; if so, that is kept in mind.
    fn is_installed(&mut self, node: usize, candidate: &Candidate) -> bool {
        let Some(Node {
            origin: Origin::Installed(name, known),
            ..
        }) = self.graph.nodes.get_mut(node)
        else {
            return false;
        };
        let is_same = candidate
            .bundle()
            .is_some_and(|bundle| bundle.name == *name);
        if is_same {
            known.get_or_insert_with(|| candidate.clone());
        }
        is_same
    }

    fn node(&mut self, candidate: Candidate, facts: Rc<Facts>) -> Result<usize, Stop> {
        self.ways += 1;
        if self.ways > MAX_WAYS {
            return Err(Stop::Invalid(format!(
                "there are more than {MAX_WAYS} ways to meet the requirements"
            )));
        }
        let package = candidate.package.name.clone();
        let key = (
            candidate.catalog,
            package,
            candidate.channel.clone(),
            candidate.bundle,
        );
        let next = self.graph.nodes.len();
        let position = *self.nodes.entry(key).or_insert(next);
        if position == next {
            let origin = Origin::Offered(candidate);
            self.graph.nodes.push(Node {
                origin,
                facts,
                demands: vec![],
            });
        }
        Ok(position)
    }

    /// Adds what a node needs, and what could meet that. What is deprecated is never installed, so it needs nothing.
    fn add_demands(&mut self, position: usize) -> Result<(), Stop> {
        let Some(Node {
            origin: Origin::Offered(candidate),
            facts,
            ..
        }) = self.graph.nodes.get(position)
        else {
            return Ok(());
        };
        if facts.deprecated {
            return Ok(());
        }
        let (candidate, facts) = (candidate.clone(), Rc::clone(facts));
        let properties = facts.properties().iter();
        let mut demands = vec![];
        for property in properties.filter(|property| requirement::is_requirement(property)) {
            // Requirements that read alike are met alike, so each is looked at once for each catalog.
            let key = (
                candidate.catalog,
                format!("{} {}", property.kind, property.value),
            );
            let demand = match self.demands.get(&key) {
                Some(demand) => *demand,
                None => match requirement::parse(property) {
                    Ok(requirement) => self.demand(key, requirement)?,
                    Err(error) => {
                        self.add_problem(&candidate, error);
                        continue;
                    }
                },
            };
            if !demands.contains(&demand) {
                demands.push(demand);
            }
        }
        if let Some(node) = self.graph.nodes.get_mut(position) {
            node.demands = demands;
        }
        Ok(())
    }

    /// What the cluster has from elsewhere; of a package, also the APIs that the catalogs say its version provides.
    fn add_provided(&mut self) -> Result<(), Stop> {
        for provided in &self.request.provided {
            self.provided.push(Facts::of_provided(provided));
            if let Provided::Package { name, version } = provided {
                let apis = self.offers.apis(name, version.as_ref())?.into_iter();
                let apis = apis.map(|api| Facts::of_provided(&Provided::Api(api)));
                self.provided.extend(apis);
            }
        }
        Ok(())
    }

    fn demand(&mut self, key: (usize, String), requirement: Requirement) -> Result<usize, Stop> {
        let position = self.graph.demands.len();
        let mut provided = false;
        for facts in &self.provided {
            provided = provided || self.offers.meets(facts, &requirement)?;
        }
        let (mut ways, mut withheld) = (vec![], BTreeSet::new());
        if !provided {
            for node in self.installed.iter().chain(&self.without_channel) {
                let facts = self
                    .graph
                    .nodes
                    .get(*node)
                    .map(|node| Rc::clone(&node.facts));
                if let Some(facts) = facts
                    && self.offers.meets(&facts, &requirement)?
                {
                    ways.push(*node);
                }
            }
            for (candidate, facts) in self.offers.meeting(&requirement, key.0)? {
                // What the cluster has is not installed a second time.
                if self.request.provides(&candidate.package.name) {
                    withheld.insert(candidate.package.name.clone());
                } else {
                    ways.push(self.node(candidate, facts)?);
                }
            }
        }
        self.demands.insert(key, position);
        let requirement = Rc::new(requirement);
        self.graph.demands.push(Demand {
            requirement,
            provided,
            withheld,
            ways,
        });
        Ok(position)
    }

    fn add_problem(&mut self, candidate: &Candidate, error: String) {
        let Some(bundle) = candidate.bundle() else {
            return;
        };
        let message = format!("bundle {}: {error}", bundle.name);
        let problem = Problem::error("requirement", message).at(bundle.place.clone());
        self.problems.insert(problem);
    }
}

impl Graph {
    fn find_exclusive(&mut self) {
        let mut sharing: BTreeMap<Shared, Vec<usize>> = BTreeMap::new();
        for (position, node) in self.nodes.iter().enumerate() {
            if !node.facts.package.is_empty() {
                let package = Shared::Package(node.facts.package.clone());
                sharing.entry(package).or_default().push(position);
            }
            for api in &node.facts.apis {
                sharing
                    .entry(Shared::Api(api.clone()))
                    .or_default()
                    .push(position);
            }
        }
        let several = sharing.into_iter().filter(|(_, nodes)| nodes.len() > 1);
        self.exclusive = several
            .map(|(shared, nodes)| Exclusive { shared, nodes })
            .collect();
    }

    /// The demands of a node that something has to be installed for.
    pub(super) fn open_demands(&self, node: usize) -> impl Iterator<Item = usize> {
        let demands = self.nodes.get(node).map_or(&[][..], |node| &node.demands);
        let is_open = |demand: &usize| {
            self.demands
                .get(*demand)
                .is_some_and(|demand| !demand.provided)
        };
        demands.iter().copied().filter(is_open)
    }

    /// What meets a demand, best first.
    pub(super) fn ways(&self, demand: usize) -> &[usize] {
        self.demands.get(demand).map_or(&[], |demand| &demand.ways)
    }

    /// The name of a node.
    pub(super) fn name(&self, node: usize) -> &str {
        match self.nodes.get(node).map(|node| &node.origin) {
            Some(Origin::Installed(name, _)) => name,
            Some(Origin::Offered(candidate)) => {
                candidate.bundle().map_or("", |bundle| &bundle.name)
            }
            None => "",
        }
    }
}
