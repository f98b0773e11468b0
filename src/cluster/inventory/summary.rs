//! What the annotations of an inventory's first Secret say, to people who look at it with kubectl: what is done is decided by
//! the contents alone.

use serde_json::{Map, Value};

use super::{InstallName, Inventory, State};

const PACKAGE: &str = "kubectl-olm/package";
const BUNDLE: &str = "kubectl-olm/bundle";
const VERSION: &str = "kubectl-olm/version";
const STATE: &str = "kubectl-olm/state";
const RUN: &str = "kubectl-olm/run";
const BY: &str = "kubectl-olm/run-by";
const GENERATION: &str = "kubectl-olm/generation";
const OBJECTS: &str = "kubectl-olm/objects";
const REQUIRED_BY: &str = "kubectl-olm/required-by";

/// Installs in [`REQUIRED_BY`]. All annotations together may have 256 KiB.
const MOST_REQUIRING: usize = 200;

/// The annotations that say it.
pub(super) fn annotations(inventory: &Inventory) -> Map<String, Value> {
    let (state, what, who) = match &inventory.state {
        State::Done => ("done", "", ""),
        State::Removed => ("removed", "", ""),
        State::Running { what, who } => ("running", what.as_str(), who.as_str()),
    };
    let required_by = inventory.required_by.iter().map(InstallName::path);
    let required_by: Vec<_> = required_by.take(MOST_REQUIRING).collect();
    let said = [
        (PACKAGE, inventory.content.package.clone()),
        (BUNDLE, inventory.content.bundle.clone()),
        (VERSION, inventory.content.version.clone()),
        (STATE, state.to_owned()),
        (RUN, what.to_owned()),
        (BY, who.to_owned()),
        (GENERATION, inventory.generation.to_string()),
        (OBJECTS, inventory.objects.len().to_string()),
        (REQUIRED_BY, required_by.join(",")),
    ];
    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(key, text)| (key.to_owned(), Value::String(text)))
        .collect()
}
