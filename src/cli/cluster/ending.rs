//! How a run ends that did not do all: refused before it began, not confirmed, or stopped on its way.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
};

use super::super::{
    failure::{Class, Failure},
    output,
};
use crate::{
    cluster::{
        accounts::Entry,
        apply::{Outcome, Stopped},
        inventory::InstallName,
        plan::{self, Fate, Plan, Removal},
        survey::SAFETY,
    },
    problem::Problem,
};

/// Why plans are refused, with what may be done about it beyond what is said of each object.
pub(in crate::cli) fn refusal(problems: Vec<Problem>, message: String) -> Failure {
    let is_of = |rule: &str| {
        let rule = rule.to_owned();
        move |problem: &Problem| problem.rule == rule
    };
    let hint = if problems.iter().any(is_of("rights")) {
        Some(
            "`kubectl olm rbac` prints what an account needs; with --scope cluster and --scope namespaced two people can apply a part each",
        )
    } else if problems.iter().any(is_of(SAFETY)) {
        Some(
            "see whether the custom resources that there are bear it; --crd-upgrade-safety none then leaves this check out",
        )
    } else {
        None
    };
    // It is the content that is refused, when nothing but its definitions is.
    let class = match problems.iter().all(is_of(SAFETY)) {
        true => Class::Refused,
        false => Class::ClusterRefused,
    };
    let failure = Failure::new(class, message).with_problems(problems);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// How many there are of something.
pub(in crate::cli) fn count(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Asks whether to go on with what deletes these objects; gives why not.
pub(in crate::cli) fn ask(what: &str, objects: &[String]) -> Option<Failure> {
    if !(io::stdin().is_terminal() && output::is_terminal()) {
        let message =
            format!("{what}, which has to be confirmed, and there is no terminal to ask on");
        let failure = Failure::new(Class::Usage, message);
        let lines = objects.iter().map(|object| format!("  {object}"));
        let failure = lines.fold(failure, Failure::with_detail);
        return Some(failure.with_hint("say --yes; nothing was changed"));
    }
    output::tell(&format!(
        "{what}:\n  {}\nGo on? [y/N]",
        objects.join("\n  ")
    ));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return None;
    }
    Some(Failure::new(
        Class::Usage,
        "not confirmed; nothing was changed",
    ))
}

/// How many accounts entries are for; each account is written once.
fn accounts(entries: &BTreeSet<Entry>) -> usize {
    let accounts: BTreeSet<_> = entries.iter().map(plan::account_key).collect();
    accounts.len()
}

/// How many objects a plan writes or removes.
fn changes(plan: &Plan) -> usize {
    let written = plan.changes.iter();
    let written = written.filter(|change| change.action.writes()).count();
    let removed = plan.removals.iter();
    let removed = removed.filter(|removal| matches!(removal.fate, Fate::Delete { .. }));
    written + removed.count() + accounts(&plan.adding) + accounts(&plan.removing)
}

/// What a run came to, as a failure when not all was done. Custom resources that go with their definition stand in no plan, and
/// go first.
pub(in crate::cli) fn ended(
    install: &InstallName,
    (plan, first): (&Plan, &[Removal]),
    outcome: Outcome,
    what: &str,
) -> Result<(), Failure> {
    let all = changes(plan) + first.len();
    let state = format!(
        "{} of {all} changes of {install} were made; its inventory lists everything, and the next `kubectl olm {what}` goes on",
        outcome.done
    );
    match outcome.stopped {
        Some(Stopped::Interrupted) => {
            return Err(Failure::new(Class::Interrupted, "interrupted").with_detail(state));
        }
        Some(Stopped::LeaseLost) => {
            let message = "another run took over, as this one had not renewed its Lease in time";
            return Err(Failure::new(Class::Partial, message).with_detail(state));
        }
        None => {}
    }
    if !outcome.failed.is_empty() {
        let message = format!("{what} of {install} is incomplete");
        let lacks_rights = outcome
            .failed
            .iter()
            .any(|problem| problem.rule == "rights");
        let failure = Failure::new(Class::Partial, message).with_problems(outcome.failed);
        let failure = failure.with_detail(state);
        return Err(if lacks_rights {
            failure.with_hint("`kubectl olm rbac` prints what an account needs for an install")
        } else {
            failure
        });
    }
    if outcome.not_ready.is_empty() {
        return Ok(());
    }
    let how = match what {
        "cleanup" => "gone",
        _ => "ready",
    };
    let mut failure = Failure::new(Class::NotReady, format!("{install} is not {how}"));
    for not_ready in &outcome.not_ready {
        for reason in &not_ready.reasons {
            failure = failure.with_detail(format!("{}: {reason}", not_ready.key));
        }
    }
    Err(failure.with_detail(state))
}
