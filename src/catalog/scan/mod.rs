//! Finds the documents of a catalog's file, and what each says it is, without building them.
//!
//! A file is read by the piece, once. Of each document only `schema`, `package` and `name` are looked at: in JSON
//! serde_json passes over the rest, in YAML [`yaml`] does. Where that is not certain the full reader decides: for one
//! document, or, when not even the bounds between documents are certain, for the whole file.
//!
//! Documents are parted as by [`manifest::yaml::read`], which follows `YAMLOrJSONDecoder` of k8s.io/apimachinery.

mod json;
mod window;
mod yaml;

use std::io::{self, Read};

use memchr::memmem;
use rayon::prelude::*;

use self::window::Window;
use super::{
    content::Content,
    entry::Entry,
    parse::{self, BLOB_RULE, Head},
};
use crate::{
    limits::Limits,
    manifest,
    problem::{Place, Problem},
};

/// How a database begins, which a catalog was before there were file-based ones.
const SQLITE: &[u8] = b"SQLite format 3\0";

const OLD_FORM: &str =
    "it is a catalog in the old SQLite form, which is not read; convert it with `opm migrate`";

/// Larger files are looked through in parts of about this size, side by side.
const PART: u64 = 32 << 20;

/// Where a part may begin is looked for in so many bytes.
const LOOKED_AT: u64 = 1 << 20;

/// Lists the documents of one file, in order. `file` is its position among the catalog's files.
///
/// # Errors
/// When the file cannot be read, a limit is reached, or documents are no blobs of a catalog; all of them are told.
pub(super) fn scan(
    content: &dyn Content,
    path: &str,
    size: u64,
    file: usize,
    limits: &Limits,
) -> Result<Vec<Entry>, Vec<Problem>> {
    let source = Source {
        content,
        path,
        file,
        limits,
    };
    scan_in_parts(source, size, PART)
}

fn scan_in_parts(source: Source<'_>, size: u64, part: u64) -> Result<Vec<Entry>, Vec<Problem>> {
    let refuse = |error: io::Error| vec![source.problem(0, error.to_string())];
    let form = source.form().map_err(refuse)?;
    let starts = source.starts(form, size, part).map_err(refuse)?;
    // Where a part was thought to begin and does not, the file is looked through as one.
    let mut found = source.parts(form, &starts, size).map_err(refuse)?;
    if found.is_none() && starts.len() > 1 {
        found = source.parts(form, &[0], size).map_err(refuse)?;
    }
    // What begins as JSON may go on as YAML.
    if found.is_none() && form == Form::Json {
        found = source.parts(Form::Yaml, &[0], size).map_err(refuse)?;
    }
    let found = match found {
        Some(found) => found,
        None => source.whole().map_err(refuse)?,
    };
    if found.problems.is_empty() {
        Ok(found.entries)
    } else {
        Err(found.problems)
    }
}

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Yaml,
}

/// The file.
#[derive(Clone, Copy)]
struct Source<'s> {
    content: &'s dyn Content,
    path: &'s str,
    file: usize,
    limits: &'s Limits,
}

