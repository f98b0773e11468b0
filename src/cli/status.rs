//! `kubectl olm status`: what is installed, and how it is.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::{
    catalog_args::CatalogArgs,
    cluster::{Session, api_failure, is_called},
    connection_args::ConnectionArgs,
    failure::{Class, Failure},
    newer::newer,
    output::{self, TextFormat},
    source_args::SourceArgs,
    table::{Table, terminal_width},
};
use crate::{
    cluster::{
        AT_ONCE,
        answer::{ApiError, RefusalKind},
        connection::Connection,
        health::{self, Health},
        inventory::{Hold, InstallName, Inventory, Member, State},
        live, managed_fields, metadata, stored, survey,
    },
    concurrent::concurrently,
    manifest::ObjectKey,
};

/// Show what is installed: versions, health, drift, and runs that did not finish
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kubectl olm status
  kubectl olm status -n ops -o json

  # Is there a newer version?
  kubectl olm status --catalog ./catalog")]
pub(super) struct StatusArgs {
    /// Name of an install (default: all)
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Namespace to look in (default: all)
    #[arg(short, long)]
    namespace: Option<String>,
    /// Look in all namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Output: text, json or yaml
    #[arg(
        short,
        long,
        value_enum,
        default_value = "text",
        hide_possible_values = true
    )]
    output: TextFormat,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    catalogs: CatalogArgs,
    #[command(flatten)]
    sources: SourceArgs,
}

/// What there is to say of an install.
struct Status {
    inventory: Inventory,
    /// Objects that are not as they should be, and why.
    unhealthy: BTreeMap<ObjectKey, String>,
    /// Objects that nothing is known of, and why.
    unchecked: BTreeMap<ObjectKey, String>,
    /// Objects that differ from what was applied, and how.
    drifted: BTreeMap<ObjectKey, &'static str>,
    /// The bundle that the next upgrade leads to, where catalogs are named.
    newer: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not tell.
pub(super) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let session = Session::open(&args.connection, args.sources.request_timeout)?;
    let connection = &*session.connection;
    let found = stored::inventories(connection, args.namespace.as_deref());
    let (stored, broken) = found.map_err(|error| {
        let failure = api_failure(&error);
        match (error.kind(), &args.namespace) {
            (Some(RefusalKind::Forbidden), None) => {
                failure.with_hint("name a namespace whose Secrets you may list by -n")
            }
            _ => failure,
        }
    })?;
    for error in &broken {
        output::tell(&format!("Warning: {}", error.error));
    }
    let inventories = stored.into_iter().map(|stored| stored.inventory);
    let is_wanted = |inventory: &Inventory| {
        args.name
            .as_deref()
            .is_none_or(|name| is_called(&inventory.install, name))
    };
    let mut statuses: Vec<Status> = inventories
        .filter(is_wanted)
        .map(|inventory| status(connection, inventory))
        .collect::<Result<_, _>>()
        .map_err(|error| api_failure(&error))?;
    if args.catalogs.is_given() {
        let catalogs = args.catalogs.open_required(&args.sources.open()?)?;
        for status in &mut statuses {
            status.newer = newer(&status.inventory.content, &catalogs)?;
        }
    }
    if statuses.is_empty() && (args.output == TextFormat::Text || args.name.is_some()) {
        return nothing(args);
    }
    output::print_as(args.output, || text(&statuses), || value(&statuses))
}

/// Tells that nothing is installed; a name that nothing has may be mistyped.
fn nothing(args: &StatusArgs) -> Result<(), Failure> {
    let place = match &args.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in any namespace".to_owned(),
    };
    let Some(name) = &args.name else {
        output::tell(&format!("nothing is installed {place}"));
        return Ok(());
    };
    let message = format!("no install {place} is called {name}");
    let hint = "`kubectl olm status` lists what is installed";
    Err(Failure::new(Class::ClusterRefused, message).with_hint(hint))
}

/// Looks at the objects of an install.
fn status(connection: &Connection, inventory: Inventory) -> Result<Status, ApiError> {
    let served = connection.resources()?;
    let members: Vec<_> = inventory.objects.iter().collect();
    let resources: Vec<_> = members
        .iter()
        .map(|(key, member)| (*key, survey::resource_of(&served, key, member)))
        .collect();
    let labelled = live::labelled(connection, &inventory.install, resources.clone());
    let looked = concurrently(&resources, AT_ONCE, |(key, resource)| {
        let is_quiet = health::is_ready_when_written(&key.group, &key.kind);
        if is_quiet && labelled.contains_key(*key) {
            return Ok(None);
        }
        live::get(connection, resource, key).map(Some)
    });
    let (mut unhealthy, mut drifted) = (BTreeMap::new(), BTreeMap::new());
    let mut unchecked = BTreeMap::new();
    for ((key, member), looked) in members.into_iter().zip(looked) {
        let live = match looked {
            Ok(Some(None)) => {
                let reason = if member.uid.is_some() {
                    drifted.insert(key.clone(), "missing");
                    "it is not there any more"
                } else {
                    "it is not there yet"
                };
                unhealthy.insert(key.clone(), reason.to_owned());
                continue;
            }
            Ok(Some(Some(live))) => Some(live),
            Ok(None) => labelled.get(key).cloned(),
            Err(error) => {
                unchecked.insert(key.clone(), reason(&error));
                continue;
            }
        };
        let Some(live) = live else {
            continue;
        };
        if let Some(how) = drift(&inventory.state, member, &live) {
            drifted.insert(key.clone(), how);
        }
        let reason = match health::of(&live) {
            Health::Current => continue,
            Health::Terminating => "it is being deleted".to_owned(),
            Health::InProgress(reason) | Health::Failed(reason) => reason,
        };
        unhealthy.insert(key.clone(), reason);
    }
    Ok(Status {
        inventory,
        unhealthy,
        unchecked,
        drifted,
        newer: None,
    })
}

