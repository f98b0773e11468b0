//! Finds the documents of a catalog's file, and what each says it is, without building them.
//!
//! A file is read by the piece, once. Of each document only `schema`, `package` and `name` are looked at: in JSON
//! serde_json passes over the rest, in YAML [`skim`] does. Where that is not certain the full reader decides: for one
//! document, or, when not even the bounds between documents are certain, for the whole file.
//!
//! Documents are parted as by [`yaml::read`], which follows `YAMLOrJSONDecoder` of k8s.io/apimachinery.

use std::{
    fmt,
    io::{self, Read},
};

use memchr::{memchr, memmem};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::{
    index::Entry,
    parse::{self, BLOB_RULE, Head},
    skim::skim,
    window::Window,
};
use crate::{
    limits::Limits,
    manifest::yaml,
    problem::{Place, Problem},
};

/// How a database begins, which a catalog was before there were file-based ones.
const SQLITE: &[u8] = b"SQLite format 3\0";

const OLD_FORM: &str =
    "it is a catalog in the old SQLite form, which is not read; convert it with `opm migrate`";

/// Lists the documents of one file, in order. `file` is its position among the catalog's files.
///
/// # Errors
/// When the file cannot be read, a limit is reached, or documents are no blobs of a catalog; all of them are told.
pub(super) fn scan<'c>(
    path: &str,
    file: usize,
    open: impl Fn() -> io::Result<Box<dyn Read + 'c>>,
    limits: &Limits,
) -> Result<Vec<Entry>, Vec<Problem>> {
    let mut scan = Scan {
        path,
        file,
        limits,
        entries: vec![],
        problems: vec![],
    };
    let by_the_piece =
        open().and_then(|reader| scan.pieces(Window::new(reader, limits.file_bytes)));
    let scanned = match by_the_piece {
        Ok(Certainty::Certain) => Ok(()),
        Ok(Certainty::Uncertain) => open().and_then(|reader| scan.whole(reader)),
        Err(error) => Err(error),
    };
    if let Err(error) = scanned {
        scan.refuse(0, error.to_string());
    }
    if scan.problems.is_empty() {
        Ok(scan.entries)
    } else {
        Err(scan.problems)
    }
}

/// Whether the quick way knows what the full reader would say.
enum Certainty {
    Certain,
    Uncertain,
}

struct Scan<'s> {
    path: &'s str,
    file: usize,
    limits: &'s Limits,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
}

