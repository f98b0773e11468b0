//! What is found while a value is brought into the form of a Go type, and where.
//!
//! A path costs nothing until something is found: it is a chain of borrowed segments on the stack, written out only
//! for a finding. Content is hostile, so that what is written out is bounded: so many findings, so long a path.

use std::fmt;

use serde_json::Value;

/// As many findings of one kind are listed; the rest is only counted.
const LISTED: usize = 1000;
/// As many segments of a path are written at each of its ends.
const SEGMENTS: usize = 40;
/// As many characters of a key, or of a string that was found, are written.
const CHARACTERS: usize = 80;

/// Something in a value that Go refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where it is: `spec.template.spec.containers[0].env[2].name`, empty for the value as a whole.
    pub path: String,
    /// What was expected, what was found, and the fix if there is an obvious one.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// All that was found in one value, in the order of the value.
#[derive(Debug, Default)]
pub struct Findings {
    /// What Go refuses. With one of these the value is not to be used.
    pub errors: Vec<Finding>,
    /// The paths of what Go reads over, and that is gone from the value: fields that the Go type does not have.
    pub dropped: Vec<String>,
    /// How many more errors and dropped fields there are than the lists hold.
    pub unlisted: usize,
}

impl Findings {
    /// Notes a value that Go refuses.
    #[cold]
    pub(super) fn refuse(&mut self, at: &Path<'_>, problem: String) {
        if self.errors.len() < LISTED {
            let path = at.to_string();
            self.errors.push(Finding { path, problem });
        } else {
            self.unlisted += 1;
        }
    }

    /// Notes a value of the wrong JSON type; `expected` is what there should be, with its article.
    #[cold]
    pub(super) fn wrong_type(&mut self, at: &Path<'_>, expected: &str, found: &Value) {
        let fix = fix(expected, found);
        self.refuse(
            at,
            format!("expected {expected}, found {}{fix}", describe(found)),
        );
    }

    /// Notes a value that Go reads over.
    #[cold]
    pub(super) fn drop(&mut self, at: &Path<'_>) {
        if self.dropped.len() < LISTED {
            self.dropped.push(at.to_string());
        } else {
            self.unlisted += 1;
        }
    }
}

/// Where in a value one is: the way back to its root.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The value itself.
    Root,
    /// A field of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = Vec::new();
        let mut at = self;
        loop {
            segments.push(at);
            match at {
                Path::Root => break,
                Path::Key(parent, _) | Path::Index(parent, _) => at = parent,
            }
        }
        segments.reverse();
        let first_of_end = segments.len().saturating_sub(SEGMENTS);
        for (position, segment) in segments.iter().enumerate().skip(1) {
            match segment {
                _ if position == SEGMENTS && position < first_of_end => f.write_str("[...]")?,
                _ if position > SEGMENTS && position < first_of_end => {}
                Path::Key(_, key) => write_key(f, key, position == 1)?,
                Path::Index(_, index) => write!(f, "[{index}]")?,
                Path::Root => {}
            }
        }
        Ok(())
    }
}

/// Writes a key as `.key`, or as `["key"]` if it would not be read as one word.
fn write_key(f: &mut fmt::Formatter<'_>, key: &str, first: bool) -> fmt::Result {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    if key.is_empty() || key.len() > CHARACTERS || !key.chars().all(word) {
        return write!(f, "[{}]", quoted(key));
    }
    if !first {
        f.write_str(".")?;
    }
    f.write_str(key)
}

/// A string as JSON writes it, cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", Value::from(&text[..end])),
        None => Value::from(text).to_string(),
    }
}

/// A found value in words.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean {value}"),
        Value::Number(_) => format!("the number {value}"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The obvious fix for a value of the wrong type, to be put after the sentence that describes it.
fn fix(expected: &str, found: &Value) -> &'static str {
    match (expected, found) {
        ("a string", Value::Number(_) | Value::Bool(_)) => "; quote it",
        ("an integer" | "a number" | "a boolean", Value::String(text)) => {
            let inner: Option<Value> = serde_json::from_str(text).ok();
            match inner {
                Some(Value::Bool(_)) if expected == "a boolean" => "; take its quotes off",
                Some(Value::Number(_)) if expected != "a boolean" => "; take its quotes off",
                _ => "",
            }
        }
        ("a list", Value::Object(_) | Value::String(_)) => "; make it an item of a list",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_one_would_type_it() {
        let spec = Path::Key(&Path::Root, "spec");
        let first = Path::Index(&spec, 0);
        let label = Path::Key(&first, "example.com/name");
        assert_eq!(
            Path::Key(&label, "x").to_string(),
            "spec[0][\"example.com/name\"].x"
        );
        assert_eq!(Path::Root.to_string(), "");
    }

    #[test]
    fn long_paths_and_long_keys_are_cut() {
        fn descend(at: &Path<'_>, left: usize) -> String {
            match left {
                0 => at.to_string(),
                _ => descend(&Path::Key(at, "x"), left - 1),
            }
        }
        let deep = descend(&Path::Root, 5000);
        assert!(deep.contains("x[...].x"), "{deep}");
        assert!(deep.len() < 200, "{deep}");
        let key = "k".repeat(5000);
        assert!(Path::Key(&Path::Root, &key).to_string().len() < 100);
    }

    #[test]
    fn findings_beyond_the_bound_are_counted() {
        let mut findings = Findings::default();
        for _ in 0..LISTED + 5 {
            findings.drop(&Path::Root);
        }
        assert_eq!((findings.dropped.len(), findings.unlisted), (LISTED, 5));
    }
}
