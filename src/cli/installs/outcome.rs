//! What became of each install of a run, and what there is to say.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{
    failure::{Class, Failure},
    output,
    read_args::ReadArgs,
};
use crate::{
    install::Install,
    problem::{Problem, Severity},
};

/// What became of the installs of a run, which are known by their positions.
#[derive(Debug, Default)]
pub(in crate::cli) struct Outcome {
    /// What there is to say, and the installs that it is about; without any it is about the run as a whole.
    problems: Vec<(BTreeSet<usize>, Problem)>,
    /// Why installs failed.
    failures: BTreeMap<usize, Failure>,
    /// What stopped before it was an install, by what it is called.
    stopped: Vec<(String, Failure)>,
    /// Catalogs that stopped.
    catalogs: Vec<(String, Failure)>,
}

impl Outcome {
    /// Notes what there is to say of installs, or of the run.
    pub(super) fn tell(
        &mut self,
        roots: impl IntoIterator<Item = usize>,
        problems: impl IntoIterator<Item = Problem>,
    ) {
        let roots: BTreeSet<_> = roots.into_iter().collect();
        let problems = problems.into_iter();
        self.problems
            .extend(problems.map(|problem| (roots.clone(), problem)));
    }

    /// Notes that an install failed; the first reason is the one that is told.
    pub(super) fn fail(&mut self, root: usize, failure: Failure) {
        self.failures.entry(root).or_insert(failure);
    }

    /// Notes that all these installs failed: the first that had not with the failure, the others with its message.
    pub(super) fn fail_all(&mut self, roots: &BTreeSet<usize>, failure: Failure) {
        let (class, message) = (failure.class(), failure.message().to_owned());
        let mut whole = Some(failure);
        for root in roots {
            if !self.has_failed(*root) {
                let failure = whole.take();
                let failure = failure.unwrap_or_else(|| Failure::new(class, message.clone()));
                self.fail(*root, failure);
            }
        }
    }

    /// Notes that something stopped before it was an install.
    pub(super) fn stop(&mut self, id: impl Into<String>, failure: Failure) {
        self.stopped.push((id.into(), failure));
    }

    /// Notes that a catalog stopped.
    pub(super) fn stop_catalog(&mut self, id: String, failure: Failure) {
        self.catalogs.push((id, failure));
    }

    /// Whether an install failed.
    pub(super) fn has_failed(&self, root: usize) -> bool {
        self.failures.contains_key(&root)
    }

    /// Whether all of them failed.
    pub(super) fn have_failed(&self, roots: &BTreeSet<usize>) -> bool {
        roots.iter().all(|root| self.has_failed(*root))
    }

    /// Has installs fail whose problems refuse them, and the run by what is wrong with it as a whole.
    pub(super) fn judge(&mut self, installs: &[Install], read: &ReadArgs) {
        let refuses = |(roots, problem): &(BTreeSet<usize>, Problem)| {
            roots.is_empty() && read.refuses(problem)
        };
        let general: Vec<_> = self.problems.extract_if(.., |told| refuses(told)).collect();
        if !general.is_empty() {
            let problems = general.into_iter().map(|(_, problem)| problem).collect();
            let message = "--strict takes warnings as errors";
            self.stop_catalog("input".to_owned(), Failure::refused(problems, message));
            for root in 0..installs.len() {
                self.fail(
                    root,
                    Failure::new(Class::Refused, "--strict refuses the input"),
                );
            }
        }
        let mut problems: BTreeMap<usize, Vec<&Problem>> = BTreeMap::new();
        for (roots, problem) in &self.problems {
            for root in roots {
                problems.entry(*root).or_default().push(problem);
            }
        }
        let refused: Vec<_> = problems
            .into_iter()
            .filter_map(|(root, problems)| Some((root, read.why_refused(problems)?)))
            .collect();
        for (root, why) in refused {
            if let Some(install) = installs.get(root) {
                let message = format!("{} was not rendered{why}", install.id);
                self.fail(root, Failure::new(Class::Refused, message));
            }
        }
    }

