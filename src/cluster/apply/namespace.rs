//! Makes the namespace of an install, before there can be an inventory in it.

use serde_json::Value;

use super::{
    super::{
        answer::{ApiError, RefusalKind},
        connection::Connection,
        inventory::Hold,
        live,
        owner::{self, Owner},
        plan::{Action, Change, Plan},
    },
    write,
};

/// Makes the namespace of an install, and notes that in the plan; one that somebody else has made meanwhile is used.
///
/// # Errors
/// When the server does not make it.
pub fn make_namespace(
    connection: &Connection,
    plan: &mut Plan,
    namespace: &str,
) -> Result<(), ApiError> {
    let is_it = |change: &&mut Change| change.key.is_namespace() && change.key.name == namespace;
    let Some(change) = plan.changes.iter_mut().find(is_it) else {
        return Ok(());
    };
    let made = match connection.send(&write::creating(change)) {
        Ok(answer) if answer.code == 201 => Some(answer.body),
        Err(error) if error.kind() != Some(RefusalKind::Changed) => return Err(error),
        // Perhaps another install of this run has made it.
        _ => None,
    };
    if let Some(made) = made {
        change.before = Some(made);
        change.action = Action::Made;
        return Ok(());
    }
    let live = live::get(connection, &change.resource, &change.key)?;
    match live {
        Some(live) if write::is_made(change, &live) => {
            change.before = Some(live);
            change.action = Action::Made;
        }
        live => use_namespace(change, live.unwrap_or_default()),
    }
    Ok(())
}

/// Notes in a plan that a namespace is somebody else's.
fn use_namespace(change: &mut Change, live: Value) {
    change.hold = match owner::of(&live) {
        Owner::Install(_) => Hold::Shared,
        _ => Hold::Used,
    };
    change.before = Some(live);
    change.action = Action::Use;
}
