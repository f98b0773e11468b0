//! What a requirement tests a bundle for (OLM's `cache/predicates.go`), and how it is said in words.
//!
//! A compound constraint is one predicate on one bundle: `all` of two packages is never met, since no bundle belongs to
//! both. Requirements that different bundles may meet are separate requirements.

use super::{cel, facts::Facts};
use crate::{catalog::Gvk, versions::Range};

/// A condition on one bundle.
#[derive(Debug)]
pub(super) enum Predicate {
    /// It provides an API.
    Api(Gvk),
    /// It is of a package, in a version inside a range.
    Package {
        /// The package.
        name: String,
        /// The range.
        range: Range,
    },
    /// It has a label.
    Label(String),
    /// It meets all of these.
    All(Vec<Predicate>),
    /// It meets one of these.
    Any(Vec<Predicate>),
    /// It meets none of these.
    Not(Vec<Predicate>),
    /// A rule holds for its properties.
    Cel(cel::Rule),
}

impl Predicate {
    /// Whether it holds for a bundle. `work` goes down by what the test costs.
    ///
    /// # Errors
    /// When no work is left for a test.
    pub(super) fn test(&self, facts: &Facts, work: &mut cel::Work) -> Result<bool, cel::Exhausted> {
        work.spend(1)?;
        Ok(match self {
            Self::Api(api) => facts.apis.contains(api),
            Self::Package { name, range } => facts.package == *name && facts.is_within(range),
            Self::Label(label) => facts.has_label(label),
            Self::All(parts) => !holds_for_any(parts, facts, work, false)?,
            Self::Any(parts) => holds_for_any(parts, facts, work, true)?,
            Self::Not(parts) => !holds_for_any(parts, facts, work, true)?,
            Self::Cel(rule) => rule.holds(facts.properties(), work)?,
        })
    }

    /// What is looked for, as the object of "needs".
    pub(super) fn words(&self) -> String {
        match self {
            Self::Api(api) => api.to_string(),
            Self::Package { name, range } => format!("package {name} in version {range}"),
            _ => format!("a bundle that {}", self.condition()),
        }
    }

    /// What is said of a bundle, as the rest of a sentence about it.
    fn condition(&self) -> String {
        match self {
            Self::Api(api) => format!("provides {api}"),
            Self::Package { name, range } => format!("is of package {name} in version {range}"),
            Self::Label(label) => format!("has label {label:?}"),
            Self::All(parts) if parts.is_empty() => "is any".to_owned(),
            Self::All(parts) => joined(parts, " and "),
            Self::Any(parts) if parts.is_empty() => "meets one of no conditions".to_owned(),
            Self::Any(parts) => joined(parts, " or "),
            Self::Not(parts) if parts.is_empty() => "is any".to_owned(),
            Self::Not(parts) => format!("is none that {}", joined(parts, " or ")),
            Self::Cel(rule) => format!("meets the rule {rule}"),
        }
    }
}

/// Whether a part tests as wanted.
fn holds_for_any(
    parts: &[Predicate],
    facts: &Facts,
    work: &mut cel::Work,
    wanted: bool,
) -> Result<bool, cel::Exhausted> {
    for part in parts {
        if part.test(facts, work)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

fn joined(parts: &[Predicate], word: &str) -> String {
    let conditions = parts.iter().map(|part| match part {
        Predicate::All(_) | Predicate::Any(_) | Predicate::Not(_) => {
            format!("({})", part.condition())
        }
        _ => part.condition(),
    });
    conditions.collect::<Vec<_>>().join(word)
}
