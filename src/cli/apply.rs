//! `kubectl olm apply`: installs and upgrades, and nothing that is not shown.

use std::{collections::BTreeSet, sync::Arc, thread, time::Duration};

use clap::Args;

use super::{
    cluster::{
        ChangeArgs, DryRun, FromCluster, Holding, Lines, Namespace, Planned, Planning, Rendering,
        Session, Unchanged, api_failure, ask, count, ended, hold, named, parse_timeout, plan_all,
        refusal, rendered, show, stored_failure, waiting,
    },
    connection_args::ConnectionArgs,
    failure::{Class, Failure},
    interrupt, output,
    parts::Parts,
    scope::ScopeArgs,
    text::printable,
    wanted_args::WantedArgs,
    whole_file,
};
use crate::{
    cluster::{
        apply::{self, Failing, Job},
        connection::Connection,
        inventory::{InstallName, State},
        live::Asking,
        lock::Lock,
        plan::{Action, Fate},
        request::Force,
        stored::{self, Stored},
    },
    problem::Problem,
};

/// How often a run begins anew because another one was faster.
const TRIES: usize = 3;
/// How long between two looks of --watch.
const WATCH: Duration = Duration::from_secs(10);
/// How long another run is waited for that makes the same namespace: it could wait for an install that this one holds.
const NEW: Duration = Duration::from_secs(20);
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
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set, value_name = "true|false", hide_possible_values = true, hide_default_value = true)]
    wait: bool,
    /// How long to wait for a phase, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,
    /// Go on with other objects when one cannot be written
    #[arg(long)]
    keep_going: bool,
    /// Go on every 10 seconds, and change back what others change or delete; fields are taken from them. Ctrl-C ends it with
    /// exit code 0, and so does the cleanup of what is installed
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
    let mut run = Run {
        args,
        session: &session,
        force: args.changes.force(),
        unchanged: Unchanged::Told,
        told: BTreeSet::new(),
        installed: BTreeSet::new(),
    };
    run.run()?;
    if args.watch {
        run.watch();
    }
    Ok(())
}

/// A run, or one after the other of those that watch.
struct Run<'r> {
    args: &'r ApplyArgs,
    session: &'r Session,
    force: Force,
    unchanged: Unchanged,
    /// What has been told, which is not told again.
    told: BTreeSet<Problem>,
    /// What is installed since this program began. Who removes that means it.
    installed: BTreeSet<InstallName>,
}

/// How a run ended in which nothing failed.
enum Ended {
    /// All is done.
    Done,
    /// Another run has made or changed this install since it was looked at.
    Overtaken(InstallName),
    /// Somebody has removed all that was installed.
    Removed,
}

