//! `kubectl olm cleanup`: removes what an install owns, and nothing else.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{
    cluster::{
        DeletingArgs, DryRun, Lines, Namespace, Session, Unchanged, api_failure, ask, count, ended,
        hold, is_called, line, named, namespace, parse_timeout, refusal, show, stored_failure,
        waiting,
    },
    connection_args::ConnectionArgs,
    failure::{Class, Failure},
    output,
    scope::ScopeArgs,
    source_args::parse_duration,
    text::printable,
};
use crate::{
    cluster::{
        answer::ApiError,
        apply::{self, Failing, Job},
        connection::Connection,
        desired::{DesiredSet, PART_OF},
        inventory::{Hold, InstallName, Inventory, Member, State},
        live::{self, Asking},
        lock::Lock,
        metadata,
        plan::{Fate, Plan, Policy, Removal},
        request::{Force, Mode, Request},
        rights, served,
        stored::{self, Stored},
        survey::{self, Missing, Safety, Survey},
        wait,
    },
    manifest::ObjectKey,
};

/// Remove what an install owns
///
/// Deletes exactly the objects that its inventory lists, the last phase first, each only if it is still the one that was
/// applied. Entries leave ServiceAccounts, and what another install still uses stays. A definition with custom resources
/// and a namespace with objects of others are kept unless asked for.
#[derive(Debug, Args)]
#[command(
    visible_aliases = ["delete", "uninstall"],
    after_help = "\
Examples:
  # See what would go
  kubectl olm cleanup queue-operator -n ops --dry-run=server

  # Remove it without being asked
  kubectl olm cleanup queue-operator -n ops --yes

  # With all queues
  kubectl olm cleanup queue-operator -n ops --delete-custom-resources"
)]
pub(super) struct CleanupArgs {
    /// Name of the install, as `kubectl olm status` lists it
    #[arg(value_name = "NAME")]
    name: String,
    /// Namespace that it is installed in
    #[arg(short, long)]
    namespace: String,
    /// Change nothing: none, client (only read) or server (the server says what it would do)
    #[arg(long, value_name = "none|client|server", default_value = "none", default_missing_value = "client", num_args = 0..=1, require_equals = true, hide_possible_values = true)]
    dry_run: DryRun,
    /// Wait until objects are gone
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set, value_name = "true|false", hide_possible_values = true)]
    wait: bool,
    /// How long to wait for the objects of a phase, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,
    /// How long the API server may take for an answer, such as 10s or 2m; 0 for as long as it likes
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    request_timeout: Duration,
    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    deleting: DeletingArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or not all is gone.
pub(super) fn run(args: &CleanupArgs) -> Result<(), Failure> {
    let name = format!("{}{}", args.name, args.scope.suffix());
    let install = InstallName::new(&args.namespace, &name)
        .map_err(|reason| Failure::new(Class::Usage, reason))?;
    let session = Session::open(&args.connection, args.request_timeout)?;
    let connection = &session.connection;
    if namespace(connection, &install.namespace)? == Namespace::Missing {
        let reason = ": there is no such namespace";
        return not_installed(args, connection, &install, reason);
    }
    let lock = match args.dry_run {
        DryRun::None => match hold(connection, &install, args.timeout) {
            Ok(lock) => Some(lock),
            Err(failure) => return going_namespace(args, connection, &install, failure),
        },
        _ => None,
    };
    let stored = stored::inventory(connection, &install).map_err(|error| stored_failure(&error))?;
    match stored {
        Some(stored) => clean(args, &session, lock.as_ref(), stored),
        None => nothing(args, connection, &install),
    }
}

/// Tells that there is nothing to do, and which installs could have been meant.
fn not_installed(
    args: &CleanupArgs,
    connection: &Connection,
    install: &InstallName,
    reason: &str,
) -> Result<(), Failure> {
    output::tell(&format!(
        "{install} is not installed{reason}; nothing to do"
    ));
    // Who may not look everywhere is told no more.
    let found = stored::inventories(connection, None)
        .or_else(|_| stored::inventories(connection, Some(&install.namespace)));
    let (stored, _) = found.unwrap_or_default();
    for other in stored.into_iter().map(|stored| stored.inventory.install) {
        if is_called(&other, &args.name) {
            let InstallName { namespace, name } = &other;
            output::tell(&format!(
                "note: {other} is; `kubectl olm cleanup {name} -n {namespace}` removes it"
            ));
        }
    }
    Ok(())
}

