//! Words for a person: problems as lines, and text that came from content made harmless.

use std::{collections::BTreeSet, fmt::Write};

use crate::problem::Problem;

/// As many problems are shown.
const SHOWN_PROBLEMS: usize = 1_000;

/// A line for each problem, the worst first, each once.
pub(super) fn problem_lines(problems: &[Problem], prefix: &str) -> String {
    let sorted: BTreeSet<_> = problems.iter().collect();
    let mut text = String::new();
    for problem in sorted.iter().take(SHOWN_PROBLEMS) {
        let _ = writeln!(text, "{}", printable(&format!("{prefix}{problem}")));
    }
    if sorted.len() > SHOWN_PROBLEMS {
        let _ = writeln!(
            text,
            "{prefix}... and {} more",
            sorted.len() - SHOWN_PROBLEMS
        );
    }
    text
}

/// As many characters of a line are shown.
const SHOWN_CHARACTERS: usize = 4_000;

/// Text that came from content, made [`visible`] and without what is too long to read.
pub(super) fn printable(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => visible(text.get(..end).unwrap_or_default()) + "…",
        None => visible(text),
    }
}

/// Text that came from content, with everything that could steer a terminal or forge a line made visible.
pub(super) fn visible(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) {
            safe.extend(character.escape_unicode());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Whether a character could steer a terminal or forge a line.
pub(super) fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_made_visible() {
        assert_eq!(
            printable("a\u{1b}[31m\n\u{202e}ü"),
            "a\\u{1b}[31m\\u{a}\\u{202e}ü"
        );
    }
}
