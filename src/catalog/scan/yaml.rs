//! What a YAML document says it is, by the lines of it that are not indented.
//!
//! The answer holds only where every such line is an everyday one; anything else is left to the full reader. A line
//! inside a multi-line string can look like a key of the document, but then either the document has that key as well,
//! which is seen here, or it has no such key, which whoever builds the document finds out.

use memchr::{memchr, memchr_iter, memchr3_iter, memmem};

use crate::{catalog::parse::Head, manifest::yaml};

/// The bound of the first document: where the next separator begins, or the end of the file. Nothing when it, or the
/// line of the separator, is not at hand yet.
pub(super) fn document_end(text: &[u8], is_last: bool) -> Option<usize> {
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
pub(super) fn separator_end(text: &[u8], is_last: bool) -> Option<usize> {
    let end = memchr(b'\n', text).map(|end| end + 1);
    let end = end.or_else(|| is_last.then_some(text.len()))?;
    let rest = text.get(..end)?.trim_ascii();
    let rest = rest.strip_prefix(b"---").unwrap_or(rest).trim_ascii();
    (rest.is_empty() || rest.starts_with(b"#")).then_some(end)
}

/// Whether a document begins as an everyday one does: with nothing that is for the whole stream, and nothing behind a
/// separator of its own.
pub(super) fn opens_plainly(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match first.strip_prefix(b"---") {
        Some(rest) => rest.trim_ascii().is_empty(),
        None => !first.starts_with(b"\xef\xbb\xbf") && !first.starts_with(b"\xff\xfe"),
    }
}

/// What a document says it is; nothing when that is not certain. `text` is one document, perhaps with the separator
/// that opens it.
pub(super) fn head(text: &[u8]) -> Option<Head> {
    let (mut schema, mut package, mut name) = (None, None, None);
    let (mut start, mut keys) = (0, 0);
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        let line = text.get(start..end)?;
        let opens_document = start == 0 && line.starts_with(b"---");
        start = end + 1;
        match line.first() {
            None | Some(b'#') => continue,
            // Once a key of the document is not indented, none is.
            Some(b' ') if keys > 0 || line.trim_ascii().is_empty() => continue,
            Some(b'-') if opens_document => continue,
            // An item of the list under the key before.
            Some(b'-') if keys > 0 && matches!(line.get(1), None | Some(b' ')) => continue,
            Some(byte) if byte.is_ascii_alphabetic() => keys += 1,
            Some(_) => return None,
        }
        let (key, value) = key_and_value(line)?;
        let place = match key.len() {
            6 if key.eq_ignore_ascii_case(b"schema") => &mut schema,
            7 if key.eq_ignore_ascii_case(b"package") => &mut package,
            4 if key.eq_ignore_ascii_case(b"name") => &mut name,
            _ => continue,
        };
        if place.is_some() || goes_on(text.get(start..).unwrap_or_default()) {
            return None;
        }
        *place = Some(scalar(value)?);
    }
    if has_other_breaks(text) {
        return None;
    }
    Some(Head {
        schema: schema.filter(|schema| !schema.is_empty())?,
        package: package.unwrap_or_default(),
        name: name.unwrap_or_default(),
    })
}

/// Whether a scalar may go on in the lines that follow.
fn goes_on(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| **byte != b'\n');
    next.is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'-'))
}

/// Whether the text has line breaks to libyaml other than the line feed.
fn has_other_breaks(text: &[u8]) -> bool {
    let is_break = |at: usize| {
        let here = text.get(at..).unwrap_or_default();
        let breaks: [&[u8]; 4] = [b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9"];
        breaks.iter().any(|bytes| here.starts_with(bytes))
    };
    memchr3_iter(b'\r', b'\xc2', b'\xe2', text).any(is_break)
}

/// Splits an everyday line `key: value`.
fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (key, rest) = line.split_at_checked(colon)?;
    let is_word = key.iter().all(u8::is_ascii_alphanumeric);
    let value = rest.get(1..)?;
    let is_key = matches!(value.first(), None | Some(b' '));
    (is_word && is_key).then_some((key, value))
}

/// The text that an everyday scalar on one line stands for.
fn scalar(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value.trim_ascii()).ok()?;
    let is_everyday = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@ ".contains(&byte);
    let text = match value.as_bytes() {
        [quote @ (b'"' | b'\''), inside @ .., last] if quote == last => {
            std::str::from_utf8(inside).ok()?
        }
        _ => yaml::plain_text(value)?,
    };
    text.bytes().all(is_everyday).then(|| text.to_owned())
}