/// There is no inventory. A run that was killed early may have left the namespace, which it had made for it; or one that
/// was killed late had it deleted.
fn nothing(
    args: &CleanupArgs,
    connection: &Connection,
    install: &InstallName,
) -> Result<(), Failure> {
    let key = live::namespace_key(&install.namespace);
    let namespace = live::get(connection, &live::namespaces(), &key);
    let namespace = namespace.map_err(|error| api_failure(&error))?;
    let own = namespace.filter(|namespace| is_labelled(namespace, install));
    if let Some(namespace) = own.filter(metadata::is_going) {
        return wait_for_namespace(args, connection, &namespace);
    }
    // The Lease is held.
    if args.dry_run == DryRun::None {
        apply::sweep(connection, install, &[]);
    }
    let left = apply::left_namespace(connection, install).map_err(|error| api_failure(&error))?;
    let Some((key, uid)) = left else {
        return not_installed(args, connection, install, "");
    };
    let goes = Plan {
        removals: vec![Removal {
            key: key.clone(),
            resource: live::namespaces(),
            fate: Fate::Delete { uid: uid.clone() },
            collects: false,
        }],
        ..Plan::default()
    };
    if args.dry_run != DryRun::None {
        return show(install, &goes, args.dry_run);
    }
    confirm(args, install, &goes, &[])?;
    let delete = Request::delete(&live::namespaces(), &key, &uid, Mode::Write);
    connection
        .send(&delete)
        .map_err(|error| api_failure(&error))?;
    if args.wait {
        gone(connection, &key, &uid, args.timeout)?;
    }
    output::print_text(&format!("{}\n", line((&key, ""), "deleted", "", "")))
}

/// An install could not be held. In a namespace that is being deleted nothing can be; when all that is left of the install
/// goes with it, as after a cleanup that was killed, that is waited for.
fn going_namespace(
    args: &CleanupArgs,
    connection: &Connection,
    install: &InstallName,
    failure: Failure,
) -> Result<(), Failure> {
    let key = live::namespace_key(&install.namespace);
    let found = live::get(connection, &live::namespaces(), &key);
    let Some(namespace) = found.map_err(|error| api_failure(&error))? else {
        output::tell(&format!("{install} is gone with its namespace"));
        return Ok(());
    };
    let stored = stored::inventory(connection, install).map_err(|error| stored_failure(&error))?;
    if !metadata::is_going(&namespace) {
        return Err(failure);
    }
    // The inventory still says what there was before the namespace went.
    let listed = stored.iter().flat_map(|stored| &stored.inventory.objects);
    for object in listed.filter(|(left, _)| **left != key && left.namespace != key.name) {
        if is_there(connection, object).map_err(|error| api_failure(&error))? {
            return Err(failure);
        }
    }
    wait_for_namespace(args, connection, &namespace)
}

/// Whether an object of an inventory is there, and may be what the inventory means.
fn is_there(
    connection: &Connection,
    (key, member): (&ObjectKey, &Member),
) -> Result<bool, ApiError> {
    let resource = survey::resource_of(&*connection.resources()?, key, member);
    let live = served::get(connection, &resource, key)?;
    let live = live.as_ref().and_then(metadata::uid);
    let known = member.uid.as_deref();
    Ok(member.hold != Hold::Used && live.is_some() && (known.is_none() || live == known))
}

fn is_labelled(namespace: &Value, install: &InstallName) -> bool {
    let labels = namespace.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(PART_OF)?.as_str());
    label == Some(&install.applyset_id())
}

/// Waits for a namespace that is being deleted.
fn wait_for_namespace(
    args: &CleanupArgs,
    connection: &Connection,
    namespace: &Value,
) -> Result<(), Failure> {
    let key = live::namespace_key(&args.namespace);
    if args.wait {
        let uid = metadata::uid(namespace).unwrap_or_default();
        gone(connection, &key, uid, args.timeout)?;
    }
    output::print_text(&format!("{}\n", line((&key, ""), "deleted", "", "")))
}

/// Waits until a namespace is gone.
fn gone(
    connection: &Connection,
    key: &ObjectKey,
    uid: &str,
    timeout: Duration,
) -> Result<(), Failure> {
    let object = (live::namespaces(), key.clone(), uid.to_owned());
    let left = wait::until_gone(connection, &[object], timeout);
    let reasons = left.into_iter().flat_map(|left| left.reasons);
    let reasons: Vec<_> = reasons.collect();
    if reasons.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(Class::NotReady, format!("{key} is not gone"));
    let failure = reasons.into_iter().fold(failure, Failure::with_detail);
    Err(failure.with_hint("it is being deleted; nothing else of the install is left"))
}

