//! `kubectl olm diff`: what an install would change in a cluster, or how two versions of one differ without any.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use serde_json::Value;

use super::{
    cluster::{
        ChangeArgs, FromCluster, Holding, Planned, Planning, Rendering, Session, api_failure,
        plan_all, refusal, rendered,
    },
    compare,
    connection_args::ConnectionArgs,
    diff_output::{self, DiffOutputArgs, Differs},
    failure::Failure,
    output,
    parts::Parts,
    scope::ScopeArgs,
    wanted_args::WantedArgs,
};
use crate::{
    cluster::{
        accounts, asked,
        connection::Connection,
        diff::{self, Asked, Difference, Pair},
        live::{self, Asking},
        plan::{Action, Fate},
    },
    problem::Problem,
};

/// Show what an install would change in a cluster, or between two versions
///
/// The server says what it would do, and does nothing; who may only read sees the fields that differ. Exits with 1 when
/// anything differs. With two sources, or PACKAGE@VERSION twice, no cluster is asked: it tells what an upgrade brings,
/// objects, rights, images and definitions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # What would apply change?
  kubectl olm diff -f install/
  kubectl olm diff ./bundle -n ops --summary

  # What does an upgrade bring?
  kubectl olm diff ./bundle-1.0 ./bundle-1.1 -n ops
  kubectl olm diff queue-operator@1.0.0 queue-operator@1.1.0 --catalog ./catalog -n ops")]
pub(super) struct DiffArgs {
    #[command(flatten)]
    output: DiffOutputArgs,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    wanted: WantedArgs,
    /// What the first is compared with, in place of a cluster: another source, or PACKAGE@VERSION
    #[arg(value_name = "NEW", requires = "source")]
    new: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When something is refused.
pub(super) fn run(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let parts = Parts::applied(args.scope.scope);
    if let Some(new) = &args.new {
        return compare::run(&args.wanted, new, &parts, &args.output).map(code);
    }
    let session = Session::open(
        &args.connection,
        args.wanted.install.read.sources.request_timeout,
    )?;
    let mut problems = vec![];
    let rendering = Rendering {
        parts: &parts,
        follows: args.changes.follows(),
        holding: Holding::Nothing,
    };
    let FromCluster {
        wanted, rendered, ..
    } = rendered(&session, &args.wanted, &rendering, &mut problems)?;
    output::tell_problems(&problems, "");
    if rendered.output.installs.is_empty() {
        let ended = rendered.outcome.end(&wanted.installs);
        return ended.map(|()| code(Differs::No));
    }
    let (output, _) = output::select(rendered.output, &output::Format::Yaml, &parts);
    args.changes.is_adoptable(&output)?;
    let survey = args
        .changes
        .survey(Asking::DryRunOrRead(args.changes.force()));
    let planning = Planning {
        connection: &session.connection,
        patience: Duration::ZERO,
        name: args.changes.name.as_deref(),
        suffix: args.scope.suffix(),
        survey: &survey,
        generations: None,
        holding: Holding::Nothing,
    };
    let planned = plan_all(output, &planning)?;
    session.tell_warnings();
    tell_compared(&planned);
    let mut differences = vec![];
    for planned in &planned {
        if let Some(text) = planned.unfinished() {
            output::tell(&format!(
                "Warning: {text}; the next apply or cleanup goes on"
            ));
        }
        tell_anew(planned);
        differences.extend(of_plan(&session.connection, planned)?);
    }
    let refused = refused(&planned);
    // What is refused is not the same, even where nothing can be shown of it.
    let differs = match differences.is_empty() && refused.is_some() {
        true => Differs::Yes,
        false => diff_output::print(&differences, &args.output)?,
    };
    let ended = rendered.outcome.end(&wanted.installs);
    refused
        .map_or(Ok(()), Err)
        .and(ended)
        .map(|()| code(differs))
}

fn code(differs: Differs) -> ExitCode {
    match differs {
        Differs::Yes => ExitCode::from(1),
        Differs::No => ExitCode::SUCCESS,
    }
}

/// Tells that the server was not asked.
fn tell_compared(planned: &[Planned]) {
    if planned.iter().any(|planned| planned.plan.compared > 0) {
        output::tell(
            "note: you may not write, so the server was not asked what it would do: the fields that are asked for were compared \
             with what is there",
        );
    }
}

/// Tells what would be deleted to be changed.
fn tell_anew(planned: &Planned) {
    let changes = planned.plan.changes.iter();
    for change in changes.filter(|change| change.action == Action::Recreate) {
        output::tell(&format!(
            "Warning: {} would be deleted and created anew",
            change.key
        ));
    }
}

/// What a plan would change.
fn of_plan(connection: &Connection, planned: &Planned) -> Result<Vec<Difference>, Failure> {
    let plan = &planned.plan;
    let mut pairs = vec![];
    for change in plan.changes.iter().filter(|change| change.action.writes()) {
        let before = match change.action {
            Action::AfterDeletion => None,
            _ => change.before.clone(),
        };
        let after = match (&change.after, &before) {
            (Some(after), _) => after.clone(),
            (None, Some(before)) => asked::laid_over(before, &change.asked),
            (None, None) => change.asked.clone(),
        };
        pairs.push(Pair {
            key: change.key.clone(),
            before,
            after: Some(after),
            asked: Asked::Object(change.asked.clone()),
        });
    }
    pairs.extend(plan.refused.iter().map(|refused| Pair {
        key: refused.key.clone(),
        before: Some(refused.before.clone()),
        after: Some(refused.after.clone()),
        asked: Asked::Object(refused.asked.clone()),
    }));
    for removal in &plan.removals {
        if let Fate::Delete { .. } = removal.fate {
            let live = live::get(connection, &removal.resource, &removal.key);
            pairs.push(Pair {
                key: removal.key.clone(),
                before: live.map_err(|error| api_failure(&error))?,
                after: None,
                asked: Asked::Nothing,
            });
        }
    }
    pairs.extend(of_accounts(connection, planned)?);
    Ok(pairs.iter().filter_map(diff::difference).collect())
}

/// What entries would change.
fn of_accounts(connection: &Connection, planned: &Planned) -> Result<Vec<Pair>, Failure> {
    let plan = &planned.plan;
    let touched = plan.adding.iter().chain(&plan.removing);
    let live = live::accounts(connection, touched).map_err(|error| api_failure(&error))?;
    let pairs = live.into_values().map(|before| {
        let mut after = before.clone();
        for patch in [
            accounts::adding(&before, &plan.adding),
            accounts::removing(&before, &plan.removing),
        ] {
            merge(&mut after, patch);
        }
        let key = live::key_of(&live::service_accounts(), &before);
        Pair {
            key,
            asked: Asked::Object(after.clone()),
            before: Some(before),
            after: Some(after),
        }
    });
    Ok(pairs.collect())
}

/// Puts the lists of a patch into an account.
fn merge(account: &mut Value, patch: Option<Value>) {
    let Some(Value::Object(patch)) = patch else {
        return;
    };
    for (field, value) in patch {
        if field != "metadata" {
            account[field] = value;
        }
    }
}

/// Why plans are refused.
fn refused(planned: &[Planned]) -> Option<Failure> {
    let problems = planned
        .iter()
        .flat_map(|planned| planned.plan.problems.iter());
    let (errors, told): (Vec<_>, Vec<_>) = problems.cloned().partition(Problem::is_error);
    output::tell_problems(&told, "");
    if errors.is_empty() {
        return None;
    }
    Some(refusal(errors, "apply would be refused".to_owned()))
}
