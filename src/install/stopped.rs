//! Why one install or catalog cannot be, while others go on.

use crate::problem::Problem;

/// What is wrong with one install or catalog, and the way on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// What to do, where one thing helps.
    pub hint: Option<String>,
}

impl Stopped {
    /// One thing that is wrong, with the way on.
    pub(super) fn because(problem: Problem, hint: impl Into<String>) -> Self {
        Self {
            problems: vec![problem],
            hint: Some(hint.into()),
        }
    }
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        vec![problem].into()
    }
}

impl From<Vec<Problem>> for Stopped {
    fn from(problems: Vec<Problem>) -> Self {
        Self {
            problems,
            hint: None,
        }
    }
}
