//! `kubectl olm cleanup`: removes what an install owns, and nothing else.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{
    apply::{ask, ended, entry_line},
    cluster::{
        DeletingArgs, DryRun, Lines, Namespace, Session, api_failure, hold, line, live_failure,
        namespace, parse_timeout,
    },
    connection_args::ConnectionArgs,
    failure::{Class, Failure},
    output,
    scope::ScopeArgs,
    source_args::parse_duration,
};
use crate::{
    cluster::{
        apply::{self, Failing, Job, Waiting},
        connection::Connection,
        desired::DesiredSet,
        inventory::{Content, InstallName, Inventory, State},
        live::{self, Asking, Stored},
        lock::Lock,
        plan::{Fate, Plan, Policy, Removal},
        request::{Force, Mode, Request},
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
        output::tell(&format!(
            "{install} is not installed: there is no such namespace"
        ));
        return Ok(());
    }
    let lock = match args.dry_run {
        DryRun::None => match hold(connection, &install, args.timeout) {
            Ok(lock) => Some(lock),
            Err(failure) => return going_namespace(args, connection, &install, failure),
        },
        _ => None,
    };
    let stored = live::stored(connection, &install).map_err(|error| live_failure(&error))?;
    let ended = match stored {
        Some(stored) => clean(args, &session, lock.as_ref(), stored),
        None => nothing(args, connection, &install),
    };
    if let Some(lock) = lock {
        session.release(lock);
    }
    ended
}

