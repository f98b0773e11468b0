//! `kubectl olm apply`: installs and upgrades, and nothing that is not shown.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    thread,
    time::Duration,
};

use clap::Args;

use super::{
    cluster::{
        ChangeArgs, DryRun, Follows, Holding, Lines, Namespace, Planned, Planning, Session,
        api_failure, hold, line, live_failure, parse_timeout, plan_all, rendered,
    },
    connection_args::ConnectionArgs,
    failure::{Class, Failure},
    interrupt, output,
    parts::Parts,
    scope::ScopeArgs,
    wanted_args::WantedArgs,
    whole_file,
};
use crate::{
    cluster::{
        accounts::Entry,
        apply::{self, Failing, Job, Outcome, Stopped, Waiting},
        inventory::InstallName,
        live::{self, Asking},
        plan::{self, Action, Fate, Plan},
        request::Force,
        survey::SAFETY,
    },
    problem::Problem,
};

/// How often a run begins anew because another one was faster.
const TRIES: usize = 3;
/// How long between two looks of --watch.
const WATCH: Duration = Duration::from_secs(10);
/// How long a wait for Ctrl-C may take.
const BLINK: Duration = Duration::from_millis(200);

/// Install an operator, or upgrade it, without OLM in the cluster
///
/// Renders as `kubectl olm render` does, compares with the cluster, and sends only what differs. What an install owns is
/// written down in the Secret kubectl-olm.NAME of its namespace before anything else is, so that a run that was
/// interrupted is continued by the next one, and `kubectl olm cleanup` removes exactly that.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Install a bundle, and wait until the operator runs
  kubectl olm apply ./bundle -n ops --create-namespace --wait

  # Install what manifests say, and see before what would be done
  kubectl olm apply -f install/ --dry-run=server
  kubectl olm apply -f install/ --wait --timeout 5m

  # Upgrade to the newest version that the catalog has a way to
  kubectl olm apply queue-operator --catalog ./catalog -n ops --wait")]
