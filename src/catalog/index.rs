//! Where each document of a catalog stands, by the package that it belongs to, and the stored form of that: what was
//! found once need not be looked for again, and of a large list only what is asked for is read.
//!
//! Stored are a line with a checksum, a table of the packages, and for each package a line for each document.

use std::collections::BTreeMap;

use rayon::prelude::*;
use twox_hash::XxHash64;

use super::{content::Content, entry::Entry, index_ignore, scan::scan};
use crate::{limits::Limits, problem::Problem};

/// Every document of a catalog.
#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// The paths of the catalog's files, in byte order.
    pub files: Vec<String>,
    packages: Packages,
}

#[derive(Debug, PartialEq, Eq)]
enum Packages {
    /// The documents of each package.
    Found(BTreeMap<String, Vec<Entry>>),
    /// The part of the text, counted from its end, that lists the documents of each package.
    Stored(String, BTreeMap<String, (usize, usize)>),
}

/// What a stored index begins with. Another form of it begins otherwise, and so does that of another version.
const MAGIC: &str = concat!(
    "kubectl-olm ",
    env!("CARGO_PKG_VERSION"),
    " catalog index 2 "
);

impl Index {
    /// Lists the documents of a catalog.
    ///
    /// # Errors
    /// When a file cannot be read, a limit is reached, or documents are no blobs of a catalog; all of them are told.
    pub fn build(content: &dyn Content, limits: &Limits) -> Result<Self, Vec<Problem>> {
        let files = index_ignore::kept(content)?;
        let scanned: Vec<_> = files
            .par_iter()
            .enumerate()
            .map(|(file, (path, size))| scan(content, path, *size, file, limits))
            .collect();
        let (mut packages, mut problems) = (BTreeMap::<_, Vec<_>>::new(), vec![]);
        for scanned in scanned {
            for entry in scanned.unwrap_or_else(|found| {
                problems.extend(found);
                vec![]
            }) {
                match packages.get_mut(entry.head.owner()) {
                    Some(of_package) => of_package.push(entry),
                    None => drop(packages.insert(entry.head.owner().to_owned(), vec![entry])),
                }
            }
        }
        if problems.is_empty() {
            let files = files.into_iter().map(|(path, _)| path).collect();
            let packages = Packages::Found(packages);
            Ok(Self { files, packages })
        } else {
            Err(problems)
        }
    }

    /// The names of all packages, sorted; the empty one when documents belong to none.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        let (found, stored) = match &self.packages {
            Packages::Found(packages) => (Some(packages.keys()), None),
            Packages::Stored(_, parts) => (None, Some(parts.keys())),
        };
        let found = found.into_iter().flatten();
        found
            .chain(stored.into_iter().flatten())
            .map(String::as_str)
    }

    /// The documents of a package, in the order in which the files have them.
    #[must_use]
    pub fn entries(&self, package: &str) -> Vec<Entry> {
        match &self.packages {
            Packages::Found(packages) => packages.get(package).cloned().unwrap_or_default(),
            Packages::Stored(text, parts) => {
                let part = parts.get(package).and_then(|(start, end)| {
                    let from = text.len().checked_sub(*start)?;
                    text.get(from..text.len().checked_sub(*end)?)
                });
                let lines = part.unwrap_or_default().lines();
                // Nothing is left out here: the checksum says that they are what was stored.
                lines.filter_map(Entry::of_line).collect()
            }
        }
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut lists = String::new();
        let mut parts = BTreeMap::new();
        for name in self.packages() {
            let start = lists.len();
            for entry in self.entries(name) {
                lists += &entry.to_line();
                lists.push('\n');
            }
            parts.insert(name, (start, lists.len()));
        }
        for (start, end) in parts.values_mut() {
            (*start, *end) = (lists.len() - *start, lists.len() - *end);
        }
        let table = serde_json::to_string(&(&self.files, parts)).unwrap_or_default();
        let body = format!("{table}\n{lists}");
        format!("{MAGIC}{}\n{body}", checksum(&body)).into_bytes()
    }

    /// Reads the stored form; nothing when it is damaged or of another version.
    #[must_use]
    pub fn decode(stored: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(stored).ok()?;
        let (first, body) = text.split_once('\n')?;
        if first.strip_prefix(MAGIC)? != checksum(body) {
            return None;
        }
        let (table, _) = body.split_once('\n')?;
        let (files, parts) = serde_json::from_str(table).ok()?;
        let packages = Packages::Stored(text, parts);
        Some(Self { files, packages })
    }
}

/// Enough to notice damage; it protects from nobody who may write the file.
fn checksum(text: &str) -> String {
    format!("{:016x}", XxHash64::oneshot(0, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FileTree;

    fn index() -> Index {
        let mut files = FileTree::default();
        let text =
            "schema: olm.package\nname: a\n---\nschema: olm.bundle\npackage: a\nname: \"b\\tc\"\n";
        files.insert("a.yaml", text.into()).expect("a path");
        let text = r#"{"schema": "x", "package": "b"} {"schema": "y"}"#;
        files.insert("b.json", text.into()).expect("a path");
        Index::build(&files, &Limits::DEFAULT).expect("an index")
    }

    #[test]
    fn the_stored_form_says_the_same() {
        let found = index();
        let stored = Index::decode(found.encode()).expect("an index");
        assert_eq!(stored.files, found.files);
        assert_eq!(found.packages().collect::<Vec<_>>(), ["", "a", "b"]);
        assert!(stored.packages().eq(found.packages()));
        for package in found.packages() {
            assert_eq!(stored.entries(package), found.entries(package));
        }
        assert_eq!(found.entries("a")[1].head.name, "b\tc");
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let whole = index().encode();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(Index::decode(damaged), None, "byte {at}");
            assert_eq!(Index::decode(whole[..at].to_vec()), None, "cut at {at}");
        }
    }
}
