//! What must hold of an installation, as clauses for a SAT solver (batsat, incremental and without randomness).
//!
//! Only two kinds of answer are taken from the solver, whether there is any solution and which rules exclude each other,
//! never a solution: so what is chosen depends on nothing but the order of preference.

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};

use super::{Stop, graph::Graph};

/// Dead ends that are looked into before it is given up; that takes some seconds.
const MAX_DEAD_ENDS: u64 = 200_000;
/// Rules that are gone through to find out which of them can be left out of a reason, all searches together; that takes
/// about a second, and is enough for a reason of some thousands of rules.
const MAX_RULES_TRIED: usize = 10_000_000;

/// Something that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// One of the nodes for a wish is installed.
    Wanted(usize),
    /// An installed operator stays.
    Stays(usize),
    /// What needs something has it.
    Needs(usize),
    /// There can be only one.
    Exclusive(usize),
    /// A deprecated bundle is not installed.
    Deprecated(usize),
}

/// The rules for a graph.
pub(super) struct Formula {
    solver: Solver<Patience>,
    nodes: Vec<Lit>,
    rules: Vec<(Rule, Lit)>,
    has_solution: bool,
}

/// Counts dead ends.
#[derive(Default)]
struct Patience(u64);

impl Callbacks for Patience {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.0 += 1;
        }
    }

    fn stop(&self) -> bool {
        self.0 > MAX_DEAD_ENDS
    }
}

impl Formula {
    /// The rules for a graph, when `wanted` are the nodes for each wish.
    pub(super) fn new(graph: &Graph, wanted: &[Vec<usize>]) -> Self {
        let mut solver = Solver::new(SolverOpts::default(), Patience::default());
        let nodes = graph.nodes.iter();
        let nodes = nodes
            .map(|_| Lit::new(solver.new_var_default(), true))
            .collect();
        let mut formula = Self {
            solver,
            nodes,
            rules: vec![],
            has_solution: false,
        };
        formula.add_wishes(graph, wanted);
        formula.add_demands(graph);
        for (position, exclusive) in graph.exclusive.iter().enumerate() {
            let rule = formula.rule(Rule::Exclusive(position));
            formula.add_at_most_one(rule, &exclusive.nodes);
        }
        formula
    }

    fn add_wishes(&mut self, graph: &Graph, wanted: &[Vec<usize>]) {
        for (wish, nodes) in wanted.iter().enumerate() {
            let rule = self.rule(Rule::Wanted(wish));
            let ways = self.literals(nodes);
            self.clause(std::iter::once(!rule).chain(ways));
        }
        for node in &graph.staying {
            let rule = self.rule(Rule::Stays(*node));
            let literals = self.literals(&[*node]);
            self.clause(std::iter::once(!rule).chain(literals));
        }
        for (position, node) in graph.nodes.iter().enumerate() {
            if node.facts.deprecated {
                let rule = self.rule(Rule::Deprecated(position));
                let literals = self.literals(&[position]);
                self.clause(
                    [!rule]
                        .into_iter()
                        .chain(literals.into_iter().map(|node| !node)),
                );
            }
        }
    }

    /// The nodes that share a demand share the clause with the many ways to meet it.
    fn add_demands(&mut self, graph: &Graph) {
        let mut demands = vec![];
        for (position, demand) in graph.demands.iter().enumerate() {
            let rule = self.rule(Rule::Needs(position));
            let needed = Lit::new(self.solver.new_var_default(), true);
            let ways = self.literals(&demand.ways);
            if !demand.provided {
                self.clause(std::iter::once(!needed).chain(ways));
            }
            demands.push((rule, needed));
        }
        for (position, node) in self.nodes.clone().into_iter().enumerate() {
            for demand in graph.open_demands(position) {
                if let Some((rule, needed)) = demands.get(demand) {
                    self.clause([!*rule, !node, *needed]);
                }
            }
        }
    }

    /// A chain along the nodes says whether one of them was passed that is installed, so that clauses stay few.
    fn add_at_most_one(&mut self, rule: Lit, nodes: &[usize]) {
        let mut passed: Option<Lit> = None;
        for node in self.literals(nodes) {
            let now = Lit::new(self.solver.new_var_default(), true);
            self.clause([!node, now]);
            if let Some(passed) = passed {
                self.clause([!passed, now]);
                self.clause([!rule, !passed, !node]);
            }
            passed = Some(now);
        }
    }

