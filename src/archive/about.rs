//! What stands in front of an entry of a tar archive about it: GNU long names and PAX records.

use std::io;

/// What stands in front of an entry about it.
#[derive(Default)]
pub(super) struct About {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// Whether there were records of each kind: PAX, GNU long name, GNU long link.
    pub(super) seen: [bool; 3],
}

impl About {
    /// Notes a GNU long name (1) or long link (2).
    pub(super) fn long(&mut self, which: usize, content: &[u8]) -> io::Result<()> {
        self.first(which)?;
        let end = content.iter().position(|byte| *byte == 0);
        let (name, rest) = content.split_at(end.unwrap_or(content.len()));
        if name.is_empty() || rest.iter().any(|byte| *byte != 0) {
            return Err(io::Error::other("a long name in it is none"));
        }
        let slot = if which == 1 {
            &mut self.path
        } else {
            &mut self.link
        };
        told_once(slot, name.to_vec())
    }

    /// Notes PAX records.
    pub(super) fn records(&mut self, content: &[u8]) -> io::Result<()> {
        self.first(0)?;
        each_record(content, |key, value| {
            if value.is_empty() && matches!(key, b"path" | b"linkpath" | b"size") {
                return Err(malformed());
            }
            match key {
                b"path" => told_once(&mut self.path, value.to_vec()),
                b"linkpath" => told_once(&mut self.link, value.to_vec()),
                b"size" => {
                    let is_number = value.iter().all(u8::is_ascii_digit);
                    let size = str::from_utf8(value).ok().filter(|_| is_number);
                    let size = size.and_then(|size| size.parse().ok());
                    told_once(&mut self.size, size.ok_or_else(malformed)?)
                }
                b"uid" | b"gid" | b"atime" | b"ctime" | b"mtime" if !is_decimal(value) => {
                    Err(malformed())
                }
                _ if key.starts_with(b"GNU.sparse.") => {
                    Err(io::Error::other("a file in it has holes"))
                }
                _ => Ok(()),
            }
        })
    }

    fn first(&mut self, which: usize) -> io::Result<()> {
        match self.seen.get_mut(which) {
            Some(seen) if !*seen => {
                *seen = true;
                Ok(())
            }
            _ => Err(twice()),
        }
    }
}

fn told_once<T>(slot: &mut Option<T>, value: T) -> io::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice()),
    }
}

fn twice() -> io::Error {
    io::Error::other("an entry in it has two names, sizes or sets of attributes")
}

/// Checks records that hold for all entries that follow: to some programs, while Go passes over them.
pub(super) fn global(content: &[u8]) -> io::Result<()> {
    each_record(content, |key, _| {
        let matters =
            matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse.");
        if matters {
            let message = "one path or size is told for all of its entries";
            return Err(io::Error::other(message));
        }
        Ok(())
    })
}

/// Whether a value is a number with perhaps a sign and a fraction; none at all stands for that of the header.
fn is_decimal(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"-").unwrap_or(value);
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().unwrap_or_default();
    let fits = whole.len() < 19 && (!whole.is_empty() || value.is_empty());
    fits && whole
        .iter()
        .chain(parts.next().unwrap_or_default())
        .all(u8::is_ascii_digit)
}

fn malformed() -> io::Error {
    io::Error::other("the attributes of an entry in it are malformed")
}

/// Goes through PAX records, each its length in digits, a space, a key, `=`, a value, and a line break.
fn each_record(
    mut content: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    while !content.is_empty() {
        let space = content.iter().take(8).position(|byte| *byte == b' ');
        let digits = content
            .get(..space.ok_or_else(malformed)?)
            .unwrap_or_default();
        let is_number = digits.iter().all(u8::is_ascii_digit);
        let length = str::from_utf8(digits).ok().filter(|_| is_number);
        let length: usize = length
            .and_then(|length| length.parse().ok())
            .ok_or_else(malformed)?;
        let record = content
            .get(digits.len() + 1..length)
            .ok_or_else(malformed)?;
        let record = record.strip_suffix(b"\n").ok_or_else(malformed)?;
        let equals = record.iter().position(|byte| *byte == b'=');
        let (key, value) = record.split_at(equals.ok_or_else(malformed)?);
        let value = value.get(1..).unwrap_or_default();
        let is_text = matches!(key, b"path" | b"linkpath" | b"uname" | b"gname");
        if key.is_empty() || key.contains(&0) || is_text && value.contains(&0) {
            return Err(malformed());
        }
        each(key, value)?;
        content = content.get(length..).unwrap_or_default();
    }
    Ok(())
}
