//! What went wrong, in words and as an exit code. Nothing else in the program prints errors.

use std::{error::Error, fmt::Write, process::ExitCode};

use super::{
    folder::FolderError,
    text::{printable, problem_lines},
};
use crate::{
    problem::Problem,
    resolve::Refusal,
    source::{SourceError, registry::ErrorClass},
};

/// Why a command did not do what it was asked for. The number of each is its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// The command line makes no sense; nothing was read or written.
    Usage = 2,
    /// The input was refused; nothing was changed.
    Refused = 3,
    /// A registry or the network failed; nothing was changed.
    Network = 4,
    /// The cluster refused it before the first write; nothing was changed.
    ClusterRefused = 5,
    /// Some of it was done; what is to be known to go on is written down.
    Partial = 6,
    /// It was done, and is not ready or not gone in time.
    NotReady = 7,
    /// The output could not be written; what was there before is whole.
    Output = 8,
    /// The program has a bug.
    Bug = 70,
    /// The user interrupted it.
    Interrupted = 130,
}

impl Class {
    /// That of a run in which all these failed: trying again helps only when nothing but the network did.
    pub(super) fn worst(classes: impl IntoIterator<Item = Self>) -> Option<Self> {
        let classes = classes.into_iter();
        classes.max_by_key(|class| (*class != Self::Network, *class))
    }
}

/// A failure: its class, what it is about and what to do next.
#[derive(Debug)]
pub(super) struct Failure {
    class: Class,
    problems: Vec<Problem>,
    message: String,
    /// What stands between the message and the hint.
    details: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure with a message of its own.
    pub(super) fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            problems: vec![],
            message: message.into(),
            details: vec![],
            hint: None,
        }
    }

    /// A failure for an error and the causes behind it.
    pub(super) fn of(class: Class, error: &dyn Error) -> Self {
        let mut failure = Self::new(class, error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            failure.details.push(format!("caused by: {error}"));
            cause = error.source();
        }
        failure
    }

    /// Content that is refused for all these problems; `message` says what was not done.
    pub(super) fn refused(problems: Vec<Problem>, message: impl Into<String>) -> Self {
        Self {
            problems,
            ..Self::new(Class::Refused, message)
        }
    }

    /// The same failure, with problems that are told before it.
    #[must_use]
    pub(super) fn with_problems(mut self, problems: Vec<Problem>) -> Self {
        self.problems.extend(problems);
        self
    }

    /// The same failure, with what to do next.
    #[must_use]
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same failure, with what to do next when it does not say so itself.
    #[must_use]
    pub(super) fn or_hint(mut self, hint: &str) -> Self {
        self.hint.get_or_insert_with(|| hint.to_owned());
        self
    }

    /// The same failure, with one more line between its message and what to do next.
    #[must_use]
    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// What went wrong, in one line.
    #[must_use]
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What went wrong and why, in one line.
    #[must_use]
    pub(super) fn in_one_line(&self) -> String {
        let causes = self.details.iter().map(|detail| {
            let cause = detail.trim_start();
            cause.strip_prefix("caused by: ").unwrap_or(cause)
        });
        let parts: Vec<_> = [self.message.as_str()].into_iter().chain(causes).collect();
        parts.join(": ")
    }

    /// What to do next.
    #[must_use]
    pub(super) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Puts a message in front; the one that was there becomes its cause.
    pub(super) fn prefix(&mut self, message: impl Into<String>) {
        let cause = std::mem::replace(&mut self.message, message.into());
        self.details.insert(0, format!("caused by: {cause}"));
    }

    /// The exit code.
    #[must_use]
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.class as u8)
    }

    /// The problems that content is refused for; none when that is not why.
    pub(super) fn into_problems(self) -> Result<Vec<Problem>, Self> {
        if self.problems.is_empty() {
            Err(self)
        } else {
            Ok(self.problems)
        }
    }

    /// What kind of failure it is.
    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// The lines for standard error, each behind the prefix.
    #[must_use]
    pub(super) fn text(&self, prefix: &str) -> String {
        let mut text = problem_lines(&self.problems, prefix);
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{}", printable(&format!("{prefix}{words}")));
        };
        line(format_args!("error: {}", self.message));
        for detail in &self.details {
            line(format_args!("{detail}"));
        }
        if let Some(hint) = &self.hint {
            line(format_args!("hint: {hint}"));
        }
        text
    }
}

/// A folder that is not ours to write is refused; a disk that fails leaves the old content whole.
impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let class = match &error {
            FolderError::Foreign { .. } | FolderError::List { .. } | FolderError::Name { .. } => {
                Class::Refused
            }
            FolderError::Busy { .. }
            | FolderError::NotWritten { .. }
            | FolderError::NotPutBack { .. } => Class::Output,
        };
        let failure = Self::of(class, &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// The reasons stand below the error, each further in than what it explains.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let mut failure = Self::refused(refusal.problems, refusal.message);
        let mut pending: Vec<_> = refusal
            .reasons
            .into_iter()
            .rev()
            .map(|reason| (1, reason))
            .collect();
        while let Some((depth, reason)) = pending.pop() {
            failure
                .details
                .push(format!("{}{}", "  ".repeat(depth), reason.sentence));
            pending.extend(
                reason
                    .because
                    .into_iter()
                    .rev()
                    .map(|reason| (depth + 1, reason)),
            );
        }
        failure.hint = refusal.hint;
        failure
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let class = match error.class() {
            ErrorClass::Usage => Class::Usage,
            ErrorClass::Refused => Class::Refused,
            ErrorClass::Network => Class::Network,
        };
        let failure = Self::of(class, &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
