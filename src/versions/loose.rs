//! The words of a constraint: white space, and versions in which anything but the first number may be missing or a
//! wildcard.
//!
//! Stands for the regular expressions of Masterminds/semver v3.5.0 (`cvRegex` in `constraints.go`), of which every
//! step is settled by the next character, so nothing is ever read twice.

/// A version as a constraint writes it: `v1.2`, `1.x`, `*`, `1.2.3-rc.1+build`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LooseVersion<'a> {
    /// The whole of it.
    pub(super) text: &'a str,
    /// The first number or wildcard, or what may yet turn out to be neither, as for the others: `1x`.
    pub(super) major: &'a str,
    /// The second, if there is one.
    pub(super) minor: Option<&'a str>,
    /// The third, if there is one.
    pub(super) patch: Option<&'a str>,
    /// What follows the `-`, without it; empty if there is none.
    pub(super) pre: &'a str,
}

impl<'a> LooseVersion<'a> {
    /// Reads the version that a text begins with, and gives it with what follows it.
    pub(super) fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = run(rest, is_of_number)?;
        let (minor, rest) = read_after_dot(rest);
        // Where the second number is missing, there is no dot for the third either.
        let (patch, rest) = read_after_dot(rest);
        let (pre, rest) = read_identifiers('-', rest);
        let (_, rest) = read_identifiers('+', rest);
        let text = text.strip_suffix(rest).unwrap_or(text);
        let version = LooseVersion {
            text,
            major,
            minor,
            patch,
            pre,
        };
        Some((version, rest))
    }
}

/// A text without the white space that it begins with.
pub(super) fn skip_space(text: &str) -> &str {
    text.trim_start_matches(['\t', '\n', '\x0c', '\r', ' '])
}

/// A text without the white space that it begins with, if it does.
pub(super) fn require_space(text: &str) -> Option<&str> {
    let rest = skip_space(text);
    (rest.len() < text.len()).then_some(rest)
}

/// The character class of the upstream expression, which takes a `|` as well.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*' | '|')
}

fn is_of_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// What a text begins with, if that is at least one character of a kind.
fn run(text: &str, is_of_kind: fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_of_kind(c)).unwrap_or(text.len());
    text.split_at_checked(end)
        .filter(|(run, _)| !run.is_empty())
}

fn read_after_dot(text: &str) -> (Option<&str>, &str) {
    match text
        .strip_prefix('.')
        .and_then(|rest| run(rest, is_of_number))
    {
        Some((number, rest)) => (Some(number), rest),
        None => (None, text),
    }
}

/// Identifiers between dots, after the sign that says what they are; none where it is followed by no identifier.
fn read_identifiers(sign: char, text: &str) -> (&str, &str) {
    let Some(identifiers) = text.strip_prefix(sign) else {
        return ("", text);
    };
    let Some((_, mut rest)) = run(identifiers, is_of_identifier) else {
        return ("", text);
    };
    while let Some((_, next)) = rest
        .strip_prefix('.')
        .and_then(|rest| run(rest, is_of_identifier))
    {
        rest = next;
    }
    (identifiers.strip_suffix(rest).unwrap_or(identifiers), rest)
}
