//! Conditions, as most kinds have them in `status.conditions`, and how they are told.

use serde_json::Value;

use super::text;

/// As many characters of what a controller says are told.
const TOLD_CHARACTERS: usize = 500;

/// A condition of an object.
pub(super) struct Condition<'v> {
    /// `type`: `Available`, `Ready`, ...
    pub(super) kind: &'v str,
    /// `True`, `False` or `Unknown`.
    pub(super) status: &'v str,
    /// `reason`: one word.
    pub(super) reason: &'v str,
    /// `message`: a sentence.
    pub(super) message: &'v str,
}

/// The conditions of an object, without entries that are no conditions.
pub(super) fn all(live: &Value) -> Vec<Condition<'_>> {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let conditions = conditions.iter().map(|condition| Condition {
        kind: text(condition, "/type"),
        status: text(condition, "/status"),
        reason: text(condition, "/reason"),
        message: text(condition, "/message"),
    });
    conditions.collect()
}

impl Condition<'_> {
    /// What the condition says, in one line: `Ready is False: DoesNotExist: the Secret does not exist`.
    pub(super) fn told(&self) -> String {
        let state = format!("{} is {}", self.kind, self.status);
        joined(&[&state, self.reason, self.message])
    }

    /// Why it is so, in one line: `DoesNotExist: the Secret does not exist`; `without` when it does not say.
    pub(super) fn why(&self, without: &str) -> String {
        match joined(&[self.reason, self.message]) {
            why if why.is_empty() => without.to_owned(),
            why => why,
        }
    }
}

/// What there is of the parts, in one line, with colons between them.
pub(super) fn joined(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| one_line(part)).collect();
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).collect();
    let parts: Vec<_> = parts.into_iter().map(String::as_str).collect();
    parts.join(": ")
}

/// Text of a controller in one line that is not too long to read.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (count, character) in text.trim().chars().enumerate() {
        if count == TOLD_CHARACTERS {
            line.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => line.push(' '),
            _ => line.push(character),
        }
    }
    line
}
