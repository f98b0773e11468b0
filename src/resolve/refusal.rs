//! Why nothing was chosen, as sentences.

use std::fmt;

use crate::problem::Problem;

/// Why nothing was chosen: a short tree of sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What could not be done.
    pub message: String,
    /// Why not, each reason with the reasons behind it.
    pub reasons: Vec<Reason>,
    /// What to do about it.
    pub hint: Option<String>,
    /// What is wrong with the catalogs, where that is the reason.
    pub problems: Vec<Problem>,
}

/// One sentence, and the sentences that explain it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// Lower case, no full stop.
    pub sentence: String,
    /// Why it is so.
    pub because: Vec<Reason>,
}

impl From<String> for Reason {
    fn from(sentence: String) -> Self {
        let because = vec![];
        Self { sentence, because }
    }
}

/// The sentence, and in brackets those that explain it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        for (position, reason) in self.because.iter().enumerate() {
            write!(f, "{}{reason}", if position == 0 { " (" } else { "; " })?;
        }
        f.write_str(if self.because.is_empty() { "" } else { ")" })
    }
}

/// Catalogs that cannot be read.
impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        let message = "the catalogs cannot be read as far as is needed".to_owned();
        Self {
            message,
            problems,
            ..Self::default()
        }
    }
}

/// Several refusals as one.
pub(super) fn together(refusals: Vec<Refusal>) -> Option<Refusal> {
    let mut refusals = refusals.into_iter();
    let first = refusals.next()?;
    let others: Vec<_> = refusals.collect();
    if others.is_empty() {
        return Some(first);
    }
    let all = [first].into_iter().chain(others);
    let mut joined = Refusal {
        message: "some of the packages cannot be chosen".to_owned(),
        ..Refusal::default()
    };
    for refusal in all {
        let hint = refusal.hint.map(Reason::from);
        joined.problems.extend(refusal.problems);
        joined.reasons.push(Reason {
            sentence: refusal.message,
            because: refusal.reasons.into_iter().chain(hint).collect(),
        });
    }
    Some(joined)
}

/// One refusal for what each catalog says: the sentence itself when there is only one.
pub(super) fn refuse(package: &str, sentences: Vec<String>, hint: Option<String>) -> Refusal {
    let (message, reasons) = match <[_; 1]>::try_from(sentences) {
        Ok([sentence]) => (sentence, vec![]),
        Err(sentences) => (
            format!("no catalog has a bundle of package {package} that can be chosen"),
            sentences,
        ),
    };
    Refusal {
        message,
        reasons: reasons.into_iter().map(Reason::from).collect(),
        hint,
        problems: vec![],
    }
}