pub(super) struct ApplyArgs {
    /// Change nothing: none, client (only read) or server (the server says what it would do)
    #[arg(long, value_name = "none|client|server", default_value = "none", default_missing_value = "client", num_args = 0..=1, require_equals = true, hide_possible_values = true)]
    dry_run: DryRun,
    /// Wait for each phase until its objects are ready
    #[arg(long)]
    wait: bool,
    /// How long to wait for a phase, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,
    /// Go on with other objects when one is refused
    #[arg(long)]
    keep_going: bool,
    /// Go on for ever, and change back what others change or delete; fields are taken from them
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Delete what is no longer wanted without asking
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    wanted: WantedArgs,
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or not all could be done.
pub(super) fn run(args: &ApplyArgs) -> Result<(), Failure> {
    let session = Session::open(
        &args.connection,
        args.wanted.install.read.sources.request_timeout,
    )?;
    run_to_the_end(args, &session, args.changes.force())?;
    if args.watch {
        watch(args, &session);
    }
    Ok(())
}

/// Changes back what others change, until a signal comes.
fn watch(args: &ApplyArgs, session: &Session) {
    output::tell("watching; Ctrl-C ends it");
    loop {
        for _ in 0..WATCH.as_millis() / BLINK.as_millis() {
            if interrupt::was_interrupted() {
                return;
            }
            thread::sleep(BLINK);
        }
        if let Err(failure) = run_to_the_end(args, session, Force::Yes) {
            if failure.class() == Class::Interrupted {
                return;
            }
            output::tell(&failure.text(""));
        }
    }
}

/// How a run ended in which nothing failed.
enum Ended {
    /// All is done.
    Done,
    /// Another run has made this install, and the namespace for it, after the plan was made.
    Overtaken(InstallName),
}

/// Runs, and runs again where another run was faster.
fn run_to_the_end(args: &ApplyArgs, session: &Session, force: Force) -> Result<(), Failure> {
    let mut last = None;
    for _ in 0..TRIES {
        match run_once(args, session, force)? {
            Ended::Done => return Ok(()),
            Ended::Overtaken(install) => last = Some(install),
        }
    }
    let message = last.map(|install| format!("other runs keep installing {install}"));
    Err(Failure::new(Class::ClusterRefused, message.unwrap_or_default()).with_hint("run again"))
}

fn run_once(args: &ApplyArgs, session: &Session, force: Force) -> Result<Ended, Failure> {
    // What an earlier run has defined is served by now.
    let refreshed = session.connection.refresh_resources();
    refreshed.map_err(|error| api_failure(&error))?;
    let parts = Parts::applied(args.scope.scope);
    let mut problems = vec![];
    let follows = if args.changes.force_upgrade {
        Follows::Nothing
    } else {
        Follows::Installed(args.changes.name.as_deref())
    };
    let (wanted, rendered) = rendered(session, &args.wanted, &parts, follows, &mut problems)?;
    output::tell_problems(&problems, "");
    if rendered.output.installs.is_empty() {
        return rendered.outcome.end(&wanted.installs).map(|()| Ended::Done);
    }
    let (output, _) = output::select(rendered.output, &output::Format::Yaml, &parts);
    let asking = match args.dry_run {
        DryRun::Client => Asking::Read,
        DryRun::None | DryRun::Server => Asking::DryRun(force),
    };
    let survey = args.changes.survey(asking);
    let planning = Planning {
        connection: &session.connection,
        patience: args.timeout,
        name: args.changes.name.as_deref(),
        suffix: args.scope.suffix(),
        survey: &survey,
        holding: match args.dry_run {
            DryRun::None => Holding::Lease,
            _ => Holding::Nothing,
        },
    };
    let planned = plan_all(output, &planning)?;
    session.tell_warnings();
    let applied = settle(args, session, force, planned);
    if let (Ok(Ended::Done), Some((path, text)), DryRun::None) =
        (&applied, &rendered.lock, args.dry_run)
    {
        whole_file::write(path, text)?;
    }
    let ended = rendered.outcome.end(&wanted.installs);
    applied.and_then(|applied| ended.map(|()| applied))
}

/// Tells of plans, and carries out those that nothing refuses.
fn settle(
    args: &ApplyArgs,
    session: &Session,
    force: Force,
    mut planned: Vec<Planned>,
) -> Result<Ended, Failure> {
    let refused = refuse(&mut planned);
    if args.dry_run != DryRun::None {
        for planned in &planned {
            show(&planned.plan, args.dry_run);
        }
        return refused.map_or(Ok(Ended::Done), Err);
    }
    if let Some(failure) = confirm(&planned, args.yes) {
        if let Some(refused) = refused {
            output::tell(&refused.text(""));
        }
        return Err(failure);
    }
    let mut ended = refused.map_or(Ok(Ended::Done), Err);
    for planned in planned {
        let carried = carry_out(args, session, force, planned);
        // The worse one is what the exit code says.
        ended = match (ended, carried) {
            (Ok(Ended::Done), carried) => carried,
            (Err(before), Err(failure)) => {
                output::tell(&before.text(""));
                Err(failure)
            }
            (ended, _) => ended,
        };
        if ended
            .as_ref()
            .is_err_and(|failure| failure.class() == Class::Interrupted)
        {
            break;
        }
    }
    ended
}

/// Tells why plans are refused, and leaves those that are not, nor need one that is.
fn refuse(planned: &mut Vec<Planned>) -> Option<Failure> {
    let mut owners = std::collections::BTreeSet::new();
    let (mut problems, mut names, mut is_alone) = (vec![], vec![], false);
    for planned in planned.iter() {
        let (errors, told): (Vec<_>, Vec<_>) = planned
            .plan
            .problems
            .iter()
            .cloned()
            .partition(Problem::is_error);
        output::tell_problems(&told, "");
        if !errors.is_empty() {
            names.push(planned.install.to_string());
            owners.extend(planned.owners.iter().cloned());
            is_alone |= planned.owners.is_empty();
            problems.extend(errors);
        }
    }
    if names.is_empty() {
        return None;
    }
    let all = planned.len();
    planned.retain(|planned| {
        !is_alone && !planned.plan.is_refused() && planned.owners.is_disjoint(&owners)
    });
    let message = match planned.len() {
        0 => format!(
            "{} cannot be applied; nothing was changed",
            names.join(", ")
        ),
        left => format!(
            "{} cannot be applied, and nothing of it was changed; {left} of {all} installs go on",
            names.join(", ")
        ),
    };
    let class = if problems.iter().all(|problem| problem.rule == SAFETY) {
        Class::Refused
    } else {
        Class::ClusterRefused
    };
    let hint = hint(&problems);
    let failure = Failure::new(class, message).with_problems(problems);
    Some(match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}

/// What may be done about a refusal, beyond what is said of each object.
pub(super) fn hint(problems: &[Problem]) -> Option<&'static str> {
    let has = |rule| problems.iter().any(|problem| problem.rule == rule);
    if has("rights") {
        return Some(
            "`kubectl olm rbac` prints what an account needs; --scope namespaced applies what needs no rights in the whole cluster",
        );
    }
    has(SAFETY).then_some(
        "see whether the custom resources that there are bear it; --crd-upgrade-safety none then applies it all the same",
    )
}

/// Shows what would be done.
fn show(plan: &Plan, dry_run: DryRun) {
    let suffix = match dry_run {
        DryRun::Server => " (server dry run)",
        _ => " (dry run)",
    };
    let mut lines = String::new();
    for change in &plan.changes {
        lines.push_str(&line(&change.key, change.action.word(), "", suffix));
        lines.push('\n');
    }
    for entry in plan.adding.iter().chain(&plan.removing) {
        lines.push_str(&entry_line(entry, suffix));
    }
    for removal in &plan.removals {
        let (word, note) = match &removal.fate {
            Fate::Delete { .. } => ("pruned", ""),
            Fate::Gone => continue,
            Fate::Forget(note) => ("left alone", note.as_str()),
            Fate::Keep(note) => ("kept", note.as_str()),
            Fate::Unverifiable(note) => ("not checked", note.as_str()),
        };
        lines.push_str(&line(&removal.key, word, note, suffix));
        lines.push('\n');
    }
    drop(output::print_text(&lines));
}

/// A line about an entry that is added or removed, as the run itself words it.
pub(super) fn entry_line(entry: &Entry, suffix: &str) -> String {
    let note = format!("Secrets: {}", entry.secret);
    let key = crate::cluster::plan::account(entry);
    format!("{}\n", line(&key, "patched", &note, suffix))
}

/// Asks before anything is deleted; gives why nothing is to be done.
fn confirm(planned: &[Planned], yes: bool) -> Option<Failure> {
    let goes = planned.iter().flat_map(|planned| {
        let removals = planned.plan.removals.iter();
        let removed = removals.filter(|removal| matches!(removal.fate, Fate::Delete { .. }));
        let removed = removed.map(|removal| removal.key.to_string());
        let changes = planned.plan.changes.iter();
        let anew = changes.filter(|change| change.action == Action::Recreate);
        removed.chain(anew.map(|change| format!("{} (created anew)", change.key)))
    });
    let goes: Vec<_> = goes.collect();
    if yes || goes.is_empty() {
        return None;
    }
    ask(&format!("This deletes {}.", goes.join(", ")))
}

/// Asks whether to go on; gives why not.
pub(super) fn ask(what: &str) -> Option<Failure> {
    if !(io::stdin().is_terminal() && output::is_terminal()) {
        let message = format!("{what} Confirmation is needed, and there is no terminal to ask on");
        return Some(
            Failure::new(Class::Usage, message).with_hint("say --yes; nothing was changed"),
        );
    }
    output::tell(&format!("{what} Go on? [y/N]"));
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

/// Carries out one plan.
fn carry_out(
    args: &ApplyArgs,
    session: &Session,
    force: Force,
    mut planned: Planned,
) -> Result<Ended, Failure> {
    let connection = &session.connection;
    if let Some(stored) = &planned.stored
        && let crate::cluster::inventory::State::Running { what, who } = &stored.inventory.state
    {
        output::tell(&format!(
            "Warning: the {what} of {} by {who} (run {}) did not finish; continuing",
            planned.install, stored.inventory.generation
        ));
    }
    if planned.namespace == Namespace::Missing {
        let namespace = planned.install.namespace.clone();
        apply::make_namespace(connection, &mut planned.plan, &namespace)
            .map_err(|error| api_failure(&error))?;
    }
    let lock = match planned.lock.take() {
        Some(lock) => lock,
        None => {
            let lock = hold(connection, &planned.install, args.timeout)?;
            let stored = live::stored(connection, &planned.install);
            if stored.map_err(|error| live_failure(&error))?.is_some() {
                return Ok(Ended::Overtaken(planned.install));
            }
            lock
        }
    };
    let report = Lines::default();
    let job = Job {
        connection,
        lock: &lock,
        report: &report,
        waiting: if args.wait {
            Waiting::For(args.timeout)
        } else {
            Waiting::No
        },
        force,
        failing: if args.keep_going {
            Failing::GoOn
        } else {
            Failing::Stop
        },
        who: lock.holder().to_string(),
    };
    let carried = apply::apply(
        &job,
        &planned.install,
        &planned.plan,
        planned.about,
        planned.stored,
    );
    session.tell_warnings();
    session.release(lock);
    let outcome =
        carried.map_err(|error| api_failure(&error).with_detail("nothing was changed"))?;
    ended(
        &planned.install.to_string(),
        &planned.plan,
        outcome,
        "apply",
    )
    .map(|()| Ended::Done)
}

/// How many accounts entries are for; each account is written once.
fn accounts(entries: &BTreeSet<Entry>) -> usize {
    let accounts: BTreeSet<_> = entries.iter().map(plan::account).collect();
    accounts.len()
}

/// What a run came to, as a failure when not all was done.
pub(super) fn ended(
    install: &str,
    plan: &Plan,
    outcome: Outcome,
    what: &str,
) -> Result<(), Failure> {
    let all = plan
        .changes
        .iter()
        .filter(|change| change.action.writes())
        .count()
        + accounts(&plan.adding)
        + accounts(&plan.removing)
        + plan
            .removals
            .iter()
            .filter(|removal| matches!(removal.fate, Fate::Delete { .. }))
            .count();
    // Custom resources that go with their definition stand in no plan.
    let all = all.max(outcome.done);
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
    let mut failure = Failure::new(Class::NotReady, format!("{install} is not ready"));
    for not_ready in &outcome.not_ready {
        for reason in &not_ready.reasons {
            failure = failure.with_detail(format!("{}: {reason}", not_ready.key));
        }
    }
    Err(failure.with_detail(state))
}
