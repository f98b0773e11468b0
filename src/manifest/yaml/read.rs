//! Splits a stream into documents and has each one read.
//!
//! This is `YAMLOrJSONDecoder`, `YAMLReader` and `LineReader` of k8s.io/apimachinery (`pkg/util/yaml/decoder.go`) as
//! cli-runtime's `StreamVisitor` uses them. UTF-16, which kubectl takes from files only, is not read.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memmem};

use super::{Document, ReadError, events, fast, json};
use crate::limits::Limits;

/// Which of the two YAML readers may answer. They agree, and tests hold them to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Via {
    /// The fast one where it is certain, else the full one.
    Either,
    /// The fast one only; what it leaves open is an error.
    FastOnly,
    /// The full one only.
    FullOnly,
}

/// Reads all documents of a YAML or JSON stream, as kubectl and OLM read a manifest.
///
/// A stream whose first byte other than white space is `{` is JSON as long as it can be read so; anything else is
/// YAML. Documents that are empty or null are left out.
///
/// # Errors
///
/// The first thing that is not valid or costs more than `limits` allow; no documents are given then.
pub fn read(text: &[u8], limits: &Limits) -> Result<Vec<Document>, ReadError> {
    read_via(Via::Either, text, limits)
}

/// As [`read`], by one reader or the other, so that tests can compare the two.
///
/// # Errors
///
/// As [`read`].
#[doc(hidden)]
pub fn read_via(via: Via, text: &[u8], limits: &Limits) -> Result<Vec<Document>, ReadError> {
    let text = normalized(check_encoding(text)?);
    let mut stream = Stream {
        via,
        text: &text,
        limits,
        line: 1,
        counted_to: 0,
        documents: Vec::new(),
    };
    if text.trim_start().starts_with('{') {
        stream.read_json()?;
    } else {
        stream.read_yaml(0)?;
    }
    Ok(stream.documents)
}

fn check_encoding(text: &[u8]) -> Result<&str, ReadError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(ReadError::invalid(
            1,
            "the text is UTF-16, convert it to UTF-8",
        ));
    }
    let line_of = |at: usize| 1 + memchr_iter(b'\n', &text[..at]).count();
    if let Some(at) = memchr(0, text) {
        return Err(ReadError::invalid(
            line_of(at),
            "found a NUL byte, this is not a text file",
        ));
    }
    std::str::from_utf8(text).map_err(|error| {
        ReadError::invalid(line_of(error.valid_up_to()), "the text is not valid UTF-8")
    })
}

/// Every line ends with a line feed alone, the last one too.
fn normalized(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if memmem::find(text.as_bytes(), b"\r\n").is_some() {
        text = Cow::Owned(text.replace("\r\n", "\n"));
    }
    if !text.ends_with('\n') {
        text.to_mut().push('\n');
    }
    text
}

struct Stream<'t> {
    via: Via,
    text: &'t str,
    limits: &'t Limits,
    /// The line on which the byte `counted_to` stands.
    line: usize,
    counted_to: usize,
    documents: Vec<Document>,
}

