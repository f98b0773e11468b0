//! The list of the files in a folder that are ours: text, sorted, one name a line, comments after `#`. Behind a name may
//! stand whom the file was rendered for: `NAME OWNER,OWNER`.
//!
//! It is kept in Git with the files, so it is input like any other: each line must be a plain file name, or none of it
//! is used. The worst that a forged list can do is to name a YAML file in the same folder. Owners are compared and
//! nothing else. Where a merge of two branches left two lines of one name, the file belongs to the owners of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{FolderError, failed};

/// Hidden, and without an ending that kubectl, Argo CD or Flux would read.
pub(super) const LIST_FILE: &str = ".kubectl-olm-files";

const HEADER: &str = "# The files here that kubectl olm wrote: it replaces them, and removes those it no longer needs.\n";

/// More than any folder of ours needs, and little enough to read whole.
const MAX_BYTES: u64 = 16 << 20;

/// Whom a file was rendered for, each as an [`owner_word`].
pub(super) type Owners = BTreeSet<String>;

/// Names of files in the folder, each checked to be a plain file name, and their owners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct List(BTreeMap<String, Owners>);

impl List {
    /// Adds a name that is known to be plain; owners of one that is there already are added to it.
    pub(super) fn add(&mut self, name: &str, owners: Owners) {
        self.0.entry(name.to_owned()).or_default().extend(owners);
    }

    /// Reads the list of `folder`.
    pub(super) fn read(folder: &Path) -> Result<List, FolderError> {
        let path = folder.join(LIST_FILE);
        let unusable = |reason| FolderError::List {
            folder: folder.to_owned(),
            reason,
        };
        let metadata = fs::symlink_metadata(&path).map_err(failed("read", &path))?;
        if metadata.len() > MAX_BYTES {
            let reason = format!("it is larger than {} MB", MAX_BYTES >> 20);
            return Err(unusable(reason));
        }
        let bytes = fs::read(&path).map_err(failed("read", &path))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not text".to_owned()))?;
        List::parse(&text).map_err(unusable)
    }

    /// Gives the reason if a line is not a name. Line ends may be those of Windows, which Git may have made of ours.
    fn parse(text: &str) -> Result<List, String> {
        let mut list = List::default();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, owners) = match line.split_once(' ') {
                Some((name, owners)) => (name, Some(owners)),
                None => (line, None),
            };
            let unusable = |is_not: &str| {
                let (number, line) = (index + 1, excerpt(line));
                Err(format!(
                    "line {number} is not a file name of ours{is_not}: \"{line}\""
                ))
            };
            if !is_plain_name(name) {
                return unusable("");
            }
            let owners: Vec<_> = owners
                .into_iter()
                .flat_map(|owners| owners.split(','))
                .collect();
            if !owners.iter().all(|owner| is_owner_word(owner)) {
                return unusable(" and its owners");
            }
            list.add(name, owners.into_iter().map(str::to_owned).collect());
        }
        Ok(list)
    }

    /// The text of the list file; the same names always give the same bytes.
    pub(super) fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (name, owners) in &self.0 {
            text.push_str(name);
            for (index, owner) in owners.iter().enumerate() {
                let separator = if index == 0 { ' ' } else { ',' };
                let _ = write!(text, "{separator}{owner}");
            }
            text.push('\n');
        }
        text
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Owners)> {
        self.0.iter().map(|(name, owners)| (name.as_str(), owners))
    }

    /// The owners of a file; none when it is not listed.
    pub(super) fn owners(&self, name: &str) -> impl Iterator<Item = &String> {
        self.0.get(name).into_iter().flatten()
    }

    pub(super) fn union(&self, other: &List) -> List {
        let mut both = self.clone();
        for (name, owners) in other.iter() {
            both.add(name, owners.clone());
        }
        both
    }
}

/// The form in which an owner stands in the list: what could be taken for something else there is written as `%` and
/// two hexadecimal digits, so that different owners stay different.
pub(super) fn owner_word(owner: &str) -> String {
    let mut word = String::with_capacity(owner.len());
    for byte in owner.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b',' | b'%') {
            word.push(char::from(byte));
        } else {
            let _ = write!(word, "%{byte:02x}");
        }
    }
    word
}

fn is_owner_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a name is that of a YAML file directly in the folder, visible and of letters that are safe everywhere.
///
/// With no separators, no leading dot and no colon, it is neither a path nor one of our hidden files, nor a drive or a
/// stream on Windows.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 255
        && name.bytes().all(is_safe)
        && !name.starts_with(['.', '-'])
        && name.ends_with(".yaml")
}

/// The start of a line, safe for a terminal.
fn excerpt(line: &str) -> String {
    line.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_is_the_same_list() {
        let mut list = List::default();
        list.add("b.yaml", ["ops/b", "ops/a"].map(str::to_owned).into());
        list.add("c.yaml", ["ops/a".to_owned()].into());
        list.add("a.yaml", Owners::new());
        let text = list.to_text();
        assert_eq!(
            text,
            format!("{HEADER}a.yaml\nb.yaml ops/a,ops/b\nc.yaml ops/a\n")
        );
        assert_eq!(List::parse(&text).unwrap(), list);
        assert_eq!(List::parse(&text.replace('\n', "\r\n")).unwrap(), list);
    }

    #[test]
    fn lines_that_are_no_plain_names_are_refused() {
        let long = "a".repeat(256);
        let lines = [
            "..",
            ".",
            "../a.yaml",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:a",
            "a:b",
            "../a.yaml ops/a",
            "a.yaml ops/a,",
            "a.yaml ,ops/a",
            "a.yaml  ops/a",
            "a.yaml ops/a ops/b",
            "a.yaml ops/a\tb",
            "a.yaml ops/\u{202e}a",
            ".git",
            "README.md",
            "a.yml",
            "-rf",
            " a",
            "a ",
            "a.",
            "a\tb",
            "<<<<<<< HEAD",
            "=======",
            "ä",
            &long,
        ];
        for line in lines {
            let error = List::parse(&format!("# comment\na.yaml\n{line}\n")).unwrap_err();
            assert!(error.starts_with("line 3 is not a file name"), "{error}");
        }
    }

    #[test]
    fn lines_that_a_merge_left_add_up() {
        let merged = List::parse("a.yaml x,y\na.yaml y,z\nb.yaml\nb.yaml x\n").unwrap();
        assert_eq!(
            merged.to_text(),
            format!("{HEADER}a.yaml x,y,z\nb.yaml x\n")
        );
    }

    #[test]
    fn an_owner_is_one_word_and_no_two_are_the_same() {
        let owners = [
            "a b",
            "a,b",
            "a%20b",
            "a\nb",
            "ä",
            "a\u{202e}b",
            "a/b",
            "../b",
            "#",
        ];
        let words: BTreeSet<_> = owners.into_iter().map(owner_word).collect();
        assert_eq!(words.len(), owners.len());
        for word in &words {
            let mut list = List::default();
            list.add("a.yaml", [word.clone()].into());
            assert_eq!(List::parse(&list.to_text()).unwrap(), list, "{word}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_message() {
        let error = List::parse("a\u{1b}[2J\n").unwrap_err();
        assert_eq!(error, "line 1 is not a file name of ours: \"a\\u{1b}[2J\"");
    }
}
