//! What a new version of a CustomResourceDefinition would break, as OLM v1 checks it before it installs or upgrades.
//!
//! | File | What it does |
//! | --- | --- |
//! | `definition.rs` | a definition in the form that Go reads, and its versions |
//! | `paths.rs` | every schema within a schema, by its path |
//! | `rules.rs` | what may not change in one schema |
//! | `findings.rs` | which schemas are compared: each version with itself, and served versions with each other |
//! | `words.rs` | findings as problems for a person |
//! | `refusals.rs` | what a server refuses anyway, with the way out |
//! | `objects.rs` | custom resources that a new definition would refuse |
//!
//! Reproduces operator-controller `rukpak/preflights/crdupgradesafety/crdupgradesafety.go` on top of sigs.k8s.io/crdify
//! (`pkg/validations`, `pkg/validators`): conversion by a webhook is trusted, descriptions are free, and values may be added
//! to enums. What is wrong is the same set of checks, versions and paths. The words are our own, and what follows from a
//! field being gone is told once, for the field. Definitions of `apiextensions.k8s.io/v1beta1` are not compared.

mod definition;
mod findings;
mod objects;
mod paths;
mod refusals;
mod rules;
mod words;

use serde_json::Value;

use self::definition::Definition;
pub use self::{
    findings::{Finding, OF_SERVERS, findings},
    objects::{Refused, against_objects, refused},
    refusals::refusals,
};
use crate::problem::Problem;

/// What a new version of a definition breaks, given the live one with its status; nothing when it is safe. The rule of
/// each problem is what crdify calls the check.
#[must_use]
pub fn check(live: &Value, new: &Value) -> Vec<Problem> {
    let (Some(live), Some(new)) = (Definition::read(live), Definition::read(new)) else {
        return vec![];
    };
    match (live, new) {
        (Ok(live), Ok(new)) => words::problems(&live, &new, &findings::between(&live, &new)),
        (Err(problem), _) | (_, Err(problem)) => vec![problem],
    }
}