/// Removes what an inventory lists.
fn clean(
    args: &CleanupArgs,
    session: &Session,
    lock: Option<&Lock>,
    stored: Stored,
) -> Result<(), Failure> {
    let connection = &*session.connection;
    let install = stored.inventory.install.clone();
    let others = stored::others(connection, &install).map_err(|error| api_failure(&error))?;
    let others = others.inventories;
    is_needed(&stored.inventory, &others)?;
    let (plan, first) = plan(args, connection, &stored).map_err(|error| api_failure(&error))?;
    if plan.is_refused() {
        let message = format!("{install} cannot be removed; nothing was changed");
        let hint = "`kubectl olm rbac` prints what an account needs";
        return Err(refusal(plan.problems, message).with_hint(hint));
    }
    let Some(lock) = lock else {
        return try_out((args, &install), connection, plan, first);
    };
    if let State::Running { what, who } = &stored.inventory.state {
        output::tell(&format!(
            "Warning: the {what} of {install} by {who} did not finish"
        ));
    }
    confirm(args, &install, &plan, &first)?;
    let report = Lines::new(&install, Unchanged::Told);
    let job = Job {
        connection,
        lock,
        report: &report,
        deleting: args.deleting.deleting(),
        waiting: waiting(args.wait, args.timeout),
        force: Force::No,
        failing: Failing::GoOn,
        who: lock.holder().to_string(),
    };
    let outcome = apply::clean(&job, &first, &plan, stored)
        .map_err(|error| api_failure(&error).with_detail("nothing was changed"))?;
    session.tell_warnings();
    ended(&install, (&plan, &first), outcome, "cleanup")?;
    let left = others
        .iter()
        .filter(|other| is_left(other, &install, &others));
    for other in left {
        let InstallName { namespace, name } = &other.install;
        output::tell(&format!(
            "note: {} was needed by {install}, and stays; `kubectl olm cleanup {name} -n {namespace}` removes it",
            other.install
        ));
    }
    Ok(())
}

/// Refuses to remove what other installs need.
fn is_needed(inventory: &Inventory, others: &[Inventory]) -> Result<(), Failure> {
    let needing: Vec<_> = others
        .iter()
        .filter(|other| needs(other, inventory))
        .map(|other| other.install.to_string())
        .collect();
    if needing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} is needed by {}; nothing was changed",
        inventory.install,
        needing.join(", ")
    );
    Err(Failure::new(Class::ClusterRefused, message).with_hint("remove what needs it first"))
}

/// What goes, and the custom resources that go before, with the rights that the user lacks for it.
fn plan(
    args: &CleanupArgs,
    connection: &Connection,
    stored: &Stored,
) -> Result<(Plan, Vec<Removal>), ApiError> {
    let deleting = args.deleting.deleting();
    let survey = Survey {
        policy: Policy::default(),
        asking: Asking::Read,
        missing: Missing::Skip,
        safety: Safety::None,
        deleting,
    };
    let install = &stored.inventory.install;
    let nothing = DesiredSet::default();
    let mut plan = survey::plan(connection, install, &nothing, Some(stored), &survey)?;
    let first = match deleting.custom_resources {
        true => apply::custom_resources(connection, &plan)?,
        false => vec![],
    };
    if args.dry_run != DryRun::Client {
        rights::to_clean(connection, &mut plan, &first, install)?;
    }
    Ok((plan, first))
}

/// Asks whether to delete what goes.
fn confirm(
    args: &CleanupArgs,
    install: &InstallName,
    plan: &Plan,
    first: &[Removal],
) -> Result<(), Failure> {
    let home = install.namespace.as_str();
    let goes = |removal: &&Removal| matches!(removal.fate, Fate::Delete { .. });
    let going = first.iter().chain(plan.removals.iter().filter(goes));
    let going: Vec<_> = going
        .map(|removal| printable(&named(&removal.key, home)))
        .collect();
    if args.yes || going.is_empty() {
        return Ok(());
    }
    let objects = count(going.len(), "object");
    ask(&format!("This deletes {objects} of {install}"), &going).map_or(Ok(()), Err)
}

/// Whether an install needs another one.
fn needs(install: &Inventory, other: &Inventory) -> bool {
    install.state != State::Removed && other.required_by.contains(&install.install)
}

/// Whether an install was needed by one that is gone, and is needed by none of the others.
fn is_left(install: &Inventory, gone: &InstallName, others: &[Inventory]) -> bool {
    install.required_by.contains(gone) && !others.iter().any(|other| needs(other, install))
}

/// Shows what would go, and asks the server whether it may.
fn try_out(
    (args, install): (&CleanupArgs, &InstallName),
    connection: &Connection,
    mut plan: Plan,
    first: Vec<Removal>,
) -> Result<(), Failure> {
    let mut refused = vec![];
    plan.removals.splice(..0, first);
    if args.dry_run == DryRun::Server {
        plan.removals.retain(|removal| {
            let Fate::Delete { uid } = &removal.fate else {
                return true;
            };
            let delete = Request::delete(&removal.resource, &removal.key, uid, Mode::DryRun);
            let answer = connection.send(&delete);
            let is_allowed = answer.is_ok();
            refused.extend(answer.err());
            is_allowed
        });
    }
    show(install, &plan, args.dry_run)?;
    let mut refused = refused.into_iter();
    let Some(first) = refused.next() else {
        return Ok(());
    };
    let failure = api_failure(&first);
    Err(refused.fold(failure, |failure, error| {
        failure.with_detail(error.to_string())
    }))
}
