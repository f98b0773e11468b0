//! What new versions of definitions would break, and why the server does not take some.

use serde_json::Value;

use super::{
    super::{
        answer::{ApiError, RefusalKind},
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
/// The fields that a server names when a definition's scope changes, or a version goes in which objects are stored.
const OF_REFUSALS: [&str; 2] = ["spec.scope", "status.storedVersions"];

/// A definition that the server does not take in the place of the one that is there.
pub(super) struct RefusedDefinition {
    live: Value,
    asked: Value,
    /// The fields that the server names.
    fields: Vec<String>,
    /// What it says.
    problems: Vec<Problem>,
}

impl RefusedDefinition {
    /// The definition, if it is one, and is refused as it is.
    pub(super) fn of(desired: &Desired, observed: &Observed) -> Option<Self> {
        let Observed::Refused {
            live: Some(live),
            error: ApiError::Refused(refusal),
            ..
        } = observed
        else {
            return None;
        };
        let is_refused = matches!(refusal.kind, RefusalKind::Invalid | RefusalKind::Immutable);
        let fields = refusal.causes.iter().map(|cause| cause.field.clone());
        (desired.key.is_definition() && is_refused).then(|| Self {
            live: live.clone(),
            asked: desired.manifest.clone().into_value(),
            fields: fields.collect(),
            problems: vec![],
        })
    }

    /// With what the server says.
    pub(super) fn with(self, problems: Vec<Problem>) -> Self {
        Self { problems, ..self }
    }

    /// What is told of it: where that is known, how to get out, and what the server says of anything else.
    fn told(self, connection: &Connection) -> Vec<Problem> {
        let refusals = |objects| crd_safety::refusals(&self.live, &self.asked, objects);
        if !self.is_explained() {
            return self.problems;
        }
        let objects = custom_resources(connection, &self.live);
        let mut told = refusals(objects.ok().map(|(_, objects)| objects.len()));
        let is_else = |field: &String| !OF_REFUSALS.iter().any(|known| field.starts_with(known));
        if self.fields.iter().any(is_else) {
            told.extend(self.problems);
        }
        told
    }

    fn is_explained(&self) -> bool {
        !crd_safety::refusals(&self.live, &self.asked, None).is_empty()
    }
}

/// Adds to a plan what new versions of definitions would break, and why the server does not take some.
pub(super) fn check_definitions(
    connection: &Connection,
    plan: &mut Plan,
    refused: Vec<RefusedDefinition>,
    safety: Safety,
) {
    let mut broken = vec![];
    if safety == Safety::Strict {
        let is_new = |change: &&Change| change.key.is_definition() && change.action.writes();
        for change in plan.changes.iter().filter(is_new) {
            if let Some(live) = &change.before {
                broken.extend(breaks(connection, (live, &change.asked), &[]));
            }
        }
        for definition in &refused {
            let told: &[_] = match definition.is_explained() {
                true => &crd_safety::OF_SERVERS,
                false => &[],
            };
            let versions = (&definition.live, &definition.asked);
            broken.extend(breaks(connection, versions, told));
        }
    }
    let of_rule = broken.into_iter().map(|problem| Problem {
        message: format!("{} ({})", problem.message, problem.rule),
        rule: SAFETY,
        ..problem
    });
    let told = refused
        .into_iter()
        .flat_map(|definition| definition.told(connection));
    plan.problems.extend(of_rule.chain(told));
}

/// What a new definition breaks of a live one, and of what is stored by it, but for what is told otherwise.
fn breaks(connection: &Connection, (live, asked): (&Value, &Value), told: &[&str]) -> Vec<Problem> {
    let mut found = crd_safety::check(live, asked);
    found.retain(|problem| !told.contains(&problem.rule));
    if let Ok(objects) = some_custom_resources(connection, live) {
        found.extend(crd_safety::against_objects(asked, &objects));
        if let (true, Some(first)) = (objects.is_empty(), found.first()) {
            let message = "there are no custom resources that this could break";
            let note = Problem::note("existing-objects", message).on(&first.object);
            found.push(note);
        }
    }
    found
}
