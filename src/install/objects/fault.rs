//! Something wrong with one object, before it is known on which line it stands.

use crate::problem::{Place, Problem};

/// What is wrong with a field of an object. Of a Secret it holds no value.
pub(super) struct Fault {
    /// The field, as findings write it, or the one that should be there.
    pub(super) path: String,
    problem: Box<Problem>,
}

impl Fault {
    pub(super) fn error(rule: &'static str, path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: Box::new(Problem::error(rule, message)),
        }
    }

    pub(super) fn warning(rule: &'static str, path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: Box::new(Problem::warning(rule, message)),
        }
    }

    /// Whether the object is refused for it.
    pub(super) fn is_error(&self) -> bool {
        self.problem.is_error()
    }

    /// Whether it breaks this rule.
    pub(super) fn breaks(&self, rule: &str) -> bool {
        self.problem.rule == rule
    }

    /// The problem that it is, at a place and on an object.
    pub(super) fn into_problem(self, place: Place, object: &str) -> Problem {
        (*self.problem).at(place).on(object)
    }
}
