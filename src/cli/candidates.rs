//! What completion offers for values that only look like free text.

use clap_complete::{ArgValueCandidates, CompletionCandidate};

/// The words that completion offers for the values of a flag.
pub(super) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect())
}
