//! What new versions of definitions would break, and why the server does not take some.

use serde_json::Value;

use super::{
    super::{
        answer::RefusalKind,
        connection::Connection,
        desired::Desired,
        plan::{Change, Observed, Plan},
    },
    Safety,
    removals::{custom_resources, some_custom_resources},
};
use crate::{problem::Problem, review::crd_safety};

/// The rule of what a new definition would break.
pub const SAFETY: &str = "crd-upgrade-safety";

/// The kind of definitions.
const DEFINITION: &str = "CustomResourceDefinition";
/// The checks that a server makes too, and why it refuses a definition then.
const OF_SERVERS: [&str; 2] = ["scope", "storedVersionRemoval"];

/// A definition that the server does not take in the place of the one that is there.
pub(super) struct RefusedDefinition {
    pub(super) live: Value,
    pub(super) asked: Value,
    /// What the server says.
    pub(super) problems: Vec<Problem>,
}

/// The definition that is there, when the server does not take another one in its place.
pub(super) fn refused_definition(desired: &Desired, observed: &Observed) -> Option<Value> {
    match observed {
        Observed::Refused {
            live: Some(live),
            error,
            ..
        } if desired.key.kind == DEFINITION
            && matches!(
                error.kind(),
                Some(RefusalKind::Invalid | RefusalKind::Immutable)
            ) =>
        {
            Some(live.clone())
        }
        _ => None,
    }
}

/// Adds to a plan what new versions of definitions would break, and why the server does not take some.
pub(super) fn check_definitions(
    connection: &Connection,
    plan: &mut Plan,
    refused: Vec<RefusedDefinition>,
    safety: Safety,
) {
    let is_definition = |change: &&Change| change.key.kind == DEFINITION && change.action.writes();
    let (mut broken, mut told) = (vec![], vec![]);
    if safety == Safety::Strict {
        for change in plan.changes.iter().filter(is_definition) {
            if let Some(live) = &change.before {
                broken.extend(breaks(connection, live, &change.asked));
            }
        }
    }
    for definition in refused {
        let (live, asked) = (&definition.live, &definition.asked);
        let objects = custom_resources(connection, live).map(|(_, objects)| objects.len());
        let known = crd_safety::refusals(live, asked, objects.ok());
        if safety == Safety::Strict {
            let mut more = breaks(connection, live, asked);
            more.retain(|problem| known.is_empty() || !OF_SERVERS.contains(&problem.rule));
            broken.extend(more);
        }
        told.extend(match known.is_empty() {
            true => definition.problems,
            false => known,
        });
    }
    let of_rule = broken.into_iter().map(|problem| Problem {
        message: format!("{} ({})", problem.message, problem.rule),
        rule: SAFETY,
        ..problem
    });
    plan.problems.extend(of_rule.chain(told));
}

/// What a new definition breaks of a live one, and of what is stored by it.
fn breaks(connection: &Connection, live: &Value, asked: &Value) -> Vec<Problem> {
    let mut found = crd_safety::check(live, asked);
    if let Ok(objects) = some_custom_resources(connection, live) {
        found.extend(crd_safety::against_objects(asked, &objects));
    }
    found
}
