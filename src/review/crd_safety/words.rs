//! Findings as problems for a person: what follows from a field being gone is told once, for the field.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    definition::Definition,
    findings::Finding,
    paths::{self, Schemas},
    rules,
};
use crate::problem::Problem;

/// As many problems of one definition are told; the rest is counted.
const TOLD: usize = 100;

/// The problems of a definition, sorted by version and path.
pub(super) fn problems(live: &Definition, new: &Definition, findings: &[Finding]) -> Vec<Problem> {
    let mut by_version: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_version
            .entry(&finding.version)
            .or_default()
            .push(finding);
    }
    let mut problems = vec![];
    for (version, findings) in by_version {
        let gone = gone(live, new, version);
        let paths: BTreeSet<_> = findings
            .iter()
            .map(|finding| finding.path.as_str())
            .collect();
        let findings = findings.iter().filter(|finding| {
            let free_keys = format!("{}.additionalProperties", finding.path);
            let mut within = paths.range(free_keys.as_str()..);
            let is_told_within = rules::is_only_within(&finding.text)
                && within
                    .next()
                    .is_some_and(|path| path.starts_with(&free_keys));
            let is_below = paths::parents(&finding.path).any(|parent| gone.contains(parent));
            let is_gone = gone.contains(&finding.path);
            !is_told_within && !is_below && (!is_gone || is_about_going(finding, version))
        });
        problems.extend(findings.map(|finding| problem(finding, &gone)));
    }
    let more = problems.len().saturating_sub(TOLD);
    problems.truncate(TOLD);
    if more > 0 {
        problems.push(Problem::error(
            "too-many",
            format!("… and {more} more changes like these"),
        ));
    }
    let named = problems.into_iter().map(|problem| problem.on(&new.object));
    named.collect()
}

/// The paths that a version loses, or that the first of two versions has and the second has not.
fn gone(live: &Definition, new: &Definition, version: &str) -> BTreeSet<String> {
    let (old, new) = match version.split_once(" -> ") {
        Some((from, to)) => (new.version(from), new.version(to)),
        None => (live.version(version), new.version(version)),
    };
    let (Some(old), Some(new)) = (old, new) else {
        return BTreeSet::new();
    };
    let (old, new) = (Schemas::of(&old.schema), Schemas::of(&new.schema));
    let gone = old.iter().filter(|(path, _)| new.get(path).is_none());
    gone.map(|(path, _)| path.to_owned()).collect()
}

/// Whether a finding at a path that is gone says just that. Between versions there is no check for it, and the type that
/// goes, which nearly every schema has, stands for it.
fn is_about_going(finding: &Finding, version: &str) -> bool {
    match version.contains(" -> ") {
        true => finding.check == "type",
        false => finding.check == "existingFieldRemoval",
    }
}

fn problem(finding: &Finding, gone: &BTreeSet<String>) -> Problem {
    let Finding {
        version,
        path,
        check,
        text,
    } = finding;
    if version.is_empty() {
        return Problem::error(check, text);
    }
    let path_in_words = paths::in_words(path);
    let message = match version.split_once(" -> ") {
        Some((from, to)) if gone.contains(path) => format!(
            "versions {from} and {to}: {path_in_words}: only {from} has it; what objects hold there is lost when they are \
             read as {to}"
        ),
        Some((from, to)) => {
            format!(
                "versions {from} and {to} do not go together: {path_in_words}: from {from} to {to} {text}"
            )
        }
        None => format!("version {version}: {path_in_words}: {text}"),
    };
    Problem::error(check, message)
}