impl Source<'_> {
    fn problem(&self, line: usize, message: impl Into<String>) -> Problem {
        let path = self.path.to_owned();
        Problem::error(BLOB_RULE, message).at(Place { path, line })
    }

    fn form(&self) -> io::Result<Form> {
        let mut window = Window::new(self.content.open(self.path, 0..u64::MAX)?, 0, LOOKED_AT);
        window.read_on()?;
        if window.rest().starts_with(SQLITE) {
            return Err(io::Error::other(OLD_FORM));
        }
        Ok(match window.rest().trim_ascii_start().first() {
            Some(b'{') => Form::Json,
            _ => Form::Yaml,
        })
    }

    /// Where the parts of the file are thought to begin, the first of them at its start. In JSON a line break is never
    /// inside a string, so a brace behind one may begin a document; in YAML a separator begins one.
    fn starts(&self, form: Form, size: u64, part: u64) -> io::Result<Vec<u64>> {
        let mut starts = vec![0];
        let delimiter: &[u8] = match form {
            Form::Json => b"\n{",
            Form::Yaml => b"\n---",
        };
        for from in (1..size / part).map(|number| number * part) {
            let mut text = vec![];
            let mut reader = self.content.open(self.path, from..from + LOOKED_AT)?;
            reader.read_to_end(&mut text)?;
            let start = memmem::find(&text, delimiter).map(|at| from + at as u64 + 1);
            // A large document may reach over several parts.
            let last = starts.last().copied();
            starts.extend(start.filter(|start| Some(*start) > last));
        }
        Ok(starts)
    }

    /// Looks through the parts; nothing when that does not tell for certain what the full reader would say. Each part
    /// must end with a document, and then the next one begins with one.
    fn parts(&self, form: Form, starts: &[u64], size: u64) -> io::Result<Option<Scan<'_>>> {
        let ends = starts.iter().skip(1).copied().chain([size]);
        let parts: Vec<_> = starts.iter().copied().zip(ends).collect();
        let parts = parts.into_par_iter().map(|(start, end)| {
            let mut scan = Scan::new(*self);
            let reader = self.content.open(self.path, start..end)?;
            let window = Window::new(reader, start, self.limits.file_bytes);
            let certainty = match form {
                Form::Json => scan.json(window)?,
                Form::Yaml => scan.yaml(window)?,
            };
            Ok(match certainty {
                Certainty::Certain => Some(scan),
                Certainty::Uncertain => None,
            })
        });
        let parts = parts.collect::<io::Result<Option<Vec<_>>>>()?;
        Ok(parts.map(|parts| {
            let mut all = Scan::new(*self);
            for part in parts {
                all.append(part);
            }
            all
        }))
    }

    /// Has the full reader read the whole file.
    fn whole(&self) -> io::Result<Scan<'_>> {
        let limit = self.limits.file_bytes;
        let mut text = vec![];
        let reader = self.content.open(self.path, 0..u64::MAX)?;
        reader
            .take(limit.saturating_add(1))
            .read_to_end(&mut text)?;
        if text.len() as u64 > limit {
            let message = format!(
                "the file is not an everyday one, and larger than the limit of {limit} bytes for such (--no-limits lifts it for content you trust)"
            );
            return Err(io::Error::other(message));
        }
        let mut scan = Scan::new(*self);
        scan.full(&text, (0, text.len() as u64), 1);
        // Each of the documents is found by reading the file again.
        if (scan.entries.len() as u64).saturating_mul(text.len() as u64) > limit {
            let message = "the file is not an everyday one, and holds too many documents for such: put each between lines of `---` and nothing else (--no-limits takes it as it is)";
            return Err(io::Error::other(message));
        }
        Ok(scan)
    }
}

/// Whether the quick way knows what the full reader would say.
enum Certainty {
    Certain,
    Uncertain,
}

/// What was found in a part of the file.
struct Scan<'s> {
    source: Source<'s>,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    /// The line breaks of the part.
    breaks: usize,
}

impl<'s> Scan<'s> {
    fn new(source: Source<'s>) -> Self {
        Self {
            source,
            entries: vec![],
            problems: vec![],
            breaks: 0,
        }
    }

    /// Adds what was found in the part that follows.
    fn append(&mut self, next: Self) {
        let lines = self.breaks;
        self.entries
            .extend(next.entries.into_iter().map(|mut entry| {
                entry.line += lines;
                entry
            }));
        self.problems
            .extend(next.problems.into_iter().map(|mut problem| {
                problem.place.line += lines;
                problem
            }));
        self.breaks += next.breaks;
    }

    fn refuse(&mut self, line: usize, message: impl Into<String>) {
        let problem = self.source.problem(line, message);
        self.problems.push(problem);
    }

    fn add(&mut self, head: Head, (start, end): (u64, u64), line: usize, ordinal: usize) {
        self.entries.push(Entry {
            head,
            file: self.source.file,
            start,
            end,
            line,
            ordinal,
        });
    }

    fn json(&mut self, mut window: Window<'_>) -> io::Result<Certainty> {
        loop {
            window.read_on()?;
            let Some(heads) = json::heads(window.rest(), window.is_last) else {
                return Ok(Certainty::Uncertain);
            };
            let mut passed = 0;
            for (head, start, end) in heads {
                window.advance(start - passed);
                let length = end - start;
                let part = (window.position, window.position + length as u64);
                match head {
                    Some(head) => self.add(head, part, window.line, 0),
                    None => {
                        let text = window.rest().get(..length).unwrap_or_default().to_vec();
                        self.full(&text, part, window.line);
                    }
                }
                window.advance(length);
                passed = end;
            }
            if window.is_last {
                // White space may be left over.
                let rest = window.rest().len();
                window.advance(rest);
                self.breaks = window.line - 1;
                return Ok(Certainty::Certain);
            }
        }
    }