/// How a live object differs from what was applied. Of one that a run has not said it made, nobody knows; nor who has changed
/// what a run that did not finish may have changed itself.
fn drift(state: &State, member: &Member, live: &Value) -> Option<&'static str> {
    let known = member.uid.as_deref()?;
    if metadata::uid(live) != Some(known) {
        return Some("replaced");
    }
    let is_changed = *state == State::Done
        && member.hold == Hold::Owned
        && managed_fields::ours(live) != member.managed;
    is_changed.then_some("changed")
}

impl Status {
    fn state(&self) -> String {
        match &self.inventory.state {
            State::Done => "installed".to_owned(),
            State::Removed => "removed, not all".to_owned(),
            State::Running { what, .. } => format!("{what} unfinished"),
        }
    }

    /// Whether a cleanup has begun.
    fn is_going(&self) -> bool {
        match &self.inventory.state {
            State::Done => false,
            State::Removed => true,
            State::Running { what, .. } => what == "cleanup",
        }
    }

    fn health(&self) -> String {
        if self.is_going() {
            return "-".to_owned();
        }
        match self.unhealthy.len() {
            0 if self.unchecked.is_empty() => "ready".to_owned(),
            0 => format!("{} not checked", objects(self.unchecked.len())),
            count => format!("{} not ready", objects(count)),
        }
    }

    fn drift(&self) -> String {
        match self.drifted.len() {
            0 if !self.unchecked.is_empty() => "unknown".to_owned(),
            0 => "none".to_owned(),
            count => objects(count),
        }
    }
}

fn objects(count: usize) -> String {
    match count {
        1 => "1 object".to_owned(),
        count => format!("{count} objects"),
    }
}

/// Why an object was not read, without its name, which stands before it.
fn reason(error: &ApiError) -> String {
    match error {
        ApiError::Refused(refusal) => refusal.message.clone(),
        error => error.to_string(),
    }
}

fn text(statuses: &[Status]) -> String {
    let mut table = Table::new(
        [
            "NAMESPACE",
            "NAME",
            "PACKAGE",
            "VERSION",
            "STATE",
            "HEALTH",
            "DRIFT",
        ],
        4,
    );
    for status in statuses {
        let inventory = &status.inventory;
        table.push([
            inventory.install.namespace.clone(),
            inventory.install.name.clone(),
            inventory.content.package.clone(),
            inventory.content.version.clone(),
            status.state(),
            status.health(),
            status.drift(),
        ]);
    }
    let mut text = table.text("", terminal_width());
    for status in statuses {
        let name = &status.inventory.install;
        if let State::Running { what, who } = &status.inventory.state {
            text.push_str(&format!(
                "\n{name}: the {what} by {who} did not finish; run it again to continue"
            ));
        }
        if status.inventory.state == State::Removed {
            let kept = status.inventory.objects.keys().map(ObjectKey::to_string);
            let kept: Vec<_> = kept.collect();
            text.push_str(&format!("\n{name}: cleanup kept {}", kept.join(", ")));
        }
        if let Some(newer) = &status.newer {
            text.push_str(&format!("\n{name}: it can be upgraded to {newer}"));
        }
        for (key, reason) in &status.unhealthy {
            text.push_str(&format!("\n{name}: {key}: {reason}"));
        }
        for (key, reason) in &status.unchecked {
            text.push_str(&format!("\n{name}: {key}: not checked: {reason}"));
        }
        for (key, how) in &status.drifted {
            text.push_str(&format!("\n{name}: {key}: {how} since it was applied"));
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn value(statuses: &[Status]) -> Value {
    let one = |status: &Status| {
        let inventory = &status.inventory;
        let told = |objects: &BTreeMap<ObjectKey, String>| -> Vec<_> {
            let told = objects.iter();
            told.map(|(key, reason)| json!({"object": key.to_string(), "namespace": key.namespace, "reason": reason}))
                .collect()
        };
        let drifted: BTreeMap<_, _> = status
            .drifted
            .iter()
            .map(|(key, how)| (key.clone(), (*how).to_owned()))
            .collect();
        let by = match &inventory.state {
            State::Done | State::Removed => Value::Null,
            State::Running { what, who } => json!({"what": what, "who": who}),
        };
        json!({
            "namespace": inventory.install.namespace,
            "name": inventory.install.name,
            "package": inventory.content.package,
            "bundle": inventory.content.bundle,
            "version": inventory.content.version,
            "image": inventory.content.image,
            "catalog": inventory.content.catalog,
            "generation": inventory.generation,
            "state": status.state(),
            "health": status.health(),
            "newer": status.newer,
            "unfinished": by,
            "removed": inventory.state == State::Removed,
            "requiredBy": inventory.required_by.iter().map(InstallName::path).collect::<Vec<_>>(),
            "objects": inventory.objects.len(),
            "notReady": told(&status.unhealthy),
            "notChecked": told(&status.unchecked),
            "drift": told(&drifted),
        })
    };
    json!({"installs": statuses.iter().map(one).collect::<Vec<_>>()})
}