    fn rule(&mut self, rule: Rule) -> Lit {
        let literal = Lit::new(self.solver.new_var_default(), true);
        self.rules.push((rule, literal));
        literal
    }

    fn literals(&self, nodes: &[usize]) -> Vec<Lit> {
        let literals = nodes.iter().filter_map(|node| self.nodes.get(*node));
        literals.copied().collect()
    }

    fn clause(&mut self, literals: impl IntoIterator<Item = Lit>) {
        let mut literals = literals.into_iter().collect();
        self.solver.add_clause_reuse(&mut literals);
    }

    fn solve(&mut self, assumed: &[Lit]) -> Result<bool, Stop> {
        let answer = self.solver.solve_limited(assumed);
        self.has_solution = answer == lbool::TRUE;
        if answer == lbool::TRUE || answer == lbool::FALSE {
            return Ok(self.has_solution);
        }
        Err(Stop::Invalid(format!(
            "the requirements are too entangled: no answer was found within {MAX_DEAD_ENDS} dead ends"
        )))
    }

    /// Whether all rules can hold together; if so, they do from here on.
    ///
    /// # Errors
    /// When that cannot be found out within bounds.
    pub(super) fn impose(&mut self) -> Result<bool, Stop> {
        let all: Vec<_> = self.rules.iter().map(|(_, literal)| *literal).collect();
        let possible = self.solve(&all)?;
        if possible {
            all.into_iter().for_each(|literal| self.clause([literal]));
        }
        Ok(possible)
    }

    /// Takes a node if there is a solution with it and everything that was taken before; otherwise it is out from here
    /// on. Only after [`Formula::impose`] found the rules possible.
    ///
    /// # Errors
    /// When that cannot be found out within bounds.
    pub(super) fn take(&mut self, node: usize) -> Result<bool, Stop> {
        let Some(literal) = self.nodes.get(node).copied() else {
            return Ok(false);
        };
        // The last solution found has everything that was taken; one that has this as well needs no search.
        let known = self.has_solution && self.solver.value_lit(literal) == lbool::TRUE;
        let possible = known || self.solve(&[literal])?;
        self.clause([if possible { literal } else { !literal }]);
        Ok(possible)
    }

    /// Takes nodes if there is a solution with all of them and everything that was taken before; else takes none. Only
    /// after [`Formula::impose`] found the rules possible.
    ///
    /// # Errors
    /// When that cannot be found out within bounds.
    pub(super) fn take_all(&mut self, nodes: &[usize]) -> Result<bool, Stop> {
        let literals = self.literals(nodes);
        let possible = self.solve(&literals)?;
        if possible {
            literals
                .into_iter()
                .for_each(|literal| self.clause([literal]));
        }
        Ok(possible)
    }

    /// The rules that exclude each other, none of which can be left out; should finding out take too long, with some
    /// that could. Only after [`Formula::impose`] found the rules impossible.
    pub(super) fn core(&mut self) -> Vec<Rule> {
        let mut core = self.remaining(&self.rules);
        let mut tried = core.len();
        let mut left = MAX_RULES_TRIED;
        // From the end: what is wanted comes first and is the most worth telling.
        while tried > 0 {
            tried -= 1;
            left = match left.checked_sub(core.len()) {
                Some(left) => left,
                None => break,
            };
            let mut without = core.clone();
            without.remove(tried);
            let literals: Vec<_> = without.iter().map(|(_, literal)| *literal).collect();
            match self.solve(&literals) {
                Ok(true) => {}
                Ok(false) => {
                    // What stands behind was found to be needed, so all of it remains.
                    let needed = without.len() - tried;
                    core = self.remaining(&without);
                    tried = core.len().saturating_sub(needed);
                }
                Err(_) => break,
            }
        }
        core.into_iter().map(|(rule, _)| rule).collect()
    }

    /// Those of some rules that the last search found to exclude each other.
    fn remaining(&self, rules: &[(Rule, Lit)]) -> Vec<(Rule, Lit)> {
        let rules = rules.iter().copied();
        let involved = |rule: &(Rule, Lit)| self.solver.unsat_core_contains_var(rule.1.var());
        rules.filter(involved).collect()
    }
}