    fn yaml(&mut self, mut window: Window<'_>) -> io::Result<Certainty> {
        window.read_on()?;
        // All parts but the first begin with the separator that ended the one before.
        let mut is_first = window.position == 0;
        loop {
            let rest = window.rest();
            let separator = if is_first {
                Some(0)
            } else {
                yaml::separator_end(rest, window.is_last)
            };
            let Some(separator) = separator else {
                return Ok(Certainty::Uncertain);
            };
            let behind = rest.get(separator..).unwrap_or_default();
            let Some(length) = yaml::document_end(behind, window.is_last) else {
                window.read_on()?;
                continue;
            };
            let document = behind.get(..length).unwrap_or_default();
            let with_separator = rest.get(..separator + length).unwrap_or_default();
            let end = separator + length;
            if end == 0 {
                self.breaks = window.line - 1;
                return Ok(Certainty::Certain);
            }
            if !yaml::opens_plainly(document) {
                return Ok(Certainty::Uncertain);
            }
            let at = |offset: usize| window.position + offset as u64;
            let (start, line) = (at(separator), window.line + usize::from(separator > 0));
            match yaml::head(document) {
                Some(head) => self.add(head, (start, at(end)), line, 0),
                None if document.trim_ascii_start().starts_with(b"{") => {
                    // Alone, as at the start of the file, it is JSON; behind a separator it is YAML.
                    let separator = rest.get(..separator).unwrap_or_default().trim_ascii();
                    if !separator.is_empty() && separator != b"---" {
                        return Ok(Certainty::Uncertain);
                    }
                    let (text, part) = (with_separator.to_vec(), (at(0), at(end)));
                    self.full(&text, part, window.line);
                }
                None => {
                    let text = document.to_vec();
                    self.full(&text, (start, at(end)), line);
                }
            }
            window.advance(end);
            is_first = false;
        }
    }

    /// Has the full reader say what the documents of a part are.
    fn full(&mut self, text: &[u8], part: (u64, u64), line: usize) {
        match manifest::yaml::read(text, self.source.limits) {
            Ok(documents) => {
                for (ordinal, document) in documents.into_iter().enumerate() {
                    let at = line + document.line - 1;
                    match parse::head(&document.value) {
                        Ok(head) if head.schema.is_empty() => {
                            self.refuse(at, "the document has no schema");
                        }
                        Ok(head) => self.add(head, part, line, ordinal),
                        Err(message) => self.refuse(at, message),
                    }
                }
            }
            Err(error) => {
                let line = error.line().map_or(line, |within| line + within - 1);
                self.refuse(line, error.message());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FileTree;

    fn scanned(text: &str, part: u64) -> Result<Vec<Entry>, Vec<Problem>> {
        let mut files = FileTree::default();
        files.insert("a", text.into()).expect("a path");
        let source = Source {
            content: &files,
            path: "a",
            file: 0,
            limits: &Limits::DEFAULT,
        };
        scan_in_parts(source, text.len() as u64, part)
    }

    #[test]
    fn a_file_in_parts_is_the_file() {
        let texts = [
            "---\nschema: a\nname: b\n---\nschema: c\nx: |\n  text\n--- # more\nschema: d\n---\n---\nschema: e\n",
            "schema: a\nx:\n- b\n---\n\n# nothing\n---\n{schema: b}\n---\nschema: c\n",
            "{\n\"schema\": \"a\",\n\"x\": [\n{\n\"y\": {\n}\n}\n]\n}\n{\"schema\": \"b\"}\n{\n\"schema\": \"c\"\n}\n\n",
            "schema: a\n---\nname: b\n---\nschema: c\n---\n- d\n---\nname: 1\nschema: e\n",
        ];
        for text in texts {
            let whole = scanned(text, u64::MAX);
            assert!(whole.as_ref().map_or(2, Vec::len) > 1, "{text}");
            for part in 1..text.len() as u64 {
                assert_eq!(
                    comparable(scanned(text, part)),
                    comparable(whole.clone()),
                    "{part}: {text}"
                );
            }
        }
    }

    /// Without where exactly a document begins: a separator may be a part of it.
    fn comparable(
        scanned: Result<Vec<Entry>, Vec<Problem>>,
    ) -> Result<Vec<(Head, u64, usize)>, Vec<Problem>> {
        let entries = scanned?.into_iter();
        Ok(entries
            .map(|entry| (entry.head, entry.end, entry.ordinal))
            .collect())
    }
}
