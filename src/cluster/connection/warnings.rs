//! The warnings of an API server (`Warning: 299 - "text"`), each once in a run.
//!
//! Headers are read as k8s.io/apimachinery `pkg/util/net/http.go`, `ParseWarningHeader`, does, but for dates behind them,
//! which are passed over.

use std::collections::BTreeSet;

use super::super::{
    answer::clean,
    request::{Privacy, Request},
};

/// As many different warnings are kept in a run.
const MOST: usize = 50;
/// As many characters are kept of one.
const LONGEST: usize = 1_000;

/// The warnings of a run.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    /// All that came, to know them again.
    known: BTreeSet<String>,
    /// Those that nobody has taken yet.
    new: Vec<String>,
    is_full: bool,
}

impl Warnings {
    /// Adds those of a header.
    pub(super) fn add(&mut self, header: &[u8], request: &Request) {
        for text in texts(&String::from_utf8_lossy(header)) {
            let text = match request.privacy {
                Privacy::Open => clean(&text, LONGEST),
                Privacy::Secret => {
                    "a warning that is not shown, as it may repeat data of the Secret".to_owned()
                }
            };
            if text.is_empty() || self.known.contains(&text) {
                continue;
            }
            if self.known.len() < MOST {
                self.new.push(format!("{}: {text}", request.about));
                self.known.insert(text);
            } else if !self.is_full {
                self.is_full = true;
                self.new.push(format!(
                    "the API server has more than {MOST} warnings; the others are not shown"
                ));
            }
        }
    }

    /// Those that came since this was called last.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}

/// The texts of a header, which may hold several warnings: code, agent, quoted text and perhaps a quoted date each.
fn texts(header: &str) -> Vec<String> {
    let mut texts = vec![];
    let mut rest = header;
    while let Some(start) = rest.find('"') {
        let head = rest.get(..start).unwrap_or_default();
        let is_warning = head.trim_start_matches([',', ' ']).starts_with("299 ");
        let (text, length) = quoted(rest.get(start + 1..).unwrap_or_default());
        if is_warning {
            texts.push(text);
        }
        rest = rest.get(start + 1 + length..).unwrap_or_default();
    }
    texts
}

/// What stands before the quote that ends a text, without escapes, and how many bytes that and the quote take.
fn quoted(text: &str) -> (String, usize) {
    let mut unquoted = String::new();
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => {
                unquoted.push(character);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return (unquoted, at + 1),
            _ => unquoted.push(character),
        }
    }
    (unquoted, text.len())
}

#[cfg(test)]
mod tests {
    use super::{super::super::request::Accept, *};

    fn request(privacy: Privacy) -> Request {
        Request {
            privacy,
            ..Request::read("/", Accept::Whole, "queue/a")
        }
    }

    #[test]
    fn each_warning_is_told_once_and_cleaned() {
        let mut warnings = Warnings::default();
        let header = b"299 - \"old \\\"v1\\\" \x1b[31m\", 299 agent \"other\" \"Thu, 01 Jan 2026 00:00:00 GMT\", 199 - \"not ours\"";
        for _ in 0..2 {
            warnings.add(header, &request(Privacy::Open));
        }
        assert_eq!(
            warnings.take(),
            ["queue/a: old \"v1\" [31m", "queue/a: other"]
        );
        for broken in ["", "299", "299 - \"", "299 - \"\\", "\"\"\""] {
            warnings.add(broken.as_bytes(), &request(Privacy::Open));
        }
        assert!(warnings.take().is_empty());
    }

    #[test]
    fn there_are_not_more_than_a_person_reads() {
        let mut warnings = Warnings::default();
        for number in 0..1_000 {
            warnings.add(
                format!("299 - \"{number}\"").as_bytes(),
                &request(Privacy::Open),
            );
        }
        assert_eq!(warnings.take().len(), MOST + 1);
    }

    #[test]
    fn those_about_a_secret_are_not_repeated() {
        let mut warnings = Warnings::default();
        warnings.add(b"299 - \"value hunter2\"", &request(Privacy::Secret));
        assert!(!warnings.take().concat().contains("hunter2"));
    }
}