    /// What the installs and catalogs are called that stopped.
    pub(super) fn stopped(&self, installs: &[Install]) -> BTreeSet<String> {
        let failed = self.failures.keys().filter_map(|root| installs.get(*root));
        let failed = failed.map(|install| install.id.clone());
        let stopped = self.stopped.iter().chain(&self.catalogs);
        failed.chain(stopped.map(|(id, _)| id.clone())).collect()
    }

    /// What there is to say of what goes on.
    pub(in crate::cli) fn told(&self) -> Vec<Problem> {
        let goes_on = |roots: &BTreeSet<usize>| roots.is_empty() || !self.have_failed(roots);
        let problems = self.problems.iter().filter(|(roots, _)| goes_on(roots));
        problems.map(|(_, problem)| problem.clone()).collect()
    }

    /// What there is to say of what failed, each by the first install that it is about.
    fn untold(&mut self) -> BTreeMap<usize, Vec<Problem>> {
        let mut untold: BTreeMap<usize, Vec<Problem>> = BTreeMap::new();
        for (roots, problem) in std::mem::take(&mut self.problems) {
            if let Some(first) = roots.first().filter(|_| self.have_failed(&roots)) {
                untold.entry(*first).or_default().push(problem);
            }
        }
        untold
    }

    /// Says what may be done about the failures of some installs, by their positions, where that is not said yet.
    pub(in crate::cli) fn hint(&mut self, is_meant: impl Fn(usize) -> bool, hint: &str) {
        let failures = std::mem::take(&mut self.failures).into_iter();
        let hinted = failures.map(|(root, failure)| match is_meant(root) {
            true => (root, failure.or_hint(hint)),
            false => (root, failure),
        });
        self.failures = hinted.collect();
    }

    /// The end of a run, and of writing what it came to: as [`Self::end`], where both failed with both.
    ///
    /// # Errors
    /// When something failed.
    pub(in crate::cli) fn end_after(
        self,
        written: Result<(), Failure>,
        installs: &[Install],
    ) -> Result<(), Failure> {
        let ended = self.end(installs);
        if let (Err(_), Err(stopped)) = (&written, &ended) {
            output::tell(&stopped.text(""));
        }
        written.and(ended)
    }

    /// The end of the run: tells each failure.
    ///
    /// # Errors
    /// When something failed.
    pub(in crate::cli) fn end(mut self, installs: &[Install]) -> Result<(), Failure> {
        let all = installs.len() + self.stopped.len();
        let gone_on = installs.len() - self.failures.len();
        // A catalog comes before what cannot go on without it.
        let mut untold = self.untold();
        let mut failures = self.catalogs;
        failures.append(&mut self.stopped);
        for (root, failure) in self.failures {
            let Some(install) = installs.get(root) else {
                continue;
            };
            let mut problems = untold.remove(&root).unwrap_or_default();
            // What was chosen for it is not installed.
            problems.retain(|problem| install.is_of_flags() || problem.severity != Severity::Note);
            let mut failure = failure.with_problems(problems);
            if let Some(asker) = &install.object {
                failure =
                    failure.with_detail(format!("asked for by {} in {}", asker.key, asker.place));
            }
            failures.push((install.id.clone(), failure));
        }
        // What flags ask for is alone, and needs no name.
        if all == 1 && installs.iter().any(Install::is_of_flags) {
            return failures.pop().map_or(Ok(()), |(_, failure)| Err(failure));
        }
        let classes = failures.iter().map(|(_, failure)| match failure.class() {
            // It is not the command line that says it.
            Class::Usage => Class::Refused,
            class => class,
        });
        let worst = Class::worst(classes);
        for (id, failure) in &failures {
            output::tell(&failure.text(&format!("{id}: ")));
        }
        let names: Vec<_> = failures.into_iter().map(|(id, _)| id).collect();
        match worst {
            None => Ok(()),
            Some(class) => {
                let names = names.join(", ");
                let message = format!("stopped: {names}; {gone_on} of {all} installs went on");
                Err(Failure::new(class, message))
            }
        }
    }
}