impl Stream<'_> {
    /// The line of the byte `at`. Only what lies between it and the byte asked for last is counted.
    fn line_of(&mut self, at: usize) -> usize {
        let breaks = |from: usize, to: usize| {
            let between = self.text.as_bytes().get(from..to).unwrap_or_default();
            memchr_iter(b'\n', between).count()
        };
        self.line = self.line + breaks(self.counted_to, at) - breaks(at, self.counted_to);
        self.counted_to = at;
        self.line
    }

    fn add(&mut self, document: Document) -> Result<(), ReadError> {
        if self.documents.len() >= self.limits.file_objects {
            return Err(ReadError::too_many_documents(document.line, self.limits));
        }
        if !document.value.is_null() {
            self.documents.push(document);
        }
        Ok(())
    }

    /// Reads JSON values. Where that fails before the third, the rest may still be YAML.
    fn read_json(&mut self) -> Result<(), ReadError> {
        let mut from = 0;
        let mut count = 0;
        loop {
            let rest = &self.text[from..];
            let start = from + (rest.len() - rest.trim_start().len());
            if start == self.text.len() {
                return Ok(());
            }
            let line = self.line_of(start);
            match json::parse(&self.text[start..], line, self.limits) {
                Ok(parsed) => {
                    from = start + parsed.end;
                    count += 1;
                    self.add(Document {
                        value: parsed.value,
                        line,
                        duplicate_keys: parsed.duplicate_keys,
                    })?;
                }
                Err(refusal) if refusal.is_json || count > 1 => return Err(refusal.error),
                Err(refusal) => return self.read_rest_as_yaml(from, refusal.error),
            }
        }
    }

    /// Of the two errors, the one for the format that was meant is shown.
    fn read_rest_as_yaml(&mut self, from: usize, json_error: ReadError) -> Result<(), ReadError> {
        let rest = &self.text[from..];
        let blank = rest.len() - rest.trim_start().len();
        let from =
            from + memchr(b'\n', &rest.as_bytes()[..blank]).map_or(blank, |line_end| line_end + 1);
        let meant_as_json = self.text[from..]
            .trim_start()
            .strip_prefix('{')
            .is_some_and(|inside| inside.trim_start().starts_with(['"', '}']));
        match self.read_yaml(from) {
            Err(ReadError::Invalid { .. }) if meant_as_json => Err(json_error),
            result => result,
        }
    }

    /// Reads the YAML documents behind `from`, which are parted by lines that begin with `---`.
    fn read_yaml(&mut self, from: usize) -> Result<(), ReadError> {
        let text = self.text;
        let bytes = &text.as_bytes()[from..];
        let first = bytes.starts_with(b"---").then_some(from);
        let others = memmem::find_iter(bytes, b"\n---").map(|at| from + at + 1);
        let mut start = from;
        for separator in first.into_iter().chain(others) {
            let line_end = memchr(b'\n', &text.as_bytes()[separator..])
                .map_or(text.len(), |end| separator + end + 1);
            self.check_separator(separator, line_end)?;
            // A separator with nothing before it opens its document, and its line belongs to it.
            if separator > start {
                self.read_document(start, separator)?;
                start = line_end;
            }
        }
        if start < text.len() {
            self.read_document(start, text.len())?;
        }
        Ok(())
    }

    fn check_separator(&mut self, at: usize, end: usize) -> Result<(), ReadError> {
        let rest = self.text[at + 3..end].trim();
        if rest.is_empty() || rest.starts_with('#') {
            return Ok(());
        }
        let message = "invalid document separator, only a comment may follow `---`";
        Err(ReadError::invalid(self.line_of(at), message))
    }

    fn read_document(&mut self, start: usize, end: usize) -> Result<(), ReadError> {
        let text = &self.text[start..end];
        let fast = match self.via {
            Via::FullOnly => None,
            Via::Either | Via::FastOnly => fast::parse(text, self.limits),
        };
        if let Some((value, at)) = fast {
            let line = self.line_of(start + at);
            return self.add(Document {
                value,
                line,
                duplicate_keys: Vec::new(),
            });
        }
        let line = self.line_of(start);
        if self.via == Via::FastOnly {
            return Err(ReadError::invalid(line, "left to the full reader"));
        }
        let parsed = events::parse(text, line, self.limits)?;
        self.add(Document {
            value: parsed.value,
            line: parsed.line,
            duplicate_keys: parsed.duplicate_keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn values(text: &str) -> Result<Vec<(usize, Value)>, String> {
        read(text.as_bytes(), &Limits::DEFAULT)
            .map(|documents| documents.into_iter().map(|d| (d.line, d.value)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn splits_at_separators_and_skips_what_is_empty() {
        let text = "# first\n---\na: 1\n--- # more\n---\n\n# two\nb: 2\n---\nnull\n---\n- &c 3";
        let expected = vec![(3, json!({"a": 1})), (8, json!({"b": 2})), (12, json!([3]))];
        assert_eq!(values(text), Ok(expected));
        let error = "line 2: invalid document separator, only a comment may follow `---`";
        assert_eq!(values("a: 1\n--- text\n"), Err(error.to_owned()));
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_do_not_matter() {
        let expected = vec![(1, json!({"a": "x\ny\n"}))];
        assert_eq!(values("\u{feff}a: |\r\n  x\r\n  y"), Ok(expected));
    }

    #[test]
    fn json_may_turn_into_yaml() {
        let expected = vec![(1, json!({"a": 1})), (3, json!({"b": 2}))];
        assert_eq!(values("{\"a\": 1}\n---\n{\"b\": 2}\n"), Ok(expected));
        assert_eq!(values("{a: 1}\n"), Ok(vec![(1, json!({"a": 1}))]));
        let expected = vec![(1, json!({})), (4, json!([1]))];
        assert_eq!(values("{}\n\n\n- &a 1\n"), Ok(expected));
        assert_eq!(values("{\"a\":\n  1,\n}\n"), Ok(vec![(1, json!({"a": 1}))]));
        let error = "line 2: expected value";
        assert_eq!(values("{\"a\":\n  ]}\n"), Err(error.to_owned()));
    }

    #[test]
    fn errors_stand_on_lines_of_the_file() {
        let error = "line 5: did not find expected ',' or ']' while parsing a flow sequence that begins on line 4";
        assert_eq!(
            values("a: 1\n---\nb:\n- [x,\n  y\n\n"),
            Err(error.to_owned())
        );
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let message = |text: &[u8]| read(text, &Limits::DEFAULT).map_err(|error| error.to_string());
        let nul = "line 2: found a NUL byte, this is not a text file";
        assert_eq!(message(b"a: 1\nb: \0\n"), Err(nul.to_owned()));
        assert_eq!(
            message(b"a: \xff\n"),
            Err("line 1: the text is not valid UTF-8".to_owned())
        );
        assert!(message(b"\xff\xfea\0").is_err_and(|error| error.contains("UTF-16")));
    }
}
