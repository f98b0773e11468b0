//! A change as text: what is there, what would be, Secrets masked, and without what nobody asked for.
//!
//! The masks are kubectl's (k8s.io/kubectl `pkg/cmd/diff/diff.go`, `Masker`), for more than `data`. Text is given as it
//! is; whoever prints it makes harmless what could steer a terminal.
//!
//! | File | What it does |
//! | --- | --- |
//! | `noise.rs` | the list of what is left out, and leaves it out |
//! | `mask.rs` | hides the data of Secrets |
//! | `fields.rs` | which fields differ |

mod fields;
mod mask;
pub mod noise;

use std::fmt;

use serde_json::Value;
use similar::TextDiff;

use crate::manifest::{ObjectKey, yaml};

/// An object before and after. It may be a Secret, so `Debug` shows nothing of it but its name.
#[derive(Clone, PartialEq)]
pub struct Pair {
    /// Its identity.
    pub key: ObjectKey,
    /// Before; nothing when it is not there.
    pub before: Option<Value>,
    /// After; nothing when it goes.
    pub after: Option<Value>,
    /// What of it was asked for: no noise.
    pub asked: Asked,
}

/// What of an object was asked for. It may be a Secret, so `Debug` shows nothing of it.
#[derive(Clone, PartialEq)]
pub enum Asked {
    /// All there is: both sides come from a renderer, and none from a server that adds to it.
    Everything,
    /// This.
    Object(Value),
    /// None of it, as when it goes.
    Nothing,
}

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It is made.
    Create,
    /// It becomes different.
    Update,
    /// It goes.
    Delete,
}

/// An object's difference, ready to be shown: no side has noise or data of Secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The object.
    pub key: ObjectKey,
    /// Before; nothing when it is not there.
    pub before: Option<Value>,
    /// After; nothing when it goes.
    pub after: Option<Value>,
    /// The fields that differ, as JSON pointers; empty for what comes or goes as a whole. Items of lists are compared by
    /// their position.
    pub fields: Vec<String>,
}

/// The difference of a pair; nothing when only noise differs.
#[must_use]
pub fn difference(pair: &Pair) -> Option<Difference> {
    if pair.before == pair.after {
        return None;
    }
    let (mut before, mut after) = (pair.before.clone(), pair.after.clone());
    noise::remove(before.as_mut(), after.as_mut(), &pair.key, &pair.asked);
    if before == after {
        return None;
    }
    mask::mask(before.as_mut(), after.as_mut(), &pair.key);
    let fields = match (&before, &after) {
        (Some(before), Some(after)) => fields::changed(before, after),
        _ => vec![],
    };
    Some(Difference {
        key: pair.key.clone(),
        before,
        after,
        fields,
    })
}

/// As a unified diff, three lines around each change, below the lines `--- before` and `+++ after`.
#[must_use]
pub fn unified(difference: &Difference) -> String {
    let (before, after) = (
        text(difference.before.as_ref()),
        text(difference.after.as_ref()),
    );
    // Its search is bounded by itself: a deadline would make the same input give different texts.
    let lines = TextDiff::from_lines(&before, &after);
    lines
        .unified_diff()
        .header("before", "after")
        .missing_newline_hint(false)
        .to_string()
}

/// A side of a difference as YAML; nothing of what is not there.
#[must_use]
pub fn text(side: Option<&Value>) -> String {
    let mut text = String::new();
    if let Some(side) = side {
        yaml::write(side, &mut text);
    }
    text
}

impl Difference {
    /// What happens to the object.
    #[must_use]
    pub fn change(&self) -> Change {
        match (&self.before, &self.after) {
            (None, _) => Change::Create,
            (_, None) => Change::Delete,
            _ => Change::Update,
        }
    }
}

impl Change {
    /// The word for it: `create`, `update` or `delete`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pair = f.debug_struct("Pair");
        pair.field("key", &self.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "Everything",
            Self::Object(_) => "Object(..)",
            Self::Nothing => "Nothing",
        })
    }
}