/// There is no inventory. A run that was killed early may have left the namespace, which it had made for it.
fn nothing(
    args: &CleanupArgs,
    connection: &Connection,
    install: &InstallName,
) -> Result<(), Failure> {
    let dry_run = args.dry_run;
    let left = apply::left_namespace(connection, install).map_err(|error| api_failure(&error))?;
    match left {
        Some((key, uid)) if dry_run == DryRun::None => {
            let delete = Request::delete(&live::namespaces(), &key, &uid, Mode::Write);
            connection
                .send(&delete)
                .map_err(|error| api_failure(&error))?;
            if args.wait {
                gone(connection, &key, &uid, args.timeout)?;
            }
            output::print_text(&format!("{}\n", line(&key, "deleted", "", "")))
        }
        Some((key, _)) => {
            output::print_text(&format!("{}\n", line(&key, "deleted", "", suffix(dry_run))))
        }
        None => {
            output::tell(&format!("{install} is not installed; nothing to do"));
            Ok(())
        }
    }
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
    let goes = namespace.pointer("/metadata/deletionTimestamp").is_some();
    let stored = live::stored(connection, install).map_err(|error| live_failure(&error))?;
    let mut objects = stored
        .iter()
        .flat_map(|stored| stored.inventory.objects.keys());
    let is_in_it = |left: &ObjectKey| *left == key || left.namespace == key.name;
    if !goes || !objects.all(is_in_it) {
        return Err(failure);
    }
    let uid = namespace.pointer("/metadata/uid").and_then(Value::as_str);
    if args.wait {
        gone(connection, &key, uid.unwrap_or_default(), args.timeout)?;
    }
    output::print_text(&format!("{}\n", line(&key, "deleted", "", "")))
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

fn clean(
    args: &CleanupArgs,
    session: &Session,
    lock: Option<&Lock>,
    stored: Stored,
) -> Result<(), Failure> {
    let connection = &*session.connection;
    let install = stored.inventory.install.clone();
    let others = live::others(connection, &install).map_err(|error| api_failure(&error))?;
    let others = others.inventories;
    let needing: Vec<_> = others
        .iter()
        .filter(|other| needs(other, &stored.inventory))
        .map(|other| other.install.to_string())
        .collect();
    if !needing.is_empty() {
        let message = format!(
            "{install} is needed by {}; nothing was changed",
            needing.join(", ")
        );
        let failure = Failure::new(Class::ClusterRefused, message);
        return Err(failure.with_hint("remove what needs it first"));
    }
    let content = stored.inventory.content.clone();
    let survey = Survey {
        policy: Policy::default(),
        asking: Asking::Read,
        missing: Missing::Skip,
        safety: Safety::None,
        deleting: args.deleting.deleting(),
    };
    let plan = survey::plan(
        connection,
        &install,
        &DesiredSet::default(),
        Some(&stored),
        &survey,
    )
    .map_err(|error| api_failure(&error))?;
    let first = match args.deleting.deleting().custom_resources {
        true => apply::custom_resources(connection, &plan).map_err(|error| api_failure(&error))?,
        false => vec![],
    };
    let Some(lock) = lock else {
        return show(connection, &first, &plan, args.dry_run);
    };
    if let State::Running { what, who } = &stored.inventory.state {
        output::tell(&format!(
            "Warning: the {what} of {install} by {who} did not finish"
        ));
    }
    let going: Vec<_> = going(&plan).map(ObjectKey::to_string).collect();
    if !args.yes && !going.is_empty() {
        let mut what = format!(
            "This deletes {} objects of {install}: {}.",
            going.len(),
            going.join(", ")
        );
        if !first.is_empty() {
            what = format!("{what} With them go {} custom resources.", first.len());
        }
        if let Some(failure) = ask(&what) {
            return Err(failure);
        }
    }
    let report = Lines::default();
    let job = Job {
        connection,
        lock,
        report: &report,
        waiting: if args.wait {
            Waiting::For(args.timeout)
        } else {
            Waiting::No
        },
        force: Force::No,
        failing: Failing::GoOn,
        who: lock.holder().to_string(),
    };
    let outcome = apply::clean(&job, &first, &plan, stored)
        .map_err(|error| api_failure(&error).with_detail("nothing was changed"))?;
    session.tell_warnings();
    ended(&install.to_string(), &plan, outcome, "cleanup")?;
    for other in others.iter().filter(|other| is_left(other, &content)) {
        let InstallName { namespace, name } = &other.install;
        output::tell(&format!(
            "note: {} was installed because it was needed, and stays; `kubectl olm cleanup {name} -n {namespace}` removes it",
            other.install
        ));
    }
    Ok(())
}

/// Whether an install needs another one, which was installed for it.
fn needs(install: &Inventory, other: &Inventory) -> bool {
    let mut needing = other.required_by.iter();
    needing.any(|bundle| is_of(bundle, &install.content))
}

/// Whether an install was made for one that is gone, and for nothing else.
fn is_left(install: &Inventory, gone: &Content) -> bool {
    let needing = &install.required_by;
    !needing.is_empty() && needing.iter().all(|bundle| is_of(bundle, gone))
}

/// Whether a bundle is this one or another version of it, which are named after their package.
fn is_of(bundle: &str, content: &Content) -> bool {
    let rest = bundle.strip_prefix(content.package.as_str());
    bundle == content.bundle || rest.is_some_and(|rest| rest.starts_with(".v"))
}

/// The objects that go.
fn going(plan: &Plan) -> impl Iterator<Item = &ObjectKey> {
    let removals = plan.removals.iter();
    let going = removals.filter(|removal| matches!(removal.fate, Fate::Delete { .. }));
    going.map(|removal| &removal.key)
}

/// Shows what would go, and asks the server whether it may.
fn show(
    connection: &Connection,
    first: &[Removal],
    plan: &Plan,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let (mut lines, mut refused) = (String::new(), vec![]);
    for entry in &plan.removing {
        lines.push_str(&entry_line(entry, suffix(dry_run)));
    }
    for removal in first.iter().chain(&plan.removals) {
        let (word, note) = match &removal.fate {
            Fate::Gone => continue,
            Fate::Delete { uid } => {
                let delete = Request::delete(&removal.resource, &removal.key, uid, Mode::DryRun);
                if dry_run == DryRun::Server
                    && let Err(error) = connection.send(&delete)
                {
                    refused.push(error);
                    continue;
                }
                ("deleted", "")
            }
            Fate::Forget(note) => ("left alone", note.as_str()),
            Fate::Keep(note) => ("kept", note.as_str()),
            Fate::Unverifiable(note) => ("not checked", note.as_str()),
        };
        lines.push_str(&line(&removal.key, word, note, suffix(dry_run)));
        lines.push('\n');
    }
    output::print_text(&lines)?;
    let mut refused = refused.into_iter();
    let Some(first) = refused.next() else {
        return Ok(());
    };
    let failure = api_failure(&first);
    Err(refused.fold(failure, |failure, error| {
        failure.with_detail(error.to_string())
    }))
}

fn suffix(dry_run: DryRun) -> &'static str {
    match dry_run {
        DryRun::Server => " (server dry run)",
        _ => " (dry run)",
    }
}
