//! What is wrong with content: values that are collected, sorted and shown together, never one at a time.

use std::fmt;

/// Whether a problem refuses the content or is only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The content is refused.
    Error,
    /// The content is used, and the user is told.
    Warning,
    /// Nothing is wrong; the user is told what was chosen.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// Where something stands in content. Places sort by file, then by line.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, or what else names the place; empty when it is the whole.
    pub path: String,
    /// The line, from 1; 0 when it is not known or the place is the whole file.
    pub line: usize,
}

impl From<&str> for Place {
    fn from(path: &str) -> Self {
        let path = path.to_owned();
        Self { path, line: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.path),
            line => write!(f, "{}:{line}", self.path),
        }
    }
}

/// One problem. The order of the fields is the order in which problems are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Errors come before warnings.
    pub severity: Severity,
    /// Where it stands.
    pub place: Place,
    /// The object it is about, as kubectl names it (`deployment.apps/manager`); empty when there is none.
    pub object: String,
    /// What is wrong, why, and what to do: lower case, no full stop.
    pub message: String,
    /// The rule it breaks, a word that can be looked up in the documentation.
    pub rule: &'static str,
}

impl Problem {
    /// An error about the whole; [`Problem::at`] and [`Problem::on`] say where.
    pub fn error(rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            place: Place::default(),
            object: String::new(),
            message: message.into(),
            rule,
        }
    }

    /// A warning about the whole.
    pub fn warning(rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(rule, message)
        }
    }

    /// A note about the whole.
    pub fn note(rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            ..Self::error(rule, message)
        }
    }

    /// Whether it refuses the content.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The same problem, with the place where it stands.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>) -> Self {
        self.place = place.into();
        self
    }

    /// The same problem, with the object it is about.
    #[must_use]
    pub fn on(mut self, object: impl fmt::Display) -> Self {
        self.object = object.to_string();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: ", self.severity, self.rule)?;
        if !self.place.path.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.object.is_empty() {
            write!(f, "{}: ", self.object)?;
        }
        f.write_str(&self.message)
    }
}