impl Run<'_> {
    /// Changes back what others change, until a signal comes or somebody removes the installs.
    fn watch(&mut self) {
        output::tell("watching; Ctrl-C ends it");
        self.force = Force::Yes;
        self.unchanged = Unchanged::Quiet;
        loop {
            for _ in 0..WATCH.as_millis() / BLINK.as_millis() {
                if interrupt::was_interrupted() {
                    return;
                }
                thread::sleep(BLINK);
            }
            match self.run() {
                Ok(Ended::Removed) => return output::tell("nothing is left to watch"),
                Ok(_) => {}
                Err(failure) if failure.class() == Class::Interrupted => return,
                Err(failure) => output::tell(&failure.text("")),
            }
        }
    }

    /// Runs, and runs again where another run was faster.
    fn run(&mut self) -> Result<Ended, Failure> {
        let mut last = None;
        for _ in 0..TRIES {
            match self.once()? {
                Ended::Overtaken(install) => last = Some(install),
                ended => return Ok(ended),
            }
        }
        let message = last.map(|install| format!("other runs keep installing {install}"));
        Err(Failure::new(Class::ClusterRefused, message.unwrap_or_default()).with_hint("run again"))
    }

    fn once(&mut self) -> Result<Ended, Failure> {
        let (args, session) = (self.args, self.session);
        // What an earlier run has defined is served by now.
        let refreshed = session.connection.refresh_resources();
        refreshed.map_err(|error| api_failure(&error))?;
        let parts = Parts::applied(args.scope.scope);
        let mut problems = vec![];
        let holding = match args.dry_run {
            DryRun::None => Holding::Lease,
            DryRun::Client | DryRun::Server => Holding::Nothing,
        };
        let rendering = Rendering {
            parts: &parts,
            follows: args.changes.follows(),
            holding,
        };
        let FromCluster {
            wanted,
            rendered,
            generations,
            made,
        } = rendered(session, &args.wanted, &rendering, &mut problems)?;
        self.tell(problems);
        if rendered.output.installs.is_empty() {
            return rendered.outcome.end(&wanted.installs).map(|()| Ended::Done);
        }
        let (output, _) = output::select(rendered.output, &output::Format::Yaml, &parts);
        args.changes.is_adoptable(&output)?;
        let asking = match args.dry_run {
            DryRun::Client => Asking::Read,
            DryRun::None | DryRun::Server => Asking::DryRun(self.force),
        };
        let survey = args.changes.survey(asking);
        let planning = Planning {
            connection: &session.connection,
            patience: args.timeout,
            name: args.changes.name.as_deref(),
            suffix: args.scope.suffix(),
            survey: &survey,
            generations: generations.as_ref(),
            holding,
        };
        let planned = plan_all(output, &planning)?;
        session.tell_warnings();
        if let Some(stale) = planned.iter().find(|planned| planned.is_stale) {
            return Ok(Ended::Overtaken(stale.install.clone()));
        }
        let applied = self.settle(planned);
        if let (Ok(Ended::Done), Some((path, text)), DryRun::None) =
            (&applied, &rendered.lock, args.dry_run)
        {
            whole_file::write(path, text)?;
        }
        if applied.is_ok() {
            self.tell(made);
        }
        let ended = rendered.outcome.end(&wanted.installs);
        applied.and_then(|applied| ended.map(|()| applied))
    }

    /// Tells what there is to tell, once.
    fn tell(&mut self, mut problems: Vec<Problem>) {
        problems.retain(|problem| self.told.insert(problem.clone()));
        output::tell_problems(&problems, "");
    }

    /// Tells of plans, and carries out those that nothing refuses.
    fn settle(&mut self, mut planned: Vec<Planned>) -> Result<Ended, Failure> {
        let told = planned.iter().flat_map(|planned| &planned.plan.problems);
        let told = told.filter(|problem| !problem.is_error()).cloned();
        self.tell(told.collect());
        planned.retain(|planned| self.is_there(planned));
        if planned.is_empty() {
            return Ok(Ended::Removed);
        }
        let refused = refuse(&mut planned);
        if self.args.dry_run != DryRun::None {
            for planned in &planned {
                show(&planned.install, &planned.plan, self.args.dry_run)?;
            }
            return refused.map_or(Ok(Ended::Done), Err);
        }
        if let Some(failure) = confirm(&planned, self.args.yes) {
            if let Some(refused) = refused {
                output::tell(&refused.text(""));
            }
            return Err(failure);
        }
        self.carry_out_all(planned, refused)
    }

    /// Whether an install is there still, if it was installed before.
    fn is_there(&self, planned: &Planned) -> bool {
        let is_left = |stored: &Stored| stored.inventory.state != State::Removed;
        let is_there = planned.stored.as_ref().is_some_and(is_left);
        let is_gone = !is_there && self.installed.contains(&planned.install);
        if is_gone {
            let install = &planned.install;
            output::tell(&format!("{install} was removed; it is not installed again"));
        }
        !is_gone
    }

    /// Carries out plans after another one may have been refused. The worst that happens is what is told last, and what the
    /// exit code says.
    fn carry_out_all(
        &mut self,
        planned: Vec<Planned>,
        refused: Option<Failure>,
    ) -> Result<Ended, Failure> {
        let mut ended = Ended::Done;
        let mut worst = refused;
        for planned in planned {
            let install = planned.install.clone();
            match self.carry_out(planned) {
                Ok(Ended::Overtaken(install)) => ended = Ended::Overtaken(install),
                Ok(_) => drop(self.installed.insert(install)),
                Err(failure) => {
                    let is_last = failure.class() == Class::Interrupted;
                    worst = Some(match worst {
                        Some(before) => worse(before, failure),
                        None => failure,
                    });
                    if is_last {
                        break;
                    }
                }
            }
        }
        worst.map_or(Ok(ended), Err)
    }

    /// Carries out one plan.
    fn carry_out(&mut self, mut planned: Planned) -> Result<Ended, Failure> {
        let (args, session) = (self.args, self.session);
        let connection = &session.connection;
        if let Some(text) = planned.unfinished() {
            output::tell(&format!("Warning: {text}; continuing"));
        }
        if planned.namespace == Namespace::Missing {
            let namespace = planned.install.namespace.clone();
            apply::make_namespace(connection, &mut planned.plan, &namespace)
                .map_err(|error| api_failure(&error))?;
        }
        let lock = match planned.lock.take() {
            Some(lock) => lock,
            None => match hold_new(connection, &planned.install, args.timeout)? {
                Some(lock) => lock,
                None => return Ok(Ended::Overtaken(planned.install)),
            },
        };
        let report = Lines::new(&planned.install, self.unchanged);
        let job = Job {
            connection,
            lock: &lock,
            report: &report,
            deleting: args.changes.deleting.deleting(),
            waiting: waiting(args.wait, args.timeout),
            force: self.force,
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
        drop(lock);
        let outcome =
            carried.map_err(|error| api_failure(&error).with_detail("nothing was changed"))?;
        ended(&planned.install, (&planned.plan, &[]), outcome, "apply").map(|()| Ended::Done)
    }
}