impl Scan<'_> {
    fn refuse(&mut self, line: usize, message: impl Into<String>) {
        let path = self.path.to_owned();
        let problem = Problem::error(BLOB_RULE, message).at(Place { path, line });
        self.problems.push(problem);
    }

    fn add(&mut self, head: Head, (start, end): (u64, u64), line: usize, ordinal: usize) {
        self.entries.push(Entry {
            head,
            file: self.file,
            start,
            end,
            line,
            ordinal,
        });
    }

    fn pieces(&mut self, mut window: Window<'_>) -> io::Result<Certainty> {
        window.read_on()?;
        if window.rest().starts_with(SQLITE) {
            return Err(io::Error::other(OLD_FORM));
        }
        match window.rest().trim_ascii_start().first() {
            Some(b'{') => self.json(window),
            _ => self.yaml(window),
        }
    }

    fn json(&mut self, mut window: Window<'_>) -> io::Result<Certainty> {
        loop {
            let (heads, certainty) = json_heads(window.rest(), window.is_last);
            if let Certainty::Uncertain = certainty {
                return Ok(Certainty::Uncertain);
            }
            let mut passed = 0;
            for (head, start, end) in heads {
                window.advance(start - passed);
                let (position, line) = (window.position, window.line);
                window.advance(end - start);
                if head.schema.is_empty() {
                    self.refuse(line, "the document has no schema");
                } else {
                    self.add(head, (position, window.position), line, 0);
                }
                passed = end;
            }
            if window.is_last {
                return Ok(Certainty::Certain);
            }
            window.read_on()?;
        }
    }

    fn yaml(&mut self, mut window: Window<'_>) -> io::Result<Certainty> {
        loop {
            let Some(end) = yaml_end(window.rest(), window.is_last) else {
                window.read_on()?;
                continue;
            };
            let text = window.rest().get(..end).unwrap_or_default();
            if !opens_plainly(text) {
                return Ok(Certainty::Uncertain);
            }
            let (position, line) = (window.position, window.line);
            let part = (position, position + end as u64);
            match skim(text) {
                Some(head) => self.add(head, part, line, 0),
                None => {
                    let text = text.to_vec();
                    self.full(&text, part, line);
                }
            }
            window.advance(end);
            match separator_end(window.rest(), window.is_last) {
                Some(0) => return Ok(Certainty::Certain),
                Some(end) => window.advance(end),
                None => return Ok(Certainty::Uncertain),
            }
        }
    }

    /// Has the full reader say what the documents of a part are.
    fn full(&mut self, text: &[u8], part: (u64, u64), line: usize) {
        match yaml::read(text, self.limits) {
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

    fn whole(&mut self, reader: Box<dyn Read + '_>) -> io::Result<()> {
        self.entries.clear();
        self.problems.clear();
        let limit = self.limits.file_bytes;
        let mut text = vec![];
        reader
            .take(limit.saturating_add(1))
            .read_to_end(&mut text)?;
        if text.len() as u64 > limit {
            let message = format!(
                "the file is not an everyday one, and larger than the limit of {limit} bytes for such (--no-limits lifts it for content you trust)"
            );
            return Err(io::Error::other(message));
        }
        self.full(&text, (0, text.len() as u64), 1);
        Ok(())
    }
}

/// The bound of the first document: where the next separator begins, or the end of the file. Nothing when it, or the
/// line of the separator, is not at hand yet.
fn yaml_end(text: &[u8], is_last: bool) -> Option<usize> {
    match memmem::find(text, b"\n---") {
        Some(at) => {
            let separator = text.get(at + 1..).unwrap_or_default();
            (is_last || memchr(b'\n', separator).is_some()).then_some(at + 1)
        }
        None => is_last.then_some(text.len()),
    }
}

/// Where the line of a separator ends, which stands between documents and is a part of none; nothing when it is not an
/// everyday one.
fn separator_end(text: &[u8], is_last: bool) -> Option<usize> {
    let end = memchr(b'\n', text).map(|end| end + 1);
    let end = end.or_else(|| is_last.then_some(text.len()))?;
    let rest = text.get(..end)?.trim_ascii();
    let rest = rest.strip_prefix(b"---").unwrap_or(rest).trim_ascii();
    (rest.is_empty() || rest.starts_with(b"#")).then_some(end)
}

/// Whether a document begins as an everyday one does: with nothing that is for the whole stream, nothing behind a
/// separator of its own, and not with what would be JSON if it stood alone.
fn opens_plainly(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match first.strip_prefix(b"---") {
        Some(rest) => rest.trim_ascii().is_empty(),
        None => ![&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"{"]
            .iter()
            .any(|start| first.starts_with(start)),
    }
}

/// What the JSON documents at hand say they are, each with where it starts and ends.
fn json_heads(text: &[u8], is_last: bool) -> (Vec<(Head, usize, usize)>, Certainty) {
    let mut heads = vec![];
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<JsonHead>();
    let mut passed = 0;
    while let Some(document) = documents.next() {
        match document {
            Ok(JsonHead(head)) => {
                let end = documents.byte_offset();
                let between = text.get(passed..end).unwrap_or_default();
                let blank = between.len() - between.trim_ascii_start().len();
                heads.push((head, passed + blank, end));
                passed = end;
            }
            Err(error) if error.is_eof() && !is_last => break,
            Err(_) => return (heads, Certainty::Uncertain),
        }
    }
    (heads, Certainty::Certain)
}

/// The head of a JSON document; everything else of it is passed over.
struct JsonHead(Head);

impl<'de> Deserialize<'de> for JsonHead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor).map(Self)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let mut found: [Option<String>; 3] = Default::default();
        while let Some(key) = map.next_key::<Key>()? {
            let Key::Head(place) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let text = map.next_value::<String>()?;
            match found.get_mut(place) {
                Some(found @ None) => *found = Some(text),
                _ => return Err(A::Error::custom("a key stands twice")),
            }
        }
        let [schema, package, name] = found.map(Option::unwrap_or_default);
        Ok(Head {
            schema,
            package,
            name,
        })
    }
}

/// A key of a document: one of a head, by its position there, or another.
enum Key {
    Head(usize),
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
                let mut keys = ["schema", "package", "name"].into_iter();
                let place = keys.position(|known| known.eq_ignore_ascii_case(key));
                Ok(place.map_or(Key::Other, Key::Head))
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}