/// Tells why plans are refused, and leaves those that are not, nor need one that is.
fn refuse(planned: &mut Vec<Planned>) -> Option<Failure> {
    let mut owners = BTreeSet::new();
    let (mut problems, mut names, mut is_alone) = (vec![], vec![], false);
    for planned in planned.iter() {
        let of_plan = planned.plan.problems.iter();
        let errors: Vec<_> = of_plan.filter(|problem| problem.is_error()).collect();
        if !errors.is_empty() {
            names.push(planned.install.to_string());
            owners.extend(planned.owners.iter().cloned());
            is_alone |= planned.owners.is_empty();
            problems.extend(errors.into_iter().cloned());
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
    Some(refusal(problems, message))
}

/// The worse one of two failures; the other one is told now.
fn worse(one: Failure, other: Failure) -> Failure {
    let is_one = Class::worst([one.class(), other.class()]) == Some(one.class());
    let (worse, told) = if is_one { (one, other) } else { (other, one) };
    output::tell(&told.text(""));
    worse
}

/// Takes the Lease of an install whose namespace was made just now; nothing when another run has installed it meanwhile.
fn hold_new(
    connection: &Arc<Connection>,
    install: &InstallName,
    patience: Duration,
) -> Result<Option<Lock>, Failure> {
    let lock = hold(connection, install, patience.min(NEW))?;
    let stored = stored::inventory(connection, install).map_err(|error| stored_failure(&error))?;
    Ok(stored.is_none().then_some(lock))
}

/// Asks before anything is deleted; gives why nothing is to be done.
fn confirm(planned: &[Planned], yes: bool) -> Option<Failure> {
    let goes = planned.iter().flat_map(|planned| {
        let home = planned.install.namespace.as_str();
        let removals = planned.plan.removals.iter();
        let removed = removals.filter(|removal| matches!(removal.fate, Fate::Delete { .. }));
        let removed = removed.map(move |removal| printable(&named(&removal.key, home)));
        let changes = planned.plan.changes.iter();
        let anew = changes.filter(|change| change.action == Action::Recreate);
        let anew = anew.map(move |change| {
            printable(&format!(
                "{} (to be created anew)",
                named(&change.key, home)
            ))
        });
        removed.chain(anew)
    });
    let goes: Vec<_> = goes.collect();
    if yes || goes.is_empty() {
        return None;
    }
    let objects = count(goes.len(), "object");
    ask(&format!("This deletes {objects}"), &goes)
}
